"""Unary encoding: tallies drawn from their exact distribution.

Every bit of every report is randomized independently, so each column is the sum of two
binomials, independent of all other columns.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from deniable.mechanisms import BasicRappor, UnaryEncoding
from deniable_collector.tally import TallyRow
from deniable_estimator.decoders.support import Items

__all__ = ["sample_rows"]


def sample_rows(
    mechanism: UnaryEncoding | BasicRappor,
    items: Items,
    counts: NDArray[np.int64],
    rng: np.random.Generator,
) -> tuple[TallyRow, ...]:
    """The tally of a crowd in which `counts[x]` devices have value x, shape (size,).

    `items` is every value, in order, and is ignored.
    """
    devices = int(counts.sum())
    cells = rng.binomial(counts, float(mechanism.p))
    cells += rng.binomial(devices - counts, float(mechanism.q))
    return (TallyRow(devices, cells),)

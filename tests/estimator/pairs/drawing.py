"""Tables of estimated cells, drawn from the exact distribution of their tallies."""

from __future__ import annotations

import numpy as np

from deniable.mechanisms import SubsetSelection
from deniable_estimator.analyses import analysis_of
from deniable_estimator.statistics.intervals import FloatArray


def drawn(
    mechanism: SubsetSelection, table: FloatArray, n: int, rng: np.random.Generator
) -> FloatArray:
    """The cells estimated from n devices, in the shape of the true table."""
    counts = rng.multinomial(n, table.ravel())
    (row,) = analysis_of(mechanism).sample_rows(range(table.size), counts, rng)
    p, q = float(mechanism.p), float(mechanism.q)
    found: FloatArray = ((row.cells / n - q) / (p - q)).reshape(table.shape)
    return found

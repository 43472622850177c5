"""RAPPOR's filters: tallies drawn from their exact distribution.

Given the filter of the device's string in its cohort, every bit of every report is independent.
So each cell is the sum of two binomials, independent of all other cells.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from deniable.mechanisms import OneTimeRappor, Rappor
from deniable_collector.tally import TallyRow
from deniable_estimator.decoders.hashed import hash_columns
from deniable_estimator.decoders.support import Items

__all__ = ["sample_rows"]


def sample_rows(
    mechanism: Rappor | OneTimeRappor,
    items: Items,
    counts: NDArray[np.int64],
    rng: np.random.Generator,
) -> tuple[TallyRow, ...]:
    """The tally of a crowd in which `counts[i]` devices have the string `items[i]`."""
    bloom = mechanism.bloom
    p11 = mechanism.p
    p01 = mechanism.rounds.p01 if isinstance(mechanism, Rappor) else 1 - p11
    columns = hash_columns(bloom.salt, bloom.cohorts * bloom.h, bloom.k, list(items))
    left = np.array(counts, np.int64)
    rows = []
    for cohort in range(bloom.cohorts):
        here = rng.binomial(left, 1 / (bloom.cohorts - cohort))
        left -= here
        bits = np.sort([next(columns) for _ in range(bloom.h)], axis=0)
        true = np.zeros(bloom.k, np.int64)
        for number, each in enumerate(bits):
            # Hashes that collide in one bit set it once.
            fresh = np.ones(len(here), bool) if number == 0 else each != bits[number - 1]
            np.add.at(true, each[fresh], here[fresh])
        devices = int(here.sum())
        cells = rng.binomial(true, float(p11)) + rng.binomial(devices - true, float(p01))
        rows.append(TallyRow(devices, cells))
    return tuple(rows)

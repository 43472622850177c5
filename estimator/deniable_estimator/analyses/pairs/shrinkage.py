"""A joint table that is nearer to the truth than the unbiased one, but biased towards independence.

Both margins are known much better than a cell. So the table is taken as the product of its
margins, and of each residual R = F - A B' only a part is added (the nonnegative garrote of
Breiman, Technometrics 1995) ::

    R (1 - c s**2 / R**2) if R**2 > c s**2, else 0;   s: the standard error of R

c is the one of `_CUTS` with the smallest estimate of the expected squared error, Stein's unbiased
one (Annals of Statistics 1981). In each cell, with z = R / s, it is ::

    s**2 (1 + (c**2 + 2 c) / z**2) if z**2 > c, else s**2 (z**2 - 1)

At c = 0 the table stays as it is. The shares that result are made nonnegative and sum to 1. They
have no intervals: those of the unbiased cells hold. `benchmarks/pairs.py` says how much it helps.
"""

from __future__ import annotations

import math

import numpy as np

from deniable_estimator.analyses.pairs.covariance import Covariance
from deniable_estimator.analyses.pairs.dependence import residuals
from deniable_estimator.statistics.intervals import FloatArray
from deniable_estimator.statistics.normalization import nearest

_CUTS = (0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, math.inf)


def shrunken(table: FloatArray, covariance: Covariance) -> FloatArray:
    """The shrunken table of the estimated cells, shape (k1, k2): not negative, and its sum is 1."""
    product = np.outer(nearest(table.sum(axis=1), 1.0), nearest(table.sum(axis=0), 1.0))
    apart = residuals(table, covariance)
    noise = apart.std_error**2
    z2 = np.maximum((table - product) ** 2 / noise, 1e-12)
    cut = min(_CUTS, key=lambda each: _risk(each, z2, noise))
    kept = np.maximum(1 - cut / z2, 0.0)
    found: FloatArray = nearest((product + kept * (table - product)).ravel(), 1.0)
    return found.reshape(table.shape)


def _risk(cut: float, z2: FloatArray, noise: FloatArray) -> float:
    """Stein's estimate of the expected squared error, summed over the cells."""
    added = cut**2 + 2 * cut if math.isfinite(cut) else 0.0
    return float((noise * np.where(z2 > cut, 1 + added / z2, z2 - 1)).sum())

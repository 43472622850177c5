"""Whether a share is the same in all segments of a crowd, tested for each value.

Given the sizes of the segments, their supporting reports are independent binomial counts under
one scheme, so equal shares are equal rates, and the test is chi-square on an S x 2 table::

    X = sum over s of (f_s - f)**2 / Var_s(f),    S - 1 degrees of freedom

with the pooled share f and the variance that each estimate has if f is its share; for one report
of each device that is Pearson's statistic. It holds where each segment can expect 5 supporting
reports, so smaller ones are merged first, value by value. A value with fewer than two segments
left is not tested. Over the values, p-values are adjusted by Benjamini and Hochberg (J. R. Stat.
Soc. B 1995).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from deniable_estimator.statistics.intervals import FloatArray

__all__ = ["LEAST_EXPECTED", "benjamini_hochberg", "homogeneity"]

LEAST_EXPECTED = 5.0
"""The fewest supporting reports that a segment must be able to expect to be tested by itself."""


def homogeneity(
    share: FloatArray,
    n: FloatArray,
    variance: Callable[[FloatArray], FloatArray],
    expected: Callable[[FloatArray], FloatArray],
) -> FloatArray:
    """The p-value of each value, shape (d,); NaN where there is nothing to test.

    Args:
        share: the unbiased shares, shape (S, d).
        n: the reports of each segment, shape (S,).
        variance, expected: for shares of shape (d,) the variance of each estimate, and how many
            reports support each value, shape (S, d).
    """
    pooled = n @ share / n.sum()
    counts = expected(pooled)
    big = counts >= LEAST_EXPECTED
    weight = np.where(big, 0.0, n[:, None])
    total = weight.sum(axis=0)
    merged = (counts * ~big).sum(axis=0) >= LEAST_EXPECTED
    taken = np.where(big, n[:, None], 0.0) + np.where(merged, weight, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        null = (taken * share).sum(axis=0) / taken.sum(axis=0)
        each = variance(null)
        rest = (weight * share).sum(axis=0) / total
        rest_variance = (weight**2 * each).sum(axis=0) / total**2
        precision = np.where(big, 1 / each, 0.0)
        rest_precision = np.where(merged, 1 / rest_variance, 0.0)
        rest = np.where(merged, rest, 0.0)
        middle = (precision * share).sum(axis=0) + rest_precision * rest
        middle /= precision.sum(axis=0) + rest_precision
        x = (precision * (share - middle) ** 2).sum(axis=0) + rest_precision * (rest - middle) ** 2
    freedom = big.sum(axis=0) + merged - 1
    p = np.full(share.shape[1], np.nan)
    for degrees in np.unique(freedom[freedom > 0]).tolist():
        at = (freedom == degrees) & np.isfinite(x)
        p[at] = _chi_square_tails(x[at], degrees)
    return p


def benjamini_hochberg(p: FloatArray) -> FloatArray:
    """Adjusted p-values: at most alpha where the step-up test at that level rejects. NaN stays,
    and does not count."""
    tested = np.flatnonzero(np.isfinite(p))
    adjusted = np.full(len(p), np.nan)
    order = tested[np.argsort(p[tested], kind="stable")]
    scaled = p[order] * len(order) / np.arange(1, len(order) + 1)
    adjusted[order] = np.minimum(np.minimum.accumulate(scaled[::-1])[::-1], 1.0)
    return adjusted


def _chi_square_tails(x: FloatArray, freedom: int) -> FloatArray:
    """`tails.chi_square_tail` of an array."""
    half = np.maximum(x, 0.0) / 2
    if freedom % 2:
        tail: NDArray[np.float64] = np.fromiter(
            map(math.erfc, np.sqrt(half).tolist()), np.float64, len(half)
        )
    else:
        tail = np.exp(-half)
    with np.errstate(divide="ignore"):
        log = np.log(half)
    for degree in range(2 - freedom % 2, freedom, 2):
        tail += np.exp(degree / 2 * log - half - math.lgamma(degree / 2 + 1))
    return np.minimum(tail, 1.0)

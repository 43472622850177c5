"""Whether a share is the same in all segments of a crowd, tested for each value.

Given the sizes of the segments, their supporting reports are independent binomial counts under
one scheme, so equal shares are equal rates, and the test is chi-square on an S x 2 table::

    X = sum over s of (f_s - f)**2 / Var_s(f),    S - 1 degrees of freedom

with the pooled share f and the variance that each estimate has if f is its share; for one report
of each device that is Pearson's statistic. Where a segment can expect only a few supporting
reports, its far tail is too heavy, and that of the arcsine root (Anscombe, Biometrika 1948), ::

    Y = sum over s of 4 (n_s + 1/2) (y_s - y)**2,  y_s = asin sqrt((S_s + 3/8) / (n_s + 3/4))

is too heavy on the other side. The p-value is the larger of the two. Segments that cannot expect 5
supporting reports are merged first, value by value; a value with fewer than two segments left is
not tested. Over the values, p-values are adjusted by Benjamini and Hochberg (J. R. Stat. Soc. B
1995), with the safety factor of other lists (`statistics.significance`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from deniable_estimator.statistics.counts import Counts
from deniable_estimator.statistics.intervals import FloatArray, Noise
from deniable_estimator.statistics.significance import CAUTION

LEAST_EXPECTED = 5.0
"""The fewest supporting reports that a segment must be able to expect to be tested by itself."""


def homogeneity(share: FloatArray, noises: Sequence[Noise]) -> FloatArray:
    """The p-value of each value, shape (d,); NaN where there is nothing to test.

    Args:
        share: the unbiased shares of S segments, shape (S, d).
        noises: what each segment's estimates have of it.
    """
    if any((each.c <= 0).any() for each in noises):
        return _regressed(share, noises)
    own = [Counts.of(each) for each in noises]
    n = np.array([np.broadcast_to(each.trials, share.shape[1:]) for each in own])
    counts = n * np.array([each.rate(row) for each, row in zip(own, share, strict=True)])
    pooled = (n * share).sum(axis=0) / n.sum(axis=0)
    expected = n * np.array([each.rate(pooled) for each in own])
    big = expected >= LEAST_EXPECTED
    few = np.where(big, 0.0, n)
    merged = (expected * ~big).sum(axis=0) >= LEAST_EXPECTED
    with np.errstate(divide="ignore", invalid="ignore"):
        rest = (few * share).sum(axis=0) / few.sum(axis=0)
        # The segments, and those that are merged as one more.
        sizes = np.vstack([np.where(big, n, 0.0), np.where(merged, few.sum(axis=0), 0.0)])
        shares = np.vstack([share, rest])
        null = np.where(sizes > 0, sizes * shares, 0.0).sum(axis=0) / sizes.sum(axis=0)
        variance = _with_merged(np.array([each.at(null) for each in noises]), few)
        plain = _with_merged(np.array([replace(each, kept=None).at(null) for each in noises]), few)
        supporters = np.vstack([counts, np.where(big, 0.0, counts).sum(axis=0)])
        turned = np.arcsin(np.sqrt(np.clip((supporters + 0.375) / (sizes + 0.75), 0.0, 1.0)))
        pearson = _spread(shares, np.where(sizes > 0, 1 / variance, 0.0))
        # What repeated reports add to the variance shrinks the weight here, too.
        weight = np.where(sizes > 0, 4 * (sizes + 0.5) * plain / variance, 0.0)
        x = np.minimum(pearson, _spread(turned, weight))
    freedom = (sizes > 0).sum(axis=0) - 1
    p = np.full(share.shape[1], np.nan)
    for degrees in np.unique(freedom[freedom > 0]).tolist():
        at = (freedom == degrees) & np.isfinite(x)
        p[at] = _chi_square_tails(x[at], degrees)
    return p


def _regressed(share: FloatArray, noises: Sequence[Noise]) -> FloatArray:
    """The same for estimates that are no counts, as of strings that are decoded by cohorts: they
    are taken for normal."""
    with np.errstate(divide="ignore", invalid="ignore"):
        weight = np.array([1 / each.at(row) for each, row in zip(noises, share, strict=True)])
        middle = (weight * share).sum(axis=0) / weight.sum(axis=0)
        x = _spread(share, np.array([1 / each.at(middle) for each in noises]))
    p = np.full(share.shape[1], np.nan)
    known = np.isfinite(x)
    p[known] = _chi_square_tails(x[known], len(noises) - 1)
    return p


def _with_merged(variance: FloatArray, few: FloatArray) -> FloatArray:
    """The variances of the segments, and of the average over those that are merged."""
    known = np.where(few > 0, few**2 * variance, 0.0).sum(axis=0)
    return np.vstack([variance, known / few.sum(axis=0) ** 2])


def _spread(numbers: FloatArray, weight: FloatArray) -> FloatArray:
    """The weighted squares about the weighted mean, over the segments."""
    kept = np.where(weight > 0, numbers, 0.0)
    middle = (weight * kept).sum(axis=0) / weight.sum(axis=0)
    found: FloatArray = (weight * (kept - middle) ** 2).sum(axis=0)
    return found


def benjamini_hochberg(p: FloatArray) -> FloatArray:
    """Adjusted p-values: at most alpha where the step-up test at that level rejects, times the
    safety factor. NaN stays, and does not count."""
    tested = np.flatnonzero(np.isfinite(p))
    adjusted = np.full(len(p), np.nan)
    order = tested[np.argsort(p[tested], kind="stable")]
    factor = CAUTION * len(order) if len(order) > 1 else 1.0
    scaled = factor * p[order] / np.arange(1, len(order) + 1)
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

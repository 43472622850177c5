"""Which values are detected: one-sided p-values, adjusted for the number of values.

If no device has a value, its support is binomial with probability q, and skewed if q is small.
Far in the tail, which matters for long lists, the normal distribution gives p-values that are a
hundred times too small. If few reports support a value by chance
(FEW_SUPPORTERS), the p-value is the binomial tail itself. Otherwise it is
the tail of the gamma distribution with the same mean, variance and skewness, by the cube root of
Wilson and Hilferty (Proc. Natl. Acad. Sci. 1931), half a report lower for continuity: within 2%
of the binomial tail at .05, and at most 1.6 times too large at one in a million.

**Homogeneity** is whether a share is the same in all segments of a crowd, tested for each value.
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
1995), with the safety factor of other lists (`CAUTION`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from deniable_estimator.statistics.counts import Counts
from deniable_estimator.statistics.detection import FEW_SUPPORTERS
from deniable_estimator.statistics.intervals import FloatArray, Noise
from deniable_estimator.statistics.tails import chi_square_tails, upper_tails

Adjustment: TypeAlias = Literal["storey", "bonferroni"]
"""Storey's step-up test bounds the expected share of false discoveries, which suits lists;
Bonferroni bounds the chance of any, which suits alerts."""

_HALF = 0.5
"""p-values above this tell how many values no device has; they are never rejected."""

CAUTION = 1.1
"""A safety factor on the rate of false discoveries: the p-values of one list are not quite
independent, and unlisted strings add a little to others (found by simulation)."""

_NO_SUPPORT = 1e-6
"""A count below this is 0, except for rounding."""

_SETTLED = 1e-15
"""A sum ends at a term that is a smaller fraction of it than this."""

_NORMAL = 1e-9
"""A skewness below this counts as 0, because the cube root would lose it to rounding."""


def share_p_values(share: FloatArray, noise: Noise) -> FloatArray:
    """The probability of a share this large or larger, shape (d,), if it is truly 0."""
    z = (share - noise.step / 2) / noise.null_error
    p = upper_tails(normal_score(z, noise.skewness))
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = noise.a / noise.step**2  # of the number of supporting reports
    few = np.isfinite(share) & (variance < FEW_SUPPORTERS)
    if few.any():
        p[few] = _few_supporters(share[few], noise, few)
    return p


def _few_supporters(share: FloatArray, noise: Noise, few: NDArray[np.bool_]) -> FloatArray:
    """The binomial tails of shares that few reports support by chance.

    Mean, variance and skewness give back how many reports there were and how often each
    supports a value: exactly for one scheme, and for a sum of several the binomial distribution
    that is alike in all three. The count of a sum is not whole; the tail is the incomplete beta
    function there (DLMF 8.17.8), which is the sum of the probabilities where it is.
    """
    step, variance = noise.step[few], noise.a[few] / noise.step[few] ** 2
    slope = noise.skewness[few] * noise.null_error[few] / step  # 1 - 2q
    q = np.clip((1 - slope) / 2, 1e-12, 0.5)
    trials = np.maximum(variance / (q * (1 - q)), 1.0)
    count = share / step + trials * q
    tail = np.ones(len(share))
    there = count > _NO_SUPPORT
    q, trials, count = q[there], trials[there], np.minimum(count[there], trials[there])
    gammas = [
        np.fromiter(map(math.lgamma, each.tolist()), np.float64, len(each))
        for each in (trials + 1, count + 1, trials - count + 1)
    ]
    logarithm = gammas[0] - gammas[1] - gammas[2]
    term = np.exp(logarithm + count * np.log(q) + (trials - count) * np.log1p(-q))
    total = term.copy()
    while (term > _SETTLED * total).any():
        term *= np.maximum(trials - count, 0.0) / (count + 1) * (q / (1 - q))
        total += term
        count = count + 1
    tail[there] = np.minimum(total, 1.0)
    return tail


def low_scores(share: FloatArray, noise: Noise) -> FloatArray:
    """How low each share is as a standard normal deviate, shape (d,), if it is truly 0.

    If it is truly larger, it is as low as that less often.
    """
    return normal_score((share + noise.step / 2) / noise.null_error, noise.skewness)


def far_scores(share: FloatArray, noise: Noise, slack: float) -> FloatArray:
    """How far each share lies beyond 0 or 1, by more than `slack`, as a standard normal deviate,
    shape (d,), if it is truly 0 or 1."""
    below = -low_scores(share + slack, noise)
    at_one = np.sqrt(noise.at(np.ones(1)))
    with np.errstate(divide="ignore", invalid="ignore"):
        above = (share - slack - noise.step / 2 - 1) / at_one
    return np.fmax(below, above)


def normal_score(z: FloatArray, skewness: FloatArray) -> FloatArray:
    """The normal deviate that is as far out as z is under a gamma of this skewness."""
    skewed = np.abs(skewness) > _NORMAL
    gamma = np.where(skewed, skewness, 1.0)
    bent = 6 / gamma * (np.cbrt(1 + gamma * z / 2) - 1) + gamma / 6
    return np.where(skewed, bent, z)


def step_up(p: FloatArray, family: float | FloatArray | None = None) -> FloatArray:
    """p-values, shape (..., d), adjusted by the step-up test of Benjamini and Hochberg: those that
    are at most alpha hold at most the part alpha of false discoveries. They are all of their
    family, or the smallest of one of that size, shape (..., 1)."""
    size = p.shape[-1]
    falling = np.argsort(-p, axis=-1)
    ranked = np.take_along_axis(p, falling, axis=-1) * (size if family is None else family)
    least = np.minimum.accumulate(ranked / np.arange(size, 0, -1), axis=-1)
    adjusted = np.empty(p.shape)
    np.put_along_axis(adjusted, falling, np.minimum(least, 1.0), axis=-1)
    return adjusted


def adjust_p(p: FloatArray, adjustment: Adjustment) -> FloatArray:
    """p-values adjusted for their number: at most alpha, below 1, just where the test rejects. In
    an array of several rows, each row by itself.

    Storey's adaptive step-up test (Storey, Taylor and Siegmund, J. R. Stat. Soc. B 2004) is that
    of Benjamini and Hochberg (J. R. Stat. Soc. B 1995), at the level that the values which are
    there leave to the others: out of m values, with 1/2 and 1 as its constants ::

        nobody has at most the part  pi0 = min(1, (1 + #{p >= 1/2}) / (m/2))
        the k smallest are rejected if  1.1 pi0 m p_(k) / k <= alpha  and  p_(k) < 1/2

    A NaN stays NaN and does not count.
    """
    tested = np.isfinite(p)
    family = tested.sum(axis=-1, keepdims=True)
    if adjustment == "bonferroni":
        bounded: FloatArray = np.minimum(p * family, 1.0)
        return bounded
    above = np.count_nonzero(p >= _HALF, axis=-1, keepdims=True)
    null = np.minimum(np.maximum(family, 1), 2.0 * (1 + above))
    # What cannot be rejected comes before all others, so that their ranks stay.
    adjusted = step_up(np.where(p < _HALF, p, np.inf), CAUTION * null)
    return np.where(tested, adjusted, np.nan)


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
    return _chi_square_tails(x, (sizes > 0).sum(axis=0) - 1)


def _regressed(share: FloatArray, noises: Sequence[Noise]) -> FloatArray:
    """The same for estimates that are no counts, as of strings that are decoded by cohorts: they
    are taken for normal."""
    with np.errstate(divide="ignore", invalid="ignore"):
        weight = np.array([1 / each.at(row) for each, row in zip(noises, share, strict=True)])
        middle = (weight * share).sum(axis=0) / weight.sum(axis=0)
        x = _spread(share, np.array([1 / each.at(middle) for each in noises]))
    return _chi_square_tails(x, np.full(len(x), len(noises) - 1))


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
    factor = CAUTION if len(tested) > 1 else 1.0
    adjusted[tested] = np.minimum(factor * step_up(p[tested]), 1.0)
    return adjusted


def _chi_square_tails(x: FloatArray, freedom: NDArray[np.int64]) -> FloatArray:
    """The tail of each statistic, shape (d,); NaN where there is none, or no degree of freedom."""
    p = np.full(len(x), np.nan)
    for degrees in range(1, int(freedom.max(initial=0)) + 1):
        some = np.isfinite(x) & (freedom == degrees)
        p[some] = chi_square_tails(x[some], degrees)
    return p

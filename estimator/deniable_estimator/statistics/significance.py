"""Which values are detected: one-sided p-values, adjusted for the number of values.

If no device has a value, its support is binomial with probability q, and skewed if q is small.
Far in the tail, which matters for long lists, the normal distribution gives p-values that are a
hundred times too small. If few reports support a value by chance
(FEW_SUPPORTERS), the p-value is the binomial tail itself. Otherwise it is
the tail of the gamma distribution with the same mean, variance and skewness, by the cube root of
Wilson and Hilferty (Proc. Natl. Acad. Sci. 1931), half a report lower for continuity: within 2%
of the binomial tail at .05, and at most 1.6 times too large at one in a million.
"""

from __future__ import annotations

import math
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from deniable_estimator.forecasting.detection import FEW_SUPPORTERS
from deniable_estimator.statistics.intervals import FloatArray, Noise
from deniable_estimator.statistics.tails import upper_tails

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


def far_scores(share: FloatArray, noise: Noise, slack: float = 0.0) -> FloatArray:
    """How far each share lies beyond 0 or 1, by more than `slack`, as a standard normal deviate,
    shape (d,), if it is truly 0 or 1."""
    below = -low_scores(share + slack, noise)
    at_one = np.sqrt(noise.at(np.ones(1)))
    with np.errstate(divide="ignore", invalid="ignore"):
        above = (share - slack - noise.step / 2 - 1) / at_one
    scores: FloatArray = np.fmax(below, above)
    return scores


def normal_score(z: FloatArray, skewness: FloatArray) -> FloatArray:
    """The normal deviate that is as far out as z is under a gamma of this skewness."""
    skewed = np.abs(skewness) > _NORMAL
    gamma = np.where(skewed, skewness, 1.0)
    bent = 6 / gamma * (np.cbrt(1 + gamma * z / 2) - 1) + gamma / 6
    return np.where(skewed, bent, z)


def step_up(p: FloatArray) -> FloatArray:
    """p-values, shape (d,), adjusted by the step-up test of Benjamini and Hochberg: those that are
    at most alpha hold at most the part alpha of false discoveries."""
    falling = np.argsort(-p)
    ranked = p[falling] * len(p) / np.arange(len(p), 0, -1)
    adjusted = np.empty(len(p))
    adjusted[falling] = np.minimum(np.minimum.accumulate(ranked), 1.0)
    return adjusted


def adjust_p(p: FloatArray, adjustment: Adjustment) -> FloatArray:
    """p-values adjusted for their number: at most alpha, below 1, just where the test rejects.

    Storey's adaptive step-up test (Storey, Taylor and Siegmund, J. R. Stat. Soc. B 2004) is that
    of Benjamini and Hochberg (J. R. Stat. Soc. B 1995), at the level that the values which are
    there leave to the others: out of m values, with 1/2 and 1 as its constants ::

        nobody has at most the part  pi0 = min(1, (1 + #{p >= 1/2}) / (m/2))
        the k smallest are rejected if  1.1 pi0 m p_(k) / k <= alpha  and  p_(k) < 1/2

    A NaN stays NaN and does not count.
    """
    tested = np.isfinite(p)
    family = int(tested.sum())
    adjusted = np.full(len(p), np.nan)
    if adjustment == "bonferroni":
        adjusted[tested] = np.minimum(p[tested] * family, 1.0)
        return adjusted
    adjusted[tested] = adjust_rows(p[np.newaxis, tested])[0]
    return adjusted


def adjust_rows(p: FloatArray) -> FloatArray:
    """What `adjust_p` makes of each row of shape (n, d), by Storey's test; all are finite."""
    family = p.shape[1]
    null = np.minimum(float(family), 2.0 * (1 + np.count_nonzero(p >= _HALF, axis=1)))
    falling = np.argsort(-p, axis=1)
    ranked = np.take_along_axis(p, falling, axis=1)
    part = CAUTION * null[:, np.newaxis] / np.arange(family, 0, -1)
    ranked = np.where(ranked >= _HALF, 1.0, ranked * part)
    adjusted = np.empty(p.shape)
    stepped = np.minimum(np.minimum.accumulate(ranked, axis=1), 1.0)
    np.put_along_axis(adjusted, falling, stepped, axis=1)
    return adjusted

"""Tail probabilities of the distributions of counts, accurate far in the tail."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

_SETTLED = 1e-17

_NORMAL = 1e9
"""Above this variance a binomial tail is that of a normal number, skewness allowed for (Cornish and
Fisher, 1938); below it the sum has fewer than 3 million terms."""


def normal_tails(z: float) -> float:
    """The chance that a standard normal is as far from 0 as z, on either side."""
    return math.erfc(abs(z) / math.sqrt(2))


def upper_tails(z: NDArray[np.float64]) -> NDArray[np.float64]:
    """The upper tail of the standard normal at each z, accurate far into the tail; NaN stays."""
    flat = (z / math.sqrt(2)).ravel().tolist()
    tail = np.fromiter(map(math.erfc, flat), np.float64, len(flat))
    return (tail / 2).reshape(z.shape)


@lru_cache(maxsize=4096)
def binomial_tail(count: int, trials: int, p: float) -> float:
    """The chance of `count` successes or more out of `trials`, for 0 < p < 1."""
    if count <= 0:
        return 1.0
    if count > trials:
        return 0.0
    variance = trials * p * (1 - p)
    if variance > _NORMAL:
        # Twenty standard deviations out this errs by less than 1e-5 of itself.
        skewness = (1 - 2 * p) / math.sqrt(variance)
        x = (count - 0.5 - trials * p) / math.sqrt(variance)
        z = x - skewness * (x * x - 1) / 6
        return math.erfc(z / math.sqrt(2)) / 2
    # 40 standard deviations beyond the mean there is nothing left to add.
    last = max(count, math.ceil(trials * p)) + 40 + math.ceil(40 * math.sqrt(variance))
    each = np.arange(count, min(trials, last) + 1)
    # Ratios of neighbours, so that no factorial of a large number is needed.
    ratios = np.log((trials - each[:-1]) / (each[:-1] + 1) * (p / (1 - p)))
    first = (
        math.lgamma(trials + 1)
        - math.lgamma(count + 1)
        - math.lgamma(trials - count + 1)
        + count * math.log(p)
        + (trials - count) * math.log1p(-p)
    )
    logs = first + np.concatenate([[0.0], np.cumsum(ratios)])
    return min(1.0, float(np.exp(logs).sum()))


def poisson_tail(count: int, mean: float) -> float:
    """The chance of `count` or more, where `mean` are expected; 1 up to 1 above the mean.

    It bounds that of a binomial count with the same mean (Anderson and Samuels, Proc. Fifth
    Berkeley Symp. 1967).
    """
    if count <= mean + 1:
        # The tail is then large, so this is no evidence.
        return 1.0
    term = math.exp(count * math.log(mean) - mean - math.lgamma(count + 1))
    total, at = term, count
    while term > _SETTLED * total:
        at += 1
        term *= mean / at
        total += term
    return min(1.0, total)


def chi_square_tail(x: float, freedom: int) -> float:
    """The upper tail of the chi-square distribution, by its closed forms."""
    if x <= 0:
        return 1.0
    half = x / 2
    odd = freedom % 2
    tail = math.erfc(math.sqrt(half)) if odd else math.exp(-half)
    for degree in range(2 - odd, freedom, 2):
        tail += math.exp(degree / 2 * math.log(half) - half - math.lgamma(degree / 2 + 1))
    return min(1.0, tail)


def chi_square_tails(x: NDArray[np.float64], freedom: int) -> NDArray[np.float64]:
    """The same of many numbers at once, none below 0."""
    half, odd = x / 2, freedom % 2
    with np.errstate(divide="ignore"):
        logs = np.log(half)
    tails = 2 * upper_tails(np.sqrt(x)) if odd else np.exp(-half)
    for degree in range(2 - odd, freedom, 2):
        tails += np.exp(degree / 2 * logs - half - math.lgamma(degree / 2 + 1))
    return np.minimum(tails, 1.0)


def halved(enough: Callable[[float], bool], low: float, high: float, times: int) -> float:
    """Where something begins to be enough, between what is not and what is: by so many halvings,
    rounded up."""
    for _ in range(times):
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


@lru_cache(maxsize=1000)
def chi_square_quantile(tail: float, freedom: int) -> float:
    """The x with this upper tail, by bisection."""
    high = float(freedom)
    while chi_square_tail(high, freedom) > tail:
        high *= 2
    return halved(lambda x: chi_square_tail(x, freedom) <= tail, 0.0, high, 100)


def noncentral_chi_square_tail(x: float, freedom: int, noncentrality: float) -> float:
    """The upper tail of the noncentral chi-square distribution: that of the chi-square with
    freedom + 2 J degrees, J Poisson with mean noncentrality / 2."""
    mean, half = noncentrality / 2, x / 2
    if half <= 0:
        return 1.0
    # Beyond this nothing is left of the Poisson distribution.
    spread = 12 * math.sqrt(mean) + 30
    first, last = max(0, math.floor(mean - spread)), math.ceil(mean + spread)
    if freedom / 2 + first > half + 12 * math.sqrt(half) + 30:
        # The tail of so many degrees is that of a Poisson count far above its mean, `half`.
        return 1.0
    tail, total = chi_square_tail(x, freedom + 2 * first), 0.0
    for count in range(first, last + 1):
        chance = count * math.log(mean) - mean - math.lgamma(count + 1) if mean > 0 else 0.0
        if mean > 0 or count == 0:
            total += math.exp(chance) * min(1.0, tail)
        degree = freedom / 2 + count
        tail += math.exp(degree * math.log(half) - half - math.lgamma(degree + 1))
    return min(1.0, total)


def student_tails(t: float, freedom: int) -> float:
    """The chance that Student's t is as far from 0 as t, on either side.

    By the finite sums for whole degrees of freedom (Abramowitz and Stegun, 26.7.3 and 26.7.4);
    below 1e-15 it is 0.
    """
    angle = math.atan2(abs(t), math.sqrt(freedom))
    sine, square = math.sin(angle), math.cos(angle) ** 2
    odd = freedom % 2
    term = math.cos(angle) if odd else 1.0
    total = 0.0
    for degree in range(2 + odd, freedom + 1, 2):
        total += term
        term *= square * (degree - 1) / degree
    inside = 2 / math.pi * (angle + sine * total) if odd else sine * total
    return max(0.0, 1.0 - inside)

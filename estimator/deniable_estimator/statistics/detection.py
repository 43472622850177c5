"""What a mechanism can detect with a number of reports, computed before the first report.

With n reports, share f, r = q + f (p - q) and z the normal quantiles::

    std_error  = sqrt(r (1-r) / n) / (p - q)
    reports    = z**2 r (1-r) / (half_width (p - q))**2

A value is detected if its p-value times the number of values is at most LEVEL (Bonferroni). The
smallest detectable share is the one for which that happens with probability POWER. How many
reports support a value is binomial, so p-value and power are tails of binomial distributions,
and these are far from normal where few reports support a value by chance:

* The estimator's p-value of a count is its exact tail where the variance of chance support is
  below FEW_SUPPORTERS. Beyond it is the tail of a gamma distribution with the mean, the variance
  and the skewness g of the null, half a report lower (Wilson and Hilferty, Proc. Natl. Acad.
  Sci. 1931). Solved for the count, the value is detected from ::

      n q + 1/2 + sd v (6 + 6 g v + 2 (g v)**2),  v = (z(1 - LEVEL / values) - g / 6) / 6
      sd = sqrt(n q (1-q)),  g = (1 - 2q) / sd

* k or more of n reports support a value with probability POWER if r is that quantile of
  Beta(k, n-k+1). By Camp's cube roots (Ann. Math. Stat. 1951; Abramowitz and Stegun 26.5.21)
  the r that solves the next lines; its exact power is between .797 and .803 for all k and n ::

      r / (1-r) = k / (n-k+1) * x**3,  3 (B x - A) = z(POWER) sqrt(x**2 / (n-k+1) + 1 / k)
      A = 1 - 1 / (9 k),  B = 1 - 1 / (9 (n-k+1))

The forecast is for closed lists, and for one window in which the expected number of devices
reports. It ignores collisions of strings: hashed strings are detected as often as it says, but
those that are decoded by cohorts less often (`benchmarks/README.md` has the figures). If
p-values are adjusted for false discoveries instead, as by default, more is detected.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from statistics import NormalDist
from typing import Any

from deniable.protocol.mechanisms import FrequencyOracle

LEVEL = 0.05
"""The chance of calling any of the values detected when none is there."""

POWER = 0.8
"""The chance of detecting a value that has the smallest detectable share."""

USABLE_SHARE = 0.5
"""If noise alone can look like a share above this, there is no usable signal."""

FEW_SUPPORTERS = 25.0
"""Below this variance of the number of reports that support a value by chance, p-values are exact
tails. The cube roots that serve above it would call one supporter of 10,000 values impossible."""

_NORMAL = 1e10
"""If the variance of chance support is above this, its tails are normal to five digits."""

_normal = NormalDist()


def deviations(level: float) -> float:
    """How many standard deviations a normal variable is away from its mean at most, on either side,
    with this probability."""
    return _normal.inv_cdf((1 + level) / 2)


def critical_value(alpha: float, family: int) -> float:
    """The z-score that any of `family` true zeros exceeds with probability at most alpha."""
    return -_normal.inv_cdf(alpha / family)


def std_error(mechanism: FrequencyOracle[Any], share: float, reports: float) -> float:
    """The standard error of a value's estimated share."""
    p, q = float(mechanism.p), float(mechanism.q)
    rate = q + share * (p - q)
    return math.sqrt(rate * (1 - rate) / reports) / (p - q)


def detectable_share(mechanism: FrequencyOracle[Any], size: int, reports: float) -> float | None:
    """The smallest share that is detected among `size` values; None if even 1 is not.

    `reports` is rounded to a whole number.
    """
    p, q = float(mechanism.p), float(mechanism.q)
    trials = round(reports)
    rate = _rate(_count(q, size, trials), trials)
    return (rate - q) / (p - q) if rate <= p else None


def reports_to_detect(mechanism: FrequencyOracle[Any], size: int, share: float) -> int:
    """With how many reports, or more, `share` (above 0) is detectable among `size` values.

    Slightly fewer may also be enough: the number of supporting reports that the test requires
    is an integer, and each time it rises by one, the power drops a little.
    """
    p, q = float(mechanism.p), float(mechanism.q)
    rise = share * (p - q)
    rate = q + rise
    null = critical_value(LEVEL, size) * math.sqrt(q * (1 - q))
    there = _normal.inv_cdf(POWER) * math.sqrt(rate * (1 - rate))
    normal = math.ceil(((null + there) / rise) ** 2)
    if normal * q * (1 - q) > _NORMAL:
        return normal

    def safely(trials: int) -> bool:
        """Whether it is detectable even if the test requires one more report here."""
        worst = max(0.0, _threshold(q, size, trials)) + 1
        return _rate(worst, trials) <= rate

    count = _count(q, size, first(safely))

    def detectable(trials: int) -> bool:
        """Whether it is, since the test last required one more."""
        return _count(q, size, trials) >= count and _rate(count, trials) <= rate

    return first(detectable)


def reports_for_half_width(mechanism: FrequencyOracle[Any], share: float, half_width: float) -> int:
    """How many reports give a 95% interval of share +- half_width."""
    return math.ceil((deviations(0.95) * std_error(mechanism, share, 1) / half_width) ** 2)


def usable(mechanism: FrequencyOracle[Any], size: int, reports: float) -> bool:
    """Whether noise stays below a share of one half; if not, there is no usable signal.

    `reports` is rounded to a whole number.
    """
    p, q = float(mechanism.p), float(mechanism.q)
    trials = round(reports)
    return _count(q, size, trials) <= trials * (q + USABLE_SHARE * (p - q))


def _count(q: float, size: int, trials: int) -> int:
    """How many supporting reports out of `trials` detect a value among `size`: one at least."""
    return max(1, math.ceil(_threshold(q, size, trials))) if trials else 1


def _threshold(q: float, size: int, trials: int) -> float:
    """At how many supporting reports out of `trials`, not rounded, a p-value is LEVEL / size."""
    if trials * q * (1 - q) < FEW_SUPPORTERS:
        alpha = LEVEL / size
        found = bisect_left(range(trials + 1), True, key=lambda k: _tail(k, q, trials) <= alpha)
        if found > trials:
            return found
        # Between integers the tail falls approximately like an exponential.
        above, below = (math.log(_tail(each, q, trials)) for each in (found - 1, found))
        return found - 1 + (above - math.log(alpha)) / (above - below)
    spread = math.sqrt(trials * q * (1 - q))
    skewness = (1 - 2 * q) / spread
    v = (critical_value(LEVEL, size) - skewness / 6) / 6
    return trials * q + 0.5 + spread * v * (6 + 6 * skewness * v + 2 * (skewness * v) ** 2)


def _tail(count: int, q: float, trials: int) -> float:
    """The chance that `count` or more out of `trials` reports support a value by chance."""
    if count <= 0:
        return 1.0
    odds = q / (1 - q)
    logarithm = count * math.log(q) + (trials - count) * math.log1p(-q)
    logarithm += math.lgamma(trials + 1) - math.lgamma(count + 1) - math.lgamma(trials - count + 1)
    term = total = math.exp(logarithm)
    while term > 1e-17 * total:
        term *= odds * (trials - count) / (count + 1)
        total += term
        count += 1
    return min(1.0, total)


def _rate(count: float, trials: int) -> float:
    """The rate at which `count` or more out of `trials` support a value with power .8; infinite
    if there are not so many."""
    if count > trials:
        return math.inf
    a, b = count, trials - count + 1
    z = _normal.inv_cdf(POWER)
    first, second = 1 - 1 / (9 * a), 1 - 1 / (9 * b)
    root = math.sqrt(9 * (first**2 / b + second**2 / a) - z**2 / (a * b))
    odds = a / b * ((9 * first * second + z * root) / (9 * second**2 - z**2 / b)) ** 3
    return odds / (1 + odds)


def first(holds: Callable[[int], bool]) -> int:
    """The smallest number above 0 from which on the condition holds."""
    high = 1
    while not holds(high):
        high *= 2
    return bisect_left(range(high + 1), True, lo=high // 2 + 1, hi=high, key=holds)

"""What a crowd will see of numbers: exact variances, before any report.

Variances are n Var, with n all reports of the metric. That of the mean is the noise of the number
that is hidden best, plus the variance of the numbers; for a sliding window between the levels
x_i < x_(i+1), where a number x is rounded at random ::

    noise(x) = [(x_(i+1) - x) E_i + (x - x_i) E_(i+1)] / (x_(i+1) - x_i) - x**2

with E_i = E[a**2] at level i; `forecasting.number_forecast` has the largest. For the share F below
an edge it is the V of `deniable_estimator.analyses.numbers.scores` plus F (1 - F).

The interval of quantile p ends about where the true shares below are p - D and p + D, with
D = z sqrt(V / n). It has an upper limit only if D is less than 1 - p, and is useful if D is half of
that. So a quantile needs ::

    n(p) = 4 z**2 [V + p (1 - p)] / min(p, 1 - p)**2            V the average over edges
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

from deniable_estimator.analyses.numbers.mean import (
    EVEN_SPREAD,
)


@dataclass(frozen=True)
class HistogramVariances:
    """n times the variance of the noise, for one question each."""

    cdf: float
    """The share below an edge, on average over the edges."""
    clamped: float
    """The larger one of the shares below `low` and from `high` on."""
    mean: float
    """The mean between -1 and 1; with a mean's row, from all rows."""


@dataclass(frozen=True)
class QuantileReach:
    """Which quantiles of the truth the interval of quantile p will reach, about."""

    p: float
    low: float | None
    """None if there will be no lower limit."""
    high: float | None
    """None if there will be no upper limit: the most that can be said is "at least ..."."""


def mean_half_width(
    noise: float, reports: float, level: float = 0.95, spread: float = EVEN_SPREAD
) -> float:
    """Half of the width of the interval of a mean, between -1 and 1.

    Args:
        noise: `forecasting.number_forecast.mean_variance`, or `HistogramVariances.mean`.
        spread: the variance of the numbers.
    """
    return _z(level) * math.sqrt((noise + spread) / reports)


def reports_for_mean(
    noise: float, half_width: float, level: float = 0.95, spread: float = EVEN_SPREAD
) -> int:
    """The number of reports with which the interval of the mean is this narrow."""
    return math.ceil((_z(level) / half_width) ** 2 * (noise + spread))


def reports_for_quantile(variances: HistogramVariances, p: float, level: float = 0.95) -> int:
    """The number of reports with which the interval of quantile p is useful (see above).

    A quarter of it is needed for the interval to have both limits at all.
    """
    edge = min(p, 1 - p)
    return math.ceil(4 * _z(level) ** 2 * (variances.cdf + p * (1 - p)) / edge**2)


def quantile_reach(
    variances: HistogramVariances, p: float, reports: float, level: float = 0.95
) -> QuantileReach:
    """How far the interval of quantile p will reach, from so many reports."""
    reach = _z(level) * math.sqrt((variances.cdf + p * (1 - p)) / reports)
    low, high = p - reach, p + reach
    return QuantileReach(p, low if low > 0 else None, high if high < 1 else None)


def _z(level: float) -> float:
    return NormalDist().inv_cdf((1 + level) / 2)

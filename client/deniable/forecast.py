"""Before the first report: what a mechanism will be able to see of how many reports.

With n reports, share f, r = q + f (p - q), d values and z the normal quantiles::

    std_error   = sqrt(r (1-r) / n) / (p - q)
    detectable  = [z(1 - level/d) sqrt(q(1-q)/n) + z(power) sqrt(r (1-r) / n)] / (p - q)
    reports     = z**2 r (1-r) / (half_width (p - q))**2

The smallest detectable share is the f that solves the second line: with that power its
p-value stands out from all d values at once (Bonferroni).
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

from deniable.mechanisms import Mechanism

if TYPE_CHECKING:
    from deniable.metric import Metric

__all__ = [
    "LEVEL",
    "POWER",
    "USABLE_SHARE",
    "critical_value",
    "detectable_share",
    "forecast",
    "reports_for_half_width",
    "reports_to_detect",
    "std_error",
    "usable",
]

LEVEL = 0.05
"""The chance of calling any of the values detected when none is there."""

POWER = 0.8
"""The chance of detecting a value that has the smallest detectable share."""

USABLE_SHARE = 0.5
"""Where noise alone can look like a share above this, there is no usable signal."""

WORTHWHILE_SHARE = 0.01
"""A metric that cannot see a share of 1 % is worth a warning before it is asked."""

_COVERAGE = 0.95

_normal = NormalDist()


def critical_value(alpha: float, family: int) -> float:
    """The z-score that any of `family` true zeros exceeds with probability at most alpha."""
    return -_normal.inv_cdf(alpha / family)


def std_error(mechanism: Mechanism[Any], share: float, reports: float) -> float:
    """The standard error of a value's estimated share."""
    p, q = float(mechanism.p), float(mechanism.q)
    rate = q + share * (p - q)
    return math.sqrt(rate * (1 - rate) / reports) / (p - q)


def detectable_share(mechanism: Mechanism[Any], size: int, reports: float) -> float | None:
    """The smallest share that is detected among `size` values; None if even 1 is not."""
    p, q = float(mechanism.p), float(mechanism.q)
    threshold = q + critical_value(LEVEL, size) * math.sqrt(q * (1 - q) / reports)
    # (r - threshold)**2 = c r (1 - r): the larger root is the rate that clears the threshold.
    c = _normal.inv_cdf(POWER) ** 2 / reports
    half = threshold + c / 2
    root = math.sqrt(max(half**2 - (1 + c) * threshold**2, 0.0))
    rate = (half + root) / (1 + c)
    return (rate - q) / (p - q) if rate <= p else None


def reports_to_detect(mechanism: Mechanism[Any], size: int, share: float) -> int:
    """How many reports make `share` the smallest detectable one among `size` values."""
    p, q = float(mechanism.p), float(mechanism.q)
    rate = q + share * (p - q)
    null = critical_value(LEVEL, size) * math.sqrt(q * (1 - q))
    there = _normal.inv_cdf(POWER) * math.sqrt(rate * (1 - rate))
    return math.ceil(((null + there) / (rate - q)) ** 2)


def reports_for_half_width(mechanism: Mechanism[Any], share: float, half_width: float) -> int:
    """How many reports give a 95 % interval of share +- half_width."""
    z = _normal.inv_cdf((1 + _COVERAGE) / 2)
    return math.ceil((z * std_error(mechanism, share, 1) / half_width) ** 2)


def usable(mechanism: Mechanism[Any], size: int, reports: float) -> bool:
    """Whether noise stays below a share of one half; if not there is no usable signal."""
    return critical_value(LEVEL, size) * std_error(mechanism, 0, reports) <= USABLE_SHARE


def forecast(metric: Metric) -> str | None:
    """What the expected crowd will not see of a metric, and how to mend it; None if all is well.

    A metric that does not say how many `devices` it expects, or whose candidates are yet
    to be named, has no forecast.
    """
    if metric.devices is None or metric.values is None:
        return None
    mechanism, size = metric.scheme.mechanism, len(metric.values)
    reports = metric.devices * metric.sample_rate
    needed = math.ceil(reports_to_detect(mechanism, size, WORTHWHILE_SHARE) / metric.sample_rate)
    if needed <= metric.devices:
        return None
    seen = detectable_share(mechanism, size, reports)
    crowd = f"{metric.devices:,} devices at sample_rate {metric.sample_rate:g}"
    advice = f"a 1 % share takes {needed:,} devices, or a larger epsilon or sample_rate"
    if seen is None or not usable(mechanism, size, reports):
        return f"no usable signal with {crowd}: {advice}"
    return f"with {crowd} no share below {seen:.1%} stands out in a {metric.window}: {advice}"

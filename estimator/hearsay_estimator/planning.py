"""Before the first report: what a metric will be able to see, and at what cost.

With n reports, share f, r = q + f (p - q), d values and z the normal quantiles::

    std_error   = sqrt(r (1-r) / n) / (p - q)
    detectable  = [z(1 - level/d) sqrt(q(1-q)/n) + z(power) sqrt(r (1-r) / n)] / (p - q)
    devices     = z**2 r (1-r) / (half_width (p - q))**2

The smallest detectable share is the f that solves the second line: with that power its
p-value stands out from all d values at once (Bonferroni). The best possible is subset
selection with the best k, whose total variance no other mechanism undercuts (Ye and Barg,
IEEE Trans. Inf. Theory 2018).
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import Any

from hearsay.mechanisms import (
    AUTO,
    STRING_DESIGNS,
    Mechanism,
    SubsetSelection,
    design,
    design_string,
    explain,
    total_variance,
)
from hearsay_estimator.caveats import USABLE_SHARE
from hearsay_estimator.significance import critical_value

__all__ = [
    "LEVEL",
    "POWER",
    "Lifetime",
    "Plan",
    "detectable_share",
    "loss",
    "plan",
    "reports_for_half_width",
    "reports_to_detect",
    "std_error",
    "usable",
]

LEVEL = 0.05
"""The chance of calling any of the values detected when none is there."""

POWER = 0.8
"""The chance of detecting a value that has the smallest detectable share."""

_COVERAGE = 0.95

_normal = NormalDist()


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


def loss(mechanism: Mechanism[Any], size: int, epsilon: float) -> float:
    """Its total variance over `size` values, over the least possible within `epsilon`."""
    best = SubsetSelection.design(size, epsilon)
    return float(
        total_variance(mechanism.p, mechanism.q, size) / total_variance(best.p, best.q, size)
    )


@dataclass(frozen=True)
class Lifetime:
    """How a device's whole budget turns into answers over time."""

    lifetime_epsilon: float
    answers: int
    """Windows that one device can answer before its budget is spent."""
    windows: float
    """Over how many windows that lasts on average, at the sample rate."""


@dataclass(frozen=True)
class Plan:
    """What a metric over `size` values can see in one window. Shares are fractions of 1."""

    size: int
    declared_epsilon: float
    devices: int
    sample_rate: float
    reports: float
    """Devices that answer in one window, on average."""
    mechanism: str
    parameters: dict[str, int | str]
    epsilon: float
    """Exact, from the probabilities in force, rounded up."""
    p: float
    q: float
    reason: str
    loss: float
    """Total variance over the best possible: 1 is the best."""
    report_bytes: int
    tally_cells: int
    share: float
    """The share that the next figures are for."""
    std_error: float
    detectable_share: float | None
    """Smallest, at family-wise level 0.05 with power 0.8; None if even 1 is not."""
    usable: bool
    half_width: float
    devices_for_half_width: int
    devices_to_detect: int
    """Devices with which `share` is the smallest detectable one."""
    lifetime: Lifetime | None

    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON can carry it, under its fields' names."""
        return asdict(self)


def plan(
    size: int,
    epsilon: float,
    devices: int,
    *,
    mechanism: str = AUTO,
    share: float | None = None,
    half_width: float = 0.01,
    sample_rate: float = 1.0,
    lifetime_epsilon: float | None = None,
) -> Plan:
    """Plan a domain of `size` values; `share` is 1/size if not given.

    A mechanism for strings is planned for a list of `size` candidates.

    Raises:
        SchemeError: there is no such mechanism within `epsilon`.
    """
    chosen: Mechanism[Any]
    if mechanism in STRING_DESIGNS:
        chosen = design_string(mechanism, "plan", epsilon)
    else:
        chosen = design(mechanism, size, epsilon)
    share = 1 / size if share is None else share
    reports = devices * sample_rate
    lifetime = None
    if lifetime_epsilon is not None:
        answers = Fraction(lifetime_epsilon) // Fraction(chosen.epsilon)
        lifetime = Lifetime(lifetime_epsilon, answers, answers / sample_rate)
    return Plan(
        size=size,
        declared_epsilon=epsilon,
        devices=devices,
        sample_rate=sample_rate,
        reports=reports,
        mechanism=chosen.name,
        parameters=chosen.parameters(),
        epsilon=chosen.epsilon,
        p=float(chosen.p),
        q=float(chosen.q),
        reason=explain(size, epsilon).reason if mechanism == AUTO else "named by you",
        loss=loss(chosen, size, epsilon),
        report_bytes=max(row.report_bytes for row in chosen.rows),
        tally_cells=sum(row.width for row in chosen.rows),
        share=share,
        std_error=std_error(chosen, share, reports),
        detectable_share=detectable_share(chosen, size, reports),
        usable=usable(chosen, size, reports),
        half_width=half_width,
        devices_for_half_width=math.ceil(
            reports_for_half_width(chosen, share, half_width) / sample_rate
        ),
        devices_to_detect=math.ceil(reports_to_detect(chosen, size, share) / sample_rate),
        lifetime=lifetime,
    )

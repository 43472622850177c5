"""What a metric will be able to see, why, and what it costs: the forecast as one record."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

from hearsay.forecast import (
    detectable_share,
    reports_for_half_width,
    reports_to_detect,
    std_error,
    usable,
)
from hearsay.mechanisms import (
    AUTO,
    STRING_DESIGNS,
    Mechanism,
    design,
    design_string,
    explain,
)
from hearsay.mechanisms.choice import loss
from hearsay_estimator.poisoning import FAKES, gain

__all__ = ["Lifetime", "Plan", "plan"]


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
    fakes: float
    """The part of all reports that `fakes_gain` takes to be fake."""
    fakes_gain: float
    """The most that they add to the share of any one value."""
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
    fakes: float = FAKES,
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
        fakes=fakes,
        fakes_gain=gain(chosen, fakes),
        lifetime=lifetime,
    )

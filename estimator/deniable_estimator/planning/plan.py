"""What a metric can detect, why, and what it costs: the forecast as one record."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

from deniable import SchemeError
from deniable.protocol.mechanisms import (
    AUTO,
    MEMOIZED_STRING_DESIGNS,
    STRING_DESIGNS,
    Mechanism,
    Memoizing,
    design,
    design_memoized,
    design_string,
    explain,
    explain_memoized,
)
from deniable.protocol.mechanisms.choice import loss
from deniable_estimator.analyses import memory_of
from deniable_estimator.analyses.base import FAKES
from deniable_estimator.analyses.poisoning import gain
from deniable_estimator.forecasting.detection import (
    detectable_share,
    reports_for_half_width,
    reports_to_detect,
    std_error,
    usable,
)
from deniable_estimator.messages import message


@dataclass(frozen=True)
class PlannedSegment:
    """The segment that is planned, in place of all devices."""

    share: float
    """The part of all devices that it has."""
    all_devices: int

    @property
    def devices(self) -> int:
        """Its devices."""
        return max(1, round(self.share * self.all_devices))

    @property
    def words(self) -> str:
        """What the figures of the plan are of."""
        return message(
            "For a segment with {share:.4g} of {devices:,} devices. Every figure is of the segment "
            "alone: where it says how many devices are needed, all segments together need "
            "{times:,.4g} times as many.",
            share=self.share,
            devices=self.all_devices,
            times=1 / self.share,
        )

    def to_dict(self) -> dict[str, float]:
        """For JSON: with `devices` of the plan those of the segment."""
        return {"segment_share": self.share, "all_devices": self.all_devices}


_A_YEAR = 365

_SALT = "plan"
"""For mechanisms over strings, which hash with the name of their metric."""


@dataclass(frozen=True)
class Lifetime:
    """How many reports a device's whole budget allows, over which time."""

    lifetime_epsilon: float
    reports: int
    """How many reports one device can send before its budget is spent."""
    windows: float
    """How many windows that lasts on average, at the sample rate."""

    @classmethod
    def of(cls, lifetime_epsilon: float | None, epsilon: float, sample_rate: float) -> Self | None:
        """That of a device whose reports have this epsilon; None if nothing limits it."""
        if lifetime_epsilon is None:
            return None
        reports = Fraction(lifetime_epsilon) // Fraction(epsilon)
        return cls(lifetime_epsilon, reports, reports / sample_rate)

    @property
    def turns(self) -> int | None:
        """The `one_in` with which they last a year of days; None where they do so without."""
        if self.windows >= _A_YEAR or self.reports < 1:
            return None
        return math.ceil(_A_YEAR / self.reports)


@dataclass(frozen=True)
class MemoryPlan:
    """For memoized noise: what reports reveal, and their accuracy over time."""

    lifetime_epsilon: float
    """As requested."""
    memo_epsilon: float
    """What all reports of one value reveal, however many: exact, rounded up."""
    fresh_epsilon: float
    """What each report adds at most, whatever was reported before, times of change included."""
    lasting_std_error: float
    """The standard error of the plan's share that remains over any number of windows, if the same
    devices report: sqrt(V1 / devices), with V1 from `deniable_estimator.analyses.memoized`."""


@dataclass(frozen=True)
class Plan:
    """What a metric over `size` values can detect in one window. Shares are fractions of 1."""

    size: int
    declared_epsilon: float
    devices: int
    sample_rate: float
    reports: float
    """Devices that report in one window, on average."""
    mechanism: str
    parameters: dict[str, int | str]
    epsilon: float
    """Exact, from the probabilities in force, rounded up."""
    p: float
    q: float
    reason: str
    loss: float
    """Total variance divided by the least possible: 1 is the best."""
    report_bytes: int
    tally_cells: int
    share: float
    """The share that the next figures are for."""
    std_error: float
    detectable_share: float | None
    """The smallest one, at family-wise level 0.05 with power 0.8; None if even 1 is not detectable.
    For strings that are decoded by cohorts it is somewhat too small (see
    `forecasting.detection`)."""
    usable: bool
    half_width: float
    devices_for_half_width: int
    devices_to_detect: int
    """How many devices are needed to detect `share`."""
    fakes: float
    """The fraction of all reports that `fakes_gain` assumes to be fake."""
    fakes_gain: float
    """The most that they add to the share of any one value."""
    lifetime: Lifetime | None
    """None with memos: a device reports in any number of windows."""
    memory: MemoryPlan | None = None
    """None if each report has fresh noise."""


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
    memoize: bool = False,
    fakes: float = FAKES,
) -> Plan:
    """Plan a domain of `size` values; `share` is 1/size if not given.

    A mechanism for strings is planned for a list of `size` candidates. With `memoize`, noise is
    memoized, and `lifetime_epsilon` is required: it limits what a memo reveals.

    Raises:
        SchemeError: there is no such mechanism within `epsilon`, or no memo within the lifetime.
    """
    chosen: Mechanism[Any]
    if memoize:
        if lifetime_epsilon is None:
            raise SchemeError("memory needs a lifetime_epsilon: it is what one memo may reveal")
        listed = None if mechanism in MEMOIZED_STRING_DESIGNS else size
        chosen = design_memoized(mechanism, _SALT, listed, epsilon, lifetime_epsilon)
    elif mechanism in STRING_DESIGNS:
        chosen = design_string(mechanism, _SALT, epsilon)
    else:
        chosen = design(mechanism, size, epsilon)
    share = 1 / size if share is None else share
    reports = devices * sample_rate
    lifetime, memory = None, None
    if isinstance(chosen, Memoizing):
        assert lifetime_epsilon is not None
        memory = MemoryPlan(
            lifetime_epsilon,
            chosen.lifetime_epsilon,
            chosen.fresh_epsilon,
            lasting_error(chosen, share, devices),
        )
    else:
        lifetime = Lifetime.of(lifetime_epsilon, chosen.epsilon, sample_rate)
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
        reason=_reason(mechanism, size, epsilon, lifetime_epsilon, memoize),
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
        memory=memory,
    )


def _reason(
    mechanism: str, size: int, epsilon: float, lifetime_epsilon: float | None, memoize: bool
) -> str:
    if mechanism != AUTO:
        return "named by you"
    if memoize and lifetime_epsilon is not None:
        return explain_memoized(size, _SALT, epsilon, lifetime_epsilon).reason
    return explain(size, epsilon).reason


def lasting_error(mechanism: Memoizing[Any], share: float, devices: int) -> float:
    """The standard error of a share that remains over any number of windows, when the fresh noise
    has averaged out."""
    p1, q1 = (float(each) for each in memory_of(mechanism).memo_channel())
    rate = q1 + share * (p1 - q1)
    return math.sqrt(rate * (1 - rate) / devices) / (p1 - q1)

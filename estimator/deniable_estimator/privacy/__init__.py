"""The guarantee as numbers: what the reports of a device can reveal, computed from its mechanism.

A report with odds factor e**epsilon multiplies anybody's odds between two values by at most that
factor, whatever else they know. So a 50/50 guess becomes right with probability at most
odds / (odds + 1). The epsilons of all reports of a device add up, over windows and metrics, and
so do those of g devices with the same value, a household (Dwork and Roth, "The Algorithmic
Foundations of Differential Privacy", 2014, sections 2.3 and 3.5). For memos see
`deniable.mechanisms.Memoizing`.

Every figure is rounded up.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

from deniable import Metric, Registry
from deniable.discovery_forecast import Reach
from deniable.mechanisms import Memoizing, PrefixTree
from deniable.mechanisms.numeric import Numeric
from deniable.metric import Answer, Platform
from deniable_estimator.analyses import memory_of
from deniable_estimator.messages import message
from deniable_estimator.privacy.change_pattern import reports_that_show

__all__ = [
    "BEYOND",
    "WINDOWS_A_YEAR",
    "Bound",
    "Change",
    "CrowdNeeded",
    "Guarantee",
    "MemoGuarantee",
    "SameValues",
    "Together",
    "guarantee",
    "guarantee_in",
    "learned_by",
    "not_covered",
    "together",
]

WINDOWS_A_YEAR = {"day": 365.25, "week": 365.25 / 7, "month": 12.0}
_MOST_WINDOWS_A_YEAR = {"day": 366, "week": 53, "month": 12}

BEYOND = 10_000.0
"""From this epsilon on the digits of the odds do not matter, and decimals would overflow."""

_NOT_COVERED = (
    "that a device takes part, when, and from which address",
    "a budget that begins anew: the app is reinstalled, its state removed, or a backup restored",
    "what is true of the whole crowd: it may tell about people whose device never reported",
)
"""What no local mechanism protects."""

_FIRST_USE = (
    "when the app is first used in a window: the metric is answered at once, so the time of a "
    "report shows it"
)
"""What the time of sending shows of a metric that is answered at once."""

_BOTH = (
    "that the device has recorded both metrics in a window: with one of them alone it reports "
    "nothing"
)
"""What a report of a pair shows by being there."""

_STORAGE = (
    "a browser that loses its storage, and the ledger with it: Safari deletes it after 7 days "
    "without a visit, people clear it, and private windows begin without it; the bounds for "
    "several reports hold for one life of the storage"
)
"""What a metric that is recorded on the web cannot promise."""

_SEGMENTS = (
    "the segments of the device: each report tells them in clear, and with them whatever they say "
    "about the value by themselves"
)
"""What a metric that is counted by segments does not protect."""

_CHANGES = (
    "the times at which a value changes: against them stands only the bound for reports of "
    "any history, which grows with every report"
)


@lru_cache(maxsize=1024)
def _odds(epsilon: float) -> Fraction:
    with localcontext() as context:
        context.prec = 40
        return Fraction(Decimal(epsilon).exp().next_plus())


@dataclass(frozen=True, slots=True)
class Bound:
    """An upper bound: the odds between two values change by a factor of e**epsilon at most."""

    epsilon: float

    @classmethod
    def of(cls, epsilon: Fraction | float) -> Bound:
        """The bound for an exact epsilon, rounded up to a float."""
        nearest = float(epsilon)
        return cls(nearest if nearest >= epsilon else math.nextafter(nearest, math.inf))

    @property
    def odds(self) -> Fraction:
        """e**epsilon, rounded up in its 40th digit."""
        return _odds(self.epsilon)

    @property
    def belief(self) -> Fraction:
        """How often a 50/50 guess is right at most afterwards: from 1/2 to 1."""
        if self.epsilon > BEYOND:
            return Fraction(1)
        return self.odds / (self.odds + 1)

    def to_dict(self) -> dict[str, float | None]:
        """`epsilon`, `odds` (null where no float holds it) and `belief`."""
        odds = None if self.epsilon > 700 else math.nextafter(float(self.odds), math.inf)
        belief = min(1.0, math.nextafter(float(self.belief), 1.0))
        return {"epsilon": self.epsilon, "odds": odds, "belief": belief}


@dataclass(frozen=True, slots=True)
class Change:
    """An example of what changes reveal: two alternating values, compared with one that stays."""

    reports: int
    epsilon: float
    """A lower bound of the epsilon with which these reports distinguish the two histories."""
    memos: Bound
    """The bound from the memos of both values, which would be valid if it covered changes."""

    def to_dict(self) -> dict[str, Any]:
        return {"reports": self.reports, "epsilon": self.epsilon, "memos": self.memos.to_dict()}


@dataclass(frozen=True, slots=True)
class MemoGuarantee:
    """The guarantee for memoized noise."""

    memo: Bound
    """All reports of one value together, however many, given the times of change."""
    cells: int | None
    """How many memos a device can have at most; None if strings set no limit."""
    values: Bound | None
    """All reports of a device, given the times at which its values change: all its memos."""
    change: Change | None

    def to_dict(self) -> dict[str, Any]:
        return {
            "memo": self.memo.to_dict(),
            "cells": self.cells,
            "values": None if self.values is None else self.values.to_dict(),
            "change": None if self.change is None else self.change.to_dict(),
        }


class CrowdNeeded(NamedTuple):
    """How many devices of the expected ones must have a string until it is found in a window; None
    where the registry does not say how many there are. See `deniable.discovery_forecast.Reach`."""

    devices: int | None
    hidden: int | None
    """Of strings that fewer have, none was found in the measurements."""
    half: int | None
    """In half of the windows, if it looks like common text."""
    sure: int | None
    """In 95 % of the windows."""

    @classmethod
    def of(cls, metric: Metric) -> CrowdNeeded | None:
        """That of a metric; None if it is no discovery."""
        mechanism, devices = metric.scheme.mechanism, metric.devices
        if not isinstance(mechanism, PrefixTree):
            return None
        if devices is None:
            return cls(None, None, None, None)
        reach = Reach.in_window(mechanism, devices * metric.sample_rate)
        shares = (reach.hidden, reach.half_text, reach.sure_text)
        return cls(devices, *(math.ceil(share * devices) for share in shares))


@dataclass(frozen=True, slots=True)
class SameValues:
    """What the reports of several metrics about the same values reveal: a pair and its metrics.
    Their epsilons add up."""

    report: Bound
    """One report of each."""
    typical_year: Bound
    worst_year: Bound
    lifetime: Bound | None
    """None if one of them is ended by its expiry alone, and the registry has no cap."""

    def to_dict(self) -> dict[str, Any]:
        return {
            **self.report.to_dict(),
            "typical_year": self.typical_year.to_dict(),
            "worst_year": self.worst_year.to_dict(),
            "lifetime": None if self.lifetime is None else self.lifetime.to_dict(),
        }


@dataclass(frozen=True, slots=True)
class Guarantee:
    """What the reports of one metric can reveal, of `household` devices with the same value.

    Bounds over several reports hold for any history of values.
    """

    metric: str
    description: str
    mechanism: str
    window: str
    sample_rate: float
    household: int
    report: Bound
    """One report of each device."""
    each: Bound
    """What every report adds if there are several: with memos, more than `report`."""
    typical_reports: float
    """One device in a year, on average, if it has a value in every window."""
    typical_year: Bound
    most_reports: int
    """One device in a year, if it takes part in every window."""
    worst_year: Bound
    lifetime_reports: int | None
    """One device in its lifetime; None if only the metric's expiry ends the reports."""
    lifetime: Bound | None
    memory: MemoGuarantee | None
    numeric: bool = False
    """Whether the values are numbers, which people call so."""
    answer: Answer = "at_close"
    """When devices report; the time of sending then shows more or less."""
    platform: tuple[Platform, ...] = ()
    """Where the metric is recorded, if the registry says so."""
    of: tuple[str, ...] = ()
    """The metrics whose values it joins."""
    same_metrics: tuple[str, ...] = ()
    """All metrics whose reports of a window are about the same values, if there are several."""
    same_values: SameValues | None = None
    """What the reports of all of them reveal."""
    reported_by: str | None = None
    """The pair that is reported in place of the metric; the figures are those of the pair."""
    segments: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The segments that a report tells in clear, each with its values. All bounds compare values
    of devices of the same segments."""
    discovery: CrowdNeeded | None = None
    """Which strings are found in the crowd, if the metric is a discovery."""

    def to_dict(self) -> dict[str, Any]:
        """The guarantee for JSON, under its fields' names, with who learns what. `same_values`
        and `reported_by` are there for pairs and their metrics alone, `discovery` for a
        discovery."""
        more: dict[str, Any] = {}
        if self.same_values is not None:
            more["same_values"] = {"metrics": list(self.same_metrics), **self.same_values.to_dict()}
        if self.reported_by is not None:
            more["reported_by"] = self.reported_by
        if self.discovery is not None:
            more["discovery"] = self.discovery._asdict()
        return {
            "metric": self.metric,
            "description": self.description,
            "mechanism": self.mechanism,
            "window": self.window,
            "answer": self.answer,
            "platform": list(self.platform),
            **({"segments": _lists(self.segments)} if self.segments else {}),
            "sample_rate": self.sample_rate,
            "household": self.household,
            "report": self.report.to_dict(),
            "each": self.each.to_dict(),
            "typical_reports": self.typical_reports,
            "typical_year": self.typical_year.to_dict(),
            "most_reports": self.most_reports,
            "worst_year": self.worst_year.to_dict(),
            "lifetime_reports": self.lifetime_reports,
            "lifetime": None if self.lifetime is None else self.lifetime.to_dict(),
            "memory": None if self.memory is None else self.memory.to_dict(),
            "learned_by": self.learned_by,
            "not_covered": list(self.not_covered),
            **more,
        }

    @property
    def learned_by(self) -> dict[str, str]:
        """Who can learn what of a device: who -> what."""
        return learned_by(remembers=self.memory is not None, at_once=self.answer == "at_once")

    @property
    def not_covered(self) -> tuple[str, ...]:
        """What the guarantee does not cover."""
        found = not_covered(
            remembers=self.memory is not None,
            at_once=self.answer == "at_once",
            web=self.web,
            segments=bool(self.segments),
        )
        return (*found, _BOTH) if self.of else found

    @property
    def web(self) -> bool:
        """Whether browsers record the metric."""
        return "web" in self.platform


@dataclass(frozen=True, slots=True)
class Together:
    """What all metrics of a registry can reveal of the same device, or household."""

    household: int
    metrics: tuple[Guarantee, ...]
    report: Bound
    """One report of every metric."""
    typical_year: Bound
    worst_year: Bound
    cap: float | None
    """The registry's own `lifetime_epsilon`, for one device."""
    lifetime: Bound | None

    def to_dict(self) -> dict[str, Any]:
        """The guarantee for JSON, under its fields' names."""
        return {
            "household": self.household,
            "metrics": [each.to_dict() for each in self.metrics],
            "report": self.report.to_dict(),
            "typical_year": self.typical_year.to_dict(),
            "worst_year": self.worst_year.to_dict(),
            "cap": self.cap,
            "lifetime": None if self.lifetime is None else self.lifetime.to_dict(),
        }


def guarantee_in(registry: Registry, metric: Metric, household: int = 1) -> Guarantee:
    """The guarantee of a metric of a registry. Where devices report a pair in its place, it is
    that of the pair.

    Raises:
        ValueError: `household` is not positive.
    """
    source = registry.unasked.get(metric.name, metric)
    found = guarantee(source, registry.lifetime_epsilon, household, registry.about(source))
    if source is metric:
        return found
    return replace(
        found, metric=metric.name, description=metric.description, reported_by=source.name
    )


def guarantee(
    metric: Metric,
    cap: float | None = None,
    household: int = 1,
    about: Sequence[Metric] = (),
) -> Guarantee:
    """The guarantee of a metric under the cap of its registry, from the mechanism in force; `about`
    are all metrics whose reports of a window are about the same values.

    Raises:
        ValueError: `household` is not positive.
    """
    if household < 1:
        raise ValueError(f"a household has at least one device, not {household}")
    mechanism = metric.scheme.mechanism
    # What the device's ledger charges for each report, and where it stops.
    if isinstance(mechanism, Memoizing):
        memory = _memory(metric, mechanism, household)
        cost, own = Fraction(mechanism.fresh_epsilon), None
    else:
        memory = None
        cost, own = Fraction(mechanism.epsilon), metric.lifetime_epsilon
    limits = [each for each in (own, cap) if each is not None]
    reports = math.floor(Fraction(min(limits)) / cost) if limits else None
    most = _MOST_WINDOWS_A_YEAR[metric.window]
    typical = WINDOWS_A_YEAR[metric.window] * metric.sample_rate
    if reports is not None:
        most, typical = min(most, reports), min(typical, float(reports))
    return Guarantee(
        metric=metric.name,
        description=metric.description,
        mechanism=mechanism.name,
        window=metric.window,
        sample_rate=metric.sample_rate,
        household=household,
        report=Bound.of(household * Fraction(mechanism.epsilon)),
        each=Bound.of(household * cost),
        typical_reports=typical,
        typical_year=Bound.of(household * Fraction(typical) * cost),
        most_reports=most,
        worst_year=Bound.of(household * most * cost),
        lifetime_reports=reports,
        lifetime=None if reports is None else Bound.of(household * reports * cost),
        memory=memory,
        numeric=isinstance(mechanism, Numeric),
        answer=metric.answer,
        platform=metric.platform,
        of=metric.type.of,
        **_same(about, cap, household),
        segments={each.name: each.values for each in metric.segments},
        discovery=CrowdNeeded.of(metric),
    )


def _same(about: Sequence[Metric], cap: float | None, household: int) -> dict[str, Any]:
    """What reports of several metrics about the same values reveal."""
    if len(about) < 2:
        return {}
    found = [guarantee(each, cap, household) for each in about]
    return {
        "same_metrics": tuple(each.metric for each in found),
        "same_values": SameValues(*_totals(found, cap, household)),
    }


def _totals(
    found: Sequence[Guarantee], cap: float | None, household: int
) -> tuple[Bound, Bound, Bound, Bound | None]:
    """One report of each, all of them in a typical year, in the worst year and in a lifetime; none
    beyond the cap. Without it there is no bound for a lifetime if one of them has none."""
    limit = None if cap is None else household * Fraction(cap)

    def total(bounds: Sequence[Bound]) -> Bound:
        whole = sum((Fraction(each.epsilon) for each in bounds), Fraction(0))
        return Bound.of(whole if limit is None else min(whole, limit))

    lifetimes = [each.lifetime for each in found if each.lifetime is not None]
    return (
        total([each.report for each in found]),
        total([each.typical_year for each in found]),
        total([each.worst_year for each in found]),
        total(lifetimes) if len(lifetimes) == len(found) else None,
    )


def together(registry: Registry, household: int = 1) -> Together:
    """The guarantees of all metrics, and of all of them together on one device."""
    cap = registry.lifetime_epsilon
    metrics = tuple(
        guarantee_in(registry, metric, household)
        for metric in registry
        if metric.name not in registry.unasked
    )
    report, year, worst, lifetime = _totals(metrics, cap, household)
    return Together(household, metrics, report, year, worst, cap, lifetime)


def learned_by(*, remembers: bool, at_once: bool = False) -> dict[str, str]:
    """Who can learn what of a device: who -> what."""
    network = message(
        "that the device reports, and its address; of the report nothing while TLS holds, "
        "and if it does not, no more than the bounds"
    )
    operator = message(
        "each report as it comes in, and from which address; the bounds need no trust in who "
        "runs it, and the collector keeps neither"
    )
    if at_once:
        network = message(
            "that the device reports, its address, and roughly when the app was first used in a "
            "window; of the report nothing while TLS holds, and if it does not, no more than the "
            "bounds"
        )
        operator = message(
            "each report as it comes in, from which address, and so roughly when the app was "
            "first used in a window; the bounds need no trust in who runs it, and the collector "
            "keeps no report, address or time"
        )
    return {
        "the network": network,
        "the collector's operator": operator,
        "the analyst": message(
            "sums over all devices, which tell far less of one device than its report"
        ),
        "a thief of the store": message(
            "the same sums, and one by one what the last minute added to them: no address or "
            "device is in it"
        ),
        "a thief of the device": _thief(remembers, at_once),
    }


def _thief(remembers: bool, at_once: bool) -> str:
    """What the state file of a device tells."""
    if at_once and remembers:
        return message(
            "the noisy reports it has made, and the key of its memory, which together give away "
            "the values of these reports"
        )
    if at_once:
        return message("the noisy reports it has made, and no true value")
    if remembers:
        return message(
            "the true value of the window that is still open, and the noisy reports it has made; "
            "also which values it has met so far, since its memory is kept by value"
        )
    return message(
        "the true value of the window that is still open, and the noisy reports it has made"
    )


def _lists(segments: Mapping[str, tuple[str, ...]]) -> dict[str, list[str]]:
    return {name: list(values) for name, values in segments.items()}


def not_covered(
    *, remembers: bool, at_once: bool = False, web: bool = False, segments: bool = False
) -> tuple[str, ...]:
    """What the guarantee does not cover."""
    return (
        *_NOT_COVERED,
        *((_SEGMENTS,) if segments else ()),
        *((_STORAGE,) if web else ()),
        *((_FIRST_USE,) if at_once else ()),
        *((_CHANGES,) if remembers else ()),
    )


def _memory(metric: Metric, mechanism: Memoizing[Any], household: int) -> MemoGuarantee:
    lifetime = Fraction(mechanism.lifetime_epsilon)
    memory = memory_of(mechanism)
    reports = reports_that_show(memory, float(2 * lifetime))
    change = None
    if reports is not None:
        shown = memory.alternation_loss(reports)
        change = Change(reports, shown, Bound.of(2 * lifetime))
    cells = memory.entries(len(metric.values) or None)
    values = None if cells is None else Bound.of(household * cells * lifetime)
    return MemoGuarantee(Bound.of(household * lifetime), cells, values, change)

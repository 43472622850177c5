"""What a guarantee says: of one metric, of its memos, and of all metrics together."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from deniable import Metric
from deniable.protocol.mechanisms import PrefixTree
from deniable.protocol.metric import Answer, Platform
from deniable.protocol.windows import Kind
from deniable_estimator.forecasting.discovery_forecast import Reach
from deniable_estimator.privacy.bounds import Bound
from deniable_estimator.privacy.scope import BOTH_RECORDED, learned_by, not_covered


@dataclass(frozen=True, slots=True)
class ChangeExample:
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
    """All reports of one value together, however many, given the times of change, as long as the
    metric is not edited."""
    edited: Bound | None
    """The same with the memos of all edits that the device accepts; None if it accepts none."""
    cells: int | None
    """How many memos a device can have at most; None if strings set no limit."""
    values: Bound | None
    """All reports of a device, given the times at which its values change: all its memos."""
    change: ChangeExample | None

    def to_dict(self) -> dict[str, Any]:
        return {
            "memo": self.memo.to_dict(),
            "edited": None if self.edited is None else self.edited.to_dict(),
            "cells": self.cells,
            "values": None if self.values is None else self.values.to_dict(),
            "change": None if self.change is None else self.change.to_dict(),
        }


class CrowdNeeded(NamedTuple):
    """How many devices of the expected ones must have a string until it is found in a window; None
    where the registry does not say how many there are. See
    `forecasting.discovery_forecast.Reach`."""

    devices: int | None
    hidden: int | None
    """Of strings that fewer have, none was found in the measurements."""
    half: int | None
    """In half of the windows, if it looks like common text."""
    sure: int | None
    """In 95% of the windows."""

    @classmethod
    def of(cls, metric: Metric) -> CrowdNeeded | None:
        """That of a metric; None if it is no discovery."""
        mechanism, devices = metric.scheme.mechanism, metric.devices
        if not isinstance(mechanism, PrefixTree):
            return None
        if devices is None:
            return cls(None, None, None, None)
        reach = Reach.in_window(mechanism, devices * metric.rate)
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
    window: Kind
    sample_rate: float
    """The probability with which a device takes part in a window; with `one_in` they take turns."""
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
        return (*found, BOTH_RECORDED) if self.of else found

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


def _lists(segments: Mapping[str, tuple[str, ...]]) -> dict[str, list[str]]:
    return {name: list(values) for name, values in segments.items()}

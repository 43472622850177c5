"""What a guarantee says: of one metric, of its memos, and of all metrics together; who can learn
what of a device, and what no guarantee covers."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

from deniable import Metric
from deniable.protocol.mechanisms import MAX_MEMO_EPSILON
from deniable.protocol.mechanisms.prefix_tree import PrefixTree
from deniable.protocol.metric import Answer, Platform
from deniable.protocol.windows import Kind
from deniable_estimator.document.document import plain
from deniable_estimator.messages import message
from deniable_estimator.statistics.expected import Reach

USEFUL = MAX_MEMO_EPSILON
"""Above this epsilon a bound says nothing: a 50/50 guess may be wrong once in 10**8 times."""

_BEYOND = 10_000.0
"""From this epsilon on the digits of the odds do not matter, and decimals would overflow."""


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
    def useful(self) -> bool:
        """Whether it bounds anything that matters; otherwise labels say so, and show no figure."""
        return self.epsilon <= USEFUL

    @property
    def odds(self) -> Fraction:
        """e**epsilon, rounded up in its 40th digit."""
        return _odds(self.epsilon)

    @property
    def belief(self) -> Fraction:
        """How often a 50/50 guess is right at most afterwards: from 1/2 to 1."""
        if self.epsilon > _BEYOND:
            return Fraction(1)
        return self.odds / (self.odds + 1)

    def to_dict(self) -> dict[str, float | None]:
        """`epsilon`, `odds` (null where no float holds it) and `belief`."""
        odds = None if self.epsilon > 700 else math.nextafter(float(self.odds), math.inf)
        belief = min(1.0, math.nextafter(float(self.belief), 1.0))
        return {"epsilon": self.epsilon, "odds": odds, "belief": belief}


@dataclass(frozen=True, slots=True)
class ChangeExample:
    """An example of what changes reveal: two alternating values, compared with one that stays."""

    reports: int
    epsilon: float
    """A lower bound of the epsilon with which these reports distinguish the two histories."""
    memos: Bound
    """The bound from the memos of both values, which would be valid if it covered changes."""


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


class CrowdNeeded(NamedTuple):
    """How many devices of the expected ones must have a string until it is found in a window; None
    where the registry does not say how many there are. See
    `statistics.expected.Reach`."""

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

    metrics: tuple[str, ...]
    report: Bound
    """One report of each."""
    typical_year: Bound
    worst_year: Bound
    lifetime: Bound | None
    """None if one of them is ended by its expiry alone, and the registry has no cap."""

    def to_dict(self) -> dict[str, Any]:
        """For JSON, where one report of each stands at the top."""
        years = {"typical_year": self.typical_year, "worst_year": self.worst_year}
        found = {**years, "lifetime": self.lifetime}
        return {"metrics": list(self.metrics), **self.report.to_dict(), **plain(found)}


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
    same_values: SameValues | None = None
    """What reports of the same values reveal, if several metrics are about them."""
    reported_by: str | None = None
    """The pair that is reported in place of the metric; the figures are those of the pair."""
    segments: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The segments that a report tells in clear, each with its values. All bounds compare values
    of devices of the same segments."""
    discovery: CrowdNeeded | None = None
    """Which strings are found in the crowd, if the metric is a discovery."""

    def to_dict(self) -> dict[str, Any]:
        """The guarantee for JSON, under its fields' names, with who learns what. `segments` are
        there for metrics that have some, `same_values` and `reported_by` for pairs and their
        metrics alone, `discovery` for a discovery."""
        found = {name: plain(getattr(self, name)) for name in _TOLD}
        return {name: each for name, each in found.items() if each or name not in _RARE}

    @property
    def learned_by(self) -> dict[str, str]:
        """Who can learn what of a device: who -> what."""
        return learned_by(remembers=self.memory is not None, at_once=self.answer == "at_once")

    @property
    def not_covered(self) -> tuple[str, ...]:
        """What the guarantee does not cover."""
        holds = {
            "segments": self.segments,
            "web": self.web,
            "at_once": self.answer == "at_once",
            "remembers": self.memory is not None,
            "pair": self.of,
        }
        return not_covered([name for name, each in holds.items() if each])

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


_RARE = ("segments", "same_values", "reported_by", "discovery")
_TOLD = (
    *("metric", "description", "mechanism", "window", "answer", "platform", "segments"),
    *("sample_rate", "household", "report", "each", "typical_reports", "typical_year"),
    *("most_reports", "worst_year", "lifetime_reports", "lifetime", "memory"),
    *("learned_by", "not_covered", "same_values", "reported_by", "discovery"),
)


_NOT_COVERED = (
    "that a device takes part, when, and from which address",
    "a budget that begins anew: the app is reinstalled, its state removed, or a backup restored",
    "what is true of the whole crowd: it may tell about people whose device never reported",
)
"""What no local mechanism protects."""

_ALSO = {
    # Each report tells them in clear.
    "segments": "the segments of the device: each report tells them in clear, and with them "
    "whatever they say about the value by themselves",
    # Where the metric is recorded on the web.
    "web": "a browser that loses its storage, and the ledger with it: Safari deletes it after 7 "
    "days without a visit, people clear it, and private windows begin without it; the bounds for "
    "several reports hold for one life of the storage",
    # The time of sending shows it.
    "at_once": "when the app is first used in a window: the metric is answered at once, so the "
    "time of a report shows it",
    "remembers": "the times at which a value changes: against them stands only the bound for "
    "reports of any history, which grows with every report",
    # A report of a pair shows it by being there.
    "pair": "that the device has recorded both metrics in a window: with one of them alone it "
    "reports nothing",
}
"""What else is not protected of some metrics, by what holds of them."""


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
            "the true value of the window that is still open, the noisy reports it has made, and "
            "the key of its memory, which gives away the values of these reports"
        )
    return message(
        "the true value of the window that is still open, and the noisy reports it has made"
    )


def not_covered(holds: Collection[str]) -> tuple[str, ...]:
    """What the guarantee does not cover, where this holds."""
    return (*_NOT_COVERED, *(told for name, told in _ALSO.items() if name in holds))

"""What may be asked of a store: which metric, which segments, which days, and so which windows."""

from __future__ import annotations

import difflib
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import date, timedelta

from deniable import Metric, MetricError, Registry, Scheme
from deniable.protocol import windows
from deniable_collector.stores.errors import NotKept
from deniable_collector.tally import Tally
from deniable_estimator.errors import EstimateError, OnlyLongerError
from deniable_estimator.messages import message

LENGTHS: dict[windows.Kind, timedelta] = {
    "day": timedelta(1),
    "week": timedelta(7),
    "month": timedelta(31),
}
"""How long a window of each kind lasts at most."""


@dataclass(frozen=True, slots=True)
class Days:
    """From the first to the last day (UTC), both included; without them all days."""

    first: date = date.min
    last: date = date.max
    without: tuple[str, ...] = ()
    """Windows that are left out; those outside of the days do no harm."""
    since: str = ""
    """What happened before them, if that is what they were asked by."""
    before: tuple[date, date] | None = None
    """The first and the last day that they are compared with, in that case."""

    @property
    def days(self) -> int:
        """How many there are."""
        return (self.last - self.first).days + 1

    @property
    def query(self) -> dict[str, str]:
        """The days as an address carries them."""
        left_out = {"without": ",".join(self.without)} if self.without else {}
        days = {"from": self.first.isoformat(), "to": self.last.isoformat()}
        return {**({"since": self.since} if self.since else days), **left_out}

    @property
    def told(self) -> dict[str, str]:
        """The same for programs, which are told the days too."""
        days = {"from": self.first.isoformat(), "to": self.last.isoformat()}
        return {**days, **self.query}

    @property
    def earlier(self) -> Days:
        """Those that they are compared with, if they were asked by what happened."""
        assert self.before is not None
        return self.over(*self.before)

    @property
    def around(self) -> Days:
        """These days, and from the first that they are compared with if they were asked by what
        happened: what a trend shows."""
        return self if self.before is None else replace(self, first=self.before[0])

    def touches(self, label: str) -> bool:
        """Whether a window lies in these days, or some of it does."""
        return windows.first_day(label) <= self.last and windows.last_day(label) >= self.first

    def holds(self, label: str) -> bool:
        """Whether a window touches these days, and is not left out of them."""
        return label not in self.without and self.touches(label)

    def over(self, first: date, last: date) -> Days:
        """Other days without the same windows."""
        return Days(first, last, self.without)

    def reaching_back(self, count: int, kind: windows.Kind) -> Days:
        """The same with so many windows of that kind before it; months are taken for long ones."""
        days = count * LENGTHS[kind].days
        return self.over(date.fromordinal(max(1, self.first.toordinal() - days)), self.last)

    def leaving_out(self, *labels: str) -> Days:
        """The same days without these windows either."""
        return replace(self, without=tuple(sorted({*self.without, *labels})))


@dataclass(frozen=True)
class Query:
    """What is asked of a store: a metric over every stored window that touches some days."""

    metric: str
    days: Days = Days()
    candidates: Sequence[str] | None = None
    """The strings to look for, or of what has a list the values to estimate; None for all."""
    where: Mapping[str, str] = field(default_factory=dict)
    """The segments whose reports count, each with its value; without any, all do."""


def places_of(scheme: Scheme, where: Mapping[str, str]) -> tuple[int, ...]:
    """The numbers of the combinations with these values; none if the scheme has no such segment
    or value. Without values, all."""
    return tuple(
        place
        for place, labels in enumerate(scheme.combinations)
        if all(labels.get(name) == value for name, value in where.items())
    )


def sliced(tally: Tally, scheme: Scheme, places: Sequence[int]) -> Tally:
    """The sum of the rows of these combinations: one row for each row of the mechanism."""
    count = len(scheme.mechanism.rows)
    if len(tally.rows) == count and tuple(places) == (0,):
        return tally
    rows = []
    for number in range(count):
        first, *others = (tally.rows[place * count + number] for place in places)
        rows.append(sum(others, first))
    return replace(tally, rows=tuple(rows))


_DAY = 86_400.0

_MOST_NAMED = 6
"""Periods that an error names."""


def find_metric(registry: Registry, name: str) -> Metric:
    """The metric of that name.

    Raises:
        MetricError: there is none; the message names those that are spelt like it.
    """
    if name in registry.metrics:
        return registry[name]
    near = difflib.get_close_matches(name, registry.metrics, cutoff=0.5)
    known = ", ".join(near or sorted(registry.metrics))
    advice = f"did you mean {known}?" if near else f"it declares {known}"
    raise MetricError(name, f"is not declared in {registry.source}; {advice}")


def check_where(metric: Metric, where: Mapping[str, str]) -> None:
    """Refuse what is no value of a segment of the metric.

    Raises:
        EstimateError: it is none.
    """
    declared = {each.name: each.values for each in metric.segments}
    for name, value in where.items():
        if name not in declared:
            raise EstimateError(
                message(
                    "{metric} is not counted by a segment {segment}; its segments: {known}",
                    metric=metric.name,
                    segment=name,
                    known=", ".join(declared) or message("none"),
                )
            )
        if value not in declared[name]:
            raise EstimateError(
                message(
                    "{segment} has no value {value}: choose one of {known}",
                    segment=name,
                    value=value,
                    known=", ".join(declared[name]),
                )
            )


def windows_within(
    labels: Sequence[str], metric: Metric, ranges: Sequence[Days]
) -> list[tuple[str, ...]]:
    """For each of these ranges of days, those of the labels, which are in the order of their
    starts, that are of the metric's kind and touch it."""
    own = tuple(label for label in labels if windows.kind_of(label) == metric.window)
    starts, ends = list(map(windows.start, own)), list(map(windows.end, own))
    return [
        own[
            bisect_right(ends, windows.midnight(days.first)) : bisect_left(
                starts, windows.midnight(days.last) + _DAY
            )
        ]
        for days in ranges
    ]


@contextmanager
def telling_longer(metric: str) -> Iterator[None]:
    """While windows of a metric are read.

    Raises:
        OnlyLongerError: single windows are gone; it names the periods that have them.
    """
    try:
        yield
    except NotKept as error:
        raise _only_longer(metric, error) from None


def _only_longer(metric: str, error: NotKept) -> OnlyLongerError:
    first, last = error.windows[0], error.windows[-1]
    if not error.periods:
        return OnlyLongerError(
            message(
                "the windows {first} to {last} of {metric} were dropped: ask for a longer period",
                first=first,
                last=last,
                metric=metric,
            )
        )
    told = message(
        "of {metric}, the windows {first} to {last} were dropped, and only sums of longer "
        "periods are kept: {periods}",
        metric=metric,
        first=first,
        last=last,
        periods=_listed(error.periods),
    )
    return OnlyLongerError(told)


def advised(error: OnlyLongerError, days: Days | None) -> OnlyLongerError:
    """The same with days that can be asked for, if there are any."""
    if days is None:
        return error
    told = message(
        "{told}. Ask for {begin} to {end}", told=str(error), begin=days.first, end=days.last
    )
    return OnlyLongerError(told)


def _listed(periods: Sequence[str]) -> str:
    if len(periods) <= _MOST_NAMED:
        return ", ".join(periods)
    return ", ".join((*periods[: _MOST_NAMED - 2], "...", periods[-1]))

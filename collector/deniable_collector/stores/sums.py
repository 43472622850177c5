"""Sums over calendars: the tally of a week, month or quarter, as the sum of its windows' tallies.

A store has two forms of them, both as sealed blocks:

- a *copy* of windows that the store still has, so that a year is a dozen reads. It lists the stamp
  of each window, and counts only while these are their stamps.
- a *kept* sum of windows that were dropped. It is all that there is of them. If a window of that
  name comes again, by an import, it counts in addition.

A period is named by its label: "2026-W47", "2026-11" or "2026-Q4" (UTC). A window lies in one
period of each calendar that is coarser than its own kind. ISO weeks lie in no one month or quarter.

So each window is in its tally, and maybe in copies of it, or else in kept sums; and a reader that
adds up a kept sum, and a copy or the windows, counts each window once.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from functools import cached_property, lru_cache
from math import inf
from typing import NamedTuple

import msgspec

from deniable import WindowError
from deniable.protocol import windows
from deniable.protocol.keep import CALENDARS
from deniable_collector.stores.errors import NotKept

_FEWEST = 2
"""Windows of a copy."""

_MARKED = {"W": "week", "Q": "quarter"}
"""Calendars by the letter behind the year of a period."""

_QUARTER = re.compile(r"(\d{4})-Q([1-4])", re.ASCII)


@lru_cache(maxsize=4096)
def period_of(calendar: str, window: str) -> str:
    """The label of the period of a calendar (week, month, quarter) in which a window begins.

    Raises:
        WindowError: the label names no window.
    """
    start = windows.start(window)
    if calendar != "quarter":
        return windows.window_at("week" if calendar == "week" else "month", start)
    day = datetime.fromtimestamp(start, UTC)
    return f"{day.year:04}-Q{(day.month + 2) // 3}"


@lru_cache(maxsize=4096)
def bounds(period: str) -> tuple[float, float]:
    """The POSIX times (seconds) at which a period begins and has ended.

    Raises:
        WindowError: the label names no period.
    """
    match = _QUARTER.fullmatch(period)
    if match is None:
        return windows.start(period), windows.end(period)
    year, quarter = int(match[1]), int(match[2])
    try:
        first = date(year, 3 * quarter - 2, 1)
        after = date(year + quarter // 4, 3 * quarter % 12 + 1, 1)
    except ValueError as error:
        raise WindowError(period) from error
    return windows.midnight(first), windows.midnight(after)


def is_sum(name: str) -> bool:
    """Whether a tally of this name is a sum and no window, whose label begins with a digit:
    ":" comes after all digits."""
    return name > ":"


class SumName(NamedTuple):
    """What names a sum of one metric and scheme: `str` of it is its text, like a window's label."""

    form: str
    """"copy" or "kept"."""
    kind: str
    """That of its windows: a metric's windows may have been changed from days to months."""
    period: str

    def __str__(self) -> str:
        return f"{self.form}-{self.kind}-{self.period}"

    @classmethod
    def parse(cls, text: str) -> SumName:
        """The name with this text."""
        return cls(*text.split("-", 2))

    @property
    def kept(self) -> bool:
        return self.form == "kept"

    @property
    def calendar(self) -> str:
        """The calendar of the period."""
        return _MARKED.get(self.period[5:6], "month")

    def ended(self, before: float) -> bool:
        """Whether the period had ended by a POSIX time."""
        return bounds(self.period)[1] <= before

    def covers(self, window: str) -> bool:
        """Whether a window lies in the period."""
        begin, end = bounds(self.period)
        return windows.kind_of(window) == self.kind and begin <= windows.start(window) < end


class SumRecord(msgspec.Struct):
    """What a sum says of itself beside its counters."""

    stamps: dict[str, str] = {}
    """Each window with its stamp when it was added up; of a kept sum without a stamp."""
    reports: dict[str, list[int]] = {}
    """Each window with its reports, for each combination of segments."""
    added: list[str] = []
    """The ids of what imports have added."""

    def add(self, more: SumRecord) -> None:
        """Add the reports of windows, member by member, and the ids of imports."""
        self.added += more.added
        for window, each in more.reports.items():
            known = self.reports.get(window, [0] * len(each))
            self.reports[window] = [a + b for a, b in zip(known, each, strict=True)]


@dataclass(frozen=True)
class Holding:
    """What one shard has of a metric and scheme: sums, and the windows with a tally of their own in
    the periods of these sums, at least, each with its stamp (empty if it was not read)."""

    windows: Mapping[str, str]
    sums: Mapping[SumName, SumRecord] = field(default_factory=dict)
    stamps: Mapping[SumName, str] = field(default_factory=dict)
    """Of these sums."""

    @cached_property
    def dropped(self) -> dict[str, list[int]]:
        """The windows that kept sums have, each with its reports. Imports may have brought sums of
        one calendar alone: then the largest counts."""
        found: dict[str, list[int]] = {}
        for name, record in self.sums.items():
            if name.kept:
                for window, reports in record.reports.items():
                    if sum(reports) >= sum(found.get(window, [])):
                        found[window] = reports
        return found

    @cached_property
    def told(self) -> dict[str, list[int]]:
        """The windows with a tally whose reports a copy tells, as they are now."""
        return {
            window: record.reports[window]
            for name, record in self.sums.items()
            if not name.kept
            for window, stamp in record.stamps.items()
            if self.windows.get(window) == stamp
        }

    @cached_property
    def by_period(self) -> Mapping[tuple[str, str], list[str]]:
        """Kind and period -> its windows with a tally."""
        found: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
        for label in self.windows:
            kind = windows.kind_of(label)
            for calendar in CALENDARS[kind]:
                found[kind, period_of(calendar, label)].append(label)
        return found

    def valid(self, name: SumName) -> bool:
        """Whether a copy is the sum of the windows that its period has now."""
        record = self.sums.get(name)
        if record is None:
            return False
        there = self.by_period.get((name.kind, name.period), ())
        return bool(there) and record.stamps == {each: self.windows[each] for each in there}

    def useless(self, copy: SumName) -> bool:
        """Whether a copy would save no read: of one window, or beside a kept sum."""
        there = self.by_period.get((copy.kind, copy.period), ())
        return len(there) < _FEWEST or copy._replace(form="kept") in self.sums

    def due(self, copy: SumName) -> bool:
        """Whether a copy must be made, brought up to date, or dropped as it is of no use."""
        return copy in self.sums if self.useless(copy) else not self.valid(copy)

    def whole(self, name: SumName) -> bool:
        """Whether a kept sum has all reports of each of its windows. After an edit of `keep`, other
        sums may have other windows of its period."""
        record = self.sums.get(name)
        return record is not None and all(
            sum(reports) == sum(self.dropped[each]) for each, reports in record.reports.items()
        )


def relevant(names: Iterable[str], asked: Iterable[str]) -> list[SumName]:
    """The sums that a reader of these windows must know: all kept ones with windows of its range,
    and copies whose period lies within it."""
    asked, sums = list(asked), list(filter(is_sum, names))
    if not (asked and sums):
        return []
    first, last = min(map(windows.start, asked)), max(map(windows.end, asked))
    found = []
    for name in map(SumName.parse, sums):
        begin, end = bounds(name.period)
        # A kept quarter may be the complete one, so that a month cannot be judged without it.
        if (begin < last and first < end) if name.kept else (first <= begin and end <= last):
            found.append(name)
    return found


def cover(asked: Iterable[str], holding: Holding) -> list[str]:
    """The names of the fewest tallies whose sum is that of these windows; none is named twice.
    Windows that the holding does not know are read as they are: they have no reports, or lie in no
    period of its sums.

    Raises:
        NotKept: some of them were dropped, and no kept sum lies within what is asked for.
    """
    by_kind: defaultdict[str, list[str]] = defaultdict(list)
    apart: list[str] = []
    for label in dict.fromkeys(asked):
        if label in holding.windows or label in holding.dropped:
            by_kind[windows.kind_of(label)].append(label)
        else:
            apart.append(label)
    return [each for one in by_kind.items() for each in _cover(*one, holding)] + apart


def _cover(kind: str, labels: list[str], holding: Holding) -> list[str]:
    """What is in tallies of windows and what is in kept sums, each in the cheapest way."""
    labels.sort(key=windows.start)
    there = [label for label in labels if label in holding.windows]
    gone = [label for label in labels if label in holding.dropped]
    own = {
        str(copy): members
        for (its_kind, period), members in holding.by_period.items()
        if its_kind == kind and holding.valid(copy := SumName("copy", its_kind, period))
    } | {label: [label] for label in there}
    kept = {
        str(name): list(record.reports)
        for name, record in holding.sums.items()
        if name.kept and name.kind == kind and holding.whole(name)
    }
    sums = _way(gone, kept)
    if sums is None:
        whole = (name for name in holding.sums if name.kept and holding.whole(name))
        periods = {name.period for name in whole if any(map(name.covers, gone))}
        raise NotKept(tuple(gone), tuple(sorted(periods, key=bounds)))
    return [*sums, *(_way(there, own) or ())]


def _way(labels: list[str], parts: Mapping[str, list[str]]) -> list[str] | None:
    """The fewest of these parts that make up all of these windows, in their order. A part is of use
    if its windows are neighbours among them. None if there is no way."""
    places = {label: place for place, label in enumerate(labels)}
    steps: list[list[tuple[int, str]]] = [[] for _ in labels]
    for name, members in parts.items():
        if members and places.keys() >= set(members):
            found = [places[each] for each in members]
            first, after = min(found), max(found) + 1
            if after - first == len(found):
                steps[first].append((after, name))
    # Up to each place: how many parts, where the last one begins, and its name.
    best = [(0.0, 0, ""), *[(inf, 0, "")] * len(labels)]
    for place, onward in enumerate(steps):
        for after, name in onward:
            best[after] = min(best[after], (best[place][0] + 1, place, name))
    at, way = len(labels), list[str]()
    if best[at][0] == inf:
        return None
    while at:
        _, at, name = best[at]
        way.append(name)
    return way[::-1]

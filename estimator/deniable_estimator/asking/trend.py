"""A metric over time: an estimate for each window, or for each week or month of windows.

Windows are grouped by adding their tallies. This requires that each window is in one group: days
can be grouped into weeks and months, but weeks not into months.

A day is compared with the same weekday a week before, and a week with the week before: most
metrics are different on weekends, which is no change. A period that is not whole is not compared
at all. Neither is one that is unfinished: it holds reports of a window that has not ended.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import partial
from typing import Any, TypeAlias

from deniable import Registry
from deniable.protocol import windows
from deniable_estimator.annotations import Annotation
from deniable_estimator.asking.comparison import compare_each, period_number
from deniable_estimator.asking.fetch import estimated, select
from deniable_estimator.asking.query import Days, Query, advised, find_metric, windows_within
from deniable_estimator.asking.reader import Reader
from deniable_estimator.document.csv_files import Filed, Table, plain
from deniable_estimator.document.units import SHARES, Unit
from deniable_estimator.errors import EstimateError, OnlyLongerError
from deniable_estimator.kinds.base import Answer, ChangeTest, Comparison
from deniable_estimator.kinds.basis import few_notes, unfinished, unreadable_note
from deniable_estimator.messages import counted, message

Points: TypeAlias = Callable[[Sequence[Days]], Iterator[Answer | None]]
"""The answers for ranges of days, in their order."""

Progress: TypeAlias = Callable[[int, int], None]

GROUPS: dict[windows.Kind, tuple[windows.Kind, ...]] = {
    "day": ("day", "week", "month"),
    "week": ("week",),
    "month": ("month",),
}
"""What the windows of each kind can be added up to."""

MOST_PERIODS = 400
"""The most periods, as many as a chart can show: a year of days fits."""

_NO_DAY = message("no reports a week before")
_UNEVEN = message("not compared: reports of some days are missing")

_ABOUT = ("period", "first", "last", "partial", "unfinished", "n", "since")
_COLUMNS = ("std_error", "low", "high", "change", "change_low", "change_high")


@dataclass(frozen=True, eq=False)
class Period:
    """One step of a trend."""

    label: str
    first: date
    last: date
    partial: bool
    """Whether it has not ended, or the trend's range holds only some of its days."""
    estimate: Answer | None
    """None without reports."""
    n: int
    """Reports."""
    since: str | None = None
    """The period that `change` looks back to: the same weekday a week before; of weeks and
    months, the whole one before that has reports."""
    unfinished: bool = False
    """Whether it has reports of a window that has not ended."""
    unreadable: tuple[str, ...] = ()
    """The windows in it that could not be read."""
    change: Comparison | None = None
    """Not corrected for their number. None for a partial period and where there are no reports to
    compare with."""
    uncompared: str = ""
    """Why a whole period is not compared, if there are reports from long before it."""


@dataclass(frozen=True, eq=False)
class Trend(Filed):
    """A metric's periods, the oldest first; none where nothing was ever reported."""

    metric: str
    by: windows.Kind
    level: float
    periods: tuple[Period, ...]

    @property
    def reported(self) -> tuple[Period, ...]:
        """The periods that have reports."""
        return tuple(period for period in self.periods if period.estimate)

    @property
    def answers(self) -> list[Answer]:
        """Their estimates."""
        return [each.estimate for each in self.periods if each.estimate]

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on how to read the trend."""
        notes = []
        changes = sum(period.change is not None for period in self.periods)
        if changes > 1:
            notes.append(
                message(
                    "the {changes} changes are not corrected for multiple comparisons: expect "
                    "about {chance:.2g} false positives",
                    changes=changes,
                    chance=changes * (1 - self.level),
                )
            )
        repeated = any(each.estimate and each.estimate.devices < each.n for each in self.periods)
        if repeated:
            notes.append(message(self.unit.repeated))
        if any(period.unfinished for period in self.reported):
            notes.append(
                message(
                    "an unfinished period will have more reports, and is compared with none: the "
                    "devices that report first need not be like the others"
                )
            )
        if unreadable := [label for period in self.periods for label in period.unreadable]:
            notes.append(unreadable_note(unreadable))
        if any(period.partial and not period.unfinished for period in self.reported):
            notes.append(
                message("a partial period holds only some of its days, and is compared with none")
            )
        if few := sum(bool(few_notes(period.n)) for period in self.reported):
            notes.append(
                counted(
                    "{count} period has too few reports to draw conclusions about all devices, and "
                    "its standard errors and intervals are rough",
                    "{count} periods have too few reports to draw conclusions about all devices, "
                    "and their standard errors and intervals are rough",
                    few,
                )
            )
        if changes and self.by == "month" != windows.kind_of(self.answers[0].windows[0]):
            notes.append(
                message(
                    "months differ in how many weekends they hold, which alone can change a number"
                )
            )
        return tuple(notes)

    def to_dict(self) -> dict[str, Any]:
        """The trend as JSON can carry it; what cannot be said is null."""
        header = self._header
        return {
            "metric": self.metric,
            **({"kind": self.answers[0].kind} if self.answers else {}),
            "by": self.by,
            "level": self.level,
            "notes": list(self.notes),
            "periods": [
                {
                    **dict(zip(_ABOUT, _about(period), strict=True)),
                    "values": [dict(zip(header, row, strict=True)) for row in _rows(period)],
                }
                for period in self.periods
            ],
        }

    def csv_table(
        self,
        step: Mapping[tuple[str, str], str] | None = None,
        annotations: Iterable[Annotation] | None = None,
    ) -> Table:
        """One line for each period that has reports and each value, which begins with the label of
        the period; with columns of the `step`, by the labels of period and value, and of what
        happened in the period, at the end, if they are given."""
        header = (*_ABOUT, *self._header)
        rows = [(*_about(period), *row) for period in self.reported for row in _rows(period)]
        series = header.index(self._header[0])
        if step is not None:
            header = (*header, "step")
            rows = [(*row, step.get((row[0], row[series]), "")) for row in rows]
        if annotations is not None:
            header = (*header, "annotations")
            noted = _noted(self.periods, annotations)
            rows = [(*row, noted.get(row[0], "")) for row in rows]
        return header, rows

    @property
    def unit(self) -> Unit:
        """That of its answers."""
        return self.answers[0].unit if self.answers else SHARES

    @property
    def leading(self) -> str:
        """The default series to show: the leading one of the newest period.

        Raises:
            EstimateError: there are no reports.
        """
        if not self.answers:
            raise EstimateError("there are no reports in that range: choose another")
        return self.answers[-1].leading

    @property
    def _header(self) -> tuple[str, ...]:
        """The columns of one series: without reports those of shares."""
        names = self.answers[0].headings if self.answers else ("value", "share")
        return (*names, *_COLUMNS)


def trend(
    reader: Reader,
    registry: Registry,
    query: Query,
    *,
    by: windows.Kind | None = None,
    now: float | None = None,
    level: float = 0.95,
    points: Points | None = None,
    progress: Progress = lambda done, of: None,
) -> Trend:
    """The metric's estimate in each period that touches the days that are asked for.

    Without a first or last day the range begins or ends with the windows that are stored.
    `by` is the metric's own window if not given, or the next longer one of which there are not too
    many and whose sums are kept. `now` is POSIX time in seconds, the clock's if not given.
    `points` answers for ranges of days, if not `read_ranges` itself, and leaves the windows
    `without` out too; `progress` is told how many periods are done, of how many.

    Raises:
        MetricError: the registry declares no such metric.
        EstimateError: the range has too many periods, the windows do not add up to `by`, or a
            candidate cannot be estimated.
        StoreUnavailable: the store cannot answer now.
    """
    metric, days = find_metric(registry, query.metric), query.days
    groups = GROUPS[metric.window]
    if by not in (None, *groups):
        raise EstimateError(
            message(
                "{metric} has a window of a {window}, which does not lie within one {by}: group "
                "it by {groups}",
                metric=metric.name,
                window=metric.window,
                by=by,
                groups=" or ".join(groups),
            )
        )
    whole = select(reader, registry, Query(metric.name, days), Days(without=days.without))
    if not whole.labels:
        return Trend(metric.name, by or metric.window, level, ())
    first, last = days.first, days.last
    if first == date.min:
        first = min(last, windows.first_day(whole.labels[0]))
    if last == date.max:
        last = max(map(windows.last_day, whole.labels))
    last = max(first, last)
    counts = {each: period_number(each, last) - period_number(each, first) + 1 for each in groups}

    def span_of(label: str) -> Days:
        period = days.over(windows.first_day(label), windows.last_day(label))
        if windows.kind_of(label) == metric.window:
            return period
        cut = days.over(max(period.first, first), min(period.last, last))
        # Of windows that were dropped, the sum of the whole period may be all that is kept.
        return period if cut != period and whole.dropped and not whole.can_read(cut) else cut

    def is_kept(group: windows.Kind) -> bool:
        if counts[group] > MOST_PERIODS:
            return False
        gone = {windows.window_at(group, windows.start(each)) for each in whole.dropped}
        asked = filter(gone.__contains__, windows.span(group, first, last))
        return all(map(whole.can_read, map(span_of, asked)))

    if by is None:
        finest: windows.Kind = next(filter(is_kept, groups), groups[-1])
        by = finest
    if counts[by] > MOST_PERIODS:
        raise EstimateError(
            message(
                "that is {count:,} periods, more than {most}: choose a shorter range, or longer "
                "periods",
                count=counts[by],
                most=MOST_PERIODS,
            )
        )
    now = time.time() if now is None else now
    # The first days are compared with those of the week before. Those that were dropped are missing
    # in the same way as those without reports.
    week = windows.span("day", first - timedelta(min(7, first.toordinal() - 1)), first)[:-1]
    earlier = [each for each in week if by == "day" and each not in whole.dropped]
    spans = {}
    for label in earlier + windows.span(by, first, last):
        spans[label] = span_of(label)
    filled = {windows.window_at(by, windows.start(each)) for each in whole.labels}
    running = {windows.window_at(by, windows.start(each)) for each in unfinished(whole.labels, now)}
    asked = [label for label in spans if label in filled]
    points = points or partial(read_ranges, reader, registry, query, level=level, now=now)
    answers = points([spans[label] for label in asked])
    found: dict[str, Answer | None] = {}
    for done, label in enumerate(asked):
        progress(done, len(asked))
        try:
            found[label] = next(answers)
        except OnlyLongerError as error:
            longer = next(filter(is_kept, groups[groups.index(by) + 1 :]), None)
            if longer is None:
                raise advised(error, whole.after_dropped(last)) from None
            told = message("{told}. Group it by {by}", told=str(error), by=longer)
            raise OnlyLongerError(told) from None
    periods = []
    for label, span in spans.items():
        answer = found.get(label)
        reported = answer if answer and answer.n else None
        cut = (span.first, span.last) != (windows.first_day(label), windows.last_day(label))
        periods.append(
            Period(
                *(label, span.first, span.last),
                partial=cut or windows.end(label) > now,
                estimate=reported,
                n=reported.n if reported else 0,
                unfinished=label in running and reported is not None,
                unreadable=answer.unreadable if answer else (),
            )
        )
    return Trend(metric.name, by, level, tuple(_compared(periods, by)[len(earlier) :]))


def _compared(periods: Sequence[Period], by: windows.Kind) -> list[Period]:
    """The same periods, each with its change since the one that it is compared with, or with why
    it is compared with none."""
    whole = {each: each.estimate for each in periods if each.estimate and not each.partial}
    if by == "day":
        days = {each.first.toordinal(): each for each in whole}
        before = {each: days.get(each.first.toordinal() - 7) for each in whole}
    else:
        before = dict(zip(whole, (None, *whole), strict=False))
    pairs = [(earlier, each) for each, earlier in before.items() if earlier]
    alone = ChangeTest(together=False)
    changes = compare_each([(whole[earlier], whole[each]) for earlier, each in pairs], alone)
    found = {
        each: replace(each, uncompared=_NO_DAY)
        for each, earlier in before.items()
        if earlier is None and each.first - next(iter(whole)).first > timedelta(7)
    }
    for (earlier, each), change in zip(pairs, changes, strict=True):
        if by == "week" and change.uneven:
            found[each] = replace(each, uncompared=_UNEVEN)
        else:
            found[each] = replace(each, since=earlier.label, change=change)
    return [found.get(each, each) for each in periods]


def _rows(period: Period) -> list[tuple[Any, ...]]:
    estimate, change = period.estimate, period.change
    if estimate is None:
        return []
    changes: dict[str, tuple[Any, ...]] = {}
    if change is not None:
        columns = map(plain, (change.difference, change.low, change.high))
        changes = dict(zip(change.values, zip(*columns, strict=True), strict=True))
    series = estimate.series
    columns = map(plain, (series.value, series.std_error, series.low, series.high))
    return [
        (name, *numbers, *changes.get(name, (None, None, None)))
        for name, *numbers in zip(series.names, *columns, strict=True)
    ]


def _noted(periods: Sequence[Period], annotations: Iterable[Annotation]) -> dict[str, str]:
    """Label of a period -> what happened in it, in one text."""
    found: dict[str, list[str]] = {}
    starts = [each.first for each in periods]
    for each in annotations:
        place = bisect_right(starts, each.day) - 1
        if place >= 0 and each.day <= periods[place].last:
            link = f" ({each.link})" if each.link else ""
            found.setdefault(periods[place].label, []).append(f"{each.when}: {each.text}{link}")
    return {label: ", ".join(texts) for label, texts in found.items()}


def _about(period: Period) -> tuple[Any, ...]:
    return (
        *(period.label, period.first.isoformat(), period.last.isoformat(), period.partial),
        *(period.unfinished, period.n, period.since),
    )


_VALUES = 1 << 17
"""Values of all answers that are calculated at once: some columns of a megabyte each."""


def read_ranges(
    reader: Reader,
    registry: Registry,
    query: Query,
    ranges: Sequence[Days],
    *,
    level: float = 0.95,
    now: float,
) -> Iterator[Answer]:
    """What `reading.read` says of each of these ranges in place of the days that are asked for, in
    their order, with its errors. An error comes in place of the range that has it."""
    if not ranges:
        return
    around = query.days.over(min(each.first for each in ranges), max(each.last for each in ranges))
    whole = select(reader, registry, query, around)
    labels = windows_within(whole.labels, whole.metric, ranges)
    values = len(whole.metric.values if query.candidates is None else query.candidates)
    at_once = max(1, min(whole.at_once, _VALUES // max(1, values)))
    for begin in range(0, len(ranges), at_once):
        some = labels[begin : begin + at_once]
        try:
            answers = iter(estimated(whole.read_each(some), level))
        except OnlyLongerError:
            # The others can be read, and this one says which it is.
            answers = (whole.read_each([one])[0].estimate(level=level) for one in some)
        for answer in answers:
            yield answer.marked(now)

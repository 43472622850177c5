"""A metric by segments, as its page shows it: each series in all segments and how they differ, over
time on one scale, and which segment moved most since something happened.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace

from deniable.protocol import windows
from deniable_estimator.answers.base import Answer, ChangeTest
from deniable_estimator.answers.segmented import Group, Segmented, shown_series
from deniable_estimator.answers.shares import Shares
from deniable_estimator.answers.words.changes import change_cells
from deniable_estimator.answers.words.texts import series_name
from deniable_estimator.asking.comparison import compare
from deniable_estimator.asking.segment_trends import SegmentTrend, SegmentTrends
from deniable_estimator.asking.since import chosen_series
from deniable_estimator.asking.trend import Period
from deniable_estimator.dashboard.ranges import before
from deniable_estimator.dashboard.reading import PageReading
from deniable_estimator.dashboard.trends import TrendLine, axis_of, draw_trend, lines_of
from deniable_estimator.document.document import Estimate
from deniable_estimator.document.plot.marks import MOST_LINES, BarRow, LineChart
from deniable_estimator.document.units import half_width
from deniable_estimator.isolation import isolated
from deniable_estimator.messages import counted, message

_MOST_LINES = 240
"""The most lines of all panels: with 32 segments, 7 series are shown."""

_MOST_PANELS = 12

_MARGIN = 0.04
"""So much of a scale is left free at its end: an arrow there means "no limit"."""


@dataclass(frozen=True, slots=True)
class SegmentLine:
    """A series of one segment. Its row has no dot where nothing is known, or only one limit."""

    row: BarRow
    n: int
    difference: Estimate | None
    """From the reference; None for the reference itself."""
    kind: str
    """segment, rest or total."""


@dataclass(frozen=True, slots=True)
class Panel:
    """One series in all segments."""

    series: str
    name: str
    """What people call the series."""
    differs: bool
    lines: tuple[SegmentLine, ...]
    zero: float
    """Where zero lies, in percent of the width."""
    most: str
    """The number at the right end of the scale, with its unit."""

    @property
    def endless(self) -> bool:
        """Whether an interval has no limit on one side."""
        return any(line.row.open_low or line.row.open_high for line in self.lines)


@dataclass(frozen=True, slots=True)
class _PanelScale:
    """Where numbers lie across a panel, which begins at zero, or below it where a number does.
    Ends without a limit lie at its edges."""

    low: float
    high: float

    @classmethod
    def of(cls, numbers: Sequence[float]) -> _PanelScale:
        """One that shows these numbers."""
        known = [each for each in numbers if math.isfinite(each)]
        low, high = min(0.0, *known, 0.0), max(0.0, *known, 0.0)
        return cls(low, high + (high - low) * _MARGIN or 1.0)

    def at(self, number: float) -> float:
        part = (number - self.low) / (self.high - self.low)
        return round(100 * min(max(part, 0.0), 1.0), 2)


def panels_shown(found: Segmented) -> list[str]:
    """The series that there is room for."""
    lines = len(found.groups) + 2
    return shown_series(found, max(1, min(_MOST_PANELS, _MOST_LINES // lines)))


def panels(found: Segmented, names: Sequence[str]) -> tuple[Panel, ...]:
    """A panel for each of these series. Shares have one scale in all panels; the numbers of a
    metric (its mean, its quantiles) differ in size, so each has its own. All begin at zero."""
    answers: list[tuple[str, Answer, str, Group | None]] = [
        (each.name, each.answer, "segment", each) for each in found.groups
    ]
    if found.rest is not None:
        answers.append((message("rest"), found.rest, "rest", None))
    answers.append((message("all"), found.total, "total", None))
    ends = {
        name: [end for _, it, *_ in answers for end in it.series.at(name)[1:]] for name in names
    }
    unit, drawn = found.total.unit, []
    common = None
    if isinstance(found.total, Shares):
        common = _PanelScale.of([end for each in ends.values() for end in each])
    for name in names:
        scale = common or _PanelScale.of(ends[name])
        lines = tuple(_line(found, name, scale, *each) for each in answers)
        title = series_name(found.total, name)
        differs = bool(found.differs[found.names.index(name)])
        most = unit.full(scale.high, scale.high / 10)
        drawn.append(Panel(name, title, differs, lines, scale.at(0.0), most))
    return tuple(drawn)


def _line(
    found: Segmented,
    name: str,
    scale: _PanelScale,
    label: str,
    answer: Answer,
    kind: str,
    group: Group | None,
) -> SegmentLine:
    unit, (value, low, high) = answer.unit, answer.series.at(name)
    if not math.isfinite(value):
        return SegmentLine(BarRow(label, "", known=False), answer.n, None, kind)
    spread = half_width(value, low, high)
    least, most = unit.text(low, spread), unit.text(high, spread)
    open_low, open_high = low == -math.inf, high == math.inf
    number = unit.text(value, spread)
    at: float | None = scale.at(value)
    if open_low or open_high:
        # Nothing tells where in such an interval the number is: a point would mislead.
        at = None
        number = unit.unknown
        if not open_low:
            number = message("at least {number}", number=least)
        elif not open_high:
            number = message("at most {number}", number=most)
    comparison = found.comparisons.get(group.key) if group else None
    changes = change_cells(comparison, [name])
    row = BarRow(
        label,
        number,
        *(at, scale.at(low), scale.at(high)),
        between=message("{low} to {high}", low=least, high=most),
        open_low=open_low,
        open_high=open_high,
    )
    return SegmentLine(row=row, n=answer.n, difference=changes.get(name), kind=kind)


MOST_CELLS = 30_000
"""Segments times periods times values that are estimated without being asked for: about a second
of calculation."""

_HEIGHT, _SMALL_HEIGHT = 220, 56


@dataclass(frozen=True, slots=True)
class SegmentChart:
    """One segment by itself."""

    group: Group
    chart: LineChart
    style: int
    """That of its line in the large chart; 0 if it is not drawn there."""
    keys: tuple[tuple[str, ...], ...] | None
    """The segments to draw if it is chosen, or chosen no more; None where there is no room."""


@dataclass(frozen=True, slots=True)
class OverTime:
    """One series over time in all segments."""

    series: str
    by: windows.Kind
    level: float
    chart: LineChart
    small: tuple[SegmentChart, ...]
    periods: tuple[Period, ...]


def trends_of_segments(reading: PageReading, found: Segmented, by: windows.Kind) -> SegmentTrends:
    """The trend of each segment that has enough reports in these days, all by the same period.

    Raises:
        StillDecoding, TooManyDecodes: it takes longer than one may wait.
    """
    groups = []
    for each in found.groups:
        within = replace(reading.days, where=tuple(sorted({**found.where, **each.labels}.items())))
        groups.append(SegmentTrend(each.labels, reading.over(within).trend(by).answer))
    small = tuple((each.labels, each.answer.n) for each in found.small)
    return SegmentTrends(reading.metric.name, found.by, tuple(groups), small)


def _farthest(found: Segmented, series: str) -> list[tuple[str, ...]]:
    """The largest segment, and the one whose number is farthest from its own."""

    largest = max(found.groups, key=lambda each: each.answer.n)
    number = {each.key: each.answer.series.at(series)[0] for each in found.groups}
    apart = {key: abs(value - number[largest.key]) for key, value in number.items()}
    others = [key for key in apart if key != largest.key and math.isfinite(apart[key])]
    return [largest.key, *sorted(others, key=lambda key: -apart[key])[:1]]


def over_time(
    found: Segmented, trends: SegmentTrends, series: str, chosen: Sequence[tuple[str, ...]]
) -> OverTime | None:
    """The charts of one series; None where fewer than two periods have reports. Without a choice
    the largest segment is drawn, and the one that is farthest from it."""
    if not trends.groups:
        return None
    # All are over the same days, but a trend begins with its first report.
    longest = max((each.trend for each in trends.groups), key=lambda trend: len(trend.periods))
    periods = longest.periods
    if len({p.label for each in trends.groups for p in each.trend.reported}) < 2:
        return None
    lines = []
    for group, each in zip(found.groups, trends.groups, strict=True):
        (line,) = lines_of(each.trend, [series])
        known = {
            period.label: numbers
            for period, numbers in zip(each.trend.periods, line.numbers, strict=True)
        }
        lines.append(TrendLine(group.name, tuple(known.get(p.label) for p in periods)))
    axis = axis_of(longest.unit, lines)
    if axis is None:
        return None
    own = [{each.label: each for each in group.trend.periods} for group in trends.groups]
    keys = [each.key for each in found.groups]
    drawn = [key for key in keys if key in chosen] or _farthest(found, series)
    drawn = [key for key in keys if key in drawn][:MOST_LINES]
    places = [keys.index(key) for key in drawn]
    chart = draw_trend(
        *(_counted(periods, [own[place] for place in places]), [lines[each] for each in places]),
        axis,
        height=_HEIGHT,
        name="segments-trend",
    )
    if chart is None:
        return None
    small = []
    for place, (group, line) in enumerate(zip(found.groups, lines, strict=True)):
        alone = draw_trend(
            *(_counted(periods, [own[place]]), [line], axis),
            height=_SMALL_HEIGHT,
            name=f"segment-trend-{place}",
            small=True,
        )
        if alone is not None:
            style = drawn.index(group.key) + 1 if group.key in drawn else 0
            small.append(SegmentChart(group, alone, style, _toggled(drawn, group.key)))
    return OverTime(series, longest.by, longest.level, chart, tuple(small), periods)


@dataclass(frozen=True)
class _CountedPeriod(Period):
    """A period with the reports of the segments that are drawn."""

    reports: int = 0

    @property
    def n(self) -> int:
        return self.reports


def _counted(
    periods: Sequence[Period], segments: Sequence[Mapping[str, Period]]
) -> list[_CountedPeriod]:
    """The periods, each with the reports of these segments in it, which are known by its label."""
    return [
        _CountedPeriod(
            **{field.name: getattr(each, field.name) for field in fields(Period)},
            reports=sum(known[each.label].n for known in segments if each.label in known),
        )
        for each in periods
    ]


def _toggled(
    drawn: Sequence[tuple[str, ...]], key: tuple[str, ...]
) -> tuple[tuple[str, ...], ...] | None:
    if key in drawn:
        rest = tuple(each for each in drawn if each != key)
        return rest or None
    return (*drawn, key) if len(drawn) < MOST_LINES else None


def moved_most(reading: PageReading, found: Segmented) -> str | None:
    """The segment and the series that stand out furthest from the noise of their change, in a
    sentence; None where the days were not asked by what happened before them.

    Segments share 1 minus the level, and so do the series of each (Bonferroni): on average at most
    one page in 20 names a segment where none changed.

    Raises:
        StillDecoding, TooManyDecodes: it takes longer than one may wait.
    """
    days = reading.days
    if not days.since or not found.groups:
        return None
    earlier = before(days, reading.metric.window)
    test = ChangeTest(adjust="bonferroni", alpha=(1 - found.level) / len(found.groups))
    segmented = reading.over(earlier).segmented(found.by).answer
    old = {each.key: each.answer for each in segmented.groups}
    changes = []
    for group in found.groups:
        if group.key in old:
            told = compare(old[group.key], group.answer, test)
            place, _ = chosen_series(told)
            if told.changed[place]:
                score = abs(float(told.difference[place] / told.std_error[place]))
                changes.append((score, group.name, told, place))
    moment = isolated(days.since)
    if not changes:
        return message("Since {moment}: no segment changed by more than noise.", moment=moment)
    _, name, told, place = max(changes, key=lambda each: each[0])
    return counted(
        "Since {moment}, {count} segment changed beyond noise, {segment}: {series} {change}.",
        "Since {moment}, {count} segments changed beyond noise, most clearly {segment}: {series} "
        "{change}.",
        len(changes),
        moment=moment,
        segment=isolated(name),
        series=series_name(told.after, told.values[place]),
        change=told.describe(place),
    )

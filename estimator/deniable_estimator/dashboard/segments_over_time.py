"""A metric over time for each of its segments: small charts on one scale, and chosen segments in
one chart."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace

from deniable import Metric
from deniable.protocol import windows
from deniable_estimator.answers.segmented import Group, Segmented
from deniable_estimator.asking.segment_trends import SegmentTrend, SegmentTrends
from deniable_estimator.asking.trend import Period
from deniable_estimator.dashboard.data import DataSource
from deniable_estimator.dashboard.ranges import DayRange
from deniable_estimator.dashboard.trend_words import TrendLine
from deniable_estimator.dashboard.trends import axis_of, draw_trend, lines_of
from deniable_estimator.document.plot.marks import MOST_LINES, LineChart

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


def trends_of_segments(
    source: DataSource,
    metric: Metric,
    days: DayRange,
    found: Segmented,
    by: windows.Kind,
    candidates: Sequence[str] | None = None,
    *,
    level: float = 0.95,
) -> SegmentTrends:
    """The trend of each segment that has enough reports in these days, all by the same period.

    Raises:
        StillDecoding, TooManyDecodes: it takes longer than one may wait.
    """
    groups = []
    for each in found.groups:
        within = replace(days, where=tuple(sorted({**found.where, **each.labels}.items())))
        answer = source.trend_at(metric, within, by, candidates, level=level).answer
        groups.append(SegmentTrend(each.labels, answer))
    small = tuple((each.labels, each.answer.n) for each in found.small)
    return SegmentTrends(metric.name, found.by, tuple(groups), small)


def _farthest(found: Segmented, series: str) -> list[tuple[str, ...]]:
    """The largest segment, and the one whose number is farthest from its own."""

    def number(group: Group) -> float:
        known = group.answer.series
        place = known.place(series)
        return math.nan if place is None else float(known.value[place])

    largest = max(found.groups, key=lambda each: each.answer.n)
    apart = {each.key: abs(number(each) - number(largest)) for each in found.groups}
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

"""A metric by segments, as its page shows it: each series in all segments and how they differ, over
time on one scale, and which segment moved most since something happened.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from deniable.protocol import windows
from deniable_estimator.asking.comparison import chosen_series, compare
from deniable_estimator.asking.segments import SegmentTrends
from deniable_estimator.dashboard.metric_view import PageReading
from deniable_estimator.dashboard.ranges import before
from deniable_estimator.dashboard.timeline import HEIGHT, SmallChart, Timeline, toggled
from deniable_estimator.dashboard.trends import TrendLine, axis_of, draw_trend, lines_of
from deniable_estimator.document.plot.marks import MOST_LINES, LineChart
from deniable_estimator.kinds.base import ChangeTest
from deniable_estimator.kinds.formats import series_name
from deniable_estimator.kinds.segments.segmented import Group, Segmented, shown_series
from deniable_estimator.messages import counted, isolated, message

_MOST_LINES = 240
"""The most lines of all panels: with 32 segments, 7 series are shown."""

_MOST_PANELS = 12


def panels_shown(found: Segmented) -> list[str]:
    """The series that there is room for."""
    lines = len(found.groups) + 2
    return shown_series(found, max(1, min(_MOST_PANELS, _MOST_LINES // lines)))


MOST_CELLS = 30_000
"""Segments times periods times values that are estimated without being asked for: about a second
of calculation."""

_SMALL_HEIGHT = 56


def trends_of_segments(reading: PageReading, found: Segmented, by: windows.Kind) -> SegmentTrends:
    """The trend of each segment that has enough reports in these days, all by the same period.

    Raises:
        StillDecoding, TooManyDecodes: it takes longer than one may wait.
    """
    return SegmentTrends(
        found,
        tuple(
            replace(reading, where={**found.where, **group.labels}).trend(by).answer
            for group in found.groups
        ),
    )


def _farthest(groups: Sequence[Group], series: str) -> list[tuple[str, ...]]:
    """The largest segment, and the one whose number is farthest from its own."""

    largest = max(groups, key=lambda each: each.answer.n)
    number = {each.key: each.answer.series.at(series)[0] for each in groups}
    apart = {key: abs(value - number[largest.key]) for key, value in number.items()}
    others = [key for key in apart if key != largest.key and math.isfinite(apart[key])]
    return [largest.key, *sorted(others, key=lambda key: -apart[key])[:1]]


def over_time(
    found: SegmentTrends, series: str, chosen: Sequence[tuple[str, ...]]
) -> Timeline | None:
    """The charts of one series; None where fewer than two periods have reports. Without a choice
    the largest segment is drawn, and the one that is farthest from it."""
    if not found.trends:
        return None
    # All are over the same days, but a trend begins with its first report.
    longest = max(found.trends, key=lambda trend: len(trend.periods))
    periods = longest.periods
    if len({p.label for each in found.trends for p in each.reported}) < 2:
        return None
    lines = []
    for group, each in found.groups:
        (line,) = lines_of(each, [series])
        known = {
            period.label: numbers
            for period, numbers in zip(each.periods, line.numbers, strict=True)
        }
        lines.append(TrendLine(group.name, tuple(known.get(p.label) for p in periods)))
    axis = axis_of(longest.unit, lines)
    reports = [{each.label: each.n for each in trend.periods} for trend in found.trends]
    groups = found.split.groups
    keys = [each.key for each in groups]
    drawn = [key for key in keys if key in chosen] or _farthest(groups, series)
    drawn = [key for key in keys if key in drawn][:MOST_LINES]

    def draw(places: Sequence[int], **more: Any) -> LineChart | None:
        # A tooltip says how many reports the segments have that are drawn.
        counts = (sum(reports[at].get(each.label, 0) for at in places) for each in periods)
        told = [replace(each, n=n) for each, n in zip(periods, counts, strict=True)]
        some = [lines[place] for place in places]
        return draw_trend(longest.unit, told, some, axis=axis, **more)

    chart = draw([keys.index(key) for key in drawn], height=HEIGHT, name="segments-trend")
    if chart is None:
        return None
    small = []
    for place, group in enumerate(groups):
        name = f"segment-trend-{place}"
        alone = draw([place], height=_SMALL_HEIGHT, name=name, small=True)
        if alone is not None:
            small.append(SmallChart(group.name, alone, *toggled(drawn, group.key)))
    return Timeline(longest, series_name(found.split.total, series), chart, small, (series,))


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

"""Trends on pages: the chart of chosen lines, which are values of a metric or its segments, with
small ones to choose from, and words."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Any

from deniable import Metric
from deniable.protocol import windows
from deniable_estimator.asking.history import History
from deniable_estimator.asking.query import Days
from deniable_estimator.asking.segments import SegmentTrends
from deniable_estimator.asking.trend import GROUPS, Period, Trend
from deniable_estimator.asking.trend_words import step_of, trend_frame
from deniable_estimator.dashboard.annotation_file import annotations_of
from deniable_estimator.dashboard.metric_view import PageReading
from deniable_estimator.dashboard.source import current_source
from deniable_estimator.dashboard.trends import TrendLine, draw_trend, lines_of, trend_axis
from deniable_estimator.dashboard.view import View
from deniable_estimator.document.document import Frame
from deniable_estimator.document.plot.marks import MOST_LINES, LineChart
from deniable_estimator.kinds.base import Answer
from deniable_estimator.kinds.formats import estimate, series_name, window
from deniable_estimator.kinds.formats import kind as kind_text
from deniable_estimator.kinds.registry import kind_of
from deniable_estimator.kinds.segments import Group
from deniable_estimator.messages import listed, message, sentence

_AGAINST = sentence("{period} vs {since}: {change}.")

_HEIGHT = 220
_SMALL_HEIGHT = 44
_SEGMENT_HEIGHT = 56
_LONG_DAYS: dict[windows.Kind, int] = {"day": 92, "week": 731, "month": 10_000}
"""Up to so many days a trend is drawn by day, by week, by month."""


@dataclass(frozen=True, slots=True)
class SmallChart:
    """One of the lines that can be chosen, by itself."""

    label: str
    chart: LineChart
    style: int
    """That of its line in the large chart; 0 if it is not drawn there."""
    chosen: Any
    """What the page draws if it is chosen, or chosen no more; None where there is no room."""
    share: str = ""
    """Its number over all days."""


def toggled(drawn: Sequence[str], each: str) -> tuple[int, tuple[str, ...] | None]:
    """The style of a line, and what is drawn if it is chosen, or chosen no more; None where there
    is no room, and where nothing would be left."""
    if each in drawn:
        return drawn.index(each) + 1, tuple(one for one in drawn if one != each) or None
    return 0, (*drawn, each) if len(drawn) < MOST_LINES else None


@dataclass(frozen=True, slots=True)
class Timeline:
    """What a page says about a metric over time."""

    trend: Trend
    """Of several segments, the longest of theirs."""
    label: str
    """What people call what is drawn."""
    chart: LineChart
    small_charts: Sequence[SmallChart] = ()
    """That of each line that can be chosen; empty where there is nothing to choose."""
    values: tuple[str, ...] = ()
    """The series that are drawn."""
    told: Sequence[str] = ()
    """The newest change of the only value, and when it made its one step, in sentences."""
    table: Frame | None = None
    alarmed: bool = False
    """Whether any of the periods raises an alarm."""


def grouping(metric: Metric, days: Days) -> windows.Kind:
    """The finest grouping that a chart of so many days has room for, and that is kept for them."""
    kinds = GROUPS[metric.window]
    fits = [kind for kind in kinds if days.days <= _LONG_DAYS[kind]] or [kinds[-1]]
    today = current_source().today
    return next((kind for kind in fits if _is_kept(metric, kind, days, today)), fits[0])


def _is_kept(metric: Metric, kind: windows.Kind, days: Days, today: date) -> bool:
    """Whether periods of this kind are kept since the first of these days, as far as the registry
    says."""
    kept = dict(metric.keep)
    own = kept.get(metric.window)
    if own is None or days.first >= today - timedelta(own):
        return True
    limit = kept.get(kind, 0)
    return limit is None or days.first >= today - timedelta(limit)


def plain_timeline(
    found: Trend,
    values: Sequence[str],
    *,
    alarmed: Collection[str] = (),
    name: str = "trend",
    height: int = _HEIGHT,
) -> Timeline | None:
    """These series of a trend in one chart, on which the periods `alarmed` are marked; None without
    two periods that have reports."""
    lines = lines_of(found, values) if len(found.reported) > 1 else []
    given = found.unit, found.periods, lines
    chart = draw_trend(*given, height=height, name=name, alarmed=alarmed) if lines else None
    if chart is None:
        return None
    label = listed(line.label for line in lines)
    return Timeline(found, label, chart, values=tuple(values), alarmed=bool(alarmed))


def timeline(
    reading: PageReading, view: View, answer: Answer, alarm: History | None
) -> Timeline | None:
    """The trend of the chosen values, or of the leading one; None without two periods
    that have reports.

    Periods with windows that raise the alarm are marked, and nothing is said of their changes.
    """
    shown = kind_of(answer).over_time(answer, view.values)
    values = tuple(value for value in view.values if value in shown) or (shown[0],)
    found, alarmed = trend_of(reading, answer, view.asked["by"], shown, alarm)
    drawn = plain_timeline(found, values, alarmed=alarmed)
    if drawn is None:
        return None
    small_charts, told = [], []
    several = shown if len(shown) > 1 else ()
    for place, (each, line) in enumerate(zip(several, lines_of(found, several), strict=True)):
        small = draw_trend(
            *(found.unit, found.periods, [line]),
            height=_SMALL_HEIGHT,
            name=f"trend-{place}",
            alarmed=alarmed,
            small=True,
        )
        if small is not None:
            style, chosen = toggled(values, each)
            over_all = estimate(answer.unit, *answer.series.at(each))
            query = view.choosing(chosen) if chosen else None
            small_charts.append(SmallChart(line.label, small, style, query, over_all))
    if len(values) == 1:
        told.append(_newest(found.reported, values[0], alarmed))
        if not alarmed:
            told.append(_stepped(reading.metric, found, values[0]))
    return replace(
        drawn,
        small_charts=small_charts,
        told=[each for each in told if each],
        table=trend_frame(
            found,
            values,
            title=message("Every {kind}", kind=kind_text(found.by)),
            charted=True,
            alarmed=alarmed,
        ),
    )


def trend_of(
    reading: PageReading,
    answer: Answer,
    by: windows.Kind | None,
    shown: Sequence[str],
    alarm: History | None,
) -> tuple[Trend, set[str]]:
    """The trend of some series of the answer, by the finest periods that a chart has room for
    unless `by` says others, and which of these raise the alarm."""
    metric, days = reading.metric, reading.days.around
    asked = reading.over(days).asking(kind_of(answer).asked(metric, shown))
    found = asked.trend(by or grouping(metric, days)).answer
    strange = map(windows.start, alarm.labels if alarm else ())
    alarmed = {windows.window_at(found.by, start) for start in strange}
    return found, alarmed.intersection(each.label for each in found.reported)


def _stepped(metric: Metric, found: Trend, value: str) -> str:
    noted = annotations_of(metric, Days(found.periods[0].first, found.periods[-1].last))
    step = step_of(found, (value,), noted or ())
    return step.told(window) if step else ""


def _newest(periods: Sequence[Period], value: str, alarmed: set[str]) -> str:
    """The newest change that there is, as a sentence."""
    for period in reversed(periods):
        change = period.change
        if alarmed.intersection((period.label, period.since)):
            continue
        if change is not None and period.since is not None and value in change.values:
            return message(
                _AGAINST,
                period=window(period.label),
                since=window(period.since),
                change=change.describe(change.values.index(value)),
            )
    return ""


def _farthest(groups: Sequence[Group], series: str) -> list[str]:
    """The largest segment, and the one whose number is farthest from its own."""

    largest = max(groups, key=lambda each: each.answer.n)
    number = {each.key: each.answer.series.at(series)[0] for each in groups}
    apart = {key: abs(value - number[largest.key]) for key, value in number.items()}
    others = [key for key in apart if key != largest.key and math.isfinite(apart[key])]
    return [largest.key, *sorted(others, key=lambda key: -apart[key])[:1]]


def timeline_of_segments(
    found: SegmentTrends, series: str, chosen: Sequence[str]
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
        known = dict(zip([p.label for p in each.periods], line.numbers, strict=True))
        lines.append(TrendLine(group.name, tuple(known.get(p.label) for p in periods)))
    axis = trend_axis(longest.unit, lines)
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

    chart = draw([keys.index(key) for key in drawn], height=_HEIGHT, name="segments-trend")
    if chart is None:
        return None
    small = []
    for place, group in enumerate(groups):
        name = f"segment-trend-{place}"
        alone = draw([place], height=_SEGMENT_HEIGHT, name=name, small=True)
        if alone is not None:
            small.append(SmallChart(group.name, alone, *toggled(drawn, group.key)))
    return Timeline(longest, series_name(found.split.total, series), chart, small, (series,))

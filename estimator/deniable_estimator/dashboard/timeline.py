"""The trend on a metric's page: the chart of chosen values, small ones to choose from, words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, TypeVar

from deniable import Metric
from deniable.protocol import windows
from deniable_estimator.asking.query import Days
from deniable_estimator.asking.trend import GROUPS, Period, Trend
from deniable_estimator.asking.trend_words import step_of, trend_frame
from deniable_estimator.dashboard.alarms import Alarm
from deniable_estimator.dashboard.annotation_file import annotations_of
from deniable_estimator.dashboard.metric_view import PageReading
from deniable_estimator.dashboard.ranges import one_of
from deniable_estimator.dashboard.source import current_source
from deniable_estimator.dashboard.trends import draw_trend, lines_of
from deniable_estimator.dashboard.view import View
from deniable_estimator.document.document import Frame
from deniable_estimator.document.plot.marks import MOST_LINES, LineChart
from deniable_estimator.kinds.base import Answer
from deniable_estimator.kinds.formats import estimate, window
from deniable_estimator.kinds.formats import kind as kind_text
from deniable_estimator.kinds.registry import kind_of
from deniable_estimator.messages import listed, message, sentence

_AGAINST = sentence("{period} vs {since}: {change}.")

_T = TypeVar("_T")

HEIGHT = 220
_SMALL_HEIGHT = 44
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


def toggled(drawn: Sequence[_T], each: _T) -> tuple[int, tuple[_T, ...] | None]:
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


def grouping_asked(asked: Mapping[str, str], name: str, metric: Metric, days: Days) -> windows.Kind:
    """The grouping that an address asks for by the parameter `name`, or the finest that a chart
    has room for.

    Raises:
        RangeError: the metric's windows do not add up to such periods.
    """
    text = asked.get(name, "")
    return one_of(text, name, GROUPS[metric.window]) if text else grouping(metric, days)


def timeline(
    reading: PageReading, view: View, answer: Answer, alarm: Alarm | None
) -> Timeline | None:
    """The trend of the chosen values, or of the leading one; None without two periods
    that have reports.

    Periods with windows that raise the alarm are marked, and nothing is said of their changes.
    """
    shown = kind_of(answer).over_time(answer, view.values)
    values = tuple(value for value in view.values if value in shown) or (shown[0],)
    charted = trend_of(reading, answer, view.by, shown, alarm)
    if charted is None:
        return None
    (found, alarmed), metric = charted, reading.metric
    lines = dict(zip(shown, lines_of(found, shown), strict=True))
    drawn = [lines[value] for value in values]
    given = found.unit, found.periods
    chart = draw_trend(*given, drawn, height=HEIGHT, name="trend", alarmed=alarmed)
    if chart is None:
        return None
    small_charts, told = [], []
    for place, each in enumerate(shown if len(shown) > 1 else ()):
        small = draw_trend(
            *(*given, [lines[each]]),
            height=_SMALL_HEIGHT,
            name=f"trend-{place}",
            alarmed=alarmed,
            small=True,
        )
        if small is not None:
            style, chosen = toggled(values, each)
            over_all = estimate(answer.unit, *answer.series.at(each))
            query = view.choosing(chosen) if chosen else None
            small_charts.append(SmallChart(lines[each].label, small, style, query, over_all))
    if len(values) == 1:
        told.append(_newest(found.reported, values[0], alarmed))
        if not alarmed:
            told.append(_stepped(metric, found, values[0]))
    return Timeline(
        trend=found,
        label=listed(line.label for line in drawn),
        chart=chart,
        small_charts=small_charts,
        values=values,
        told=[each for each in told if each],
        table=trend_frame(
            found,
            values,
            title=message("Every {kind}", kind=kind_text(found.by)),
            charted=True,
            alarmed=alarmed,
        ),
        alarmed=bool(alarmed),
    )


def trend_of(
    reading: PageReading,
    answer: Answer,
    by: windows.Kind | None,
    shown: Sequence[str],
    alarm: Alarm | None,
) -> tuple[Trend, set[str]] | None:
    """The trend of some series of the answer, by the finest periods that a chart has room for
    unless `by` says others, and which of these raise the alarm; None without two that have
    reports."""
    metric, days = reading.metric, reading.days.around
    asked = reading.over(days).asking(kind_of(answer).asked(metric, shown))
    found = asked.trend(by or grouping(metric, days)).answer
    if len(found.reported) < 2:
        return None
    strange = map(windows.start, alarm.labels if alarm else ())
    alarmed = {windows.window_at(found.by, start) for start in strange}
    return found, alarmed.intersection(each.label for each in found.reported)


def _stepped(metric: Metric, found: Trend, value: str) -> str:
    noted = annotations_of(metric, Days(found.periods[0].first, found.periods[-1].last))
    step = step_of(found, value, noted or ())
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

"""The trend on a metric's page: the chart of one value, small ones to choose from, and words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from deniable import Metric, windows
from deniable_estimator.answers.base import Answer
from deniable_estimator.answers.units import half_width
from deniable_estimator.dashboard.alarms import Alarm
from deniable_estimator.dashboard.charts.trend import TrendChart, trend_chart
from deniable_estimator.dashboard.kinds import kind_of
from deniable_estimator.dashboard.ranges import DayRange
from deniable_estimator.dashboard.source import DataSource
from deniable_estimator.dashboard.view import View
from deniable_estimator.dashboard.words import estimate, short, window
from deniable_estimator.messages import message, sentence
from deniable_estimator.questions.trend import GROUPS, Period, Trend

__all__ = ["PeriodLine", "SmallChart", "Timeline", "grouping", "timeline"]

_AGAINST = sentence("{period} vs {since}: {change}.")

_HEIGHT = 220
_SMALL_HEIGHT = 44
_LONG_DAYS: dict[windows.Kind, int] = {"day": 92, "week": 731, "month": 10_000}
"""Up to so many days a trend is drawn by day, by week, by month."""


@dataclass(frozen=True, slots=True)
class PeriodLine:
    """One line of the table of periods."""

    label: str
    n: int
    share: str
    low: str
    high: str
    change: str
    changed: bool
    alarmed: bool


@dataclass(frozen=True, slots=True)
class SmallChart:
    """The trend of a value that can be chosen, with its share of all these days."""

    value: str
    label: str
    share: str
    chart: TrendChart
    query: Mapping[str, str | None]
    """The view in which it is chosen."""


@dataclass(frozen=True, slots=True)
class Timeline:
    """What the page says about a metric over time."""

    trend: Trend
    value: str
    label: str
    """What people call it."""
    newest: str
    """The newest change, as a sentence."""
    chart: TrendChart
    small_charts: tuple[SmallChart, ...]
    """The largest values; empty where there is nothing to choose."""
    steps: tuple[PeriodLine, ...]
    """The newest first."""

    @property
    def alarmed(self) -> bool:
        """Whether any of the periods raises an alarm."""
        return any(step.alarmed for step in self.steps)


def grouping(metric: Metric, days: DayRange) -> windows.Kind:
    """The finest grouping that a chart of so many days has room for."""
    kinds = GROUPS[metric.window]
    return next((kind for kind in kinds if days.days <= _LONG_DAYS[kind]), kinds[-1])


def timeline(
    source: DataSource,
    metric: Metric,
    view: View,
    answer: Answer,
    alarm: Alarm | None,
) -> Timeline | None:
    """The trend of the chosen value, or of the leading one; None without two periods
    that have reports.

    Periods with windows that raise the alarm are marked, and nothing is said of their changes.
    """
    shown = kind_of(answer).over_time(answer, view.value)
    value = view.value if view.value in shown else shown[0]
    asked = kind_of(answer).asked(metric, shown)
    found = source.trend(metric, view.days, view.by or grouping(metric, view.days), asked)
    if len(found.reported) < 2:
        return None
    labels = [each.label for each in found.reported]
    alarmed = frozenset(each for each in labels if alarm and alarm.of_period(each))
    chart = trend_chart(found, value, height=_HEIGHT, name="trend", alarmed=alarmed)
    if chart is None:
        return None
    small_charts = []
    for place, each in enumerate(shown if len(shown) > 1 else ()):
        small = trend_chart(
            found, each, height=_SMALL_HEIGHT, name=f"trend-{place}", alarmed=alarmed
        )
        if small is not None:
            label, query = found.unit.label(each), view.choosing(each)
            small_charts.append(SmallChart(each, label, _number(answer, each), small, query))
    steps = [step for period in reversed(found.reported) if (step := _step(period, value, alarmed))]
    return Timeline(
        trend=found,
        value=value,
        label=found.unit.label(value),
        newest=_newest(found.reported, value, alarmed),
        chart=chart,
        small_charts=tuple(small_charts),
        steps=tuple(steps),
    )


def _number(answer: Answer, name: str) -> str:
    series = answer.series
    place = series.names.index(name)
    number, low, high = (float(column[place]) for column in (series.value, series.low, series.high))
    return estimate(answer.unit, number, low, high)


def _newest(periods: Sequence[Period], value: str, alarmed: frozenset[str]) -> str:
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


def _label(period: Period) -> str:
    if period.unfinished:
        return message("{period} (unfinished)", period=window(period.label))
    if period.partial:
        return message("{period} (partial)", period=window(period.label))
    return window(period.label)


def _step(period: Period, value: str, alarmed: frozenset[str]) -> PeriodLine | None:
    answer, change = period.estimate, period.change
    place = answer.series.place(value) if answer else None
    if answer is None or place is None:
        return None
    series, unit = answer.series, answer.unit
    share, low, high = (float(column[place]) for column in (series.value, series.low, series.high))
    spread = half_width(share, low, high)
    told, changed = "", False
    if alarmed.intersection((period.label, period.since)):
        told = message("not compared: anomalous") if change else ""
    elif change is not None and value in change.values:
        index = change.values.index(value)
        told, changed = change.describe(index), bool(change.changed[index])
    return PeriodLine(
        label=_label(period),
        n=period.n,
        share=estimate(unit, share, low, high),
        low=short(unit, low, spread),
        high=short(unit, high, spread),
        change=told,
        changed=changed,
        alarmed=period.label in alarmed,
    )

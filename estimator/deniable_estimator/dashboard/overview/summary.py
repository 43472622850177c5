"""What the overview says of one metric over some days, small enough to be kept for all of them; and
why a metric needs attention, and where to look: the strip on top.

What is random is told as surely as `deniable watch` tells it (`judging/newest_window.py`): over all
values and metrics of one overview, at most 1 in 20 changes may be expected where nothing changed.
An alarm has the level of a metric's page, shared by all metrics.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from deniable import Metric, ValueListError
from deniable.protocol import windows
from deniable.protocol.types.discovery import Discovery
from deniable_estimator.asking.query import Days
from deniable_estimator.asking.results import StillDecoding, TooManyDecodes
from deniable_estimator.dashboard import words
from deniable_estimator.dashboard.calculations import LIGHT
from deniable_estimator.dashboard.data import DataSource
from deniable_estimator.dashboard.metric_view import PageReading
from deniable_estimator.dashboard.overview.week import (
    RULES,
    WeekChange,
    newest_findings,
    week_change,
)
from deniable_estimator.dashboard.privacy_label import even_guess
from deniable_estimator.document.plot.lines import SparkPoint, sparkline
from deniable_estimator.document.plot.marks import DrawnLine
from deniable_estimator.document.units import SHARES
from deniable_estimator.errors import OnlyLongerError
from deniable_estimator.judging.findings import FindingKind, MetricFinding, standing
from deniable_estimator.judging.newest_week import NoChange
from deniable_estimator.kinds.base import Answer
from deniable_estimator.kinds.discovery.finds import Finds
from deniable_estimator.kinds.formats import estimate, estimate_of, series_name
from deniable_estimator.kinds.kind import Card
from deniable_estimator.kinds.registry import kind_of
from deniable_estimator.messages import message
from deniable_estimator.planning.crowd_limits import forecast


@dataclass(frozen=True, slots=True)
class LeadingSeries:
    """The series that is shown where there is room for one."""

    name: str
    label: str
    """What people call it."""
    value: float
    low: float
    high: float
    text: str
    """The estimate with its unit."""
    between: str
    """Its interval of 95%."""


_ON_CARD = 3


@dataclass(frozen=True, slots=True)
class MetricSummary:
    """One metric over some days."""

    metric: Metric
    days: Days
    n: int | None
    """Reports; None where strings have to be named first."""
    newest: str | None
    """The newest window with reports, whatever the days."""
    guess: str
    """Out of 100: the most often that a 50/50 guess is right after one report."""
    leading: LeadingSeries | None = None
    card: Card | None = None
    """What stands on its card; None without reports."""
    spark: DrawnLine | None = None
    change: WeekChange | NoChange | None = None
    alarm: str | None = None
    """Why its numbers are not to be relied on."""
    notes: tuple[str, ...] = ()
    """What needs attention whatever day it is."""
    findings: tuple[MetricFinding, ...] = ()
    """What `deniable watch` would tell of the newest window; of the latest days alone."""
    decoding: bool = False
    """Some of it is still being calculated."""
    finds: Mapping[str, Any] | None = None
    """Of a discovery with reports: how many strings were found (`count`), the commonest with their
    shares (`top`), and which part of all reports they are (`explained`)."""
    version: object = None
    made: float = 0.0
    """The version of the tallies that it rests on, and when it was made, of one that is kept."""


def summarize(reading: PageReading, family: int, *, latest: bool) -> MetricSummary:
    """The summary of a metric. Strings are those that the operator has listed, or of a discovery
    those that were found. A window that cannot be read is left out; the store names it.

    Args:
        family: how many metrics there are: they share the level of alarms and changes.
        latest: whether these are the latest days, in which the newest window is judged.
    """
    try:
        if isinstance(reading.metric.type, Discovery):
            return _summarize_discovery(reading)
        whole = reading.whole
        found = _summarize(whole, family, latest)
    except OnlyLongerError as error:
        return _told(reading, n=0, notes=(message("{mistake}.", mistake=str(error)),))
    if whole.days == reading.days:
        return found
    days = words.days_of(whole.days)
    note = message("Shown are {days}: days before were dropped, and their sums kept.", days=days)
    return replace(found, notes=(note, *found.notes))


def _told(reading: PageReading, **more: Any) -> MetricSummary:
    """The summary with what it says of every metric."""
    source, metric = reading.source, reading.metric
    guess = even_guess(metric, source.registry)
    return MetricSummary(metric, reading.days, newest=source.newest(metric), guess=guess, **more)


def _summarize(reading: PageReading, family: int, latest: bool) -> MetricSummary:
    source, metric = reading.source, reading.metric
    answer, decoding, mistakes = None, False, []
    try:
        reading = reading.asking(source.candidates(metric))
        answer = reading.answer
        if latest and answer and not answer.n and (running := source.running(metric)):
            # The first day of an app that reports at once.
            reading = reading.over(running)
            answer = reading.answer
    except (StillDecoding, TooManyDecodes):
        decoding = True
    except ValueListError as error:
        mistakes.append(message("{mistake}.", mistake=str(error)))
    # An overview of many metrics raises a false alarm as seldom as the page of one.
    alarm = reading.alarm(answer, family)
    answered = answer if answer and answer.n else None
    kind = kind_of(answered) if answered else None
    change: WeekChange | NoChange | None = None
    followed = reading
    if answered and kind:
        if len(reading.candidates or metric.values) > LIGHT:
            # Of many values the leading ones are followed: all of them would take minutes.
            followed = reading.asking(kind.asked(metric, kind.over_time(answered, ())))
        try:
            change = week_change(followed, answered, family, alarm)
        except (StillDecoding, TooManyDecodes):
            decoding = True
    return _told(
        reading,
        n=answer.n if answer else None,
        leading=_leading(answered) if answered else None,
        card=kind.card(answered) if answered and kind else None,
        spark=_spark(reading, answered) if answered else None,
        change=change,
        alarm=alarm.text if alarm else answer and kind_of(answer).unsound(answer),
        notes=(*mistakes, *answer_notes(source, metric, answer)),
        findings=newest_findings(followed, family) if latest else (),
        decoding=decoding,
    )


def _summarize_discovery(reading: PageReading) -> MetricSummary:
    found, decoding = None, False
    try:
        found = reading.finds().answer
    except (StillDecoding, TooManyDecodes):
        decoding = True
    alarms = found.verdict.alarms(found.alarm_level) if found else ()
    return _told(
        reading,
        n=found.n if found else None,
        alarm=alarms[0].text if alarms else None,
        decoding=decoding,
        finds=_card_of_finds(found) if found and found.n else None,
    )


def _card_of_finds(found: Finds) -> dict[str, Any]:
    top = [
        (each.name, estimate(SHARES, each.share, each.low, each.high))
        for each in found.finds[:_ON_CARD]
    ]
    explained = estimate(SHARES, *found.explained) if found.finds else ""
    return {"count": len(found.finds), "top": top, "explained": explained}


def answer_notes(source: DataSource, metric: Metric, answer: Answer | None) -> list[str]:
    """What an answer lacks. Without reports, whether enough devices are expected: once they have
    reported, the answer itself says what it can tell."""
    notes = list(kind_of(answer).attention(answer)) if answer is not None else []
    asked = metric.name not in source.registry.unasked
    if asked and not (answer and answer.n) and (warning := forecast(metric)):
        notes.append(message(words.FEW_DEVICES, warning=warning))
    return notes


def _leading(answer: Answer) -> LeadingSeries | None:
    name = answer.leading
    if name not in answer.series.names:
        return None
    numbers = answer.series.at(name)
    told = estimate_of(answer.unit, *numbers)
    return LeadingSeries(name, series_name(answer, name), *numbers, told.text, told.between)


def _spark(reading: PageReading, answer: Answer) -> DrawnLine | None:
    """The leading series over the windows of these days; gaps where there are no reports."""
    metric, days = reading.metric, reading.days
    points: dict[str, SparkPoint] = {}
    if metric.needs_candidates:
        for each in reading.asking([answer.leading]).windowwise():
            series = each.series
            if each.n:
                (label,) = each.windows
                numbers = float(series.value[0]), float(series.std_error[0])
                points[label] = SparkPoint(each.n, *numbers)
    else:
        for seen in reading.looks():
            if answer.leading in seen.values:
                place = seen.values.index(answer.leading)
                error = float(seen.variance[place]) ** 0.5
                points[seen.label] = SparkPoint(seen.n, float(seen.share[place]), error)
    if not points:
        return None
    # From the first window with reports: a metric that is new would be a blank with a corner.
    first = min(points, key=windows.start)
    span = [
        label
        for label in windows.span(metric.window, days.first, days.last)
        if windows.start(label) >= windows.start(first) and label not in days.without
    ]
    return sparkline([points.get(each) for each in span], answer.unit)


ORDER: tuple[FindingKind, ...] = ("anomaly", "change", "stale", "expires", "few")
"""The kinds of findings, the most pressing first."""


def reasons_of(
    metric: Metric, latest: MetricSummary | None, now: float
) -> tuple[MetricFinding, ...]:
    """The reasons why a metric needs attention, the most pressing first. `latest` is its summary
    of the latest days, if it is known."""
    found = [*latest.findings] if latest else []
    if latest and latest.alarm:
        days = latest.days.first, latest.days.last
        since = days[0].isoformat()
        found.append(MetricFinding(metric.name, "anomaly", "", latest.alarm, since, now, *days))
    found += standing(metric, latest.newest if latest else None, RULES, now)
    return tuple(sorted(found, key=lambda each: ORDER.index(each.kind)))


def standing_notes(metric: Metric, newest: str | None, now: float) -> Iterator[str]:
    """That a metric expires, or is silent, as its card and its page say it."""
    for each in standing(metric, newest, RULES, now):
        if each.kind == "expires":
            template = words.EXPIRED if each.facts["days"] < 0 else words.EXPIRES
            yield message(template, day=metric.expires)
        else:
            yield message(words.SILENT, window=each.facts["newest"])

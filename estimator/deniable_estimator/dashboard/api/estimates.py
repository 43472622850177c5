"""What the reports of a metric say: its estimate, trend and comparison, by segments too, what a
discovery found, and which windows look dishonest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flask import Response

from deniable import Metric
from deniable.protocol import windows
from deniable.protocol.types.discovery import Discovery
from deniable_estimator.asking.segments import not_segmented
from deniable_estimator.dashboard.access.people import Role
from deniable_estimator.dashboard.annotation_file import annotations_of
from deniable_estimator.dashboard.api import parameters as takes
from deniable_estimator.dashboard.api.description import ESTIMATES, NAMED, endpoint
from deniable_estimator.dashboard.api.representations import (
    Form,
    respond,
    respond_at,
    respond_content,
)
from deniable_estimator.dashboard.calculations import file_text, trend_text
from deniable_estimator.dashboard.exports import of_comparison, of_estimate, of_segments, of_trend
from deniable_estimator.dashboard.metric_view import PageReading
from deniable_estimator.dashboard.problems import refusal
from deniable_estimator.dashboard.ranges import earlier_range
from deniable_estimator.dashboard.timeline import grouping
from deniable_estimator.inputs import Asked, Input


def _of_metric(
    path: str, reply: str, parameters: Sequence[Input], **more: Any
) -> Callable[[Callable[..., Response]], Callable[..., Response]]:
    """`endpoint` for what the reports of one metric say."""
    return endpoint(f"{NAMED}/{path}", ESTIMATES, reply, parameters, **more)


@_of_metric("estimate", "Estimate", takes.ESTIMATE, csv=True, sends=True)
def estimate(asked: Asked, form: Form, reading: PageReading) -> Response:
    """The share of each value over some days, or what is asked of a number."""
    values, limit, below = asked["value"], asked["limit"], asked["below"]
    reading = takes.asked_candidates(reading, values)
    settings, metric = reading.source.settings, reading.metric
    takes.asked_limit(metric, limit)
    takes.asked_below(metric, below)
    if limit is None:
        takes.bound(reading, values)
    return respond_at(
        *(reading, form, (asked, settings.fakes, settings.alarm_level), lambda: reading.version),
        lambda: of_estimate(reading, values, limit=limit, below=below),
    )


@_of_metric("trend", "Trend", takes.TREND, csv=True, sends=True)
def trend(asked: Asked, form: Form, reading: PageReading) -> Response:
    """The same in each day, week or month."""
    days, metric = reading.days.around, reading.metric
    by = asked["by"] or grouping(metric, days)
    reading = takes.asked_candidates(reading.over(days), asked["value"])
    takes.bound(reading, asked["value"], len(windows.span(by, days.first, days.last)))
    noted = annotations_of(metric, days)
    return respond_at(
        *(reading, form, (asked, by), lambda: (reading.trend_version(by), noted)),
        lambda: of_trend(reading, by, asked["value"]),
    )


@_of_metric("comparison", "Comparison", takes.COMPARISON, role=Role.ANALYST, csv=True, sends=True)
def comparison(asked: Asked, form: Form, reading: PageReading) -> Response:
    """How it has changed between two ranges of days, or since something happened."""
    earlier = earlier_range(reading.days, reading.metric.window, asked, reading.source.seen_until)
    reading = takes.asked_candidates(reading, asked["value"])
    takes.bound(reading, asked["value"])
    return respond_at(
        *(reading, form, (asked, earlier)),
        lambda: (reading.over(earlier).version, reading.version),
        lambda: of_comparison(reading, earlier, asked["value"]),
    )


@_of_metric("anomalies", "Anomalies", takes.WINDOWS)
def anomalies(asked: Asked, form: Form, reading: PageReading) -> Response:
    """Which windows of some days look dishonest; strings are not decoded for it."""
    document = {**reading.days.told, **reading.history(reading.answer).to_dict()}
    return respond_content(form, document)


@_of_metric("segments", "Segments", takes.SEGMENTS, csv=True, sends=True, errors=(409,))
def segments(asked: Asked, form: Form, reading: PageReading) -> Response:
    """The same for each segment, with their differences."""
    metric = _segmented(reading)
    reading = takes.asked_candidates(reading, asked["value"])
    if asked["value"] and metric.values:
        reading = reading.asking(asked["value"])
    takes.bound(reading, asked["value"], len(metric.scheme.combinations))
    return respond_at(
        *(reading, form, (asked,), lambda: reading.version),
        lambda: of_segments(reading, asked["by"], asked["against"] or None, asked["value"]),
    )


@_of_metric("segments/trend", "SegmentTrends", takes.SEGMENTS_TREND, csv=True, errors=(409,))
def segments_trend(asked: Asked, form: Form, reading: PageReading) -> Response:
    """The trend of each segment that has enough reports."""
    days, metric = reading.days, _segmented(reading)
    by = asked["period"] or grouping(metric, days)
    reading = takes.asked_candidates(reading, asked["value"])
    lines = len(windows.span(by, days.first, days.last)) * len(metric.scheme.combinations)
    takes.bound(reading, asked["value"], lines)
    trends = reading.segment_trends(reading.segmented(asked["by"]).answer, by)
    text = file_text(form, trends, days.told, asked["value"])
    return respond(form, (metric, asked, days, text), lambda: text)


@_of_metric("finds", "Finds", takes.FINDS, csv=True, errors=(409,))
def finds(asked: Asked, form: Form, reading: PageReading) -> Response:
    """The strings that a discovery found."""
    _check_discovery(reading)
    found = reading.finds(asked["min_share"])
    parts = (reading.metric, asked, reading.days, found.version)
    return respond(form, parts, lambda: file_text(form, found.answer, reading.days.told))


@_of_metric("finds/trend", "Trend", takes.FINDS_TREND, csv=True, errors=(409,))
def finds_trend(asked: Asked, form: Form, reading: PageReading) -> Response:
    """How common one of these strings was in each day, week or month."""
    _check_discovery(reading)
    by = asked["by"] or grouping(reading.metric, reading.days)
    known = reading.finds(asked["min_share"]).answer
    found = reading.trend_of_find(by, known, asked["find"])
    parts = (reading.metric, asked, reading.days, found.version)
    return respond(form, parts, lambda: trend_text(form, found.answer, reading.days.told))


def _segmented(reading: PageReading) -> Metric:
    """The metric, which is counted by segments.

    Raises:
        ApiProblem: it is not.
    """
    if not reading.metric.segments:
        raise refusal(409, "not-segmented", f"{not_segmented(reading.metric)}.")
    return reading.metric


def _check_discovery(reading: PageReading) -> None:
    """Refuse to find strings of what discovers none.

    Raises:
        ApiProblem: the metric is no discovery.
    """
    name = reading.metric.name
    kind = reading.metric.type
    if not isinstance(kind, Discovery):
        raise refusal(
            409,
            "no-discovery",
            f"{name} is a {kind.name} metric, which discovers nothing: ask for its "
            f"estimate, /api/v1/metrics/{name}/estimate.",
        )

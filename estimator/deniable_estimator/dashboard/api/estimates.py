"""What the reports of a metric say: its estimate, trend and comparison, by segments too, what a
discovery found, and which windows look dishonest."""

from __future__ import annotations

from flask import Response

from deniable import Metric
from deniable.protocol import windows
from deniable.protocol.types.discovery import Discovery
from deniable_estimator.asking.listed import digest_of_candidates
from deniable_estimator.asking.segments import check_names
from deniable_estimator.dashboard.alarms import history_of
from deniable_estimator.dashboard.annotation_file import annotations_of
from deniable_estimator.dashboard.api.arguments import (
    MAX_CELLS,
    MAX_VALUES,
    asked_below,
    asked_candidates,
    asked_limit,
    asked_metric,
    asked_range,
    asked_segments,
    bound,
    chosen,
    invalid,
)
from deniable_estimator.dashboard.api.parameters import (
    AnomaliesParameters,
    ComparisonParameters,
    EstimateParameters,
    FindsParameters,
    FindTrendParameters,
    SegmentsParameters,
    SegmentsTrendParameters,
    TrendParameters,
)
from deniable_estimator.dashboard.api.representations import Form, Found, respond, respond_at
from deniable_estimator.dashboard.calculations import (
    compared,
    comparison_text,
    estimate_text,
    finds_text,
    segment_trends_text,
    segmented_text,
    to_json,
    trend_text,
)
from deniable_estimator.dashboard.data import DataSource
from deniable_estimator.dashboard.discovery import find_named, finds_at, trend_of_find
from deniable_estimator.dashboard.problems import refusal
from deniable_estimator.dashboard.ranges import earlier_range
from deniable_estimator.dashboard.segments import trends_of_segments
from deniable_estimator.dashboard.timeline import grouping
from deniable_estimator.errors import EstimateError

_SCOPE = "read:estimates"


def estimate(asked: EstimateParameters, form: Form, name: str) -> Response:
    """The share of each value over some days, or what is asked of a number."""
    source, metric = asked_metric(name, _SCOPE)
    days = asked_range(source, asked, metric)
    candidates = asked_candidates(source, metric, asked.value)
    asked_limit(metric, asked.limit)
    asked_below(metric, asked.below)
    if asked.limit is None:
        bound(metric, candidates, asked.value, MAX_VALUES)
    settings = (source.fakes, source.alarm_level)
    parts = (metric, asked, days, digest_of_candidates(candidates), settings)

    def find() -> Found:
        found = source.estimate_at(metric, days, candidates, level=asked.level, adjust=asked.adjust)
        answer = found.answer
        places = chosen(answer, asked.value, asked.limit)
        size = len(answer.series.names)
        head = {**days.told, "size": size}
        lines = size if places is None else len(places)
        text = (estimate_text, form, answer, head, places, asked.value, asked.below)
        return found.version, lines, text

    return respond_at(
        source, form, parts, lambda: source.version(metric, days, candidates), find, candidates
    )


def trend(asked: TrendParameters, form: Form, name: str) -> Response:
    """The same in each day, week or month."""
    source, metric = asked_metric(name, _SCOPE)
    days = asked_range(source, asked, metric).around
    by = asked.by or grouping(metric, days)
    candidates = asked_candidates(source, metric, asked.value)
    periods = len(windows.span(by, days.first, days.last))
    bound(metric, candidates, asked.value, MAX_CELLS, periods)
    noted = annotations_of(metric, days.first, days.last)
    parts = (metric, asked, by, days, digest_of_candidates(candidates), noted)

    def find() -> Found:
        found = source.trend_at(metric, days, by, candidates, level=asked.level)
        text = (trend_text, form, found.answer, days.told, asked.value, noted)
        return found.version, periods * len(candidates or metric.values), text

    def version() -> object:
        return source.trend_version(metric, days, by, candidates)

    return respond_at(source, form, parts, version, find, candidates)


def comparison(asked: ComparisonParameters, form: Form, name: str) -> Response:
    """How it has changed between two ranges of days, or since something happened."""
    source, metric = asked_metric(name, _SCOPE)
    later = asked_range(source, asked, metric)
    earlier = earlier_range(
        later, metric.window, asked.before_from, asked.before_to, source.seen_until
    )
    both = (earlier, later)
    candidates = asked_candidates(source, metric, asked.value)
    bound(metric, candidates, asked.value, MAX_VALUES)
    parts = (metric, asked, digest_of_candidates(candidates), both)

    def find() -> Found:
        old, new = (source.estimate_at(metric, d, candidates, level=asked.level) for d in both)
        found = compared(old.answer, new.answer, candidates)
        head = {"before": earlier.told, "after": later.told}
        text = (comparison_text, form, found, head, asked.value)
        return (old.version, new.version), len(found.values), text

    def version() -> object:
        return tuple(source.version(metric, days, candidates) for days in both)

    return respond_at(source, form, parts, version, find, candidates)


def anomalies(asked: AnomaliesParameters, form: Form, name: str) -> Response:
    """Which windows of some days look dishonest; strings are not decoded for it."""
    source, metric = asked_metric(name, _SCOPE)
    days = asked_range(source, asked, metric)
    found = history_of(source, metric, days, source.estimate(metric, days))
    document = {**days.told, **found.to_dict()}
    return respond(form, document, lambda: to_json(document))


def segments(asked: SegmentsParameters, form: Form, name: str) -> Response:
    """The same for each segment, with their differences."""
    source, metric = asked_metric(name, _SCOPE)
    days = asked_range(source, asked, metric)
    if not metric.segments:
        told = f"{name} is not counted by segments: its registry would declare them."
        raise refusal(409, "not-segmented", told)
    against = asked_segments("against", asked.against) or None
    candidates = asked_candidates(source, metric, asked.value)
    if asked.value and metric.values:
        candidates = asked.value
    parts = (metric, asked, days, digest_of_candidates(candidates))

    def find() -> Found:
        found = source.segmented_at(metric, days, asked.by, against, candidates, level=asked.level)
        answer = found.answer
        lines = len(answer.total.series.names) * (len(answer.groups) + 2)
        return found.version, lines, (segmented_text, form, answer, days.told, asked.value)

    try:
        check_names(metric, asked.by)
        bound(metric, candidates, asked.value, MAX_CELLS, len(metric.scheme.combinations))
        return respond_at(
            source, form, parts, lambda: source.version(metric, days, candidates), find, candidates
        )
    except EstimateError as error:
        raise invalid(str(error)) from None


def segments_trend(asked: SegmentsTrendParameters, form: Form, name: str) -> Response:
    """The trend of each segment that has enough reports."""
    source, metric = asked_metric(name, _SCOPE)
    days = asked_range(source, asked, metric)
    check_names(metric, asked.by)
    by = asked.period or grouping(metric, days)
    candidates = asked_candidates(source, metric, asked.value)
    lines = len(windows.span(by, days.first, days.last)) * len(metric.scheme.combinations)
    bound(metric, candidates, asked.value, MAX_CELLS, lines)
    found = source.segmented_at(metric, days, asked.by, None, candidates, level=asked.level)
    trends = trends_of_segments(
        source, metric, days, found.answer, by, candidates, level=asked.level
    )
    text = segment_trends_text(form, trends, days.told, asked.value)
    return respond(form, (metric, asked, days, text), lambda: text)


def finds(asked: FindsParameters, form: Form, name: str) -> Response:
    """The strings that a discovery found."""
    source, metric = _discovery(name)
    days = asked_range(source, asked, metric)
    found = finds_at(source, metric, days, level=asked.level, minimum_share=asked.min_share)
    parts = (metric, asked, days, found.version)
    return respond(form, parts, lambda: finds_text(form, found.answer, days.told))


def finds_trend(asked: FindTrendParameters, form: Form, name: str) -> Response:
    """How common one of these strings was in each day, week or month."""
    source, metric = _discovery(name)
    days = asked_range(source, asked, metric)
    by = asked.by or grouping(metric, days)
    known = finds_at(source, metric, days, level=asked.level, minimum_share=asked.min_share).answer
    found = trend_of_find(source, metric, days, by, known, find_named(known, asked.find))
    parts = (metric, asked, days, found.version)
    return respond(form, parts, lambda: trend_text(form, found.answer, days.told))


def _discovery(name: str) -> tuple[DataSource, Metric]:
    """The discovery of that name."""
    source, metric = asked_metric(name, _SCOPE)
    if not isinstance(metric.type, Discovery):
        raise refusal(
            409,
            "no-discovery",
            f"{name} is a {metric.type.name} metric, which discovers nothing: ask for its "
            f"estimate, /api/v1/metrics/{name}/estimate.",
        )
    return source, metric

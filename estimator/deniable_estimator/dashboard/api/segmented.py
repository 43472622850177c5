"""`/metrics/<name>/segments`: the estimate and the trend of each segment."""

from __future__ import annotations

from flask.typing import ResponseReturnValue

from deniable.protocol import windows
from deniable_estimator.asking.listed import digest_of_candidates
from deniable_estimator.asking.segments import check_names
from deniable_estimator.dashboard.api.arguments import (
    MAX_CELLS,
    asked_candidates,
    asked_grouping,
    asked_metric,
    asked_range,
    asked_segments,
    bound,
)
from deniable_estimator.dashboard.api.parameters import (
    SegmentsParameters,
    SegmentsTrendParameters,
)
from deniable_estimator.dashboard.api.representations import (
    Form,
    etag,
    represent,
    same_as_known,
    unchanged,
)
from deniable_estimator.dashboard.calculations import (
    segment_trends_text,
    segmented_text,
)
from deniable_estimator.dashboard.problems import ApiProblem
from deniable_estimator.dashboard.segments import trends_of_segments
from deniable_estimator.dashboard.timeline import grouping
from deniable_estimator.errors import EstimateError


def segments(asked: SegmentsParameters, form: Form, name: str) -> ResponseReturnValue:
    """The same for each segment, with their differences."""
    source, metric = asked_metric(name, "read:estimates")
    days = asked_range(
        source, asked.first, asked.last, asked.without, metric, asked.where, asked.since
    )
    if not metric.segments:
        raise ApiProblem(
            409,
            "not-segmented",
            "Not segmented",
            f"{name} is not counted by segments: its registry would declare them.",
        )
    against = asked_segments("against", asked.against) or None
    candidates = asked_candidates(source, metric, asked.value)
    if asked.value and metric.values:
        candidates = asked.value
    try:
        check_names(metric, asked.by)
        bound(metric, candidates, asked.value, MAX_CELLS, len(metric.scheme.combinations))

        def tag(version: bytes) -> str:
            known = digest_of_candidates(candidates)
            return etag(form, metric, asked, days, known, version)

        if same := same_as_known(lambda: tag(source.version(metric, days, candidates))):
            return same
        found = source.segmented_at(metric, days, asked.by, against, candidates, level=asked.level)
    except EstimateError as error:
        raise ApiProblem(400, "invalid-parameter", "Invalid parameter", f"{error}.") from None
    final = tag(found.version)
    text = source.written(
        len(found.answer.total.series.names) * (len(found.answer.groups) + 2),
        ("segments", final),
        *(segmented_text, form, found.answer, days.told, asked.value),
        candidates=candidates,
    )
    return represent(form, text, tag=final)


def segments_trend(asked: SegmentsTrendParameters, form: Form, name: str) -> ResponseReturnValue:
    """The trend of each segment that has enough reports."""
    source, metric = asked_metric(name, "read:estimates")
    days = asked_range(
        source, asked.first, asked.last, asked.without, metric, asked.where, asked.since
    )
    check_names(metric, asked.by)
    by = asked.period or grouping(metric, days)
    asked_grouping(metric, by)
    candidates = asked_candidates(source, metric, asked.value)
    lines = len(windows.span(by, days.first, days.last)) * len(metric.scheme.combinations)
    bound(metric, candidates, asked.value, MAX_CELLS, lines)
    found = source.segmented_at(metric, days, asked.by, None, candidates, level=asked.level)
    trends = trends_of_segments(
        source, metric, days, found.answer, by, candidates, level=asked.level
    )
    text = segment_trends_text(form, trends, days.told, asked.value)
    tag = etag(form, metric, asked, days, text)
    return unchanged(tag) or represent(form, text, tag=tag)

"""What the reports of a metric say: its estimate, trend and comparison, and which windows look
dishonest."""

from __future__ import annotations

from flask.typing import ResponseReturnValue

from deniable.protocol import windows
from deniable_estimator.asking.listed import digest_of_candidates
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
    bound,
)
from deniable_estimator.dashboard.api.listing import chosen
from deniable_estimator.dashboard.api.parameters import (
    AnomaliesParameters,
    ComparisonParameters,
    EstimateParameters,
    TrendParameters,
)
from deniable_estimator.dashboard.api.representations import (
    Form,
    etag,
    represent,
    same_as_known,
    unchanged,
)
from deniable_estimator.dashboard.calculations import (
    compared,
    comparison_text,
    estimate_text,
    to_json,
    trend_text,
)
from deniable_estimator.dashboard.ranges import earlier_range
from deniable_estimator.dashboard.timeline import grouping


def estimate(asked: EstimateParameters, form: Form, name: str) -> ResponseReturnValue:
    """The share of each value over some days, or what is asked of a number."""
    source, metric = asked_metric(name, "read:estimates")
    days = asked_range(
        source, asked.first, asked.last, asked.without, metric, asked.where, asked.since
    )
    candidates = asked_candidates(source, metric, asked.value)
    asked_limit(metric, asked.limit)
    asked_below(metric, asked.below)
    if asked.limit is None:
        bound(metric, candidates, asked.value, MAX_VALUES)

    def tag(version: bytes) -> str:
        known, settings = digest_of_candidates(candidates), (source.fakes, source.alarm_level)
        return etag(form, metric, asked, days, known, settings, version)

    if same := same_as_known(lambda: tag(source.version(metric, days, candidates))):
        return same
    found = source.estimate_at(metric, days, candidates, level=asked.level, adjust=asked.adjust)
    known = found.answer
    places = chosen(known, asked.value, asked.limit)
    final, head = tag(found.version), {**days.told, "size": len(known.series.names)}
    text = source.written(
        len(known.series.names) if places is None else len(places),
        ("estimate", final),
        *(estimate_text, form, known, head, places, asked.value, asked.below),
        candidates=candidates,
    )
    return represent(form, text, tag=final)


def trend(asked: TrendParameters, form: Form, name: str) -> ResponseReturnValue:
    """The same in each day, week or month."""
    source, metric = asked_metric(name, "read:estimates")
    days = asked_range(
        source, asked.first, asked.last, asked.without, metric, asked.where, asked.since
    )
    days = days.around
    by = asked.by or grouping(metric, days)
    candidates = asked_candidates(source, metric, asked.value)
    periods = len(windows.span(by, days.first, days.last))
    bound(metric, candidates, asked.value, MAX_CELLS, periods)
    noted = annotations_of(metric, days.first, days.last)

    def tag(version: bytes) -> str:
        known = digest_of_candidates(candidates)
        return etag(form, metric, asked, by, days, known, version, noted)

    if same := same_as_known(lambda: tag(source.trend_version(metric, days, by, candidates))):
        return same
    found = source.trend_at(metric, days, by, candidates, level=asked.level)

    final = tag(found.version)
    text = source.written(
        periods * len(candidates or metric.values),
        ("trend", final),
        *(trend_text, form, found.answer, days.told, asked.value, noted),
        candidates=candidates,
    )
    return represent(form, text, tag=final)


def comparison(asked: ComparisonParameters, form: Form, name: str) -> ResponseReturnValue:
    """How it has changed between two ranges of days, or since something happened."""
    source, metric = asked_metric(name, "read:estimates")
    ends = asked.first, asked.last, asked.without
    later = asked_range(source, *ends, metric, since=asked.since)
    earlier = earlier_range(
        later, metric.window, asked.before_from, asked.before_to, source.seen_until
    )
    candidates = asked_candidates(source, metric, asked.value)
    bound(metric, candidates, asked.value, MAX_VALUES)

    def tag(*versions: bytes) -> str:
        known, days = digest_of_candidates(candidates), (earlier, later)
        return etag(form, metric, asked, days, known, versions)

    if same := same_as_known(
        lambda: tag(*(source.version(metric, d, candidates) for d in (earlier, later)))
    ):
        return same
    old, new = (
        source.estimate_at(metric, days, candidates, level=asked.level) for days in (earlier, later)
    )
    found = compared(old.answer, new.answer, candidates)

    final, head = tag(old.version, new.version), {"before": earlier.told, "after": later.told}
    text = source.written(
        len(found.values),
        ("comparison", final),
        *(comparison_text, form, found, head, asked.value),
        candidates=candidates,
    )
    return represent(form, text, tag=final)


def anomalies(asked: AnomaliesParameters, form: Form, name: str) -> ResponseReturnValue:
    """Which windows of some days look dishonest; strings are not decoded for it."""
    source, metric = asked_metric(name, "read:estimates")
    days = asked_range(source, asked.first, asked.last, asked.without, metric)
    found = history_of(source, metric, days, source.estimate(metric, days))
    document = {**days.told, **found.to_dict()}
    tag = etag(form, document)
    return unchanged(tag) or represent(form, to_json(document), tag=tag)

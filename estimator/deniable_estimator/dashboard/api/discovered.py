"""`/metrics/<name>/finds`: the strings that a discovery found, and the trend of one."""

from __future__ import annotations

from flask.typing import ResponseReturnValue

from deniable import Metric
from deniable.protocol.types import Discovery
from deniable_estimator.dashboard.api.arguments import (
    asked_grouping,
    asked_metric,
    asked_range,
)
from deniable_estimator.dashboard.api.parameters import (
    FindsParameters,
    FindTrendParameters,
)
from deniable_estimator.dashboard.api.representations import (
    Form,
    etag,
    represent,
    unchanged,
)
from deniable_estimator.dashboard.calculations import (
    finds_text,
    trend_text,
)
from deniable_estimator.dashboard.data import DataSource
from deniable_estimator.dashboard.discovery import find_named, finds_at, trend_of_find
from deniable_estimator.dashboard.problems import ApiProblem
from deniable_estimator.dashboard.timeline import grouping


def finds(asked: FindsParameters, form: Form, name: str) -> ResponseReturnValue:
    """The strings that a discovery found."""
    source, metric = _discovery(name)
    days = asked_range(source, asked.first, asked.last, asked.without, metric)
    found = finds_at(source, metric, days, level=asked.level, minimum_share=asked.min_share)
    tag = etag(form, metric, asked, days, found.version)
    if same := unchanged(tag):
        return same
    return represent(form, finds_text(form, found.answer, days.told), tag=tag)


def finds_trend(asked: FindTrendParameters, form: Form, name: str) -> ResponseReturnValue:
    """How common one of these strings was in each day, week or month."""
    source, metric = _discovery(name)
    days = asked_range(source, asked.first, asked.last, asked.without, metric)
    by = asked.by or grouping(metric, days)
    asked_grouping(metric, by)
    known = finds_at(source, metric, days, level=asked.level, minimum_share=asked.min_share).answer
    found = trend_of_find(source, metric, days, by, known, find_named(known, asked.find))
    tag = etag(form, metric, asked, days, found.version)
    if same := unchanged(tag):
        return same
    return represent(form, trend_text(form, found.answer, days.told), tag=tag)


def _discovery(name: str) -> tuple[DataSource, Metric]:
    """The discovery of that name."""
    source, metric = asked_metric(name, "read:estimates")
    if not isinstance(metric.type, Discovery):
        raise ApiProblem(
            409,
            "no-discovery",
            "No discovery",
            f"{name} is a {metric.type.name} metric, which discovers nothing: ask for its "
            f"estimate, /api/v1/metrics/{name}/estimate.",
        )
    return source, metric

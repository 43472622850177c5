"""`/api/v1/annotations`: what happened when, beside the metrics that the token reaches."""

from __future__ import annotations

from datetime import date
from typing import Any

from flask.typing import ResponseReturnValue

from deniable_estimator.annotations import Annotation, between
from deniable_estimator.dashboard.access import may_read, require
from deniable_estimator.dashboard.annotation_file import current_annotations
from deniable_estimator.dashboard.api.parameters import AnnotationParameters
from deniable_estimator.dashboard.api.representations import (
    Form,
    etag,
    represent,
    to_csv,
    unchanged,
)
from deniable_estimator.dashboard.calculations import to_json
from deniable_estimator.dashboard.data import DataSource
from deniable_estimator.dashboard.ranges import read_range
from deniable_estimator.dashboard.source import current_source, declared_metric

COLUMNS = ("date", "at", "text", "link", "metrics")


def list_annotations(asked: AnnotationParameters, form: Form) -> ResponseReturnValue:
    """The annotations of some days and metrics; without days, of all."""
    source = current_source()
    for name in asked.metric:
        require("read:estimates", declared_metric(name))
    first, last = _days(asked, source)
    rows = []
    for each in between(current_annotations() or (), first, last):
        metrics = _metrics(source, each)
        if metrics == [] or (asked.metric and not any(map(each.concerns, asked.metric))):
            continue
        rows.append(_row(each, metrics))
    tag = etag(form, rows)
    if same := unchanged(tag):
        return same
    if form != "json":
        lines = [{**row, "metrics": row["metrics"] or []} for row in rows]
        return represent(form, to_csv(form, COLUMNS, lines), tag=tag)
    return represent(form, to_json({"annotations": rows}), tag=tag)


def _days(asked: AnnotationParameters, source: DataSource) -> tuple[date | None, date | None]:
    """The days that are asked for, each of which may be left out.

    Raises:
        RangeError: one is no date, or the last lies before the first.
    """
    ends = (asked.first or asked.last, asked.last or asked.first)
    if not ends[0]:
        return None, None
    found = read_range({"from": ends[0], "to": ends[1]}, source.clock())
    return found.first if asked.first else None, found.last if asked.last else None


def _metrics(source: DataSource, annotation: Annotation) -> list[str] | None:
    """The metrics that it concerns and the token reaches; None for all. So a token that is limited
    to some metrics does not learn what others are called."""
    if not annotation.metrics:
        return None
    return [
        metric.name
        for metric in source.registry
        if annotation.concerns(metric.name) and may_read(metric)
    ]


def _row(annotation: Annotation, metrics: list[str] | None) -> dict[str, Any]:
    return {
        "date": annotation.date,
        "at": annotation.date if annotation.time else f"{annotation.day}T00:00:00Z",
        "text": annotation.text,
        "link": annotation.link,
        "metrics": metrics,
    }

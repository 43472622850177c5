"""`/metrics`, `/metrics/<name>` and `/overview`: what is declared and collected, and what needs
attention."""

from __future__ import annotations

import math
from typing import Any

from flask import Response

from deniable.protocol import windows
from deniable.protocol.keep import FOREVER
from deniable.protocol.types.base import MetricType
from deniable.protocol.types.number import Number
from deniable_estimator.asking.query import Days
from deniable_estimator.asking.results import StillDecoding
from deniable_estimator.dashboard.access.caller import token_shown
from deniable_estimator.dashboard.api import parameters as takes
from deniable_estimator.dashboard.api.description import ESTIMATES, METRICS, NAMED, endpoint
from deniable_estimator.dashboard.api.representations import Form, respond_content
from deniable_estimator.dashboard.metric_view import PageReading
from deniable_estimator.dashboard.overview.filters import admits, read_filters
from deniable_estimator.dashboard.overview.listing import OverviewEntry, list_metrics, read_overview
from deniable_estimator.dashboard.overview.week import WeekChange
from deniable_estimator.dashboard.ranges import read_range
from deniable_estimator.dashboard.source import current_source
from deniable_estimator.inputs import Asked
from deniable_estimator.judging.newest_week import LEVEL

_LISTED = (
    *("name", "type", "description", "owner", "tags", "window", "epsilon", "lifetime_epsilon"),
    *("sample_rate", "one_in", "longitudinal", "mechanism", "values", "expires", "expired"),
    *("n", "newest", "age_days"),
)
"""What is said of each metric, in the order of the columns."""

_SPENT = ("epsilon", "lifetime_epsilon", "sample_rate", "one_in", "longitudinal")
"""Which of these are those of the pair, where devices report that in its place."""

_OF_NUMBERS = ("unit", "low", "high", "scale", "integer", "ask")
"""What is said of a number besides."""

_COLUMNS = (
    *("name", "type", "window", "from", "to", "n", "newest", "series", "estimate", "low", "high"),
    *("change_from", "change_to", "change_series", "difference", "change_low", "change_high"),
    *("changed", "not_compared", "attention"),
)


@endpoint("/metrics", METRICS, "List", takes.SEARCHED, csv=True)
def metrics(asked: Asked, form: Form) -> Response:
    """All metrics that the token reaches, or those that are looked for."""
    source = current_source()
    days = read_range(asked, source.seen_until)
    filters = read_filters(asked)
    rows = [
        _listed(PageReading(source, metric, days))
        for metric in filter(token_shown().reaches, source.registry)
        if admits(filters, metric)
    ]

    numbers = any(_OF_NUMBERS[0] in row for row in rows)
    columns = (*_LISTED, *_OF_NUMBERS) if numbers else _LISTED
    return respond_content(form, {**days.told, "metrics": rows}, columns, rows)


@endpoint("/overview", ESTIMATES, "Overview", takes.OVERVIEW, csv=True)
def overview(asked: Asked, form: Form) -> Response:
    """What the overview says of all metrics that the token reaches, and what needs attention."""
    source = current_source()
    view = read_overview(asked, source.seen_until)
    reachable = list(filter(token_shown().reaches, source.registry))
    found = list_metrics(source, view, source.patience, reachable=reachable, whole=True)
    if found.blank:
        raise StillDecoding(found.wanted - found.blank, found.wanted, 0.0)
    rows = [_row(each) for each in found.entries]
    document = {
        "level": 0.95,
        "false_changes": LEVEL,
        "outdated": found.outdated,
        "compared": found.compared,
        "changed": found.changed,
        "metrics": rows,
    }

    return respond_content(form, document, _COLUMNS, map(_line, rows))


@endpoint(NAMED, METRICS, "Metric")
def metric(asked: Asked, form: Form, reading: PageReading) -> Response:
    """One metric: as it is declared, and what was collected of it."""
    reader, metric, name = reading.source.reader, reading.metric, reading.metric.name
    schemes = [
        {
            "fingerprint": fingerprint,
            "mechanism": scheme.mechanism.name,
            "epsilon": scheme.mechanism.epsilon,
            "in_force": fingerprint == metric.scheme.fingerprint,
            "windows": reader.windows(name, fingerprint),
            "sums": reader.kept_sums(name, fingerprint),
        }
        for fingerprint, scheme in reader.schemes_of(name).items()
    ]
    document = {
        **_listed(reading),
        "values": list(metric.values) or None,
        "keep": {each: FOREVER if days is None else days for each, days in metric.keep} or None,
        "schemes": schemes,
    }
    return respond_content(form, document)


def _listed(reading: PageReading) -> dict[str, Any]:
    """The metric under the names of `_LISTED`, of a number also under those of `_OF_NUMBERS`, and
    with `reported_by` if devices report a pair in its place, whose budget and mechanism these are
    then; `n` counts the reports of these days."""
    source, metric = reading.source, reading.metric
    newest = source.newest(metric)
    # A metric that devices do not report by itself reveals what the reports of its pair do.
    pair = source.registry.unasked.get(metric.name)
    return {
        **{name: getattr(metric, name) for name in ("name", "description", "owner", "window")},
        **{name: getattr(pair or metric, name) for name in _SPENT},
        "type": metric.type.name,
        "tags": list(metric.tags),
        "mechanism": (pair or metric).scheme.mechanism.name,
        "values": len(metric.values) or None,
        "expires": metric.expires.isoformat(),
        "expired": metric.expires < source.today,
        "n": reading.n,
        "newest": newest,
        "age_days": newest and max(0, (source.today - windows.last_day(newest)).days),
        **({"reported_by": pair.name} if pair else {}),
        **_of_number(metric.type),
    }


def _of_number(kind: MetricType) -> dict[str, Any]:
    if kind.of:
        return {"of": list(kind.of)}
    if not isinstance(kind, Number):
        return {}
    return {
        "unit": kind.unit,
        "low": kind.range.start,
        "high": float(kind.range.high),
        "scale": kind.range.scale,
        "integer": kind.range.integer,
        "ask": list(kind.ask),
    }


def _row(entry: OverviewEntry) -> dict[str, Any]:
    metric, summary = entry.metric, entry.summary
    assert summary is not None, "what cannot be shown yet is not sent"
    leading, change = summary.leading, summary.change
    return {
        "name": metric.name,
        "type": metric.type.name,
        "window": metric.window,
        **_ends(summary.days),
        "n": summary.n,
        "newest": summary.newest,
        "unit": metric.type.unit if isinstance(metric.type, Number) else "share",
        "series": leading and leading.name,
        **_numbers(leading, estimate="value", low="low", high="high"),
        "anomalous": summary.alarm is not None,
        "change": _change(change) if isinstance(change, WeekChange) else None,
        "not_compared": change if isinstance(change, str) else None,
        "attention": [
            {
                "code": reason.kind,
                "text": str(reason.text),
                "from": reason.query.get("from"),
                "to": reason.query.get("to"),
                "facts": dict(reason.facts),
            }
            for reason in entry.reasons
        ],
    }


def _line(row: dict[str, Any]) -> dict[str, Any]:
    """The row as a table has it: what has changed beside the rest, and the codes of what needs
    attention."""
    change = row["change"] or {}
    return {
        **{f"change_{key}": value for key, value in change.items()},
        **{key: change.get(key) for key in ("difference", "changed")},
        **row,
        "attention": [reason["code"] for reason in row["attention"]],
    }


def _change(change: WeekChange) -> dict[str, Any]:
    return {
        **_ends(change.days),
        **_ends(change.before, "before_"),
        **{name: getattr(change, name) for name in ("series", "changed", "others")},
        **_numbers(change, before="old", after="new"),
        **_numbers(change, difference="difference", low="low", high="high"),
    }


def _ends(days: Days, prefix: str = "") -> dict[str, str]:
    return {f"{prefix}from": days.first.isoformat(), f"{prefix}to": days.last.isoformat()}


def _numbers(found: object, **names: str) -> dict[str, float | None]:
    """These attributes as JSON can carry them: null, if they are no numbers or there is nothing."""
    numbers = {key: getattr(found, name, math.nan) for key, name in names.items()}
    return {key: each if math.isfinite(each) else None for key, each in numbers.items()}

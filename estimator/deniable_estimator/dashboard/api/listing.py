"""The rows of the read API: one for a metric in a list, and selected ones of an estimate."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable import Metric
from deniable.protocol import windows
from deniable.protocol.types.base import MetricType
from deniable.protocol.types.number import Number
from deniable_estimator.answers.base import Answer
from deniable_estimator.answers.shares import Shares
from deniable_estimator.dashboard.data import DataSource
from deniable_estimator.dashboard.ranges import DayRange

LISTED = (
    *("name", "type", "description", "owner", "tags", "window", "epsilon", "lifetime_epsilon"),
    *("sample_rate", "one_in", "longitudinal", "mechanism", "values", "expires", "expired"),
    *("n", "newest", "age_days"),
)
"""What is said of each metric, in the order of the columns."""

LISTED_OF_NUMBERS = ("unit", "low", "high", "scale", "integer", "ask")
"""What is said of a number besides."""


def listed(source: DataSource, metric: Metric, days: DayRange) -> dict[str, Any]:
    """The metric under the names of `LISTED`, of a number also under those of
    `LISTED_OF_NUMBERS`, and with `reported_by` if devices report a pair in its place, whose budget
    and mechanism these are then; `n` counts the reports of these days."""
    newest = source.newest(metric)
    age = None
    if newest is not None:
        last = windows.last_day(newest)
        age = max(0, (source.today - last).days)
    # A metric that devices do not report by itself reveals what the reports of its pair do.
    pair = source.registry.unasked.get(metric.name)
    reported = pair or metric
    return {
        "name": metric.name,
        "type": metric.type.name,
        "description": metric.description,
        "owner": metric.owner,
        "tags": list(metric.tags),
        "window": metric.window,
        "epsilon": reported.epsilon,
        "lifetime_epsilon": reported.lifetime_epsilon,
        "sample_rate": reported.sample_rate,
        "one_in": reported.one_in,
        "longitudinal": reported.longitudinal,
        "mechanism": reported.scheme.mechanism.name,
        "values": len(metric.values) or None,
        "expires": metric.expires.isoformat(),
        "expired": metric.expires < source.today,
        "n": source.reports(metric, days),
        "newest": newest,
        "age_days": age,
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


def chosen(answer: Answer, values: Collection[str], limit: int | None) -> NDArray[np.intp] | None:
    """The places of these values, and of these the `limit` largest, the largest first; None
    for all as they stand."""
    if not isinstance(answer, Shares):
        return None
    if not values:
        return None if limit is None else answer.order[:limit]
    asked = set(values)
    found = [place for place, value in enumerate(answer.values) if value in asked]
    places = np.array(found, np.intp)
    if limit is not None:
        places = places[np.argsort(-answer.share[places], kind="stable")[:limit]]
    return places

"""What the read API says of a metric in a line, and of an estimate in fewer lines than it has."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import fields, is_dataclass, replace
from datetime import UTC, datetime
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from hearsay import Metric, windows
from hearsay_estimator.dashboard.ranges import DayRange
from hearsay_estimator.dashboard.source import Source
from hearsay_estimator.estimate import Estimate

__all__ = ["LISTED", "listed", "named", "shown"]

LISTED = (
    *("name", "type", "description", "owner", "tags", "window", "epsilon", "lifetime_epsilon"),
    *("sample_rate", "longitudinal", "mechanism", "values", "expires", "expired"),
    *("n", "newest", "age_days"),
)
"""What is said of each metric, in the order of the columns."""

_T = TypeVar("_T")


def listed(source: Source, metric: Metric, days: DayRange) -> dict[str, Any]:
    """The metric under the names of `LISTED`; `n` counts the reports of these days."""
    newest = source.newest(metric)
    age = None
    if newest is not None:
        last = datetime.fromtimestamp(windows.end(newest) - 1, UTC).date()
        age = max(0, (source.today - last).days)
    return {
        "name": metric.name,
        "type": metric.type,
        "description": metric.description,
        "owner": metric.owner,
        "tags": list(metric.tags),
        "window": metric.window,
        "epsilon": metric.epsilon,
        "lifetime_epsilon": metric.lifetime_epsilon,
        "sample_rate": metric.sample_rate,
        "longitudinal": metric.longitudinal,
        "mechanism": metric.scheme.mechanism.name,
        "values": None if metric.values is None else len(metric.values),
        "expires": metric.expires.isoformat(),
        "expired": metric.expires < source.today,
        "n": source.question(metric, days).n,
        "newest": newest,
        "age_days": age,
    }


def named(rows: list[dict[str, Any]], values: Collection[str]) -> list[dict[str, Any]]:
    """The rows of these values; all if there are none."""
    return [row for row in rows if row["value"] in values] if values else rows


def shown(estimate: Estimate, values: Collection[str], limit: int | None) -> Estimate:
    """The estimate with some of its lines."""
    places = np.arange(len(estimate.values))
    if values:
        places = np.array([i for i in places if estimate.values[i] in values], np.intp)
    if limit is not None:
        places = places[np.argsort(-estimate.share[places], kind="stable")[:limit]]
    return (
        estimate
        if len(places) == len(estimate.values) and limit is None
        else _taken(estimate, places, len(estimate.values))
    )


def _taken(whole: _T, places: NDArray[np.intp], size: int) -> _T:
    """The same with all that stands for each of `size` values reduced to these places."""
    assert is_dataclass(whole)
    assert not isinstance(whole, type)
    changes: dict[str, Any] = {}
    for each in fields(whole):
        part = getattr(whole, each.name)
        if isinstance(part, np.ndarray) and part.shape[:1] == (size,):
            changes[each.name] = part[places]
        elif each.name == "values":
            changes[each.name] = tuple(part[i] for i in places)
        elif is_dataclass(part):
            changes[each.name] = _taken(part, places, size)
    return replace(whole, **changes)

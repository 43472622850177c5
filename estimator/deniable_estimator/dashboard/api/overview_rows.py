"""The overview for programs: one row for each metric, with the codes of what needs attention."""

from __future__ import annotations

import math
from typing import Any

from deniable.protocol.types.number import Number
from deniable_estimator.answers.files import csv_text
from deniable_estimator.dashboard.overview.listing import Listing, OverviewEntry
from deniable_estimator.dashboard.overview.week import LEVEL, WeekChange

_COLUMNS = (
    *("name", "type", "window", "from", "to", "n", "newest", "series", "estimate", "low", "high"),
    *("change_from", "change_to", "change_series", "difference", "change_low", "change_high"),
    *("changed", "not_compared", "attention"),
)


def overview_document(listing: Listing) -> dict[str, Any]:
    """The metrics of a listing, as JSON can carry them: `level` is that of every interval,
    `false_changes` the expected number of false ones among all changes, `compared` the number of
    metrics whose change is known, `changed` that of those that changed, `outdated` the number of
    metrics whose newest reports are not in it yet."""
    return {
        "level": 0.95,
        "false_changes": LEVEL,
        "outdated": listing.outdated,
        "compared": listing.compared,
        "changed": listing.changed,
        "metrics": [_row(each) for each in listing.entries],
    }


def overview_csv(listing: Listing, *, raw: bool) -> str:
    """The same as a table: `attention` holds the codes, divided by spaces."""
    lines = []
    for each in listing.entries:
        row = _row(each)
        change = row.pop("change") or {}
        lines.append(
            {
                **row,
                **{f"change_{key}": change.get(key) for key in ("from", "to", "series")},
                **{f"change_{key}": change.get(key) for key in ("low", "high")},
                "difference": change.get("difference"),
                "changed": change.get("changed"),
                "attention": " ".join(reason["code"] for reason in row["attention"]),
            }
        )
    return csv_text(_COLUMNS, ([line[name] for name in _COLUMNS] for line in lines), raw=raw)


def _row(entry: OverviewEntry) -> dict[str, Any]:
    metric, summary = entry.metric, entry.summary
    assert summary is not None, "what cannot be shown yet is not sent"
    leading, change = summary.leading, summary.change
    return {
        "name": metric.name,
        "type": metric.type.name,
        "window": metric.window,
        "from": summary.days.first.isoformat(),
        "to": summary.days.last.isoformat(),
        "n": summary.n,
        "newest": summary.newest,
        "unit": metric.type.unit if isinstance(metric.type, Number) else "share",
        "series": leading.name if leading else None,
        "estimate": _number(leading.value) if leading else None,
        "low": _number(leading.low) if leading else None,
        "high": _number(leading.high) if leading else None,
        "anomalous": summary.alarm is not None,
        "change": _change(change) if isinstance(change, WeekChange) else None,
        "not_compared": change if isinstance(change, str) else None,
        "attention": [
            {
                "code": reason.code,
                "text": str(reason.text),
                "from": reason.query.get("from"),
                "to": reason.query.get("to"),
                "facts": dict(reason.facts),
            }
            for reason in entry.reasons
        ],
    }


def _change(change: WeekChange) -> dict[str, Any]:
    return {
        "from": change.days.first.isoformat(),
        "to": change.days.last.isoformat(),
        "before_from": change.before.first.isoformat(),
        "before_to": change.before.last.isoformat(),
        "series": change.series,
        "before": _number(change.old),
        "after": _number(change.new),
        "difference": _number(change.difference),
        "low": _number(change.low),
        "high": _number(change.high),
        "changed": change.changed,
        "others": change.others,
    }


def _number(number: float) -> float | None:
    return number if math.isfinite(number) else None

"""Metrics, days and what needs attention in words, as the pages write them."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from deniable import Metric
from deniable.protocol import windows
from deniable.protocol.mechanisms.number_range import TOP
from deniable.protocol.types.number import Number
from deniable_estimator.asking.query import Days
from deniable_estimator.document.units import NumberUnit
from deniable_estimator.kinds.formats import day, window
from deniable_estimator.messages import listed, message, sentence

EXPIRED = sentence("Expired on {day}: devices have stopped reporting.")
EXPIRES = sentence("Expires on {day}: then devices stop reporting.")
SILENT = sentence(
    "No reports since {window}. Check that the app still records it and that the collector is "
    "reached."
)
FEW_DEVICES = sentence("Few devices are expected: {warning}.")
TYPES = {
    "boolean": message("boolean"),
    "category": message("category"),
    "string": message("string"),
    "discovery": message("discovery of strings"),
    "number": message("number"),
    "pair": message("pair"),
    "retention": message("retention"),
}
ASKED = {"mean": message("mean"), "distribution": message("distribution")}


def type_name(name: str) -> str:
    """What people call a type of metrics."""
    return TYPES.get(name, name)


def chance(p: float) -> str:
    """A small p-value in a sentence: "p = 3e-06"."""
    return "p < 1e-15" if p < 1e-15 else f"p = {p:.1g}"


def example(metric: Metric) -> str:
    """A value of the metric, as it stands in a call of `record`."""
    if metric.values == ("true", "false"):
        return "True"
    if metric.type.of:
        return "..."
    if isinstance(metric.type, Number):
        middle = metric.type.range.value(TOP / 2)
        return str(round(middle)) if metric.type.range.integer else f"{middle:.2g}"
    return json.dumps((metric.values or ("...",))[0])


def range_of(kind: Number) -> str:
    """The range of a number with its unit."""
    numbers, unit = kind.range, NumberUnit(kind.unit)
    return message(
        "{low} to {high}",
        low=NumberUnit().exact(numbers.start),
        high=unit.exact(float(numbers.high)),
    )


def freshness(label: str, now: float) -> str:
    """How long ago the newest window that has reports closed, for people.

    `now` is POSIX time in seconds.
    """
    today = datetime.fromtimestamp(now, UTC).date()
    last = windows.last_day(label)
    days = (today - last).days
    if days <= 0:
        return message("unfinished window")
    if days == 1:
        return message("yesterday")
    return message("{days} days ago", days=days)


def windows_left_out(days: Days) -> str | None:
    """Which windows of these days are left out, for people; None if none is."""
    labels = [each for each in days.without if days.touches(each)]
    return listed(map(window, sorted(labels, key=windows.start))) if labels else None


def days_of(days: Days) -> str:
    """A range of days for people."""
    if days.days == 1:
        return day(days.first)
    return message("{first} to {last}", first=day(days.first), last=day(days.last))

"""Numbers, changes and windows of an answer as text, wherever it is shown."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from functools import lru_cache

import numpy as np

from deniable.protocol import windows
from deniable_estimator.document.document import Column, Estimate, Note
from deniable_estimator.document.units import NumberUnit, Unit, half_width
from deniable_estimator.kinds.base import Answer, Comparison
from deniable_estimator.kinds.basis import Basis, Result
from deniable_estimator.kinds.shares.shares import Shares
from deniable_estimator.messages import Dated, counted, joined, message, sentence

_HALVES = {"true": message("yes"), "false": message("no")}
NOTHING_STANDS_OUT = message(
    "Nothing stands out from the noise yet: too few devices have reported."
)
SHARE = message("Share")
"""Over a column of shares."""
NOISE = message("noise")
"""Beside a number that cannot be told from it."""
ESTIMATES = message("Every number is an estimate: each device added its own noise.")
"""Below numbers that leave their page."""
_ESTIMATES = sentence("estimates with {level}% intervals")
_UNKNOWN = message("unknown")
_KINDS = {"day": message("day"), "week": message("week"), "month": message("month")}


def share_text(share: float) -> str:
    """A share in percent, to two digits that matter."""
    per_cent = share * 100
    if per_cent <= 0:
        return "0%"
    decimals = max(0, 1 - math.floor(math.log10(per_cent)))
    text = f"{per_cent:.{decimals}f}"
    if decimals:
        text = text.rstrip("0").rstrip(".")
    return text + "%"


def series_name(answer: Answer, name: str) -> str:
    """What people call a series: that of a boolean is "yes" or "no"."""
    if isinstance(answer, Shares) and answer.boolean:
        return _HALVES[name]
    return answer.unit.label(name)


@lru_cache(maxsize=4096)
def with_ends(unit: Unit, number: float, low: float, high: float) -> tuple[str, str, str]:
    """A number and both ends of its interval, each with its unit. A trend says each of them twice,
    on its chart and in its table."""
    spread = half_width(number, low, high)
    return estimate(unit, number, low, high), unit.full(low, spread), unit.full(high, spread)


def estimate(unit: Unit, number: float, low: float, high: float) -> str:
    """A number with its unit: at least or at most so much, where its interval has no limit on one
    side."""
    if math.isnan(number) or math.inf == -low == high:
        return unit.unknown
    spread = half_width(number, low, high)
    if high == math.inf:
        return message("at least {number}", number=unit.full(low, spread))
    if low == -math.inf:
        return message("at most {number}", number=unit.full(high, spread))
    return unit.full(number, spread)


def error_of(unit: Unit, size: float) -> str:
    """A standard error with its unit."""
    return unit.full(size, size) if math.isfinite(size) else _UNKNOWN


def error(size: float) -> str:
    """A standard error in percent, to two digits."""
    if not math.isfinite(size):
        return _UNKNOWN
    decimals = 1 if size <= 0 else max(1, 1 - math.floor(math.log10(size * 100)))
    return f"{size * 100:.{decimals}f}%"


def p_value(p: float) -> str:
    """A p-value to the digits that matter."""
    if not math.isfinite(p):
        return _UNKNOWN
    return "< 0.0001" if p < 0.0001 else f"{p:.4f}"


def kind(name: str) -> str:
    """What a window or a period lasts: a day, a week or a month."""
    return _KINDS[name]


def period(labels: Sequence[str]) -> str:
    """The windows of an estimate as a span: one label, or the first and the last."""
    if not labels:
        return message("no window")
    first, last = labels[0], labels[-1]
    if first == last:
        return window(first)
    return message("{first} to {last}", first=window(first), last=window(last))


def caption(found: Result, template: str = _ESTIMATES) -> str:
    """What a file with a picture of some numbers is about, in a line."""
    return counted(
        "{metric}, {n} report, {period}; {what}",
        "{metric}, {n} reports, {period}; {what}",
        found.n,
        metric=found.metric,
        n=f"{found.n:,}",
        period=period(found.windows),
        what=message(template, level=f"{found.level * 100:g}"),
    )


def values_below_noise(count: int) -> str:
    """How many values are folded away."""
    return counted(
        "{count:,} value cannot be told from noise",
        "{count:,} values cannot be told from noise",
        count,
    )


def not_listed(more: int) -> str:
    """How many rows a table leaves out."""
    return counted(
        "{count:,} more is not listed; CSV and JSON have it.",
        "{count:,} more are not listed; CSV and JSON have them.",
        more,
    )


def day(date: date) -> str:
    """A date in which the month cannot be confused with the day."""
    return Dated.of(f"{date.day} {date:%b %Y}", date, "yMMMd")


@lru_cache(maxsize=1024)
def window(label: str) -> str:
    """A window for people: 20 Nov 2026, 2026-W47 or Nov 2026."""
    kind = windows.kind_of(label)
    if kind == "day":
        return day(date.fromisoformat(label))
    if kind == "week":
        return label
    first = date.fromisoformat(label + "-01")
    return Dated.of(f"{first:%b %Y}", first, "yMMM")


def estimate_of(
    unit: Unit, number: float, low: float, high: float, *, axis: tuple[float, float] | None = None
) -> Estimate:
    """A number of an answer with its interval as text, and with its bar on an axis between two
    ends."""
    between = unit.interval(low, high, half_width(number, low, high))
    drawn = drawn_on(axis, number, low, high) if axis and math.isfinite(number) else None
    return Estimate(number, estimate(unit, number, low, high), between=between, drawn=drawn)


def drawn_on(
    axis: tuple[float, float], number: float, low: float, high: float
) -> tuple[float, float, float]:
    """The interval and its number on an axis between two ends, as `Estimate.drawn` has them."""
    base, top = axis
    # An axis without a length is that of shares that are all 0 or below it.
    long = max(top - base, 1e-12)
    return (low - base) / long, (number - base) / long, (high - base) / long


def described(answer: Answer, told: Iterable[str]) -> str:
    """What a picture shows, for screen readers."""
    return counted(
        "From {count:,} report, with {level:.0%} intervals: {told}.",
        "From {count:,} reports, with {level:.0%} intervals: {told}.",
        answer.n,
        level=answer.level,
        told=joined(told),
    )


def series_cell(answer: Answer, name: str, axis: tuple[float, float] | None) -> Estimate | None:
    """The number of a series as such a cell: unknown without one, None without the series."""
    if name not in answer.series.names:
        return None
    numbers = answer.series.at(name)
    if not math.isfinite(numbers[0]):
        return Estimate(None, answer.unit.unknown)
    return estimate_of(answer.unit, *numbers, axis=axis)


def interval_title(level: float) -> str:
    """What stands over intervals."""
    return message("{level}% interval", level=f"{level * 100:g}")


def estimate_title(unit: Unit) -> str:
    """What stands over estimates."""
    return message("Estimate") if isinstance(unit, NumberUnit) else SHARE


def estimate_column(answer: Answer, scale: tuple[str, str] | None = None) -> Column:
    """The column of such cells."""
    told, interval = message("Estimate"), interval_title(answer.level)
    return Column("estimate", told, "estimate", interval=interval, scale=scale)


def change_cells(comparison: Comparison | None, names: Iterable[str]) -> dict[str, Estimate]:
    """The changes of these values, of those that the comparison knows."""
    if comparison is None:
        return {}
    wanted = set(names)
    return {
        name: _change_cell(comparison, place)
        for place, name in enumerate(comparison.values)
        if name in wanted and math.isfinite(comparison.difference[place])
    }


def _change_cell(comparison: Comparison, place: int) -> Estimate:
    """At least or at most so much where its interval has no limit on one side."""
    unit, between = comparison.after.unit, ""
    difference, low, high = comparison.at(place)
    least, most = comparison.ends(place)
    if not (math.isfinite(low) or math.isfinite(high)):
        text = unit.unknown
    elif high == math.inf:
        text = message("at least {number}", number=least)
    elif low == -math.inf:
        text = message("at most {number}", number=most)
    else:
        text = unit.signed(difference, half_width(difference, low, high))
        between = message("{low} to {high}", low=least, high=most)
    if not comparison.changed[place]:
        return Estimate(difference, text, "quiet", between=between)
    return Estimate(difference, text, "strong", message("changed"), between)


def change_title(unit: Unit) -> str:
    """What stands over changes."""
    if not isinstance(unit, NumberUnit):
        return message("Change, points")
    return message("Change, {unit}", unit=unit.name) if unit.name else message("Change")


def change_order(comparison: Comparison) -> list[int]:
    """The places of its values: those that changed by more than noise first, and of both those
    further from it."""
    changed = comparison.changed.tolist()
    return sorted(order_of(comparison), key=lambda place: not changed[place])


def order_of(comparison: Comparison) -> list[int]:
    """Values by how far their change stands out from its noise."""
    with np.errstate(divide="ignore", invalid="ignore"):
        score = np.abs(comparison.difference) / comparison.std_error
    known = np.nan_to_num(score, nan=-1.0)
    order: list[int] = np.argsort(-known, kind="stable").tolist()
    if comparison.values == ("true", "false"):
        order = [0, 1]
    return order


def heading(estimate: Basis, *more: str) -> str:
    """The metric, its reports, its windows and its epsilon."""
    windows = estimate.windows
    if len(windows) > 1:
        when, what = f"{len(windows)} windows, {windows[0]} to {windows[-1]}", "reports"
    else:
        when = windows[0] if windows else "no window"
        what = "device" if estimate.n == 1 else "devices"
    parts = f"{estimate.n:,} {what}", when, f"epsilon {estimate.epsilon:.4g}", *more
    return f"{estimate.metric}  {'  ·  '.join(parts)}"


def warned(warnings: Iterable[str]) -> Iterator[Note]:
    """What to bear in mind, one note each."""
    return (Note(noted(warning), "warn") for warning in warnings)


def noted(warning: str) -> str:
    """A warning as a sentence."""
    return message("Note: {what}.", what=warning)


def strange(result: Result) -> Iterator[Note]:
    """What honest reports cannot explain."""
    for figure in result.verdict.alarms(result.alarm_level):
        yield Note(f"Anomalous: {figure.text} (p = {figure.p_adjusted:.1g}).", "alarm")


def alarms(estimate: Answer) -> Iterator[Note]:
    """The same, and what to do about it."""
    yield from strange(estimate)
    if estimate.anomalous:
        yield Note(
            "Honest devices do not report like this. See which windows it comes from with "
            f"`deniable estimate anomalies {estimate.metric}` and leave them out; do not correct "
            "the numbers.",
            "alarm",
        )

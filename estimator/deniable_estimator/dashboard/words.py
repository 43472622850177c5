"""Numbers, dates and findings in words, as the pages write them."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from datetime import UTC, date, datetime
from functools import lru_cache
from typing import NamedTuple

from deniable import Metric
from deniable.protocol import windows
from deniable.protocol.mechanisms.number_range import TOP
from deniable.protocol.types.number import Number
from deniable_estimator.answers.base import Answer
from deniable_estimator.answers.shares import Shares
from deniable_estimator.answers.units import NumberUnit, Unit, half_width, points
from deniable_estimator.dashboard.ranges import DayRange
from deniable_estimator.messages import Dated, counted, listed, message, sentence

EXPIRED = sentence("Expired on {day}: devices have stopped reporting.")
EXPIRES = sentence("Expires on {day}: then devices stop reporting.")
SILENT = sentence(
    "No reports since {window}. Check that the app still records it and that the collector is "
    "reached."
)
_HALVES = {"true": message("yes"), "false": message("no")}
NOTHING_STANDS_OUT = message(
    "Nothing stands out from the noise yet: too few devices have reported."
)
FEW_DEVICES = sentence("Few devices are expected: {warning}.")

_UNKNOWN = message("unknown")
_NAMED = 3
_KINDS = {"day": message("day"), "week": message("week"), "month": message("month")}
_TYPES = {
    "boolean": message("boolean"),
    "category": message("category"),
    "string": message("string"),
    "discovery": message("discovery of strings"),
    "number": message("number"),
    "pair": message("pair"),
    "retention": message("retention"),
}
_ASKED = {"mean": message("mean"), "distribution": message("distribution")}
_TOO_SHORT = {
    "day": message("A trend needs reports from two days at least; these days hold fewer."),
    "week": message("A trend needs reports from two weeks at least; these days hold fewer."),
    "month": message("A trend needs reports from two months at least; these days hold fewer."),
}


def number(count: int) -> str:
    """A whole number with thousands separators."""
    return f"{count:,}"


def percent(share: float, spread: float) -> str:
    """A share in percent, with as many digits as its uncertainty (`spread`, a share) allows."""
    if not math.isfinite(share):
        return _UNKNOWN
    return points(share, spread) + "%"


def share_text(share: float) -> str:
    """A share in percent, to two digits that matter."""
    per_cent = share * 100
    decimals = max(0, 1 - math.floor(math.log10(per_cent)))
    text = f"{per_cent:.{decimals}f}"
    if decimals:
        text = text.rstrip("0").rstrip(".")
    return text + "%"


def short(unit: Unit, number: float, spread: float) -> str:
    """A number of an answer with its unit."""
    return _UNKNOWN if math.isnan(number) else unit.full(number, spread)


def series_name(answer: Answer, name: str) -> str:
    """What people call a series: that of a boolean is "yes" or "no"."""
    if isinstance(answer, Shares) and answer.boolean:
        return _HALVES[name]
    return answer.unit.label(name)


class SeriesText(NamedTuple):
    """A number of an answer as text, with its unit."""

    estimate: str
    low: str
    high: str
    std_error: str

    between: str
    """The interval, with its unit once."""


def series_text(
    unit: Unit, number: float, low: float, high: float, std_error: float = math.nan
) -> SeriesText:
    """A number, its interval, and its standard error."""
    spread = half_width(number, low, high)
    ends = unit.full(low, spread), unit.full(high, spread)
    exact = unit.full(std_error, std_error) if math.isfinite(std_error) else _UNKNOWN
    return SeriesText(
        estimate(unit, number, low, high), *ends, exact, unit.interval(low, high, spread)
    )


@lru_cache(maxsize=4096)
def with_ends(unit: Unit, number: float, low: float, high: float) -> tuple[str, str, str]:
    """A number and both ends of its interval, each with its unit. A trend says each of them twice,
    on its chart and in its table."""
    spread = half_width(number, low, high)
    return estimate(unit, number, low, high), short(unit, low, spread), short(unit, high, spread)


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


def error(size: float) -> str:
    """A standard error in percent, to two digits."""
    if not math.isfinite(size):
        return _UNKNOWN
    decimals = 1 if size <= 0 else max(1, 1 - math.floor(math.log10(size * 100)))
    return f"{size * 100:.{decimals}f}%"


def chance(p: float) -> str:
    """A small p-value in a sentence: "p = 3e-06"."""
    return "p < 1e-15" if p < 1e-15 else f"p = {p:.1g}"


def p_value(p: float) -> str:
    """A p-value to the digits that matter."""
    if not math.isfinite(p):
        return _UNKNOWN
    return "< 0.0001" if p < 0.0001 else f"{p:.4f}"


def kind(name: str) -> str:
    """What a window or a period lasts: a day, a week or a month."""
    return _KINDS[name]


def type_name(name: str) -> str:
    """A metric's type."""
    return _TYPES.get(name, name)


def asked_for(name: str) -> str:
    """What is asked of a number."""
    return _ASKED[name]


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


def too_short(name: str) -> str:
    """Why there is no trend by days, weeks or months."""
    return _TOO_SHORT[name]


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


def period(labels: Sequence[str]) -> str:
    """The windows of an estimate as a span: one label, or the first and the last."""
    if not labels:
        return message("no window")
    first, last = labels[0], labels[-1]
    if first == last:
        return window(first)
    return message("{first} to {last}", first=window(first), last=window(last))


def values_below_noise(count: int) -> str:
    """How many values are folded away."""
    return counted(
        "{count:,} value cannot be told from noise",
        "{count:,} values cannot be told from noise",
        count,
    )


def changes_below_noise(count: int) -> str:
    """How many changes are folded away."""
    return counted(
        "{count:,} change cannot be told from noise",
        "{count:,} changes cannot be told from noise",
        count,
    )


def days_of(days: DayRange) -> str:
    """A range of days for people."""
    if days.days == 1:
        return day(days.first)
    return message("{first} to {last}", first=day(days.first), last=day(days.last))


def headline(estimate: Shares) -> str:
    """The estimate in a sentence: which value leads, and whether the lead is significant.

    Where shares are impossible, none leads.

    Two intervals that do not overlap at `level` differ by more than the noise; the check
    errs on the cautious side.
    """
    if estimate.impossible.any():
        return impossible(estimate)
    order = estimate.order
    first = order[0]
    spread = float(estimate.high[first] - estimate.low[first]) / 2
    if estimate.values == ("true", "false"):
        yes = float(estimate.share[0])
        low, high = float(estimate.low[0]), float(estimate.high[0])
        return message(
            "{share} say yes; the {level:.0%} interval is {low} to {high}.",
            share=percent(yes, spread),
            level=estimate.level,
            low=percent(low, spread),
            high=percent(high, spread),
        )
    if not estimate.detected[first]:
        return message(
            "No value can be told from noise yet: it takes more reports, or a longer range."
        )
    name, share = (
        estimate.unit.label(estimate.values[first]),
        percent(float(estimate.share[first]), spread),
    )
    if len(order) == 1:
        return message("{name} has {share}.", name=name, share=share)
    second = order[1]
    other = estimate.unit.label(estimate.values[second])
    if estimate.low[first] > estimate.high[second]:
        return message(
            "{name} leads with {share}, ahead of {other} by more than the noise.",
            name=name,
            share=share,
            other=other,
        )
    return message(
        "{name} has {share}, too close to {other} to say which one leads.",
        name=name,
        share=share,
        other=other,
    )


def impossible(estimate: Shares) -> str:
    """Which shares of an estimate are impossible, in a sentence; there must be some."""
    told = []
    boolean = estimate.values == ("true", "false")
    for place in (0,) if boolean else estimate.strange[:_NAMED]:
        spread = float(estimate.high[place] - estimate.low[place]) / 2
        share = percent(float(estimate.share[place]), spread)
        template = sentence("{share} say yes") if boolean else sentence("{share} for {value}")
        told.append(
            message(template, share=share, value=estimate.unit.label(estimate.values[place]))
        )
    return message("Impossible: {which}. Do not rely on these shares.", which=listed(told))


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

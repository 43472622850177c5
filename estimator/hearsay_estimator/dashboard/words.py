"""Numbers, dates and findings in words, as the pages write them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, date, datetime

import numpy as np

from hearsay import windows
from hearsay_estimator.comparison import points
from hearsay_estimator.estimate import Estimate

__all__ = [
    "EXPIRED",
    "EXPIRES",
    "FEW_DEVICES",
    "NOTHING_STANDS_OUT",
    "SILENT",
    "changes_below_noise",
    "day",
    "error",
    "freshness",
    "headline",
    "number",
    "p_value",
    "percent",
    "period",
    "since",
    "values_below_noise",
    "window",
]

EXPIRED = "Expired on {day}: devices have stopped answering."
EXPIRES = "Expires on {day}: then devices stop answering."
SILENT = (
    "No answers since {window}. Check that the app still records it and that the collector is "
    "reached."
)
NOTHING_STANDS_OUT = "Nothing stands out from the noise yet: too few devices have answered."
FEW_DEVICES = "Few devices are expected: {warning}."

_ONE_VALUE = "{count} value cannot be told from noise"
_VALUES = "{count} values cannot be told from noise"
_ONE_CHANGE = "{count} change cannot be told from noise"
_CHANGES = "{count} changes cannot be told from noise"
_SINCE_YES = "Against the {days} days before, the share that says yes: {change}."
_SINCE = "Against the {days} days before, {value}: {change}."


def number(count: int) -> str:
    """A whole number with thousands marked."""
    return f"{count:,}"


def percent(share: float, spread: float) -> str:
    """A share in percent, with no more digits than its uncertainty (`spread`, a share) leaves."""
    if not math.isfinite(share):
        return "unknown"
    return points(share, spread) + "%"


def error(size: float) -> str:
    """A standard error in percent, to two digits."""
    if not math.isfinite(size):
        return "unknown"
    decimals = 1 if size <= 0 else max(1, 1 - math.floor(math.log10(size * 100)))
    return f"{size * 100:.{decimals}f}%"


def p_value(p: float) -> str:
    """A p-value to the digits that matter."""
    if not math.isfinite(p):
        return "unknown"
    return "< 0.0001" if p < 0.0001 else f"{p:.4f}"


def freshness(label: str, now: float) -> str:
    """How long ago the newest window that has answers closed, for people.

    `now` is POSIX time in seconds.
    """
    today = datetime.fromtimestamp(now, UTC).date()
    last = datetime.fromtimestamp(windows.end(label) - 1, UTC).date()
    days = (today - last).days
    if days <= 0:
        return "still open"
    return "up to yesterday" if days == 1 else f"up to {days} days ago"


def period(labels: Sequence[str]) -> str:
    """The windows of an estimate as a span: one label, or the first and the last."""
    if not labels:
        return "no window"
    first, last = labels[0], labels[-1]
    if first == last:
        return window(first)
    return f"{window(first)} to {window(last)}"


def values_below_noise(count: int) -> str:
    """How many values are folded away."""
    return (_ONE_VALUE if count == 1 else _VALUES).format(count=number(count))


def changes_below_noise(count: int) -> str:
    """How many changes are folded away."""
    return (_ONE_CHANGE if count == 1 else _CHANGES).format(count=number(count))


def since(days: int, value: str, change: str) -> str:
    """How a value has changed against as many days before; "true" is that of a boolean."""
    if value == "true":
        return _SINCE_YES.format(days=days, change=change)
    return _SINCE.format(days=days, value=value, change=change)


def headline(estimate: Estimate) -> str:
    """What the estimate says, in a sentence: which value leads, and whether the lead is real.

    Two intervals that do not overlap at `level` differ by more than the noise; the check
    errs on the cautious side.
    """
    order = np.argsort(-estimate.share)
    first = order[0]
    spread = float(estimate.high[first] - estimate.low[first]) / 2
    if estimate.values == ("true", "false"):
        yes = float(estimate.share[0])
        low, high = float(estimate.low[0]), float(estimate.high[0])
        return (
            f"{percent(yes, spread)} say yes; the {estimate.level:.0%} interval is "
            f"{percent(low, spread)} to {percent(high, spread)}."
        )
    if not estimate.detected[first]:
        return "No value can be told from noise yet: it takes more answers, or a longer range."
    name, share = estimate.values[first], percent(float(estimate.share[first]), spread)
    second = order[1]
    other = estimate.values[second]
    if estimate.low[first] > estimate.high[second]:
        return f"{name} leads with {share}, ahead of {other} by more than the noise."
    return f"{name} has {share}, too close to {other} to say which one leads."


def day(date: date) -> str:
    """A date without a doubt about which number is the month."""
    return f"{date.day} {date:%b %Y}"


def window(label: str) -> str:
    """A window for people: 20 Nov 2026, 2026-W47 or Nov 2026."""
    kind = windows.kind_of(label)
    if kind == "day":
        return day(date.fromisoformat(label))
    return label if kind == "week" else f"{date.fromisoformat(label + '-01'):%b %Y}"

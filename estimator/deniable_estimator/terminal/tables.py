"""Cells and columns that several documents of the terminal have."""

from __future__ import annotations

import math
from collections.abc import Iterable

from deniable.protocol.coded_message import counted
from deniable_estimator.answers.units import Unit, half_width
from deniable_estimator.document.document import Column, Estimate

MOST_ROWS = 40
"""How many values a table shows; CSV and JSON have all of them."""

_NAMED = 5


def more_words(rest: int, what: str, where: str = "") -> tuple[str, ...]:
    """That a table does not show all; nothing if it does."""
    if rest <= 0:
        return ()
    return (f"and {counted(rest, f'more {what}')}{where}: --csv or --json shows all",)


def share_column(level: float, top: str, key: str = "share") -> Column:
    """Of shares in percent, with their bars from 0 to `top`."""
    interval = f"{level * 100:.3g}% interval\n%"
    return Column(key, f"{key}\n%", "estimate", interval=interval, scale=("0", top))


def share_cell(numbers: Iterable[float], top: float) -> Estimate:
    """A share in percent with its interval, and its bar from 0 to `top`."""
    share, low, high = map(float, numbers)
    between = f"{percent(low)} .. {percent(high)}"
    drawn = (low / top, share / top, high / top)
    return Estimate(share, percent(share), between=between, drawn=drawn)


def estimate_cell(
    unit: Unit, numbers: Iterable[float], axis: tuple[float, float] | None = None
) -> Estimate:
    """A number in its unit with its interval, and its bar on an axis between two ends."""
    value, low, high = map(float, numbers)
    spread = half_width(value, low, high)
    if math.isnan(value):
        return Estimate(value, unit.text(value, spread), between="")
    drawn = None
    if axis is not None:
        base, top = axis
        # An axis without a length is that of shares that are all 0 or below it.
        long = max(top - base, 1e-12)
        low_at, at, high_at = ((each - base) / long for each in (low, value, high))
        drawn = max(low_at, 0.0), at, min(high_at, 1.0)
    between = interval(unit, low, high, spread)
    return Estimate(value, unit.text(value, spread), between=between, drawn=drawn)


def interval(unit: Unit, low: float, high: float, spread: float) -> str:
    """The ends of an interval in words, which may have no limit on a side."""
    if math.isfinite(low) and math.isfinite(high):
        return f"{unit.text(low, spread)} .. {unit.text(high, spread)}"
    if math.isfinite(low):
        return f"at least {unit.text(low, spread)}"
    if math.isfinite(high):
        return f"at most {unit.text(high, spread)}"
    return "unknown"


def percent(share: float) -> str:
    """A share in percent, with as many digits as a small one needs."""
    digits = 2 if abs(share) >= 0.001 or share == 0 else 4
    return f"{share * 100:.{digits}f}"

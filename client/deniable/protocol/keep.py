"""How long the collector keeps a metric's windows, and their sums over weeks, months and quarters.

Devices do not need it. In `metrics.toml` it is `keep = { day = "90 days", month = "forever" }`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from deniable.protocol import windows
from deniable.protocol.coded_message import counted

CALENDARS: dict[windows.Kind, tuple[str, ...]] = {
    "day": ("week", "month", "quarter"),
    "week": (),
    "month": ("quarter",),
}
"""The calendars over which windows of each kind are added up: each of their windows lies in one
period. ISO weeks lie in no one month or quarter."""

FOREVER = "forever"

_UNITS = {"day": 1, "week": 7, "month": 31, "year": 366}
"""The days of a unit, rounded up: nothing goes too early."""

_DURATION = re.compile(r"(\d{1,6}) (day|week|month|year)s?", re.ASCII)
_EXAMPLE = '{ day = "90 days", month = "forever" }'

_LEAST = 8
"""Days. A window may accept reports until seven days after its end."""

_LEAST_WITH_SUMS = {"day": 60, "month": 200}
"""Days. Pages show 28 days beside the 28 days before, or three months beside three."""

_MOST = 36_600

Keep = tuple[tuple[str, int | None], ...]
"""Pairs of a calendar (day, week, month or quarter) and days; None means for ever."""


def well_formed(value: Any) -> str | None:
    """What is wrong with the form of `keep`, or nothing."""
    if not isinstance(value, dict) or not value:
        return f"must say how long each calendar is kept, like {_EXAMPLE}"
    known = (*windows.KINDS, "quarter")
    for calendar, duration in value.items():
        if calendar not in known:
            return f"names {calendar!r}: choose among {', '.join(known)}, like {_EXAMPLE}"
        days = _days(duration)
        if days == 0:
            return (
                f'of {calendar} must be "{FOREVER}" or a number of days, weeks, months or years '
                f'up to a hundred years, like "90 days"'
            )
        if days is not None and days < _LEAST:
            return (
                f"of {calendar} is {counted(days, 'day')}: the least is {_LEAST}, because a window "
                "may accept reports until seven days after its end"
            )
    return None


def mistakes(keep: Keep, window: windows.Kind) -> str | None:
    """What is wrong with `keep` for a metric with windows of this kind, or nothing."""
    known = (window, *CALENDARS[window])
    kept = dict(keep)
    for calendar in kept:
        if calendar not in known:
            fits = f": choose among {', '.join(known)}" if len(known) > 1 else f": keep {window}"
            return (
                f"names {calendar}, over which windows of a {window} cannot be added up"
                f"{fits}, or change the window"
            )
    own, sums = kept.get(window), [each for each in kept if each != window]
    if own is not None and sums and own < _LEAST_WITH_SUMS[window]:
        return (
            f"of {window} is {own} days: where sums stay, the least is "
            f"{_LEAST_WITH_SUMS[window]}, because pages show the newest windows beside those before"
        )
    for finer, coarser in ((window, sums), ("month", ["quarter"])):
        for each in coarser:
            if finer in kept and each in kept and _order(kept[each]) < _order(kept[finer]):
                return f"of {each} is shorter than of {finer}: keep {each} longer, or remove it"
    return None


def read_keep(value: Mapping[str, Any]) -> Keep:
    """`keep` of a metric, finer calendars first, from a table that `well_formed` accepts."""
    days = {calendar: _days(duration) for calendar, duration in value.items()}
    return tuple((each, days[each]) for each in (*windows.KINDS, "quarter") if each in days)


def in_words(keep: Keep) -> str:
    """What is kept, like "day for 90 days, month for ever"."""
    return ", ".join(
        f"{calendar} for ever" if days is None else f"{calendar} for {days} days"
        for calendar, days in keep
    )


def _days(duration: Any) -> int | None:
    """The days of a duration; None for ever; 0 if it is none."""
    if duration == FOREVER:
        return None
    if isinstance(duration, int) and not isinstance(duration, bool):
        return duration if 0 < duration <= _MOST else 0
    match = _DURATION.fullmatch(duration) if isinstance(duration, str) else None
    days = int(match[1]) * _UNITS[match[2]] if match else 0
    return days if days <= _MOST else 0


def _order(days: int | None) -> float:
    return float("inf") if days is None else days

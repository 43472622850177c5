"""The days that a page looks at: read from its address, or the last 30."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from deniable import DeniableError, windows
from deniable_estimator.messages import message

__all__ = ["DEFAULT_DAYS", "DayRange", "Preset", "RangeError", "before", "presets", "read_range"]

DEFAULT_DAYS = 30
_PRESETS = (7, 30, 90, 365)
_LONGEST = 3660


class RangeError(DeniableError):
    """A range that cannot be shown; the message says how to write one."""


@dataclass(frozen=True, slots=True)
class DayRange:
    """From the first to the last day (UTC), both included."""

    first: date
    last: date

    @property
    def days(self) -> int:
        return (self.last - self.first).days + 1

    @property
    def query(self) -> dict[str, str]:
        """The range as an address carries it."""
        return {"from": self.first.isoformat(), "to": self.last.isoformat()}


@dataclass(frozen=True, slots=True)
class Preset:
    """A range that is one click away."""

    text: str
    range: DayRange


def read_range(arguments: Mapping[str, str], now: float) -> DayRange:
    """The range named by `from` and `to`; what is left out ends today, or lasts 30 days.

    `now` is POSIX time in seconds.

    Raises:
        RangeError: no date, an end before its beginning, or over ten years.
    """
    last = _day(arguments.get("to"), "to") or _today(now)
    try:
        first = _day(arguments.get("from"), "from") or last - timedelta(days=DEFAULT_DAYS - 1)
    except OverflowError:
        first = last
    chosen = DayRange(first, last)
    if chosen.days < 1:
        raise RangeError(
            message(
                "The range ends ({last}) before it begins ({first}). Swap the two dates.",
                last=last,
                first=first,
            )
        )
    if chosen.days > _LONGEST:
        raise RangeError(message("The range is longer than ten years. Choose a shorter one."))
    return chosen


def presets(now: float) -> list[Preset]:
    """Ranges that end today."""
    today = _today(now)
    return [
        Preset(
            message("{days} days", days=days) if days < 365 else message("1 year"),
            DayRange(today - timedelta(days=days - 1), today),
        )
        for days in _PRESETS
    ]


def before(days: DayRange, kind: windows.Kind) -> DayRange:
    """As many days just before these, sharing no window of that kind with them."""
    noon = datetime(days.first.year, days.first.month, days.first.day, 12, tzinfo=UTC).timestamp()
    begins = windows.start(windows.window_at(kind, noon))
    last = datetime.fromtimestamp(begins - 1, UTC).date()
    try:
        return DayRange(last - timedelta(days=days.days - 1), last)
    except OverflowError:
        return DayRange(last, last)


def _day(text: str | None, name: str) -> date | None:
    if not text:
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise RangeError(
            message(
                "“{name}” is not a date. Write year, month and day, like 2026-11-21.", name=name
            )
        ) from None


def _today(now: float) -> date:
    return datetime.fromtimestamp(now, UTC).date()

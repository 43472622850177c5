"""The days that a page looks at: read from its address, or the last 30."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from deniable import DeniableError, windows
from deniable_estimator.messages import alternatives, message

__all__ = [
    "DEFAULT_DAYS",
    "DayRange",
    "Preset",
    "RangeError",
    "before",
    "check_names",
    "is_day",
    "presets",
    "read_range",
]

DEFAULT_DAYS = 30
_PRESETS = (7, 30, 90, 365)
_LONGEST = 3660


class RangeError(DeniableError):
    """What was asked for cannot be shown; the message says what can, `fields` where to write it."""

    def __init__(self, text: str, *fields: str) -> None:
        super().__init__(text)
        self.fields = fields


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


def check_names(arguments: Iterable[str], known: Collection[str]) -> None:
    """Refuse a parameter that a page does not know: it would have been meant to change something.

    Raises:
        RangeError: one has another name than those `known`; the message names one like it.
    """
    for name in arguments:
        if name in known or name == "lang":
            continue
        near = difflib.get_close_matches(name, known, n=1)
        if near:
            raise RangeError(
                message(
                    "“{name}” is not known here. Did you mean “{near}”?", name=name, near=near[0]
                )
            )
        raise RangeError(
            message(
                "“{name}” is not known here. Remove it; {known} can be given.",
                name=name,
                known=alternatives(f"“{each}”" for each in known),
            )
        )


def read_range(arguments: Mapping[str, str], now: float, prefix: str = "") -> DayRange:
    """The range named by `from` and `to`; what is left out ends today, or lasts 30 days.

    `now` is POSIX time in seconds; `prefix` stands before both names.

    Raises:
        RangeError: no date, an end before its beginning, or over ten years.
    """
    begin, end = f"{prefix}from", f"{prefix}to"
    first = _day(arguments.get(begin), begin)
    last = _day(arguments.get(end), end) or _today(now)
    try:
        first = first or last - timedelta(days=DEFAULT_DAYS - 1)
    except OverflowError:
        first = last
    chosen = DayRange(first, last)
    if chosen.days < 1:
        raise RangeError(
            message(
                "“{end}” ({last}) lies before “{begin}” ({first}). Swap the two dates.",
                end=end,
                last=last,
                begin=begin,
                first=first,
            ),
            begin,
            end,
        )
    if chosen.days > _LONGEST:
        raise RangeError(
            message(
                "From “{begin}” to “{end}” is longer than ten years. Choose a shorter range.",
                begin=begin,
                end=end,
            ),
            begin,
            end,
        )
    return chosen


def is_day(text: str) -> bool:
    """Whether a browser's field for dates takes the text; none of it is what such a field shows
    before anything is written."""
    if not text:
        return True
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


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
            ),
            name,
        ) from None


def _today(now: float) -> date:
    return datetime.fromtimestamp(now, UTC).date()

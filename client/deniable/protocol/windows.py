"""Windows: the UTC day, ISO week or month that a report belongs to.

A window is named by its label, "2026-11-21", "2026-W47" or "2026-11"; the
three kinds never look alike, so the label alone says which kind it is. No finer
time ever leaves a device.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Literal, TypeAlias, cast

from deniable.protocol.coded_message import CodedMessage
from deniable.protocol.errors import WindowError

Kind: TypeAlias = Literal["day", "week", "month"]
KINDS: tuple[Kind, ...] = ("day", "week", "month")

IN_A: dict[Kind, CodedMessage] = {
    "day": CodedMessage("in_a_day", "in a day"),
    "week": CodedMessage("in_a_week", "in a week"),
    "month": CodedMessage("in_a_month", "in a month"),
}
"""The kinds as a part of a sentence."""

IN_A_YEAR: dict[Kind, float] = {"day": 365.25, "week": 365.25 / 7, "month": 12.0}
"""How many windows an average year holds."""

_LABEL = re.compile(
    r"(?P<year>\d{4})-(?:W(?P<week>\d\d)|(?P<month>\d\d)(?:-(?P<day>\d\d))?)", re.ASCII
)


def window_at(kind: Kind, timestamp: float) -> str:
    """The label of the window of that kind which holds a POSIX time (seconds)."""
    return window_of(kind, datetime.fromtimestamp(timestamp, UTC).date())


def window_of(kind: Kind, day: date) -> str:
    """The label of the window of that kind which holds a day."""
    if kind == "day":
        return day.isoformat()
    if kind == "week":
        year, week, _ = day.isocalendar()
        return f"{year:04}-W{week:02}"
    return f"{day.year:04}-{day.month:02}"


def last_complete(kind: Kind, timestamp: float) -> date:
    """The last day of the newest window of that kind that has ended at a POSIX time (seconds)."""
    return first_day(window_at(kind, timestamp)) - timedelta(days=1)


def span(kind: Kind, first: date, last: date) -> list[str]:
    """Labels of all windows that touch the days from `first` to `last`, in order.

    Raises:
        ValueError: `last` lies before `first`.
    """
    if last < first:
        raise ValueError(f"the range ends ({last}) before it begins ({first})")
    labels: list[str] = []
    day = first
    while day <= last:
        label = window_of(kind, day)
        labels.append(label)
        day = _parsed(label)[2]
    return labels


def kind_of(label: str) -> Kind:
    """Which kind of window a label names.

    Raises:
        WindowError: it names none.
    """
    return _parsed(label)[0]


def start(label: str) -> float:
    """The POSIX time (seconds) at which the window begins.

    Raises:
        WindowError: the label names no window.
    """
    return midnight(_parsed(label)[1])


def end(label: str) -> float:
    """The POSIX time (seconds) at which the window has ended: the next one's start.

    Raises:
        WindowError: the label names no window.
    """
    return midnight(_parsed(label)[2])


def first_day(label: str) -> date:
    """The first day of the window.

    Raises:
        WindowError: the label names no window.
    """
    return _parsed(label)[1]


def last_day(label: str) -> date:
    """The last day of the window.

    Raises:
        WindowError: the label names no window.
    """
    return _parsed(label)[2] - timedelta(days=1)


def shifted(label: str, count: int) -> str:
    """The label of the window so many later, or earlier if it is negative.

    Raises:
        WindowError: the label names no window.
    """
    kind, first, _ = _parsed(label)
    if kind == "month":
        year, month = divmod(12 * first.year + first.month - 1 + count, 12)
        return window_of(kind, date(year, month + 1, 1))
    return window_of(kind, first + timedelta(days=count if kind == "day" else 7 * count))


def number(label: str) -> int:
    """The place of a window among those of its kind: the next window's is higher by one.

    Raises:
        WindowError: the label names no window.
    """
    kind, first, _ = _parsed(label)
    if kind == "month":
        return 12 * (first.year - 1970) + first.month - 1
    days = first.toordinal() - date(1970, 1, 1).toordinal()
    return days if kind == "day" else (days + 3) // 7


@lru_cache(maxsize=1024)
def _parsed(label: str) -> tuple[Kind, date, date]:
    """The kind of a window, its first day and the first day after it."""
    match = _LABEL.fullmatch(label)
    if match is None:
        raise WindowError(label)
    year = int(match["year"])
    try:
        if match["week"]:
            first = date.fromisocalendar(year, int(match["week"]), 1)
            return "week", first, first + timedelta(days=7)
        month = int(match["month"])
        if match["day"]:
            first = date(year, month, int(cast(str, match["day"])))
            return "day", first, first + timedelta(days=1)
        return "month", date(year, month, 1), date(year + month // 12, month % 12 + 1, 1)
    except (ValueError, OverflowError) as error:
        raise WindowError(label) from error


@lru_cache(maxsize=1024)
def midnight(day: date) -> float:
    """The POSIX time (seconds) at which a day begins."""
    return datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()

"""Calendars: the weeks, months and quarters (UTC) that windows lie in.

A period is named by its label: "2026-W47", "2026-11" or "2026-Q4". A window lies in one period of
each calendar that is coarser than its own kind. ISO weeks lie in no one month or quarter.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from functools import lru_cache

from deniable import WindowError
from deniable.protocol import windows

_QUARTER = re.compile(r"(\d{4})-Q([1-4])", re.ASCII)


@lru_cache(maxsize=4096)
def period_of(calendar: str, window: str) -> str:
    """The label of the period of a calendar (week, month, quarter) in which a window begins.

    Raises:
        WindowError: the label names no window.
    """
    start = windows.start(window)
    if calendar != "quarter":
        return windows.window_at("week" if calendar == "week" else "month", start)
    day = datetime.fromtimestamp(start, UTC)
    return f"{day.year:04}-Q{(day.month + 2) // 3}"


@lru_cache(maxsize=4096)
def bounds(period: str) -> tuple[float, float]:
    """The POSIX times (seconds) at which a period begins and has ended.

    Raises:
        WindowError: the label names no period.
    """
    match = _QUARTER.fullmatch(period)
    if match is None:
        return windows.start(period), windows.end(period)
    year, quarter = int(match[1]), int(match[2])
    try:
        first = date(year, 3 * quarter - 2, 1)
        after = date(year + quarter // 4, 3 * quarter % 12 + 1, 1)
    except ValueError as error:
        raise WindowError(period) from error
    start, end = (datetime(day.year, day.month, 1, tzinfo=UTC) for day in (first, after))
    return start.timestamp(), end.timestamp()

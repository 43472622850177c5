"""What the owner of a device can delete: the reports that wait, or everything but the ledger.

The ledger and the list of reported windows always stay, so that agreeing again reveals no more
than was declared.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from deniable import memo, open_windows, outbox

if TYPE_CHECKING:
    from sqlite3 import Connection


def withdraw(connection: Connection) -> None:
    """Delete the values of open windows and the reports that were not acknowledged.

    The list of sent reports stays, for the owner to see. So do the keys of memos, which are
    independent of any value: with another key, the same value would be revealed a second time.
    """
    open_windows.clear(connection)
    outbox.withdraw(connection)


def erase(connection: Connection, now: float) -> None:
    """Delete the values, all reports, the first windows of metrics that look back, and the keys of
    memos, at a POSIX time in seconds.

    Metrics that have reported with memos never do so again on this device.
    """
    open_windows.clear(connection)
    open_windows.forget_firsts(connection)
    outbox.clear(connection)
    memo.erase(connection)
    day = datetime.fromtimestamp(now, UTC).date()
    connection.execute("UPDATE device SET erased = ?", (day.isoformat(),))


def erased_on(connection: Connection) -> str | None:
    """The UTC day of the last erasure, like 2026-11-22; None if there was none."""
    (day,) = connection.execute("SELECT erased FROM device").fetchone()
    return None if day is None else str(day)

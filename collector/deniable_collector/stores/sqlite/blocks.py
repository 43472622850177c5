"""Sealed blocks in SQLite: a tally has either pages or one block."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from deniable_collector.stores.commits import TallyKey
from deniable_collector.stores.errors import StoreUnavailable
from deniable_collector.stores.sqlite.pages import drop_pages, put_pages

__all__ = [
    "archive_id",
    "blocks_of",
    "find_block",
    "find_open",
    "keep_archive_id",
    "keep_otherwise",
    "put_block",
    "reopen",
    "sealed_windows",
    "sizes_of",
]

_KEY = "metric = ? AND scheme = ? AND window = ?"


def sizes_of(
    connection: sqlite3.Connection, metric: str, scheme: str, windows: Iterable[str]
) -> dict[str, int]:
    """The bytes of what is kept for the sealed ones of these windows."""
    found = connection.execute(
        "SELECT window, length(block) FROM tallies JOIN blocks USING (id) WHERE metric = ? AND "
        "scheme = ? AND window IN (SELECT value FROM json_each(?))",
        (metric, scheme, json.dumps(list(windows))),
    )
    return dict(found.fetchall())


def blocks_of(
    connection: sqlite3.Connection, metric: str, scheme: str, windows: Iterable[str]
) -> list[tuple[TallyKey, bytes]]:
    """What is kept for the sealed ones of these windows."""
    found = connection.execute(
        "SELECT window, block FROM tallies JOIN blocks USING (id) WHERE metric = ? AND scheme = ? "
        "AND window IN (SELECT value FROM json_each(?))",
        (metric, scheme, json.dumps(list(windows))),
    )
    return [(TallyKey(metric, scheme, window), block) for window, block in found]


def sealed_windows(
    connection: sqlite3.Connection, metric: str, scheme: str, windows: Iterable[str]
) -> frozenset[str]:
    """Which of these windows are sealed."""
    found = connection.execute(
        "SELECT window FROM tallies WHERE metric = ? AND scheme = ? AND window IN "
        "(SELECT value FROM json_each(?)) AND id IN (SELECT id FROM blocks)",
        (metric, scheme, json.dumps(list(windows))),
    )
    return frozenset(window for (window,) in found)


def find_block(connection: sqlite3.Connection, tally: TallyKey) -> tuple[int, bytes] | None:
    """The id of a sealed tally and what is kept for it; None if it is not sealed."""
    found: tuple[int, bytes] | None = connection.execute(
        f"SELECT id, block FROM tallies JOIN blocks USING (id) WHERE {_KEY}", tally
    ).fetchone()
    return found


def find_open(connection: sqlite3.Connection, tally: TallyKey) -> tuple[int, int] | None:
    """The id and stamp of a tally that is not sealed."""
    found: tuple[int, int] | None = connection.execute(
        f"SELECT id, stamp FROM tallies WHERE {_KEY} AND id NOT IN (SELECT id FROM blocks)", tally
    ).fetchone()
    return found


def put_block(connection: sqlite3.Connection, identity: int, kept: bytes) -> None:
    """Replace the pages of a tally by its block, within a transaction.

    Raises:
        StoreUnavailable: SQLite does not read back what was written; nothing changes.
    """
    connection.execute("INSERT INTO blocks VALUES (?, ?)", (identity, kept))
    (read,) = connection.execute("SELECT block FROM blocks WHERE id = ?", (identity,)).fetchone()
    if read != kept:
        raise StoreUnavailable("a sealed block did not read back from the SQLite file")
    drop_pages(connection, identity)


def keep_otherwise(connection: sqlite3.Connection, tally: TallyKey, old: bytes, new: bytes) -> bool:
    """Keep a block in another way, within a transaction; False if it is no more kept as `old`."""
    found = find_block(connection, tally)
    if found is None or found[1] != old:
        return False
    connection.execute("UPDATE blocks SET block = ? WHERE id = ?", (new, found[0]))
    return find_block(connection, tally) == (found[0], new)


def archive_id(connection: sqlite3.Connection) -> str | None:
    """The mark of the folder or bucket of blocks."""
    found = connection.execute("SELECT id FROM archive").fetchone()
    return None if found is None else str(found[0])


def keep_archive_id(connection: sqlite3.Connection, identity: str) -> None:
    """Remember a mark unless one is known, within a transaction."""
    connection.execute("INSERT OR IGNORE INTO archive VALUES (1, ?)", (identity,))


def reopen(
    connection: sqlite3.Connection, identity: int, counters: NDArray[np.int64], tally: TallyKey
) -> None:
    """Replace the block of a tally by pages, within a transaction, so that it can grow."""
    connection.execute("DELETE FROM blocks WHERE id = ?", (identity,))
    put_pages(connection, tally, counters)

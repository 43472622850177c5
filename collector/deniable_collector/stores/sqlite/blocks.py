"""Sealed blocks in SQLite: a tally has either pages or one block."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from deniable_collector.stores.commits import TallyKey
from deniable_collector.stores.errors import StoreUnavailable
from deniable_collector.stores.sqlite.pages import drop_pages, put_pages

_KEY = "metric = ? AND scheme = ? AND window = ?"
_ASKED = "metric = ? AND scheme = ? AND window IN (SELECT value FROM json_each(?))"


def blocks_of(
    connection: sqlite3.Connection, metric: str, scheme: str, windows: Iterable[str]
) -> Iterator[tuple[TallyKey, bytes]]:
    """The blocks of the sealed ones of these windows, one after the other: a reader of many years
    holds one of them."""
    for window, block in connection.execute(
        f"SELECT window, block FROM tallies JOIN blocks USING (id) WHERE {_ASKED}",
        (metric, scheme, json.dumps(list(windows))),
    ):
        yield TallyKey(metric, scheme, window), block


def sealed_windows(
    connection: sqlite3.Connection, metric: str, scheme: str, windows: Iterable[str]
) -> frozenset[str]:
    """Which of these windows are sealed."""
    found = connection.execute(
        f"SELECT window FROM tallies WHERE {_ASKED} AND id IN (SELECT id FROM blocks)",
        (metric, scheme, json.dumps(list(windows))),
    )
    return frozenset(window for (window,) in found)


def find_block(connection: sqlite3.Connection, tally: TallyKey) -> tuple[int, bytes] | None:
    """The id of a sealed tally and its block; None if it is not sealed."""
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


def put_block(connection: sqlite3.Connection, identity: int, block: bytes) -> None:
    """Replace the pages of a tally by its block, within a transaction.

    Raises:
        StoreUnavailable: SQLite does not read back what was written; nothing changes.
    """
    connection.execute("INSERT INTO blocks VALUES (?, ?)", (identity, block))
    (read,) = connection.execute("SELECT block FROM blocks WHERE id = ?", (identity,)).fetchone()
    if read != block:
        raise StoreUnavailable("a sealed block did not read back from the SQLite file")
    drop_pages(connection, identity)


def reopen(
    connection: sqlite3.Connection, identity: int, counters: NDArray[np.int64], tally: TallyKey
) -> None:
    """Replace the block of a tally by pages, within a transaction, so that it can grow."""
    connection.execute("DELETE FROM blocks WHERE id = ?", (identity,))
    put_pages(connection, tally, counters)

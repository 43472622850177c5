"""The embedded store: one SQLite file, shared by all threads and processes of a machine.

Write-ahead log with synchronous=FULL: acknowledged batches survive a power cut. A tally is
stored as pages of packed little-endian counters, and a fold is one BEGIN IMMEDIATE transaction
that rewrites the pages that it changes.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from deniable import Scheme
from deniable_collector.stores.base import Store
from deniable_collector.stores.commits import Commit, TallyKey, new_stamp, read_scheme
from deniable_collector.stores.contract import Change, Found, Head
from deniable_collector.stores.errors import StoreUnavailable
from deniable_collector.stores.ids import terms_of
from deniable_collector.stores.sealed import counters_in, reports_in
from deniable_collector.stores.sqlite.file import SqliteFile
from deniable_collector.stores.sqlite.ids import prune, remember
from deniable_collector.stores.sqlite.pages import (
    add_to,
    count_reports,
    drop_pages,
    forget,
    put_pages,
    read_tallies,
)
from deniable_collector.stores.vectors import gather

_KEY = "metric = ? AND scheme = ? AND window = ?"
_ASKED = "metric = ? AND scheme = ? AND window IN (SELECT value FROM json_each(?))"


class SqliteStore(Store):
    """Tallies in one file. Writers create it; readers fail if it does not exist.

    Raises:
        StoreError: the file is no store of this version of deniable.
    """

    def __init__(self, path: str | Path) -> None:
        super().__init__()
        self._file = SqliteFile(path)

    @property
    def shards(self) -> int:
        return 1

    def identity(self) -> str:
        with self._file.transaction("DEFERRED") as connection:
            ((identity,),) = connection.execute("SELECT identity FROM secrets")
        return str(identity)

    def fold(self, commit: Commit, now: float) -> frozenset[str]:
        additions = gather(commit.increments, self._shapes)
        with self._file.transaction("IMMEDIATE", create=True) as connection:
            seen = remember(connection, commit.ids, terms_of(commit), now)
            if not seen:
                prune(connection, len(commit.ids), now)
                for tally, addition in additions.items():
                    _open_again(connection, tally, addition.size)
                    add_to(connection, tally, addition)
                    # One stamp each: a common one would reveal which tallies a commit changed.
                    connection.execute(
                        f"UPDATE tallies SET stamp = ? WHERE {_KEY}", (new_stamp(), *tally)
                    )
        return seen

    def publish(self, schemes: Mapping[str, Iterable[Scheme]]) -> None:
        with self._file.transaction("IMMEDIATE", create=True) as connection:
            connection.executemany(
                "INSERT OR IGNORE INTO schemes VALUES (?, ?, ?)",
                [
                    (metric, scheme.fingerprint, scheme.canonical())
                    for metric, each in schemes.items()
                    for scheme in each
                ],
            )

    def schemes(self) -> dict[str, dict[str, Scheme]]:
        with self._file.transaction("DEFERRED") as connection:
            found = connection.execute("SELECT metric, fingerprint, definition FROM schemes")
            definitions = found.fetchall()
        published: dict[str, dict[str, Scheme]] = {}
        for metric, fingerprint, definition in definitions:
            published.setdefault(metric, {})[fingerprint] = read_scheme(definition)
        return published

    def names(self, shard: int, metric: str, scheme: str) -> list[str]:
        with self._file.transaction("DEFERRED") as connection:
            return _names(connection, metric, scheme)

    def heads(
        self, shard: int, asked: Mapping[tuple[str, str], Sequence[str]]
    ) -> dict[tuple[str, str], dict[str, Head]]:
        with self._file.transaction("DEFERRED") as connection:
            return {
                of: {
                    name: Head(f"{stamp:016x}", sealed == 1, record)
                    for name, stamp, sealed, record in connection.execute(
                        "SELECT window, stamp, sealed, record FROM json_each(?) CROSS JOIN tallies "
                        "WHERE metric = ? AND scheme = ? AND window = value",
                        (json.dumps(names), *of),
                    )
                }
                for of, names in asked.items()
            }

    def read(
        self, shard: int, metric: str, scheme: str, totals: Mapping[str, NDArray[np.int64]]
    ) -> tuple[dict[str, Found], list[str]]:
        with self._file.transaction("DEFERRED") as connection:
            found = read_tallies(connection, metric, scheme, totals)
            return found, _names(connection, metric, scheme)

    def count_reports(
        self, shard: int, metric: str, scheme: str, windows: Sequence[str], rows: int
    ) -> dict[str, NDArray[np.int64]]:
        found = {label: np.zeros(rows, np.int64) for label in windows}
        with self._file.transaction("DEFERRED") as connection:
            count_reports(connection, metric, scheme, found, self.shape(metric, scheme).size)
            for tally, block in _blocks(connection, metric, scheme, found):
                found[tally.window] += reports_in(tally, block)
        return found

    def change(self, shard: int, metric: str, scheme: str, change: Change) -> bool:
        with self._file.transaction("IMMEDIATE") as connection:
            found = connection.execute(
                f"SELECT window, id, stamp FROM tallies WHERE {_ASKED}",
                (metric, scheme, json.dumps(list(change.expected))),
            )
            there = {name: (identity, f"{stamp:016x}") for name, identity, stamp in found}
            if any(there.get(name, (0, ""))[1] != each for name, each in change.expected.items()):
                return False
            for name in change.dropped:
                forget(connection, TallyKey(metric, scheme, name))
            for name, block in change.sealed.items():
                identity = there[name][0]
                drop_pages(connection, identity)
                _put_block(connection, identity, block)
                connection.execute("UPDATE tallies SET sealed = TRUE WHERE id = ?", (identity,))
            for name, (record, block) in change.put.items():
                forget(connection, TallyKey(metric, scheme, name))
                made = connection.execute(
                    "INSERT INTO tallies (metric, scheme, window, stamp, span, sealed, record) "
                    "VALUES (?, ?, ?, ?, 0, TRUE, ?)",
                    (metric, scheme, name, new_stamp(), record),
                )
                _put_block(connection, made.lastrowid or 0, block)
        return True

    def ping(self) -> None:
        self._file.probe()

    def clear_journal(self, older_than: float) -> float | None:
        return self._file.clear_log(older_than)

    def close(self) -> None:
        self._file.close()


def _names(connection: sqlite3.Connection, metric: str, scheme: str) -> list[str]:
    found = connection.execute(
        "SELECT window FROM tallies WHERE metric = ? AND scheme = ?", (metric, scheme)
    )
    return list(chain.from_iterable(found))


def _blocks(
    connection: sqlite3.Connection, metric: str, scheme: str, names: Iterable[str]
) -> Iterator[tuple[TallyKey, bytes]]:
    """The blocks of those of these tallies that have one, one after the other: a reader of many
    years holds one of them."""
    for name, block in connection.execute(
        f"SELECT window, block FROM tallies JOIN blocks USING (id) WHERE {_ASKED}",
        (metric, scheme, json.dumps(list(names))),
    ):
        yield TallyKey(metric, scheme, name), block


def _put_block(connection: sqlite3.Connection, identity: int, block: bytes) -> None:
    """Write a block, within a transaction.

    Raises:
        StoreUnavailable: SQLite does not read back what was written; nothing changes.
    """
    connection.execute("INSERT OR REPLACE INTO blocks VALUES (?, ?)", (identity, block))
    (read,) = connection.execute("SELECT block FROM blocks WHERE id = ?", (identity,)).fetchone()
    if read != block:
        raise StoreUnavailable("a block did not read back from the SQLite file")


def _open_again(connection: sqlite3.Connection, tally: TallyKey, size: int) -> None:
    """Replace the block of a tally, if it is sealed, by pages, so that it can grow."""
    found = connection.execute(
        f"SELECT id, block FROM tallies JOIN blocks USING (id) WHERE {_KEY}", tally
    ).fetchone()
    if found is not None:
        identity, block = found
        counters = counters_in(tally, size, block)
        connection.execute("DELETE FROM blocks WHERE id = ?", (identity,))
        connection.execute("UPDATE tallies SET sealed = FALSE WHERE id = ?", (identity,))
        put_pages(connection, tally, counters)

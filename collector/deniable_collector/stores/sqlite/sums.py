"""Sums over calendars in SQLite: a row for each, with its stamp, its record and its block."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import UTC, datetime

import msgspec
import numpy as np
from numpy.typing import NDArray

from deniable_collector.stores.commits import TallyKey, new_stamp
from deniable_collector.stores.errors import StoreUnavailable
from deniable_collector.stores.sealed.blocks import add_counters
from deniable_collector.stores.sqlite.blocks import find_block
from deniable_collector.stores.sqlite.file import SqliteFile
from deniable_collector.stores.sqlite.pages import add_pages, forget
from deniable_collector.stores.summed.calendars import bounds
from deniable_collector.stores.summed.imported import Imported
from deniable_collector.stores.summed.place import SumChange
from deniable_collector.stores.summed.sums import (
    Cover,
    Holding,
    SumName,
    SumRecord,
    cover,
    relevant,
)
from deniable_collector.stores.vectors import Shape, Shapes

_OF = "FROM sums WHERE metric = ? AND scheme = ?"


def planned(
    connection: sqlite3.Connection, metric: str, scheme: str, asked: Sequence[str]
) -> Cover:
    """What to read for these windows, within a transaction.

    Raises:
        NotKept: some were dropped, and only sums with others have them.
    """
    names = relevant(_names(connection, metric, scheme), asked)
    if not names:
        return Cover(tuple(asked), ())
    return cover(asked, _holding(connection, metric, scheme, names)[0])


def sum_blocks(
    connection: sqlite3.Connection, metric: str, scheme: str, names: Iterable[SumName]
) -> Iterator[tuple[TallyKey, bytes]]:
    """The blocks of these sums, one after the other: a reader of many years holds one of them."""
    for name in names:
        row = connection.execute(
            f"SELECT block {_OF} AND name = ?", (metric, scheme, str(name))
        ).fetchone()
        if row is not None:
            yield TallyKey(metric, scheme, str(name)), row[0]


def drop_ended(
    connection: sqlite3.Connection,
    ended: Iterable[TallyKey],
    before: float,
    metrics: Collection[str] | None,
) -> int:
    """Delete the copies of dropped windows, and the kept sums of these metrics (None: of all) that
    had ended by `before`, within a transaction; and what is remembered of imports of that time.
    Returns how many kept sums were deleted."""
    windows: dict[tuple[str, str], list[str]] = {}
    for tally in ended:
        windows.setdefault(tally[:2], []).append(tally.window)
    gone = 0
    for identity, metric, scheme, text in connection.execute(
        "SELECT id, metric, scheme, name FROM sums"
    ).fetchall():
        name = SumName.parse(text)
        if name.kept:
            old = name.ended(before) and (metrics is None or metric in metrics)
        else:
            old = any(map(name.covers, windows.get((metric, scheme), ())))
        if old:
            connection.execute("DELETE FROM sums WHERE id = ?", (identity,))
            gone += name.kept
    found = connection.execute("SELECT metric, scheme, text FROM imports").fetchall()
    connection.executemany(
        "DELETE FROM imports WHERE metric = ? AND scheme = ? AND text = ?",
        [
            each
            for each in found
            if (metrics is None or each[0] in metrics) and Imported.parse(each[2]).ended(before)
        ],
    )
    return gone


def _names(connection: sqlite3.Connection, metric: str, scheme: str) -> list[str]:
    return [name for (name,) in connection.execute(f"SELECT name {_OF}", (metric, scheme))]


def _holding(
    connection: sqlite3.Connection, metric: str, scheme: str, names: Sequence[SumName]
) -> tuple[Holding, dict[SumName, str]]:
    where, limits = "", list[str]()
    if names:
        # The labels of days and months begin like dates. Of weeks there are no sums.
        ends = [bounds(name.period) for name in names]
        first, last = (
            datetime.fromtimestamp(each, UTC).date().isoformat()
            for each in (min(begin for begin, _ in ends), max(end for _, end in ends))
        )
        where, limits = "AND window >= ? AND window < ?", [first[:7], last]
    windows = connection.execute(
        f"SELECT window, stamp FROM tallies WHERE metric = ? AND scheme = ? {where}",
        (metric, scheme, *limits),
    )
    there = {window: f"{stamp:016x}" for window, stamp in windows}
    sums, stamps = {}, {}
    for name in names:
        row = connection.execute(
            f"SELECT stamp, record {_OF} AND name = ?", (metric, scheme, str(name))
        ).fetchone()
        if row is not None:
            stamps[name] = f"{row[0]:016x}"
            sums[name] = msgspec.json.decode(row[1], type=SumRecord)
    return Holding(there, sums), stamps


class SqliteSums:
    """The sums of one file; see `place.SumPlace`."""

    shards = 1

    def __init__(self, file: SqliteFile, shapes: Shapes) -> None:
        self._file = file
        self._shapes = shapes

    def sum_shape(self, metric: str, scheme: str) -> Shape:
        return self._shapes.of(metric, scheme)

    def sum_names(self, shard: int, metric: str, scheme: str) -> list[str]:
        with self._file.transaction("DEFERRED") as connection:
            return _names(connection, metric, scheme)

    def imports(self, metric: str, scheme: str) -> list[str]:
        with self._file.transaction("DEFERRED") as connection:
            found = connection.execute(
                "SELECT text FROM imports WHERE metric = ? AND scheme = ?", (metric, scheme)
            )
            return [text for (text,) in found]

    def note_imports(self, metric: str, scheme: str, texts: Iterable[str]) -> None:
        with self._file.transaction("IMMEDIATE") as connection:
            connection.executemany(
                "INSERT OR IGNORE INTO imports VALUES (?, ?, ?)",
                [(metric, scheme, text) for text in texts],
            )

    def holding(
        self, shard: int, metric: str, scheme: str, names: Sequence[SumName]
    ) -> tuple[Holding, dict[SumName, str]]:
        with self._file.transaction("DEFERRED") as connection:
            return _holding(connection, metric, scheme, names)

    def window_counters(self, shard: int, tally: TallyKey) -> tuple[str, NDArray[np.int64]] | None:
        counters = np.zeros(self._shapes.of(tally.metric, tally.scheme).size, np.int64)
        with self._file.transaction("DEFERRED") as connection:
            row = connection.execute(
                "SELECT stamp FROM tallies WHERE metric = ? AND scheme = ? AND window = ?", tally
            ).fetchone()
            if row is None:
                return None
            add_pages(connection, tally.metric, tally.scheme, {tally.window: counters})
            sealed = find_block(connection, tally)
        if sealed is not None:
            add_counters(tally, counters, sealed[1])
        return f"{row[0]:016x}", counters

    def sum_block(self, shard: int, tally: TallyKey) -> bytes | None:
        with self._file.transaction("DEFERRED") as connection:
            name = SumName.parse(tally.window)
            found = next(sum_blocks(connection, *tally[:2], [name]), None)
        return found[1] if found is not None else None

    def change(self, shard: int, metric: str, scheme: str, change: SumChange) -> bool:
        with self._file.transaction("IMMEDIATE") as connection:
            stands = self._stands(connection, metric, scheme, change)
            if stands:
                self._make(connection, metric, scheme, change)
        return stands

    def _stands(
        self, connection: sqlite3.Connection, metric: str, scheme: str, change: SumChange
    ) -> bool:
        """Whether everything that a change rests on is as it was."""
        windows = _holding(connection, metric, scheme, ())[0].windows
        stamps = _holding(connection, metric, scheme, list(change.sums))[1]
        return all(
            windows.get(label, "") == stamp for label, stamp in change.windows.items()
        ) and all(stamps.get(name, "") == stamp for name, stamp in change.sums.items())

    def _make(
        self, connection: sqlite3.Connection, metric: str, scheme: str, change: SumChange
    ) -> None:
        """Make a change within a transaction.

        Raises:
            StoreUnavailable: SQLite does not read back what was written; nothing changes.
        """
        for name in change.removed:
            connection.execute(f"DELETE {_OF} AND name = ?", (metric, scheme, str(name)))
        for name, written in change.put.items():
            connection.execute(
                "INSERT OR REPLACE INTO sums (metric, scheme, name, stamp, record, block) "
                "VALUES (?, ?, ?, ?, ?, ?)",
                (metric, scheme, str(name), new_stamp(), *written),
            )
            read = connection.execute(
                f"SELECT record, block {_OF} AND name = ?", (metric, scheme, str(name))
            ).fetchone()
            if read != written:
                raise StoreUnavailable("a sum did not read back from the SQLite file")
        for label in change.dropped:
            forget(connection, TallyKey(metric, scheme, label))

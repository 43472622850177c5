"""The embedded store: one SQLite file, shared by all threads and processes of a machine.

Write-ahead log with synchronous=FULL: acknowledged batches survive a power cut. A fold is one BEGIN
IMMEDIATE transaction, which appends increments to the tallies that it changes.

The block and the increments of an open tally are in pieces of `_PIECE` bytes, zeros behind the
last: one fits into a page of the file, so that SQLite never moves a piece, and free space in the
file keeps no older sum. A commit rewrites the last piece of the increments, and appends others. A
sealed tally and a sum have a block beside them, which never changes.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from deniable import Scheme
from deniable_collector.stores import increments
from deniable_collector.stores.base import Store
from deniable_collector.stores.commits import Addition, Commit, TallyKey, new_stamp, read_scheme
from deniable_collector.stores.contract import Change, Found, Head, Heads, Of, Take
from deniable_collector.stores.errors import StoreError, StoreUnavailable
from deniable_collector.stores.ids import terms_of
from deniable_collector.stores.sealed import DamagedBlock
from deniable_collector.stores.sqlite.file import SqliteFile
from deniable_collector.stores.sqlite.ids import prune, remember
from deniable_collector.stores.vectors import Shape

_AT_ONCE = 0.02
"""Seconds for which tallies are merged before others may write."""


_PIECE = 4_000

_PIECES = 1 << 24
"""How many numbers of pieces are reserved for a tally: half of them for its increments."""


class SqliteStore(Store):
    """Tallies in one file. Writers create it; readers fail if it does not exist.

    Raises:
        StoreError: the file is no store of this version of deniable.
    """

    def __init__(self, path: str | Path) -> None:
        super().__init__()
        self._file = SqliteFile(path)
        self._folded = False

    @property
    def shards(self) -> int:
        return 1

    def identity(self) -> str:
        with self._file.transaction("DEFERRED") as connection:
            ((identity,),) = connection.execute("SELECT identity FROM secrets")
        return str(identity)

    def fold(self, commit: Commit, now: float) -> frozenset[str]:
        self.check(commit)
        self._folded = True
        with self._file.transaction("IMMEDIATE", create=True) as connection:
            seen = remember(connection, commit.ids, terms_of(commit), now)
            if not seen:
                prune(connection, len(commit.ids), now)
                for tally, addition in commit.additions.items():
                    add_to(connection, tally, self.shape(tally[:2]), addition)
        return seen

    def publish(self, schemes: Iterable[tuple[str, Scheme]]) -> None:
        with self._file.transaction("IMMEDIATE", create=True) as connection:
            connection.executemany(
                "INSERT OR IGNORE INTO schemes VALUES (?, ?, ?)",
                [(metric, each.fingerprint, each.canonical()) for metric, each in schemes],
            )

    def schemes(self) -> dict[Of, Scheme]:
        with self._file.transaction("DEFERRED") as connection:
            found = connection.execute("SELECT metric, fingerprint, definition FROM schemes")
            definitions = found.fetchall()
        return {(metric, of): read_scheme(definition) for metric, of, definition in definitions}

    def names(self, shard: int, of: Of) -> list[str]:
        with self._file.transaction("DEFERRED") as connection:
            found = connection.execute(
                "SELECT window FROM tallies WHERE metric = ? AND scheme = ?", of
            )
            return list(chain.from_iterable(found))

    def heads(self, shard: int, asked: Mapping[Of, Sequence[str]]) -> Heads:
        with self._file.transaction("DEFERRED") as connection:
            return {
                of: {
                    name: Head(f"{stamp:016x}", kind == increments.SEALED, record)
                    for _, name, stamp, kind, _, _, record in tallies(connection, of, names)
                }
                for of, names in asked.items()
            }

    def read(self, shard: int, of: Of, names: Iterable[str], take: Take) -> dict[str, Found]:
        found: dict[str, Found] = {}
        with self._file.transaction("DEFERRED") as connection:
            for each in tallies(connection, of, names):
                take(TallyKey(*of, each.window), held(connection, each))
                found[each.window] = Found(f"{each.stamp:016x}", each.block + each.added)
        return found

    def change(self, shard: int, of: Of, change: Change) -> bool:
        with self._file.transaction("IMMEDIATE") as connection:
            there = {each.window: each for each in tallies(connection, of, change.expected)}
            if any(
                (f"{there[name].stamp:016x}" if name in there else "") != stamp
                for name, stamp in change.expected.items()
            ):
                return False
            forget(connection, of, [*change.dropped, *change.put])
            for name, block in change.sealed.items():
                put_block(connection, there[name].identity, block)
            for name, (record, block) in change.put.items():
                made = connection.execute(
                    "INSERT INTO tallies (metric, scheme, window, stamp, kind, record) "
                    "VALUES (?, ?, ?, ?, ?, ?)",
                    (*of, name, new_stamp(), increments.SEALED, record),
                )
                put_block(connection, made.lastrowid or 0, block)
        return True

    def merge(self) -> None:
        with self._file.transaction("DEFERRED") as connection:
            found = connection.execute(
                "SELECT metric, scheme, window FROM tallies WHERE added > 0"
            ).fetchall()
        due = [(tally, self.shape(tally[:2])) for tally in map(TallyKey._make, found)]
        trouble: DamagedBlock | None = None
        while due:
            ends = time.monotonic() + _AT_ONCE
            with self._file.transaction("IMMEDIATE") as connection:
                while due and time.monotonic() < ends:
                    tally, shape = due.pop()
                    try:
                        for each in tallies(connection, tally[:2], [tally.window]):
                            if each.added:
                                merge(connection, each, tally, shape)
                    except DamagedBlock as error:
                        trouble = error
        if trouble is not None:
            raise trouble

    def ping(self) -> None:
        self._file.probe()

    def clear_journal(self, older_than: float) -> float | None:
        return self._file.clear_log(older_than, self.merge)

    def close(self) -> None:
        # Readers leave it to the collector, and what cannot be merged now to the next one.
        with suppress(StoreError):
            if self._folded:
                self.merge()
        self._file.close()


class TallyRecord(NamedTuple):
    """A row of the table of tallies: `block` and `added` are how many bytes they take."""

    identity: int
    window: str
    stamp: int
    kind: int
    block: int
    added: int
    record: bytes = b""


def tallies(connection: sqlite3.Connection, of: Of, names: Iterable[str]) -> Iterator[TallyRecord]:
    """Those of these tallies that exist, in the order given."""
    asked: dict[str, Any] = {"metric": of[0], "scheme": of[1], "names": json.dumps(list(names))}
    found = connection.execute(
        "SELECT tallies.id, window, stamp, kind, block, added, record "
        "FROM json_each(:names) CROSS JOIN tallies "
        "WHERE metric = :metric AND scheme = :scheme AND window = value",
        asked,
    )
    return map(TallyRecord._make, found.fetchall())


def held(connection: sqlite3.Connection, found: TallyRecord) -> increments.Held:
    """What is there of a tally."""
    if found.kind == increments.SEALED:
        return increments.Held(_block(connection, found.identity))
    first = found.identity * _PIECES
    return increments.Held(
        _read(connection, first, found.block),
        _read(connection, first + _PIECES // 2, found.added),
    )


def add_to(
    connection: sqlite3.Connection, tally: TallyKey, shape: Shape, addition: Addition
) -> None:
    """Add to one tally, within a transaction.

    Raises:
        StoreError: a counter would exceed the highest.
    """
    found = next(tallies(connection, tally[:2], [tally.window]), None)
    if found is None:
        made = connection.execute(
            "INSERT INTO tallies (metric, scheme, window, kind) VALUES (?, ?, ?, ?)",
            (*tally, increments.OPEN),
        )
        found = TallyRecord(made.lastrowid or 0, tally.window, 0, increments.OPEN, 0, 0)
    # One stamp each: a common one would reveal which tallies a commit changed.
    found = found._replace(stamp=new_stamp())
    appended = increments.fits(addition) and not increments.is_large(addition)
    if not (appended and increments.takes(found.kind, found.block, found.added)):
        merge(connection, found, tally, shape, addition)
        return
    new = increments.packed(addition)
    first = found.identity * _PIECES + _PIECES // 2
    begun, within = divmod(found.added, _PIECE)
    whole = _read(connection, first + begun, within) + new
    _write(connection, first + begun, whole)
    _update(connection, found._replace(added=found.added + len(new)))


def merge(
    connection: sqlite3.Connection,
    found: TallyRecord,
    tally: TallyKey,
    shape: Shape,
    addition: Addition | None = None,
) -> None:
    """Put a tally with its increments, and with this addition, into an open block.

    Raises:
        StoreError: a counter would exceed the highest.
        DamagedBlock: what is there cannot be read.
    """
    kind, block = increments.merged(tally, shape, held(connection, found), addition)
    if found.kind == increments.SEALED:
        connection.execute("DELETE FROM blocks WHERE id = ?", (found.identity,))
    first = found.identity * _PIECES
    _write(connection, first, block)
    _drop(connection, first - (-len(block) // _PIECE), first + _PIECES)
    _update(connection, found._replace(kind=kind, block=len(block), added=0))


def put_block(connection: sqlite3.Connection, identity: int, block: bytes) -> None:
    """Put a sealed block in place of all that a tally has.

    Raises:
        StoreUnavailable: SQLite does not read back what was written; nothing changes.
    """
    first = identity * _PIECES
    _drop(connection, first, first + _PIECES)
    connection.execute("INSERT INTO blocks VALUES (?, ?)", (identity, block))
    if _block(connection, identity) != block:
        raise StoreUnavailable("a block did not read back from the SQLite file")
    connection.execute(
        "UPDATE tallies SET kind = ?, block = ?, added = 0 WHERE id = ?",
        (increments.SEALED, len(block), identity),
    )


def forget(connection: sqlite3.Connection, of: Of, names: Iterable[str]) -> None:
    """Delete those of these tallies that exist."""
    for found in tallies(connection, of, names):
        _drop(connection, found.identity * _PIECES, (found.identity + 1) * _PIECES)
        for table in ("blocks", "tallies"):
            connection.execute(f"DELETE FROM {table} WHERE id = ?", (found.identity,))


def _update(connection: sqlite3.Connection, found: TallyRecord) -> None:
    connection.execute(
        "UPDATE tallies SET stamp = ?, kind = ?, block = ?, added = ? WHERE id = ?",
        (found.stamp, found.kind, found.block, found.added, found.identity),
    )


def _block(connection: sqlite3.Connection, identity: int) -> bytes:
    (block,) = connection.execute("SELECT block FROM blocks WHERE id = ?", (identity,)).fetchone()
    return bytes(block)


def _read(connection: sqlite3.Connection, first: int, size: int) -> bytes:
    """So many bytes, from this row on."""
    if not size:
        return b""
    found = connection.execute(
        "SELECT bytes FROM pieces WHERE place BETWEEN ? AND ? ORDER BY place",
        (first, first + (size - 1) // _PIECE),
    )
    return b"".join(piece for (piece,) in found)[:size]


def _write(connection: sqlite3.Connection, first: int, whole: bytes) -> None:
    """Write these bytes, from this row on."""
    connection.executemany(
        "INSERT OR REPLACE INTO pieces VALUES (?, ?)",
        [
            (first + at // _PIECE, whole[at : at + _PIECE].ljust(_PIECE, b"\0"))
            for at in range(0, len(whole), _PIECE)
        ],
    )


def _drop(connection: sqlite3.Connection, first: int, after: int) -> None:
    connection.execute("DELETE FROM pieces WHERE place >= ? AND place < ?", (first, after))

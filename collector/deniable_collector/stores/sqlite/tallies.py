"""Tallies in SQLite: the block and the increments of each, in rows of one length.

What is open has pieces of `_PIECE` bytes, zeros behind the last: one fits into a page of the file,
so that SQLite never moves a piece, and free space in the file keeps no older sum. A commit rewrites
the last piece of the increments, and appends others. A sealed tally and a sum have a block beside
them, which never changes.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from deniable_collector.stores.commits import Addition, TallyKey, new_stamp
from deniable_collector.stores.errors import StoreUnavailable
from deniable_collector.stores.increments import (
    OPEN,
    SEALED,
    Held,
    fits,
    is_large,
    merged,
    packed,
    takes,
)
from deniable_collector.stores.vectors import Shape

_PIECE = 4_000

_PIECES = 1 << 24
"""How many numbers of pieces are reserved for a tally: half of them for its increments."""


class TallyRecord(NamedTuple):
    """A row of the table of tallies: `block` and `added` are how many bytes they take."""

    identity: int
    window: str
    stamp: int
    kind: int
    block: int
    added: int
    record: bytes = b""


def tallies(
    connection: sqlite3.Connection, metric: str, scheme: str, names: Iterable[str]
) -> Iterator[TallyRecord]:
    """Those of these tallies that exist, in the order given."""
    asked: dict[str, Any] = {"metric": metric, "scheme": scheme, "names": json.dumps(list(names))}
    found = connection.execute(
        "SELECT tallies.id, window, stamp, kind, block, added, record "
        "FROM json_each(:names) CROSS JOIN tallies "
        "WHERE metric = :metric AND scheme = :scheme AND window = value",
        asked,
    )
    return map(TallyRecord._make, found.fetchall())


def held(connection: sqlite3.Connection, found: TallyRecord) -> Held:
    """What is there of a tally."""
    if found.kind == SEALED:
        return Held(_block(connection, found.identity))
    first = found.identity * _PIECES
    return Held(
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
    found = next(tallies(connection, *tally[:2], [tally.window]), None)
    if found is None:
        made = connection.execute(
            "INSERT INTO tallies (metric, scheme, window, kind) VALUES (?, ?, ?, ?)",
            (*tally, OPEN),
        )
        found = TallyRecord(made.lastrowid or 0, tally.window, 0, OPEN, 0, 0)
    # One stamp each: a common one would reveal which tallies a commit changed.
    found = found._replace(stamp=new_stamp())
    appended = fits(addition) and not is_large(addition)
    if not (appended and takes(found.kind, found.block, found.added)):
        merge(connection, found, tally, shape, addition)
        return
    new = packed(addition)
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
    kind, block = merged(tally, shape, held(connection, found), addition)
    if found.kind == SEALED:
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
        (SEALED, len(block), identity),
    )


def forget(connection: sqlite3.Connection, metric: str, scheme: str, names: Iterable[str]) -> None:
    """Delete those of these tallies that exist."""
    for found in tallies(connection, metric, scheme, names):
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

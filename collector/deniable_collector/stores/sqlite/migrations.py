"""The tables of an SQLite file, and the migrations from earlier versions."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from itertools import groupby, islice

import numpy as np

from deniable import Scheme
from deniable_collector.stores import ids
from deniable_collector.stores.commits import Increment, TallyKey, TallyRowKey
from deniable_collector.stores.definitions import read_scheme, unpublished
from deniable_collector.stores.sqlite.ids import remember
from deniable_collector.stores.sqlite.pages import add_listing_all
from deniable_collector.stores.vectors import Shapes, gather

__all__ = ["MIGRATIONS", "OVERWRITES"]

_SCHEMA_1 = """
    CREATE TABLE ids (id BLOB PRIMARY KEY, expires REAL NOT NULL) WITHOUT ROWID;
    CREATE INDEX ids_by_expiry ON ids (expires);
    CREATE TABLE schemes (
        metric TEXT, fingerprint TEXT, definition BLOB NOT NULL,
        PRIMARY KEY (metric, fingerprint)
    ) WITHOUT ROWID;
    CREATE TABLE tally_rows (
        id INTEGER PRIMARY KEY,
        metric TEXT NOT NULL, scheme TEXT NOT NULL, window TEXT NOT NULL, row INTEGER NOT NULL,
        reports INTEGER NOT NULL,
        UNIQUE (metric, scheme, window, row)
    );
    CREATE TABLE chunks (
        tally_row INTEGER NOT NULL, chunk INTEGER NOT NULL, cells BLOB NOT NULL,
        PRIMARY KEY (tally_row, chunk)
    );
"""

_SCHEMA_2 = f"""
    ALTER TABLE ids RENAME TO old_ids;
    CREATE TABLE secrets (seed BLOB NOT NULL);
    INSERT INTO secrets VALUES (randomblob({ids.SEED_BYTES}));
    CREATE TABLE ids (place INTEGER PRIMARY KEY, tags BLOB NOT NULL);
    CREATE TABLE generations (generation INTEGER PRIMARY KEY, ids INTEGER NOT NULL);
    CREATE TABLE tallies (
        id INTEGER PRIMARY KEY,
        metric TEXT NOT NULL, scheme TEXT NOT NULL, window TEXT NOT NULL,
        UNIQUE (metric, scheme, window)
    );
    CREATE TABLE pages (place INTEGER PRIMARY KEY, counters BLOB NOT NULL);
"""

_LIFETIME_1 = 7 * 86_400.0 + 3_600.0
"""Seconds after its arrival at which an id expired in version 1."""

_CHUNK_1 = 256
"""Cells in a chunk of version 1, of 8 bytes each."""

_AT_ONCE = 10_000


def _run(connection: sqlite3.Connection, script: str) -> None:
    # Not with executescript, which commits first.
    for statement in script.split(";"):
        connection.execute(statement)


def _to_1(connection: sqlite3.Connection) -> None:
    _run(connection, _SCHEMA_1)


def _to_2(connection: sqlite3.Connection) -> None:
    """Tallies in pages, all rows of one side by side; ids as packed hashes."""
    _run(connection, _SCHEMA_2)
    old = connection.execute("SELECT id, expires - ? FROM old_ids ORDER BY 2", (_LIFETIME_1,))
    for _, same in groupby(old, key=lambda each: ids.generation_at(each[1])):
        while some := list(islice(same, _AT_ONCE)):
            remember(connection, [raw.hex() for raw, _ in some], [0] * len(some), some[0][1])
    definitions = {
        (metric, fingerprint): definition
        for metric, fingerprint, definition in connection.execute("SELECT * FROM schemes")
    }

    def scheme(metric: str, fingerprint: str) -> Scheme:
        if (metric, fingerprint) not in definitions:
            raise unpublished(metric, fingerprint)
        return read_scheme(definitions[metric, fingerprint])

    shapes = Shapes(scheme)
    rows = connection.execute("SELECT metric, scheme, window, row, id, reports FROM tally_rows")
    for metric, fingerprint, window, row, identity, reports in rows.fetchall():
        tally = TallyKey(metric, fingerprint, window)
        width = shapes.of(metric, fingerprint).widths[row]
        cells = np.zeros(width, np.int64)
        for chunk, packed in connection.execute(
            "SELECT chunk, cells FROM chunks WHERE tally_row = ?", (identity,)
        ):
            counters = np.frombuffer(packed, "<i8")
            cells[chunk * _CHUNK_1 : chunk * _CHUNK_1 + len(counters)] = counters
        increment = Increment(width, reports, range(width), cells)
        ((_, addition),) = gather({TallyRowKey(tally, row): increment}, shapes).items()
        connection.execute(
            "INSERT OR IGNORE INTO tallies (metric, scheme, window) VALUES (?, ?, ?)", tally
        )
        (found,) = connection.execute(
            "SELECT id FROM tallies WHERE metric = ? AND scheme = ? AND window = ?", tally
        ).fetchone()
        add_listing_all(connection, tally, found, addition)
    _run(connection, "DROP TABLE old_ids; DROP TABLE tally_rows; DROP TABLE chunks")


def _to_3(connection: sqlite3.Connection) -> None:
    """A stamp for each tally, which changes with it."""
    _run(connection, "ALTER TABLE tallies ADD COLUMN stamp INTEGER NOT NULL DEFAULT 0")


def _to_4(connection: sqlite3.Connection) -> None:
    """The same tables. From this version on, deleted content is overwritten; `SqliteFile` has
    rewritten the file, which still contained earlier deleted content."""


def _to_5(connection: sqlite3.Connection) -> None:
    """Sealed blocks: a tally whose id is here has no pages."""
    _run(connection, "CREATE TABLE blocks (id INTEGER PRIMARY KEY, block BLOB NOT NULL)")


def _to_6(connection: sqlite3.Connection) -> None:
    """The mark of the folder or bucket of blocks, in one row at most."""
    _run(connection, "CREATE TABLE archive (one INTEGER PRIMARY KEY CHECK (one = 1), id TEXT)")


def _to_7(connection: sqlite3.Connection) -> None:
    """Sums over calendars."""
    _run(
        connection,
        "CREATE TABLE sums (id INTEGER PRIMARY KEY, metric TEXT NOT NULL, scheme TEXT NOT NULL, "
        "name TEXT NOT NULL, stamp INTEGER NOT NULL, record BLOB NOT NULL, block BLOB NOT NULL, "
        "UNIQUE (metric, scheme, name))",
    )


def _to_8(connection: sqlite3.Connection) -> None:
    """In which form windows were imported."""
    _run(
        connection,
        "CREATE TABLE imports (metric TEXT NOT NULL, scheme TEXT NOT NULL, text TEXT NOT NULL, "
        "PRIMARY KEY (metric, scheme, text)) WITHOUT ROWID",
    )


def _to_9(connection: sqlite3.Connection) -> None:
    """Pages of more counters, which list those other than 0; those that exist list all."""
    _run(connection, "ALTER TABLE tallies ADD COLUMN span INTEGER NOT NULL DEFAULT 1000")


OVERWRITES = 4
"""From this version on, a file contains nothing that was deleted."""

MIGRATIONS: tuple[Callable[[sqlite3.Connection], None], ...] = (
    *(_to_1, _to_2, _to_3, _to_4, _to_5, _to_6, _to_7, _to_8, _to_9),
)
"""Each entry takes a file from the version of its index to the next (PRAGMA user_version)."""

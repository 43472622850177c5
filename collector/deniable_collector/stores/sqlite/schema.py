"""The tables of an SQLite file."""

from __future__ import annotations

import sqlite3

from deniable_collector.stores import ids

MARKS = (int.from_bytes(b"deny"), 1)
"""What `PRAGMA application_id` and `PRAGMA user_version` say of a file with these tables."""

_TABLES = f"""
    CREATE TABLE secrets (seed BLOB NOT NULL, identity TEXT NOT NULL);
    INSERT INTO secrets VALUES (randomblob({ids.SEED_BYTES}), lower(hex(randomblob(8))));
    CREATE TABLE ids (place INTEGER PRIMARY KEY, tags BLOB NOT NULL);
    CREATE TABLE generations (generation INTEGER PRIMARY KEY, ids INTEGER NOT NULL);
    CREATE TABLE schemes (
        metric TEXT, fingerprint TEXT, definition BLOB NOT NULL,
        PRIMARY KEY (metric, fingerprint)
    ) WITHOUT ROWID;
    CREATE TABLE tallies (
        id INTEGER PRIMARY KEY,
        metric TEXT NOT NULL, scheme TEXT NOT NULL, window TEXT NOT NULL,
        stamp INTEGER NOT NULL DEFAULT 0, span INTEGER NOT NULL,
        sealed INTEGER NOT NULL DEFAULT FALSE, record BLOB NOT NULL DEFAULT x'',
        UNIQUE (metric, scheme, window)
    );
    CREATE TABLE pages (place INTEGER PRIMARY KEY, counters BLOB NOT NULL);
    CREATE TABLE blocks (id INTEGER PRIMARY KEY, block BLOB NOT NULL);
    PRAGMA application_id = {MARKS[0]};
    PRAGMA user_version = {MARKS[1]}
"""
"""A tally has pages or, if it is sealed or a sum, a block; a sum has a record as well. `pages.py`
says what its span is."""


def create(connection: sqlite3.Connection) -> None:
    """Create the tables, within a transaction."""
    # Not with executescript, which commits first.
    for statement in _TABLES.split(";"):
        connection.execute(statement)

"""A checksum over every row of the state, so that a flipped bit on the disk is detected.

A damaged row is more than a loss. A window whose name has changed by a bit would be reported
a second time, a batch whose id has changed would be counted a second time, and with a changed
count the ledger would allow more than was declared. SQLite itself only detects damage to its
structure.

The checksum is the exclusive or of a 64-bit BLAKE2b of every row. Triggers update it with each
change of a row, and it is compared with all rows whenever the file is opened. It protects
against accidents, not against an owner of the device who edits the file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deniable.digests import blake2b
from deniable.errors import StateError

if TYPE_CHECKING:
    from sqlite3 import Connection

__all__ = ["attach", "create", "schema", "verify"]

_TABLE = "integrity"
_FUNCTION = "checksum_after"


def attach(connection: Connection) -> None:
    """Define what the triggers need; without it a connection cannot change rows."""
    connection.create_function(_FUNCTION, -1, _moved, deterministic=True)
    # Some builds of SQLite distrust triggers that call functions of the program.
    connection.execute("PRAGMA trusted_schema = ON")
    # The row that an INSERT OR REPLACE removes has to be taken out as well.
    connection.execute("PRAGMA recursive_triggers = ON")


def create(connection: Connection) -> None:
    """Start the checksum over all tables that exist; they must still be empty."""
    tables = _tables(connection)
    connection.execute(f"CREATE TABLE {_TABLE} (checksum INTEGER NOT NULL)")
    connection.execute(f"INSERT INTO {_TABLE} VALUES (0)")
    for table, columns in tables.items():
        old = f"'{table}', {', '.join(f'OLD.{column}' for column in columns)}"
        new = f"'{table}', {', '.join(f'NEW.{column}' for column in columns)}"
        for event, moved in (
            ("INSERT", f"{_FUNCTION}(checksum, {new})"),
            ("DELETE", f"{_FUNCTION}(checksum, {old})"),
            ("UPDATE", f"{_FUNCTION}({_FUNCTION}(checksum, {old}), {new})"),
        ):
            connection.execute(
                f"CREATE TRIGGER {table}_{event.lower()} AFTER {event} ON {table} "
                f"BEGIN UPDATE {_TABLE} SET checksum = {moved}; END"
            )


def schema(connection: Connection) -> str:
    """A digest of the definitions of all tables, indexes and triggers, to compare two files by."""
    query = "SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_master ORDER BY type, name"
    rows = connection.execute(query).fetchall()
    return blake2b(ascii(rows).encode("ascii"), digest_size=16).hexdigest()


def verify(connection: Connection, expected: str) -> None:
    """Compare definitions with those expected, and all rows with the checksum, inside a
    transaction of the caller.

    Raises:
        StateError: they disagree.
    """
    # Text that is no longer UTF-8 is damage like any other; it must not raise another error.
    connection.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
    try:
        checksum, intact = 0, schema(connection) == expected
        tables = _tables(connection) if intact else {}
        for table, columns in tables.items():
            for row in connection.execute(f"SELECT {', '.join(columns)} FROM {table}"):
                checksum = _moved(checksum, table, *row)
    finally:
        connection.text_factory = str
    if not intact or connection.execute(f"SELECT * FROM {_TABLE}").fetchall() != [(checksum,)]:
        raise StateError(
            "the state file is damaged, so what was reported and spent is unknown: nothing is "
            "reported from this device until its state directory is removed",
            damaged=True,
        )


def _moved(checksum: int, *row: object) -> int:
    """The checksum after adding or removing a row; both are the same operation."""
    # Not repr: which letters it escapes depends on the Python that runs.
    digest = blake2b(ascii(row).encode("ascii"), digest_size=8).digest()
    return checksum ^ int.from_bytes(digest, "little", signed=True)


def _tables(connection: Connection) -> dict[str, list[str]]:
    """The columns of every table that the checksum covers."""
    names = connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name != ? ORDER BY name", (_TABLE,)
    ).fetchall()
    return {
        name: [row[1] for row in connection.execute(f"PRAGMA table_info({name})")]
        for (name,) in names
    }

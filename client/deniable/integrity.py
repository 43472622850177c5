"""A checksum over every row of the state: a bit that flips on the disk must not go unseen.

A damaged row is not only lost. A window whose name has changed by a bit would be answered
a second time, a batch whose id has changed would be counted a second time, and a ledger
whose count has changed would say more than was declared. SQLite itself notices damage to
its structure alone.

The checksum is the exclusive or of a 64-bit BLAKE2b of every row. Triggers move it along
with each change of a row, and it is compared with all rows whenever the file is opened.
This is against accidents, not against an owner of the device who edits the file.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from deniable.errors import StateError

if TYPE_CHECKING:
    from sqlite3 import Connection

__all__ = ["attach", "create", "schema", "verify"]

_TABLE = "integrity"
_FUNCTION = "checksum_after"


def attach(connection: Connection) -> None:
    """Let a connection change rows: without this it cannot, since the triggers need it."""
    connection.create_function(_FUNCTION, -1, _moved, deterministic=True)
    # Some builds of SQLite distrust triggers that call functions of the program.
    connection.execute("PRAGMA trusted_schema = ON")
    # The row that an INSERT OR REPLACE removes has to be taken out as well.
    connection.execute("PRAGMA recursive_triggers = ON")


def create(connection: Connection) -> None:
    """Begin the checksum over all tables that there are; they must still be empty."""
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


def schema(connection: Connection) -> list[tuple[str, ...]]:
    """The definitions of all tables, indexes and triggers, to compare two files by."""
    query = "SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_master ORDER BY type, name"
    return connection.execute(query).fetchall()


def verify(connection: Connection, expected: list[tuple[str, ...]]) -> None:
    """Compare definitions with those expected, and all rows with the checksum, inside a
    transaction of the caller.

    Raises:
        StateError: they disagree.
    """
    # Text that is no UTF-8 any more is damage like any other, and no error of its own.
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
            "the state file is damaged, so what was answered and spent is unknown: nothing is "
            "reported from this device until its state directory is removed",
            damaged=True,
        )


def _moved(checksum: int, *row: object) -> int:
    """The checksum with a row put in, or taken out: both are the same."""
    # Not repr: which letters it escapes depends on the Python that runs.
    digest = hashlib.blake2b(ascii(row).encode("ascii"), digest_size=8).digest()
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

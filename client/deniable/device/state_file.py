"""The file of the device's state: how it is created, opened and checked.

Each module declares its own tables. A file that is damaged, foreign, another app's or newer than
this code is refused.
"""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing, suppress

from deniable.device import ledger, open_windows, outbox
from deniable.protocol.errors import StateError

PATIENCE = 2.0
"""Seconds that a transaction waits for another process or thread that uses the state's file."""

MEMORY = ":memory:"
"""As a state directory: keep the state in memory, for devices that live for one process."""

_APPLICATION = 0x646E6279  # "dnby"
_VERSION = 1

_TABLES = "CREATE TABLE device (app TEXT, erased TEXT)"
"""One row: the app, if known, and the UTC day on which the owner last erased reports."""

_PASSING = (
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_MISUSE,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_PROTOCOL,
    sqlite3.SQLITE_RANGE,
    sqlite3.SQLITE_READONLY,
)
"""SQLite results that do not mean that the file is damaged; every other one does."""

_SETTINGS = (
    # The journal is emptied in place: no directory entry has to reach the disk for a
    # commit to be durable, and no copy of an old page stays behind as in WAL mode.
    "PRAGMA journal_mode = TRUNCATE",
    "PRAGMA synchronous = FULL",
    # Deleted values are overwritten: after its window a true value is not on disk.
    "PRAGMA secure_delete = ON",
    "PRAGMA temp_store = MEMORY",
)


def open_memory() -> sqlite3.Connection:
    """A new state in memory."""
    connection = _connect(MEMORY)
    _create_tables(connection, None)
    return connection


def open_file(path: str, app: str | None, deadline: float) -> sqlite3.Connection:
    """The state in a file, which is created if it is missing, and checked.

    Raises:
        StateError: the file cannot be trusted.
        sqlite3.Error, OSError: the disk does not work, or another process has a lock.
    """
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        _create_file(path, app)
    connection = _connect(f"{_address(path)}?mode=rw")
    try:
        for setting in _SETTINGS:
            wait_until(connection, deadline)
            connection.execute(setting)
        wait_until(connection, deadline)
        _check(connection, app)
    except BaseException:
        connection.close()
        raise
    return connection


def _connect(database: str) -> sqlite3.Connection:
    return sqlite3.connect(
        database,
        uri=database != MEMORY,
        timeout=PATIENCE,
        isolation_level=None,
        check_same_thread=False,  # State's lock lets one thread in at a time
    )


def wait_until(connection: sqlite3.Connection, deadline: float) -> None:
    """Let each of the next statements wait for other processes until the deadline at most."""
    left = max(0, int(1000 * (deadline - time.monotonic())))
    connection.execute(f"PRAGMA busy_timeout = {left}")


def may_be_there(path: str) -> bool:
    """Whether there is such a file, or none can be seen because the directory may not be read.
    `os.path.exists` would take such a directory for an empty one."""
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def _address(path: str) -> str:
    """An absolute path as the address that SQLite opens (https://www.sqlite.org/uri.html)."""
    plain = path.replace("\\", "/") if os.name == "nt" else path
    letters = (chr(each) for each in os.fsencode(plain))
    escaped = "".join(
        each if each.isascii() and (each.isalnum() or each in "/._-:") else f"%{ord(each):02X}"
        for each in letters
    )
    return f"file://{escaped}" if escaped.startswith("/") else f"file:///{escaped}"


def _create_file(path: str, app: str | None) -> None:
    """Create a complete file under another name, and then link it to the final name.

    So a crash never leaves a partial file, an empty file is always damage, and if two
    processes start at once, one of them wins.
    """
    folder = os.path.dirname(path)
    os.makedirs(folder, exist_ok=True, mode=0o700)
    draft = f"{path}.new-{os.getpid()}"
    with suppress(FileNotFoundError):
        os.unlink(draft)
    os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    try:
        with closing(_connect(_address(draft))) as connection:
            connection.execute("PRAGMA journal_mode = TRUNCATE")
            connection.execute("BEGIN IMMEDIATE")
            _create_tables(connection, app)
            connection.execute("COMMIT")
        with suppress(FileExistsError):
            os.link(draft, path)
    finally:
        for each in (draft, f"{draft}-journal"):
            with suppress(FileNotFoundError):
                os.unlink(each)
    if os.name == "posix":
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


def _create_tables(connection: sqlite3.Connection, app: str | None) -> None:
    for tables in (_TABLES, ledger.TABLES, open_windows.TABLES, outbox.TABLES):
        # One by one: `executescript` would end the transaction.
        for statement in tables.split(";"):
            connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {_APPLICATION}")
    connection.execute(f"PRAGMA user_version = {_VERSION}")
    begin(connection, app)


def begin(connection: sqlite3.Connection, app: str | None) -> None:
    """Put the first rows into empty tables."""
    connection.execute("INSERT INTO device VALUES (?, NULL)", (app,))
    connection.execute("INSERT INTO pauses VALUES (0, 0, 0)")


def _check(connection: sqlite3.Connection, app: str | None) -> None:
    """Refuse a file that is foreign, another app's, newer or damaged."""
    connection.execute("BEGIN")  # so that only the first of these reads waits for others
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    if application != _APPLICATION:
        raise StateError("the state file is not one of deniable's: name another state_dir")
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version != _VERSION:
        raise StateError(
            f"the state file has version {version}, and this deniable reads {_VERSION}: upgrade it"
        )
    # Not quick_check, which misses damage in an index; a row might then not be found.
    if connection.execute("PRAGMA integrity_check(1)").fetchall() != [("ok",)]:
        raise StateError("the state file is damaged: remove it to start again", damaged=True)
    (owner,) = connection.execute("SELECT app FROM device").fetchone()
    if app is not None and owner is not None and app != owner:
        raise StateError(
            f"the state file belongs to the app {owner!r}, and the registry is of {app!r}: "
            "give each app a state_dir of its own"
        )
    connection.execute("COMMIT")


def distrust(error: BaseException) -> StateError | None:
    """What an error says against the file; None if the trouble may pass."""
    if isinstance(error, StateError):
        return StateError(str(error), damaged=error.damaged)
    # Python's own errors, about a misuse of the module, carry no code.
    code = getattr(error, "sqlite_errorcode", None)
    if isinstance(error, UnicodeDecodeError):
        told = ""  # even SQLite's message about the damage is not text
    elif code is not None and code & 0xFF not in _PASSING:
        told = f" ({error})"
    else:
        return None
    return StateError(f"the state file is damaged{told}: remove it to start again", damaged=True)

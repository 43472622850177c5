"""The device's state: one SQLite file, safe against crashes, forks and a second process.

Each module declares its own tables. This one opens the file, provides transactions, and fails
closed: a file that is damaged, foreign, another app's or newer than this code is never used,
repaired or replaced. A new device starts only if the file is missing.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from deniable import integrity, ledger, memo, open_windows, outbox
from deniable.errors import StateError
from deniable.locks import PATIENCE, Lock

__all__ = [
    "FILE_NAME",
    "MEMORY",
    "PATIENCE",
    "State",
    "begin",
    "default_directory",
    "states_root",
]

FILE_NAME = "state.sqlite3"

_OFF = "switched-off"
"""The file beside it that switches reporting off. It is a file, so that whoever manages the
device can create it without our program."""

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
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_PROTOCOL,
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


def states_root() -> Path:
    """Where state directories are by default: the XDG base directory for state.

    Raises:
        StateError: the user has no home directory.
    """
    base = os.environ.get("XDG_STATE_HOME", "")
    if not base.startswith("/"):  # the XDG specification: relative paths are ignored
        try:
            base = str(Path.home() / ".local" / "state")
        except RuntimeError:
            raise StateError(
                "no home directory to keep the state in: give the client a state_dir"
            ) from None
    return Path(base) / "deniable"


def default_directory(app: str) -> Path:
    """The state directory of an app, for one user of the device.

    It depends only on the app's name. So the ledger stays the same if the collector moves to
    another address, and two apps never share one.

    Raises:
        StateError: the user has no home directory.
    """
    return states_root() / app


class State:
    """The state in `directory`, or in memory if that is None. Nothing is opened yet.

    With `app`, a state of another app is refused, because each app has its own ledger.
    """

    def __init__(self, directory: Path | None, app: str | None = None) -> None:
        # Absolute from the start: the app may change its working directory.
        self.path = None if directory is None else directory.absolute() / FILE_NAME
        self.app = app
        self.failure: str | None = None
        """Why the state cannot be trusted; None while it can."""
        self._damaged = False
        self._connection: sqlite3.Connection | None = None
        self._lock = Lock()

    @contextmanager
    def transaction(self, patience: float = PATIENCE) -> Iterator[sqlite3.Connection]:
        """An atomic transaction; only one runs at a time in all threads and processes.

        Args:
            patience: seconds to wait for others that use the file.

        Raises:
            StateError: the file cannot be trusted; every later transaction raises it too.
            sqlite3.Error, OSError: the disk does not work, or another process has a lock.
        """
        deadline = time.monotonic() + patience
        with self._lock.held(patience):
            if self.failure is not None:
                raise StateError(self.failure, damaged=self._damaged)
            try:
                try:
                    connection = self._connection or self._open(deadline)
                except UnicodeDecodeError:  # even SQLite's message about the damage is not text
                    message = "the state file is damaged: remove it to start again"
                    raise StateError(message, damaged=True) from None
                _wait_until(connection, deadline)
                connection.execute("BEGIN IMMEDIATE")
                yield connection
                connection.execute("COMMIT")
            except BaseException as error:
                self._abandon()
                if isinstance(error, sqlite3.DatabaseError) and _is_damage(error):
                    self.failure = f"the state file is damaged ({error}): remove it to start again"
                    self._damaged = True
                    raise StateError(self.failure, damaged=True) from None
                if isinstance(error, StateError):
                    self.failure, self._damaged = str(error), error.damaged
                raise

    def blank(self) -> bool:
        """Overwrite a damaged file, for an owner who deletes everything.

        An empty file is left. It still counts as damaged, so that the device does not start
        again with an unspent ledger. Returns False, and does nothing, if the file is whole,
        another app's or a newer version's.
        """
        with self._lock.held(PATIENCE):
            if not self._damaged or self.path is None:
                return False
            for path in (self.path, self.path.with_name(f"{FILE_NAME}-journal")):
                with suppress(FileNotFoundError), path.open("r+b") as file:
                    file.write(bytes(os.fstat(file.fileno()).st_size))
                    file.flush()
                    os.fsync(file.fileno())
                    file.truncate(0)
            return True

    @property
    def switched_off(self) -> bool:
        """Whether the owner of the device has switched reporting off, for every app that keeps
        its state here, until they switch it on again."""
        if self.path is None:
            return False
        try:
            return self._off.exists()
        except OSError:
            return True  # if it cannot be read, nothing is reported

    def switch(self, *, on: bool) -> None:
        """Switch reporting on or off, permanently.

        Raises:
            OSError: the disk does not work.
        """
        if on:
            self._off.unlink(missing_ok=True)
        else:
            self._off.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._off.touch(mode=0o600)

    @property
    def _off(self) -> Path:
        if self.path is None:
            raise StateError("a state in memory ends with its process: there is nothing to switch")
        return self.path.with_name(_OFF)

    def close(self) -> None:
        """Release the file, unless it is in use. The next transaction opens it again."""
        with suppress(BlockingIOError), self._lock.held(PATIENCE):
            self._disconnect()

    def before_fork(self) -> None:
        """Wait for the running transaction and close the file: a connection must not be forked."""
        self._lock.acquire()
        if self.path is not None:
            self._disconnect()

    def after_fork(self, *, child: bool) -> None:
        """Continue, in both processes. Only the parent can use a state in memory."""
        if child and self.path is None:
            # With a copied ledger, two processes would report the same window.
            self.failure = "a state in memory cannot be used after a fork"
        self._lock.release()

    def _open(self, deadline: float) -> sqlite3.Connection:
        if self.path is None:
            connection = _connect(MEMORY)
            _empty().backup(connection)
        else:
            if not self.path.exists():
                _create_file(self.path, self.app)
            connection = _connect(f"{self.path.as_uri()}?mode=rw")
        self._connection = connection
        if self.path is not None:
            _check_header(self.path)
            integrity.attach(connection)
            for setting in _SETTINGS:
                _wait_until(connection, deadline)
                connection.execute(setting)
            _wait_until(connection, deadline)
            _check(connection, self.app)
        return connection

    def _abandon(self) -> None:
        if self._connection is None:
            return
        with suppress(sqlite3.Error):
            self._connection.rollback()
        if self.path is not None:
            self._disconnect()

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _connect(database: str) -> sqlite3.Connection:
    return sqlite3.connect(
        database,
        uri=database != MEMORY,
        timeout=PATIENCE,
        isolation_level=None,
        check_same_thread=False,  # State's lock lets one thread in at a time
    )


def _wait_until(connection: sqlite3.Connection, deadline: float) -> None:
    """Let each of the next statements wait for other processes until the deadline at most."""
    left = max(0, int(1000 * (deadline - time.monotonic())))
    connection.execute(f"PRAGMA busy_timeout = {left}")


def _create_file(path: Path, app: str | None) -> None:
    """Create a complete file under another name, and then link it to the final name.

    So a crash never leaves a partial file, an empty file is always damage, and if two
    processes start at once, one of them wins.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = path.with_name(f"{path.name}.new-{os.getpid()}")
    draft.unlink(missing_ok=True)
    os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    try:
        connection = _connect(draft.absolute().as_uri())
        try:
            connection.execute("PRAGMA journal_mode = TRUNCATE")
            integrity.attach(connection)
            connection.execute("BEGIN IMMEDIATE")
            _create_tables(connection)
            integrity.create(connection)
            begin(connection, app)
            connection.execute("COMMIT")
        finally:
            connection.close()
        with suppress(FileExistsError):
            os.link(draft, path)
    finally:
        draft.unlink(missing_ok=True)
        draft.with_name(f"{draft.name}-journal").unlink(missing_ok=True)
    if os.name == "posix":
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


@cache
def _empty() -> sqlite3.Connection:
    """An empty state in memory; copying it is ten times as fast as creating it."""
    connection = _connect(MEMORY)
    _create_tables(connection)
    begin(connection, None)
    return connection


def _create_tables(connection: sqlite3.Connection) -> None:
    for tables in (_TABLES, ledger.TABLES, memo.TABLES, open_windows.TABLES, outbox.TABLES):
        # One by one: `executescript` would end the transaction.
        for statement in tables.split(";"):
            connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {_APPLICATION}")
    connection.execute(f"PRAGMA user_version = {_VERSION}")


def begin(connection: sqlite3.Connection, app: str | None) -> None:
    """Put the first rows into empty tables."""
    connection.execute("INSERT INTO device VALUES (?, NULL)", (app,))
    outbox.create(connection)


_HEADER = b"SQLite format 3\0"
_FORMATS = slice(18, 20)
"""Bytes of the header that would make SQLite take a damaged file for a read-only one."""


def _check_header(path: Path) -> None:
    with path.open("rb") as file:
        header = file.read(100)
    if header.startswith(_HEADER) and header[_FORMATS] != b"\1\1":
        raise StateError("the state file is damaged: remove it to start again", damaged=True)


@cache
def _expected_schema() -> list[tuple[str, ...]]:
    """What a file of this version defines."""
    connection = _connect(MEMORY)
    integrity.attach(connection)
    _create_tables(connection)
    integrity.create(connection)
    found = integrity.schema(connection)
    connection.close()
    return found


def _check(connection: sqlite3.Connection, app: str | None) -> None:
    """Refuse a file that is foreign, another app's, newer or damaged."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    if application != _APPLICATION:
        raise StateError("the state file is not one of deniable's: name another state_dir")
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version != _VERSION:
        raise StateError(
            f"the state file has version {version}, and this deniable reads {_VERSION}: upgrade it"
        )
    connection.execute("BEGIN")  # another process must not write between the tables
    # Not quick_check, which misses damage in an index; a row might then not be found.
    if connection.execute("PRAGMA integrity_check(1)").fetchall() != [("ok",)]:
        raise StateError("the state file is damaged: remove it to start again", damaged=True)
    integrity.verify(connection, _expected_schema())
    (owner,) = connection.execute("SELECT app FROM device").fetchone()
    connection.execute("COMMIT")
    if app is not None and owner is not None and app != owner:
        raise StateError(
            f"the state file belongs to the app {owner!r}, and the registry is of {app!r}: "
            "give each app a state_dir of its own"
        )


def _is_damage(error: sqlite3.DatabaseError) -> bool:
    # Python's own errors, about a misuse of the module, carry no code.
    code = getattr(error, "sqlite_errorcode", None)
    return code is not None and code & 0xFF not in _PASSING

"""The device's state: one SQLite file, safe against crashes, forks and a second process.

Each room declares its own tables; this one opens the file, hands out transactions, and
fails closed: a file that is damaged, foreign, another app's or newer than this code is never
used, repaired or replaced. Only a missing file begins a new device.
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
from deniable.locks import Lock

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
"""The file beside it that says that the owner wants no reports. A file, so that whoever looks
after the device can make it without a program of ours."""

MEMORY = ":memory:"
"""As a state directory: keep the state in memory, for devices that live for one process."""

_APPLICATION = 0x646E6279  # "dnby"
_VERSION = 1

_TABLES = "CREATE TABLE device (app TEXT, erased TEXT)"
"""One row: the app whose device this is, where known, and the UTC day on which its owner last
erased reports."""
PATIENCE = 2.0
"""Seconds that a transaction waits for another process, or thread, that has the file."""

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
"""Results that say nothing against the file; every other one does."""

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

    It depends on the app's name alone: a collector that moves to another address meets the
    same device, with the same ledger, and two apps never share one.

    Raises:
        StateError: the user has no home directory.
    """
    return states_root() / app


class State:
    """The state in `directory`, or in memory where it is None. Nothing is opened yet.

    With `app` it must be that app's: another's has a ledger of its own.
    """

    def __init__(self, directory: Path | None, app: str | None = None) -> None:
        # Absolute from the start: the app may change its working directory.
        self.path = None if directory is None else directory.absolute() / FILE_NAME
        self.app = app
        self.failure: str | None = None
        """Why the state can no longer be trusted, once it cannot."""
        self._damaged = False
        self._connection: sqlite3.Connection | None = None
        self._lock = Lock()

    @contextmanager
    def transaction(self, patience: float = PATIENCE) -> Iterator[sqlite3.Connection]:
        """All or nothing, one at a time over all threads and processes.

        Args:
            patience: seconds to wait for those who have the file.

        Raises:
            StateError: the file cannot be trusted; every later transaction raises it too.
            sqlite3.Error, OSError: the disk, or another process's lock, is in the way.
        """
        deadline = time.monotonic() + patience
        with self._lock.held(patience):
            if self.failure is not None:
                raise StateError(self.failure, damaged=self._damaged)
            try:
                try:
                    connection = self._connection or self._open(deadline)
                except UnicodeDecodeError:  # even what SQLite says of the damage is no text
                    message = "the state file is damaged: remove it to start anew"
                    raise StateError(message, damaged=True) from None
                _wait_until(connection, deadline)
                connection.execute("BEGIN IMMEDIATE")
                yield connection
                connection.execute("COMMIT")
            except BaseException as error:
                self._abandon()
                if isinstance(error, sqlite3.DatabaseError) and _is_damage(error):
                    self.failure = f"the state file is damaged ({error}): remove it to start anew"
                    self._damaged = True
                    raise StateError(self.failure, damaged=True) from None
                if isinstance(error, StateError):
                    self.failure, self._damaged = str(error), error.damaged
                raise

    def blank(self) -> bool:
        """Overwrite a file that is damaged, for an owner who takes everything back.

        What is left is an empty file: still damaged, so that no device begins anew. Returns
        False, and does nothing, where the file is whole, another app's or a newer version's.
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
            return True  # it cannot be looked at: then nothing is reported

    def switch(self, *, on: bool) -> None:
        """Switch reporting on or off, for good.

        Raises:
            OSError: the disk is in the way.
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
        """Wait for the transaction in progress and close the file: no connection may cross."""
        self._lock.acquire()
        if self.path is not None:
            self._disconnect()

    def after_fork(self, *, child: bool) -> None:
        """Go on, in both processes. A state in memory stays with the parent alone."""
        if child and self.path is None:
            # A copied ledger would let two processes answer the same window.
            self.failure = "a state in memory does not cross a fork"
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
    """Let the next statements wait for another process no longer than that, each."""
    left = max(0, int(1000 * (deadline - time.monotonic())))
    connection.execute(f"PRAGMA busy_timeout = {left}")


def _create_file(path: Path, app: str | None) -> None:
    """Make a complete file under another name and link it in place.

    So a crash never leaves a half-made file, an empty file is always damage, and of two
    processes that begin at once one wins.
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
    """An empty state in memory: copying it takes a tenth of the time of making it."""
    connection = _connect(MEMORY)
    _create_tables(connection)
    begin(connection, None)
    return connection


def _create_tables(connection: sqlite3.Connection) -> None:
    for tables in (_TABLES, ledger.TABLES, memo.TABLES, open_windows.TABLES, outbox.TABLES):
        # One by one: the module's own way to run several would end the transaction.
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
        raise StateError("the state file is damaged: remove it to start anew", damaged=True)


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
    # Not quick_check: it passes over damage in an index, by which a row would not be found.
    if connection.execute("PRAGMA integrity_check(1)").fetchall() != [("ok",)]:
        raise StateError("the state file is damaged: remove it to start anew", damaged=True)
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

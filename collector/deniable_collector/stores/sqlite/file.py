"""An SQLite file and its tables: opened on first use, with one transaction at a time.

Each process has one connection, behind a lock: SQLite allows only one writer at a time anyway,
and waiting for a lock is fairer than its polling.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from deniable_collector.stores import ids
from deniable_collector.stores.errors import StoreError, StoreUnavailable

MARKS = (int.from_bytes(b"deny"), 2)
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
        stamp INTEGER NOT NULL DEFAULT 0, kind INTEGER NOT NULL,
        block INTEGER NOT NULL DEFAULT 0, added INTEGER NOT NULL DEFAULT 0,
        record BLOB NOT NULL DEFAULT x'', UNIQUE (metric, scheme, window)
    );
    CREATE INDEX unmerged ON tallies (id) WHERE added > 0;
    CREATE TABLE pieces (place INTEGER PRIMARY KEY, bytes BLOB NOT NULL);
    CREATE TABLE blocks (id INTEGER PRIMARY KEY, block BLOB NOT NULL);
    PRAGMA application_id = {MARKS[0]};
    PRAGMA user_version = {MARKS[1]}
"""
"""A tally has pieces, as `store.py` says. A sealed one and a sum have a block, and a sum has a
record."""


_BUSY_SECONDS = 10.0

_CLEAR_SECONDS = 0.25
"""How long to wait for readers before the log is emptied; writers wait meanwhile."""

_PROBE_BYTES, _PROBE_CACHE = 1 << 16, 4
"""What a probe writes, and the pages that SQLite may keep back of it."""

_PAGE_SIZE = 4096
_LEFT = 32 + 24 + _PAGE_SIZE
"""Size of an emptied log: its header, and the page that is written when it is emptied."""

_TEMPORARY = ("BUSY", "LOCKED", "IOERR", "FULL", "CANTOPEN", "READONLY", "NOMEM", "INTERRUPT")

_CAUSES = {
    "CANTOPEN": "its folder must exist, and this user must be able to write in it",
    "READONLY": "this user must be able to write the file, and in its folder",
    "FULL": "no space is left on its disk",
}
"""Of these, what nobody would read in the name of the error."""

_ABANDONED: list[sqlite3.Connection] = []
"""Connections of a parent process. A child must neither use nor close them: that would disturb the
parent's locks on the file."""


class SqliteFile:
    """The file at `path`, created by the first transaction that may do so."""

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._cleared: float | None = None
        _FILES.add(self)

    @contextmanager
    def transaction(self, mode: str, *, create: bool = False) -> Iterator[sqlite3.Connection]:
        """A transaction: all of the block is committed, or nothing.

        Raises:
            StoreUnavailable: the file is busy, the disk is full, or the file cannot be reached.
            StoreError: it does not exist and may not be created, or is not a store of deniable.
        """
        with _translated(), self._lock:
            connection = self._opened(create)
            connection.execute(f"BEGIN {mode}")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                self._undo(connection)
                raise

    def probe(self) -> None:
        """Write to the log what a commit may need, and take it back.

        With a cache of a few pages SQLite writes the rest to its log at once, and meets a full
        disk there as a commit would. A probe that was a commit would stand in the log between the
        others, and tell when they came.

        Raises:
            StoreUnavailable: the file is busy, full or out of reach.
            StoreError: it is not there.
        """
        with _translated(), self._lock:
            connection = self._opened(create=False)
            ((pages,),) = connection.execute("PRAGMA cache_size")
            connection.execute(f"PRAGMA cache_size = {_PROBE_CACHE}")
            try:
                connection.execute("BEGIN IMMEDIATE")
                connection.execute("CREATE TABLE probe (bytes BLOB)")
                # Random bytes: a file system may store zeros without using any space.
                connection.execute("INSERT INTO probe VALUES (randomblob(?))", (_PROBE_BYTES,))
            finally:
                connection.execute(f"PRAGMA cache_size = {pages}")
                self._undo(connection)

    def clear_log(self, older_than: float, merge: Callable[[], None]) -> float | None:
        """Call `merge`, which leaves no increments, and empty the log, if there was last nothing
        in either `older_than` seconds ago or never.

        Returns for how many seconds commits may have been in them, or None if none are.

        Raises:
            StoreUnavailable: it is due, but somebody reads or the file cannot be reached.
        """
        began = time.monotonic()
        if self._holds_commits():
            if self._cleared is not None and began - self._cleared < older_than:
                return began - self._cleared
            try:
                merge()
            finally:
                with _translated(), self._lock:
                    if not _empty_log(self._opened(create=False)):
                        raise StoreUnavailable(
                            "a reader holds the SQLite file, so its write-ahead log cannot be "
                            "emptied: end the long read"
                        )
        self._cleared = began
        return None

    def close(self) -> None:
        """Empty the log, if nobody reads, and close the connection. The next transaction opens
        another."""
        with self._lock:
            if self._connection is not None:
                # The last connection removes the log, but there may be others.
                with suppress(sqlite3.Error):
                    _empty_log(self._connection)
                self._connection.close()
            self._connection = None

    def abandon(self) -> None:
        """After a fork: drop everything that belongs to the parent process."""
        if self._connection is not None:
            _ABANDONED.append(self._connection)
        self._connection = None
        self._lock = threading.Lock()

    def _undo(self, connection: sqlite3.Connection) -> None:
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        if connection.in_transaction:
            # Closing ends it too. Kept, it would fail every transaction after it.
            connection.close()
            self._connection = None

    def _opened(self, create: bool) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = _open(self._path, create)
        return self._connection

    def _holds_commits(self) -> bool:
        """Whether single commits may be in the log or among increments."""
        if not self._log_is_empty():
            return True
        if not self._path.exists():
            return False
        with self.transaction("DEFERRED") as connection:
            found = connection.execute("SELECT 1 FROM tallies WHERE added > 0 LIMIT 1")
            return found.fetchone() is not None

    def _log_is_empty(self) -> bool:
        """Whether it contains only what `_empty_log` leaves."""
        try:
            # The log is beside the file itself, not beside a link to it.
            log = Path(f"{self._path.resolve()}-wal")
            return log.stat().st_size == _LEFT
        except FileNotFoundError:
            return True
        except OSError:
            return False  # opening the file will say what is wrong


_FILES: weakref.WeakSet[SqliteFile] = weakref.WeakSet()


def _after_fork() -> None:
    for file in _FILES:
        file.abandon()


os.register_at_fork(after_in_child=_after_fork)


def _open(path: Path, create: bool) -> sqlite3.Connection:
    if not create and not path.exists():
        raise StoreError(f"there is no store at {path}: start the collector, or correct the path")
    connection = sqlite3.connect(
        path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
    )
    try:
        # Overwrite what is deleted or moved; it would reveal earlier content.
        connection.execute("PRAGMA secure_delete = ON")
        connection.execute(f"PRAGMA page_size = {_PAGE_SIZE}")
        _write_ahead(connection)
        connection.execute("PRAGMA synchronous = FULL")
        _check_tables(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Turn the log on. SQLite does not wait for a busy file here, so this function does."""
    deadline = time.monotonic() + _BUSY_SECONDS
    while True:
        try:
            (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
        except sqlite3.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)
            continue
        if mode != "wal":
            raise StoreError(
                "this file system cannot hold a write-ahead log: put the store on a local disk"
            )
        return


def _empty_log(connection: sqlite3.Connection) -> bool:
    """Move the log into the file and truncate it; False if a reader or writer prevents that.

    A log that restarts without being truncated keeps its old frames: all commits since it was
    last truncated, in order.
    """
    connection.execute(f"PRAGMA busy_timeout = {int(1000 * _CLEAR_SECONDS)}")
    try:
        ((busy, _, _),) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        if not busy:
            # The index of the log (-shm) still lists the pages of all frames, in order, until a
            # commit overwrites it. The next commit may come late, so make one here, of one page.
            connection.execute(f"PRAGMA application_id = {MARKS[0]}")
    except sqlite3.OperationalError as error:
        if not error.sqlite_errorname.startswith("SQLITE_BUSY"):
            raise
        busy = True
    finally:
        connection.execute(f"PRAGMA busy_timeout = {int(1000 * _BUSY_SECONDS)}")
    return not busy


def _check_tables(connection: sqlite3.Connection, path: Path) -> None:
    """Return if the file has the tables of this version; a new file gets them.

    Raises:
        StoreError: it has others.
    """
    if _marks(connection) == MARKS:
        return
    # It commits, or takes all back after an error.
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        # Another process may have created them while this one waited for the lock.
        if _marks(connection) != MARKS:
            if connection.execute("SELECT 1 FROM sqlite_master").fetchone():
                raise StoreError(
                    f"{path} is no store of this version of deniable: name another path, or "
                    "install the version that wrote it"
                )
            # Not with executescript, which commits first.
            for statement in _TABLES.split(";"):
                connection.execute(statement)


def _marks(connection: sqlite3.Connection) -> tuple[int, int]:
    ((application,),) = connection.execute("PRAGMA application_id")
    ((version,),) = connection.execute("PRAGMA user_version")
    return application, version


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        name = getattr(error, "sqlite_errorname", "SQLITE_UNKNOWN")
        short = name.removeprefix("SQLITE_")
        if short.startswith(_TEMPORARY):
            why = next((f"; {_CAUSES[each]}" for each in _CAUSES if short.startswith(each)), "")
            raise StoreUnavailable(f"the SQLite store cannot answer now ({name}{why})") from error
        raise StoreError(f"the SQLite store refused ({name}): check the file") from error

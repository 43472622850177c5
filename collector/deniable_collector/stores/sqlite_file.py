"""One SQLite file of ours: opened when it is needed, brought up to date, one transaction at a time.

Each process has one connection, behind a lock: SQLite lets one writer in at a time anyway,
and waiting here is fairer than its polling.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from deniable_collector.stores.base import StoreError, StoreUnavailable
from deniable_collector.stores.sqlite_migrations import MIGRATIONS

__all__ = ["SqliteFile"]

_BUSY_SECONDS = 10.0

_TEMPORARY = ("BUSY", "LOCKED", "IOERR", "FULL", "CANTOPEN", "READONLY", "NOMEM", "INTERRUPT")

_ABANDONED: list[sqlite3.Connection] = []
"""Connections of a parent process. They must not be used in a child, nor even be closed:
that would disturb the parent's locks on the file."""


class SqliteFile:
    """The file at `path`, made by the first transaction that may create it."""

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        _FILES.add(self)

    @contextmanager
    def transaction(self, mode: str, *, create: bool = False) -> Iterator[sqlite3.Connection]:
        """All of the block is committed, or none of it.

        Raises:
            StoreUnavailable: the file is busy, full or out of reach.
            StoreError: it is not there and may not be created, or is no store of ours.
        """
        with _translated(), self._lock:
            if self._connection is None:
                self._connection = _open(self._path, create)
            connection = self._connection
            connection.execute(f"BEGIN {mode}")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                if connection.in_transaction:
                    # Closing ends it too. Kept, it would fail every transaction after it.
                    connection.close()
                    self._connection = None
                raise

    def close(self) -> None:
        """Close the connection; the next transaction would open another."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
            self._connection = None

    def abandon(self) -> None:
        """Let go of everything that belongs to the parent process, after a fork."""
        if self._connection is not None:
            _ABANDONED.append(self._connection)
        self._connection = None
        self._lock = threading.Lock()


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
        _write_ahead(connection)
        connection.execute("PRAGMA synchronous = FULL")
        _migrate(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Turn the log on. SQLite does not wait for a busy file here, so this does."""
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


def _migrate(connection: sqlite3.Connection, path: Path) -> None:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version == len(MIGRATIONS):
        return
    if version > len(MIGRATIONS):
        raise StoreError(f"{path} was written by a newer version of deniable: upgrade this one")
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Another process may have migrated the file while this one waited for the lock.
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version == 0 and connection.execute("SELECT 1 FROM sqlite_master").fetchone():
            raise StoreError(f"{path} is an SQLite file of something else: name another path")
        for migrate in MIGRATIONS[version:]:
            migrate(connection)
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
        connection.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        name = getattr(error, "sqlite_errorname", "SQLITE_UNKNOWN")
        if name.removeprefix("SQLITE_").startswith(_TEMPORARY):
            raise StoreUnavailable(f"the SQLite store cannot answer now ({name})") from error
        raise StoreError(f"the SQLite store refused ({name}): check the file") from error

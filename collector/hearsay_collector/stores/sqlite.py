"""The embedded store: one SQLite file, shared by all threads and processes of a machine.

Write-ahead log with synchronous=FULL: what was acknowledged survives a power cut. A row
of a tally is stored as chunks of packed little-endian 64-bit counters, and a fold is one
BEGIN IMMEDIATE transaction that rewrites the chunks it touches.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hearsay import Scheme
from hearsay.windows import end, start
from hearsay_collector.stores.base import (
    ID_LIFETIME,
    MAX_CELL,
    Commit,
    Increment,
    Store,
    StoreError,
    StoreUnavailable,
    TallyRowKey,
)
from hearsay_collector.stores.definitions import read_scheme, unpublished
from hearsay_collector.tally import Tally, TallyRow, empty_tally

__all__ = ["SqliteStore"]

_BUSY_SECONDS = 10.0
_CHUNK = 256
"""Cells in a chunk: 2 KiB, so that a chunk fits into a page of 4 KiB without overflow pages."""

_PRUNE = 4
"""Expired ids forgotten for each id remembered: the table shrinks without a long pause."""

_MIGRATIONS = (
    """
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
    """,
)
"""Each entry takes a file from the version of its index to the next (PRAGMA user_version)."""

_TEMPORARY = ("BUSY", "LOCKED", "IOERR", "FULL", "CANTOPEN", "READONLY", "NOMEM", "INTERRUPT")


@dataclass(frozen=True)
class _Session:
    """One process's connection. A connection must not cross a fork, nor must its lock."""

    connection: sqlite3.Connection
    lock: threading.Lock = field(default_factory=threading.Lock)
    pid: int = field(default_factory=os.getpid)


_ABANDONED: list[_Session] = []
"""Sessions of a parent process: closing them here would disturb the parent's file locks."""


class SqliteStore(Store):
    """Tallies in one file. Writers create it; readers of a file that is not there fail.

    Raises:
        StoreError: the file is no store of hearsay, or a newer version wrote it.
    """

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._session: _Session | None = None
        self._opening = (os.getpid(), threading.Lock())

    def fold(self, commit: Commit, now: float) -> frozenset[str]:
        ids = {bytes.fromhex(batch_id): batch_id for batch_id in commit.ids}
        with self._transaction("IMMEDIATE", create=True) as connection:
            seen = frozenset(
                text
                for raw, text in ids.items()
                if connection.execute(
                    "SELECT 1 FROM ids WHERE id = ? AND expires >= ?", (raw, now)
                ).fetchone()
            )
            if seen:
                return seen
            connection.execute(
                "DELETE FROM ids WHERE id IN (SELECT id FROM ids WHERE expires < ? LIMIT ?)",
                (now, _PRUNE * (len(ids) + 1)),
            )
            connection.executemany(
                "INSERT OR REPLACE INTO ids VALUES (?, ?)",
                [(raw, now + ID_LIFETIME) for raw in ids],
            )
            for key, increment in commit.increments.items():
                _add(connection, key, increment)
        return seen

    def publish(self, schemes: Mapping[str, Iterable[Scheme]]) -> None:
        with self._transaction("IMMEDIATE", create=True) as connection:
            connection.executemany(
                "INSERT OR IGNORE INTO schemes VALUES (?, ?, ?)",
                [
                    (metric, scheme.fingerprint, scheme.canonical())
                    for metric, each in schemes.items()
                    for scheme in each
                ],
            )

    def schemes(self) -> dict[str, dict[str, Scheme]]:
        with self._transaction("DEFERRED") as connection:
            found = connection.execute("SELECT metric, fingerprint, definition FROM schemes")
            definitions = found.fetchall()
        published: dict[str, dict[str, Scheme]] = {}
        for metric, fingerprint, definition in definitions:
            published.setdefault(metric, {})[fingerprint] = read_scheme(definition)
        return published

    def scheme(self, metric: str, fingerprint: str) -> Scheme:
        with self._transaction("DEFERRED") as connection:
            found = connection.execute(
                "SELECT definition FROM schemes WHERE metric = ? AND fingerprint = ?",
                (metric, fingerprint),
            ).fetchone()
        if found is None:
            raise unpublished(metric, fingerprint)
        return read_scheme(found[0])

    def windows(self, metric: str, scheme: str) -> list[str]:
        with self._transaction("DEFERRED") as connection:
            found = connection.execute(
                "SELECT DISTINCT window FROM tally_rows WHERE metric = ? AND scheme = ?",
                (metric, scheme),
            ).fetchall()
        return sorted((window for (window,) in found), key=start)

    def tally(self, metric: str, scheme: str, windows: Iterable[str]) -> Tally:
        labels = tuple(dict.fromkeys(windows))
        rows = self.scheme(metric, scheme).mechanism.rows
        total = empty_tally(metric, scheme, labels, rows)
        reports = [0] * len(rows)
        # One transaction: all windows are read at the same moment.
        with self._transaction("DEFERRED") as connection:
            for label in labels:
                for identity, row, count in connection.execute(
                    "SELECT id, row, reports FROM tally_rows"
                    " WHERE metric = ? AND scheme = ? AND window = ?",
                    (metric, scheme, label),
                ).fetchall():
                    reports[row] += count
                    cells = total.rows[row].cells
                    for chunk, packed in connection.execute(
                        "SELECT chunk, cells FROM chunks WHERE tally_row = ?", (identity,)
                    ):
                        counters = np.frombuffer(packed, "<i8")
                        cells[chunk * _CHUNK : chunk * _CHUNK + len(counters)] += counters
        counted = zip(reports, total.rows, strict=True)
        return replace(total, rows=tuple(TallyRow(count, row.cells) for count, row in counted))

    def drop(self, before: float) -> int:
        with self._transaction("IMMEDIATE") as connection:
            tallies = connection.execute(
                "SELECT DISTINCT metric, scheme, window FROM tally_rows"
            ).fetchall()
            old = [key for key in tallies if end(key[2]) <= before]
            rows = "tally_rows WHERE metric = ? AND scheme = ? AND window = ?"
            connection.executemany(
                f"DELETE FROM chunks WHERE tally_row IN (SELECT id FROM {rows})", old
            )
            connection.executemany(f"DELETE FROM {rows}", old)
        return len(old)

    def ping(self) -> None:
        with self._transaction("IMMEDIATE"):
            pass

    def close(self) -> None:
        session = self._session
        if session is not None and session.pid == os.getpid():
            with session.lock:
                session.connection.close()
        self._session = None

    @contextmanager
    def _transaction(self, mode: str, *, create: bool = False) -> Iterator[sqlite3.Connection]:
        """All of the block is committed, or none of it; SQLite's errors become the store's."""
        with _translated():
            session = self._connected(create)
            with session.lock:
                connection = session.connection
                connection.execute(f"BEGIN {mode}")
                try:
                    yield connection
                    connection.execute("COMMIT")
                except BaseException:
                    with suppress(sqlite3.Error):
                        connection.execute("ROLLBACK")
                    raise

    def _connected(self, create: bool) -> _Session:
        session = self._session
        if session is not None and session.pid == os.getpid():
            return session
        if self._opening[0] != os.getpid():
            # The parent may have held its lock at the moment of the fork.
            self._opening = (os.getpid(), threading.Lock())
        with self._opening[1]:
            session = self._session
            if session is not None and session.pid != os.getpid():
                _ABANDONED.append(session)
                session = None
            if session is None:
                session = _Session(_open(self._path, create))
                self._session = session
        return session


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
    if version == len(_MIGRATIONS):
        return
    if version > len(_MIGRATIONS):
        raise StoreError(f"{path} was written by a newer version of hearsay: upgrade this one")
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Another process may have migrated the file while this one waited for the lock.
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version == 0 and connection.execute("SELECT 1 FROM sqlite_master").fetchone():
            raise StoreError(f"{path} is an SQLite file of something else: name another path")
        for script in _MIGRATIONS[version:]:
            for statement in script.split(";"):
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {len(_MIGRATIONS)}")
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


def _add(connection: sqlite3.Connection, key: TallyRowKey, increment: Increment) -> None:
    found = connection.execute(
        "SELECT id, reports FROM tally_rows"
        " WHERE metric = ? AND scheme = ? AND window = ? AND row = ?",
        (*key.tally, key.row),
    ).fetchone()
    reports = increment.reports + (found[1] if found else 0)
    if max(reports, *increment.counts, 0) > MAX_CELL:
        raise _full(key)
    if found:
        identity = found[0]
        connection.execute("UPDATE tally_rows SET reports = ? WHERE id = ?", (reports, identity))
    else:
        identity = connection.execute(
            "INSERT INTO tally_rows (metric, scheme, window, row, reports) VALUES (?, ?, ?, ?, ?)",
            (*key.tally, key.row, reports),
        ).lastrowid
    columns = np.asarray(increment.columns, np.int64)
    counts = np.asarray(increment.counts, np.int64)
    order = np.argsort(columns)
    columns, counts = columns[order], counts[order]
    touched, firsts = np.unique(columns // _CHUNK, return_index=True)
    for chunk, here in zip(touched.tolist(), _slices(firsts, len(columns)), strict=True):
        found = connection.execute(
            "SELECT cells FROM chunks WHERE tally_row = ? AND chunk = ?", (identity, chunk)
        ).fetchone()
        if found:
            cells = np.frombuffer(found[0], "<i8").copy()
        else:
            cells = np.zeros(min(_CHUNK, increment.width - chunk * _CHUNK), "<i8")
        cells[columns[here] - chunk * _CHUNK] += counts[here]
        if cells.max() > MAX_CELL:
            raise _full(key)
        connection.execute(
            "INSERT OR REPLACE INTO chunks VALUES (?, ?, ?)", (identity, chunk, cells.tobytes())
        )


def _slices(firsts: NDArray[np.intp], stop: int) -> Iterator[slice]:
    return map(slice, firsts.tolist(), [*firsts[1:].tolist(), stop])


def _full(key: TallyRowKey) -> StoreError:
    return StoreError(
        f"a counter of metric {key.tally.metric}, window {key.tally.window} is at its top "
        f"({MAX_CELL}): nothing was added"
    )

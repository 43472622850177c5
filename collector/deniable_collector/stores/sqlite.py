"""The embedded store: one SQLite file, shared by all threads and processes of a machine.

Write-ahead log with synchronous=FULL: acknowledged batches survive a power cut. A tally is
stored as pages of packed little-endian counters, and a fold is one BEGIN IMMEDIATE transaction
that rewrites the pages that it changes.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from deniable import Scheme
from deniable.windows import end, start
from deniable_collector.stores.base import (
    Commit,
    Sealing,
    Store,
    TallyKey,
    new_stamp,
    version_of,
)
from deniable_collector.stores.blocks import (
    IN_THE_STORE,
    Archive,
    GoneFile,
    add_counters,
    block_of,
    counters_in,
    file_of,
    reports_in,
)
from deniable_collector.stores.definitions import read_scheme, unpublished
from deniable_collector.stores.ids import terms_of
from deniable_collector.stores.sqlite_blocks import (
    blocks_of,
    find_block,
    find_open,
    put_block,
    reopen,
    sealed_windows,
)
from deniable_collector.stores.sqlite_file import SqliteFile
from deniable_collector.stores.sqlite_ids import prune, remember
from deniable_collector.stores.sqlite_pages import (
    add_pages,
    add_to,
    count_reports,
    forget,
    many_versions,
    mark,
    page_bytes,
    stamps,
)
from deniable_collector.stores.vectors import Shapes, gather, rows_of
from deniable_collector.tally import Tally

__all__ = ["SqliteStore"]

_Read = TypeVar("_Read")

_NAMED = 1024
"""The beginning of what is kept for a block, which has the whole name of its file if it has one."""


class SqliteStore(Store):
    """Tallies in one file. Writers create it; readers fail if it does not exist.

    Raises:
        StoreError: the file is no store of deniable, or a newer version wrote it.
    """

    def __init__(self, path: str | Path, archive: Archive = IN_THE_STORE) -> None:
        self._file = SqliteFile(path)
        self._archive = archive
        self._shapes = Shapes(self.scheme)

    def fold(self, commit: Commit, now: float) -> frozenset[str]:
        additions = gather(commit.increments, self._shapes)
        terms = terms_of(commit)
        opened: list[tuple[TallyKey, bytes]] = []
        with self._file.transaction("IMMEDIATE", create=True) as connection:
            seen = remember(connection, commit.ids, terms, now)
            if not seen:
                prune(connection, len(commit.ids), now)
                for tally, addition in additions.items():
                    if (block := find_block(connection, tally)) is not None:
                        identity, kept = block
                        whole = counters_in(tally, addition.size, self._archive.get(tally, kept))
                        reopen(connection, identity, whole, tally)
                        opened.append((tally, kept))
                    add_to(connection, tally, addition)
                    # One stamp each: a common one would reveal which tallies a commit changed.
                    mark(connection, tally, new_stamp())
        for tally, kept in opened:
            self._archive.forget(tally, kept)
        return seen

    def publish(self, schemes: Mapping[str, Iterable[Scheme]]) -> None:
        with self._file.transaction("IMMEDIATE", create=True) as connection:
            connection.executemany(
                "INSERT OR IGNORE INTO schemes VALUES (?, ?, ?)",
                [
                    (metric, scheme.fingerprint, scheme.canonical())
                    for metric, each in schemes.items()
                    for scheme in each
                ],
            )

    def schemes(self) -> dict[str, dict[str, Scheme]]:
        with self._file.transaction("DEFERRED") as connection:
            found = connection.execute("SELECT metric, fingerprint, definition FROM schemes")
            definitions = found.fetchall()
        published: dict[str, dict[str, Scheme]] = {}
        for metric, fingerprint, definition in definitions:
            published.setdefault(metric, {})[fingerprint] = read_scheme(definition)
        return published

    def scheme(self, metric: str, fingerprint: str) -> Scheme:
        with self._file.transaction("DEFERRED") as connection:
            found = connection.execute(
                "SELECT definition FROM schemes WHERE metric = ? AND fingerprint = ?",
                (metric, fingerprint),
            ).fetchone()
        if found is None:
            raise unpublished(metric, fingerprint)
        return read_scheme(found[0])

    def windows(self, metric: str, scheme: str) -> list[str]:
        with self._file.transaction("DEFERRED") as connection:
            found = connection.execute(
                "SELECT window FROM tallies WHERE metric = ? AND scheme = ?",
                (metric, scheme),
            ).fetchall()
        return sorted((window for (window,) in found), key=start)

    def tally(self, metric: str, scheme: str, windows: Iterable[str]) -> Tally:
        labels = tuple(dict.fromkeys(windows))
        shape = self._shapes.of(metric, scheme)

        def read(connection: sqlite3.Connection) -> NDArray[np.int64]:
            total = np.zeros(shape.size, np.int64)
            add_pages(connection, metric, scheme, labels, total)
            for tally, kept in blocks_of(connection, metric, scheme, labels):
                add_counters(tally, total, self._archive.get(tally, kept))
            return total

        total = self._reading(read)
        return Tally(metric, scheme, labels, tuple(rows_of(shape, total)))

    def row_reports(
        self, metric: str, scheme: str, windows: Iterable[str]
    ) -> dict[str, NDArray[np.int64]]:
        shape = self._shapes.of(metric, scheme)
        labels = list(windows)

        def read(connection: sqlite3.Connection) -> dict[str, NDArray[np.int64]]:
            found = {label: np.zeros(len(shape.widths), np.int64) for label in labels}
            count_reports(connection, metric, scheme, found, shape.size)
            for tally, kept in blocks_of(connection, metric, scheme, labels):
                found[tally.window] += reports_in(tally, self._archive.get(tally, kept))
            return found

        return self._reading(read)

    def _reading(self, read: Callable[[sqlite3.Connection], _Read]) -> _Read:
        """What `read` finds in one transaction, so that all windows are of the same moment."""
        try:
            with self._file.transaction("DEFERRED") as connection:
                return read(connection)
        except GoneFile:
            # It was opened again after this transaction began; a second look tells.
            with self._file.transaction("DEFERRED") as connection:
                return read(connection)

    def sealed(self, metric: str, scheme: str, windows: Iterable[str]) -> frozenset[str]:
        with self._file.transaction("DEFERRED") as connection:
            return sealed_windows(connection, metric, scheme, windows)

    def block_files(self) -> frozenset[str]:
        with self._file.transaction("DEFERRED") as connection:
            found = connection.execute("SELECT substr(block, 1, ?) FROM blocks", (_NAMED,))
            return frozenset(name for (kept,) in found if (name := file_of(kept)))

    def seal(self, tally: TallyKey) -> Sealing | None:
        shape = self._shapes.of(tally.metric, tally.scheme)
        counters = np.zeros(shape.size, np.int64)
        with self._file.transaction("DEFERRED") as connection:
            if (found := find_open(connection, tally)) is None:
                return None
            before = page_bytes(connection, found[0])
            add_pages(connection, tally.metric, tally.scheme, [tally.window], counters)
        # Outside of a transaction, because commits would wait for it.
        block = block_of(tally, len(shape.widths), counters)
        kept = self._archive.put(tally, block)
        done = False
        try:
            with self._file.transaction("IMMEDIATE") as connection:
                # Its stamp tells whether anybody has changed it meanwhile.
                if find_open(connection, tally) == found:
                    put_block(connection, found[0], kept)
                    done = True
        finally:
            # If the commit itself fails, nobody knows yet whether the file is needed: it stays.
            if not done:
                self._archive.forget(tally, kept)
        return Sealing(before, len(block)) if done else None

    def version(self, metric: str, scheme: str, windows: Iterable[str]) -> bytes:
        with self._file.transaction("DEFERRED") as connection:
            return version_of(metric, scheme, stamps(connection, metric, scheme, windows))

    def each_version(self, metric: str, scheme: str, windows: Iterable[str]) -> dict[str, bytes]:
        labels = list(windows)
        with self._file.transaction("DEFERRED") as connection:
            known = dict(stamps(connection, metric, scheme, labels))
        return {
            label: version_of(metric, scheme, [(label, known[label])] if label in known else [])
            for label in labels
        }

    def versions(self, asked: Mapping[str, Iterable[str]]) -> dict[str, bytes]:
        with self._file.transaction("DEFERRED") as connection:
            return many_versions(connection, asked)

    def drop(self, before: float) -> int:
        with self._file.transaction("IMMEDIATE") as connection:
            tallies = connection.execute(
                "SELECT id, metric, scheme, window FROM tallies"
            ).fetchall()
            old = {
                TallyKey(*names): identity
                for identity, *names in tallies
                if end(names[2]) <= before
            }
            gone = [(tally, find_block(connection, tally)) for tally in old]
            for tally, block in gone:
                if block is not None:
                    self._archive.check_forgetting(tally, block[1])
            for identity in old.values():
                forget(connection, identity)
        for tally, block in gone:
            if block is not None:
                self._archive.forget(tally, block[1])
        return len(old)

    def ping(self) -> None:
        self._file.probe()

    def clear_journal(self, older_than: float) -> float | None:
        return self._file.clear_log(older_than)

    def close(self) -> None:
        self._file.close()

"""The embedded store: one SQLite file, shared by all threads and processes of a machine.

Write-ahead log with synchronous=FULL: acknowledged batches survive a power cut. A tally is
stored as pages of packed little-endian counters, and a fold is one BEGIN IMMEDIATE transaction
that rewrites the pages that it changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from deniable import Scheme
from deniable.windows import end, start
from deniable_collector.stores.base import Commit, Store, new_stamp, version_of
from deniable_collector.stores.definitions import read_scheme, unpublished
from deniable_collector.stores.ids import terms_of
from deniable_collector.stores.sqlite_file import SqliteFile
from deniable_collector.stores.sqlite_ids import prune, remember
from deniable_collector.stores.sqlite_pages import (
    add_pages,
    add_to,
    count_reports,
    forget,
    many_versions,
    mark,
    stamps,
)
from deniable_collector.stores.vectors import Shapes, gather, rows_of
from deniable_collector.tally import Tally

__all__ = ["SqliteStore"]


class SqliteStore(Store):
    """Tallies in one file. Writers create it; readers fail if it does not exist.

    Raises:
        StoreError: the file is no store of deniable, or a newer version wrote it.
    """

    def __init__(self, path: str | Path) -> None:
        self._file = SqliteFile(path)
        self._shapes = Shapes(self.scheme)

    def fold(self, commit: Commit, now: float) -> frozenset[str]:
        additions = gather(commit.increments, self._shapes)
        terms = terms_of(commit)
        with self._file.transaction("IMMEDIATE", create=True) as connection:
            seen = remember(connection, commit.ids, terms, now)
            if not seen:
                prune(connection, len(commit.ids), now)
                for tally, addition in additions.items():
                    add_to(connection, tally, addition)
                    # One stamp each: a common one would reveal which tallies a commit changed.
                    mark(connection, tally, new_stamp())
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
        total = np.zeros(shape.size, np.int64)
        # One transaction, so that all windows are read at the same moment.
        with self._file.transaction("DEFERRED") as connection:
            add_pages(connection, metric, scheme, labels, total)
        return Tally(metric, scheme, labels, tuple(rows_of(shape, total)))

    def row_reports(
        self, metric: str, scheme: str, windows: Iterable[str]
    ) -> dict[str, NDArray[np.int64]]:
        shape = self._shapes.of(metric, scheme)
        rows = len(shape.widths)
        found = {label: np.zeros(rows, np.int64) for label in windows}
        with self._file.transaction("DEFERRED") as connection:
            count_reports(connection, metric, scheme, found, shape.size)
        return found

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
            tallies = connection.execute("SELECT id, window FROM tallies").fetchall()
            old = [identity for identity, window in tallies if end(window) <= before]
            for identity in old:
                forget(connection, identity)
        return len(old)

    def ping(self) -> None:
        self._file.probe()

    def clear_journal(self, older_than: float) -> float | None:
        return self._file.clear_log(older_than)

    def close(self) -> None:
        self._file.close()

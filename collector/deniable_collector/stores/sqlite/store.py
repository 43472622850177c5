"""The embedded store: one SQLite file, shared by all threads and processes of a machine.

Write-ahead log with synchronous=FULL: acknowledged batches survive a power cut. A tally is
stored as pages of packed little-endian counters, and a fold is one BEGIN IMMEDIATE transaction
that rewrites the pages that it changes.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from deniable import Scheme
from deniable.windows import end, start
from deniable_collector.stores.base import Sealing, Store
from deniable_collector.stores.commits import Commit, TallyKey, new_stamp, version_of
from deniable_collector.stores.definitions import read_scheme, unpublished
from deniable_collector.stores.ids import terms_of
from deniable_collector.stores.sealed.blocks import (
    add_counters,
    block_of,
    counters_in,
    reports_in,
)
from deniable_collector.stores.sqlite.blocks import (
    blocks_of,
    find_block,
    find_open,
    put_block,
    reopen,
    sealed_windows,
)
from deniable_collector.stores.sqlite.file import SqliteFile
from deniable_collector.stores.sqlite.ids import prune, remember
from deniable_collector.stores.sqlite.pages import (
    add_pages,
    add_to,
    count_reports,
    forget,
    many_versions,
    mark,
    page_bytes,
    stamps,
)
from deniable_collector.stores.sqlite.sums import SqliteSums, drop_ended, planned, sum_blocks
from deniable_collector.stores.summed.summing import Sums
from deniable_collector.stores.summed.sums import Cover
from deniable_collector.stores.vectors import Shapes, gather, rows_of
from deniable_collector.tally import Tally


class SqliteStore(Store):
    """Tallies in one file. Writers create it; readers fail if it does not exist.

    Raises:
        StoreError: the file is no store of this version of deniable.
    """

    def __init__(self, path: str | Path) -> None:
        self._file = SqliteFile(path)
        self._shapes = Shapes(self.scheme)
        self._sums = Sums(SqliteSums(self._file, self._shapes))

    @property
    def sums(self) -> Sums:
        return self._sums

    def fold(self, commit: Commit, now: float) -> frozenset[str]:
        additions = gather(commit.increments, self._shapes)
        with self._file.transaction("IMMEDIATE", create=True) as connection:
            seen = remember(connection, commit.ids, terms_of(commit), now)
            if not seen:
                prune(connection, len(commit.ids), now)
                for tally, addition in additions.items():
                    if (sealed := find_block(connection, tally)) is not None:
                        identity, block = sealed
                        whole = counters_in(tally, addition.size, block)
                        reopen(connection, identity, whole, tally)
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
        return self._tally(metric, scheme, windows, sums=True)

    def own_tally(self, tally: TallyKey) -> Tally:
        return self._tally(tally.metric, tally.scheme, [tally.window], sums=False)

    def _own_tallies(self, metric: str, scheme: str, windows: Sequence[str]) -> dict[str, Tally]:
        shape = self._shapes.of(metric, scheme)
        totals = dict(zip(windows, np.zeros((len(windows), shape.size), np.int64), strict=True))
        with self._file.transaction("DEFERRED") as connection:
            _add_windows(connection, metric, scheme, totals)
        return {
            label: Tally(metric, scheme, (label,), tuple(rows_of(shape, total)))
            for label, total in totals.items()
        }

    def _tally(self, metric: str, scheme: str, windows: Iterable[str], *, sums: bool) -> Tally:
        labels = tuple(dict.fromkeys(windows))
        shape = self._shapes.of(metric, scheme)
        total = np.zeros(shape.size, np.int64)
        with self._file.transaction("DEFERRED") as connection:
            plan = planned(connection, metric, scheme, labels) if sums else Cover(labels, ())
            _add_windows(connection, metric, scheme, dict.fromkeys(plan.windows, total))
            for tally, block in sum_blocks(connection, metric, scheme, plan.sums):
                add_counters(tally, total, block)
        return Tally(metric, scheme, labels, tuple(rows_of(shape, total)))

    def row_reports(
        self, metric: str, scheme: str, windows: Iterable[str]
    ) -> dict[str, NDArray[np.int64]]:
        shape = self._shapes.of(metric, scheme)
        found = {label: np.zeros(len(shape.widths), np.int64) for label in windows}
        with self._file.transaction("DEFERRED") as connection:
            count_reports(connection, metric, scheme, found, shape.size)
            for tally, block in blocks_of(connection, metric, scheme, found):
                found[tally.window] += reports_in(tally, block)
        return found

    def sealed(self, metric: str, scheme: str, windows: Iterable[str]) -> frozenset[str]:
        with self._file.transaction("DEFERRED") as connection:
            return sealed_windows(connection, metric, scheme, windows)

    def identity(self) -> str:
        with self._file.transaction("DEFERRED") as connection:
            ((identity,),) = connection.execute("SELECT identity FROM secrets")
        return str(identity)

    def seal(self, tally: TallyKey) -> Sealing | None:
        shape = self._shapes.of(tally.metric, tally.scheme)
        counters = np.zeros(shape.size, np.int64)
        with self._file.transaction("DEFERRED") as connection:
            if (found := find_open(connection, tally)) is None:
                return None
            before = page_bytes(connection, found[0])
            add_pages(connection, tally.metric, tally.scheme, {tally.window: counters})
        # Outside of a transaction, because commits would wait for it.
        block = block_of(tally, len(shape.widths), counters)
        with self._file.transaction("IMMEDIATE") as connection:
            # Its stamp tells whether anybody has changed it meanwhile.
            if find_open(connection, tally) != found:
                return None
            put_block(connection, found[0], block)
        return Sealing(before, len(block))

    def version(self, metric: str, scheme: str, windows: Iterable[str]) -> bytes:
        labels = list(windows)
        with self._file.transaction("DEFERRED") as connection:
            known: list[tuple[object, ...]] = [*stamps(connection, metric, scheme, labels)]
        return version_of(metric, scheme, known + self._sums.stamps(metric, scheme, labels))

    def each_version(self, metric: str, scheme: str, windows: Iterable[str]) -> dict[str, bytes]:
        labels = list(windows)
        found: dict[str, list[tuple[object, ...]]] = {label: [] for label in labels}
        with self._file.transaction("DEFERRED") as connection:
            known = stamps(connection, metric, scheme, labels)
        for stamp in [*known, *self._sums.stamps(metric, scheme, labels)]:
            found[str(stamp[0])].append(stamp)
        return {label: version_of(metric, scheme, each) for label, each in found.items()}

    def versions(self, asked: Mapping[str, Iterable[str]]) -> dict[str, bytes]:
        with self._file.transaction("DEFERRED") as connection:
            return many_versions(connection, asked)

    def drop(self, before: float, metrics: Collection[str] | None = None) -> int:
        with self._file.transaction("IMMEDIATE") as connection:
            found = connection.execute(
                "SELECT metric, scheme, window FROM tallies"
                + " WHERE metric IN (SELECT value FROM json_each(?))" * (metrics is not None),
                () if metrics is None else (json.dumps(list(metrics)),),
            ).fetchall()
            old = [TallyKey(*names) for names in found if end(names[2]) <= before]
            dropped = sum(forget(connection, tally) for tally in old)
            return dropped + drop_ended(connection, old, before, metrics)

    def ping(self) -> None:
        self._file.probe()

    def clear_journal(self, older_than: float) -> float | None:
        return self._file.clear_log(older_than)

    def close(self) -> None:
        self._file.close()


def _add_windows(
    connection: sqlite3.Connection,
    metric: str,
    scheme: str,
    totals: Mapping[str, NDArray[np.int64]],
) -> None:
    """Add each of these windows to its vector, within a transaction; windows that are to be added
    up have the same one."""
    add_pages(connection, metric, scheme, totals)
    for tally, block in blocks_of(connection, metric, scheme, totals):
        add_counters(tally, totals[tally.window], block)

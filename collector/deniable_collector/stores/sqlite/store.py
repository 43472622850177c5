"""The embedded store: one SQLite file, shared by all threads and processes of a machine.

Write-ahead log with synchronous=FULL: acknowledged batches survive a power cut. A tally is
stored as pages of packed little-endian counters, and a fold is one BEGIN IMMEDIATE transaction
that rewrites the pages that it changes.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from deniable import Scheme
from deniable.windows import end, start
from deniable_collector.stores.base import KeptBlock, Sealing, Store
from deniable_collector.stores.commits import Commit, TallyKey, new_stamp, version_of
from deniable_collector.stores.definitions import read_scheme, unpublished
from deniable_collector.stores.errors import StoreUnavailable
from deniable_collector.stores.ids import identity_of, terms_of
from deniable_collector.stores.sealed.archive import IN_THE_STORE, Archive, file_of
from deniable_collector.stores.sealed.blocks import (
    GoneFile,
    add_counters,
    block_of,
    counters_in,
    reports_in,
)
from deniable_collector.stores.sealed.streams import read_blocks
from deniable_collector.stores.sqlite.blocks import (
    archive_id,
    blocks_of,
    find_block,
    find_open,
    keep_archive_id,
    keep_otherwise,
    put_block,
    reopen,
    sealed_windows,
    sizes_of,
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
from deniable_collector.stores.sqlite.sums import (
    SqliteSums,
    drop_ended,
    kept_stamps,
    planned,
    sum_blocks,
)
from deniable_collector.stores.summed.summing import Sums
from deniable_collector.stores.summed.sums import Cover
from deniable_collector.stores.vectors import Addition, Shapes, gather, rows_of
from deniable_collector.tally import Tally

__all__ = ["SqliteStore"]

_LOOKS = 5
"""How often windows are read again that were dropped while they were read."""

_NAMED = 1024
"""The beginning of what is kept for a block, which has the whole name of its file if it has one."""


_READ_BYTES = 1 << 23
"""Bytes of blocks that are read at once."""


class _Missing(Exception):
    """A commit needs a file of a block."""

    def __init__(self, tally: TallyKey, kept: bytes) -> None:
        self.tally, self.kept = tally, kept
        super().__init__()


class SqliteStore(Store):
    """Tallies in one file. Writers create it; readers fail if it does not exist.

    Raises:
        StoreError: the file is no store of deniable, or a newer version wrote it.
    """

    def __init__(self, path: str | Path, archive: Archive = IN_THE_STORE) -> None:
        self._file = SqliteFile(path)
        self._archive = archive.of(self)
        self._shapes = Shapes(self.scheme)
        self._sums = Sums(SqliteSums(self._file, self._archive, self._shapes))

    @property
    def sums(self) -> Sums:
        return self._sums

    def fold(self, commit: Commit, now: float) -> frozenset[str]:
        additions = gather(commit.increments, self._shapes)
        fetched: dict[bytes, bytes] = {}
        while True:
            try:
                return self._fold(commit, additions, now, fetched)
            except _Missing as missing:
                # Outside of the transaction: all other commits would wait for a slow bucket.
                try:
                    fetched[missing.kept] = self._archive.get(missing.tally, missing.kept)
                except GoneFile:
                    # Unless another commit has opened it meanwhile, it is lost.
                    if KeptBlock(missing.tally, 0, missing.kept) in self.kept_blocks(missing.tally):
                        raise

    def _fold(
        self,
        commit: Commit,
        additions: Mapping[TallyKey, Addition],
        now: float,
        fetched: Mapping[bytes, bytes],
    ) -> frozenset[str]:
        opened: list[tuple[TallyKey, bytes]] = []
        with self._file.transaction("IMMEDIATE", create=True) as connection:
            seen = remember(connection, commit.ids, terms_of(commit), now)
            if not seen:
                prune(connection, len(commit.ids), now)
                for tally, addition in additions.items():
                    if (found := find_block(connection, tally)) is not None:
                        identity, kept = found
                        if file_of(kept) and kept not in fetched:
                            raise _Missing(tally, kept)
                        block = fetched.get(kept) or self._archive.get(tally, kept)
                        whole = counters_in(tally, addition.size, block)
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
        return self._tally(metric, scheme, windows, sums=True)

    def own_tally(self, tally: TallyKey) -> Tally:
        return self._tally(tally.metric, tally.scheme, [tally.window], sums=False)

    def _own_tallies(self, metric: str, scheme: str, windows: Sequence[str]) -> dict[str, Tally]:
        shape = self._shapes.of(metric, scheme)
        totals = dict(zip(windows, np.zeros((len(windows), shape.size), np.int64), strict=True))
        with self._file.transaction("DEFERRED") as connection:
            add_pages(connection, metric, scheme, totals)
            sizes = sizes_of(connection, metric, scheme, windows)
        for tally, block in self._blocks(metric, scheme, sizes):
            if block is not None:
                add_counters(tally, totals[tally.window], block)
            else:
                totals[tally.window] += self._again(tally, shape.size)
        return {
            label: Tally(metric, scheme, (label,), tuple(rows_of(shape, total)))
            for label, total in totals.items()
        }

    def _tally(self, metric: str, scheme: str, windows: Iterable[str], *, sums: bool) -> Tally:
        labels = tuple(dict.fromkeys(windows))
        shape = self._shapes.of(metric, scheme)

        for _ in range(_LOOKS):
            total = self._sum(metric, scheme, labels, shape.size, sums=sums)
            if total is not None:
                return Tally(metric, scheme, labels, tuple(rows_of(shape, total)))
        raise StoreUnavailable("others drop windows of this metric all the time")

    def _sum(
        self, metric: str, scheme: str, labels: tuple[str, ...], size: int, *, sums: bool
    ) -> NDArray[np.int64] | None:
        """The vector of these windows; None if some were dropped after it was planned."""
        total = np.zeros(size, np.int64)
        with self._file.transaction("DEFERRED") as connection:
            plan = planned(connection, metric, scheme, labels) if sums else Cover(labels, ())
            add_pages(connection, metric, scheme, dict.fromkeys(plan.windows, total))
            sizes = sizes_of(connection, metric, scheme, plan.windows)
            for tally, block in sum_blocks(connection, metric, scheme, plan.sums):
                add_counters(tally, total, block)
            before = kept_stamps(connection, metric, scheme)
        moved = False
        for tally, found in self._blocks(metric, scheme, sizes):
            if found is not None:
                add_counters(tally, total, found)
            else:
                moved = True
                total += self._again(tally, size)
        if moved:
            with self._file.transaction("DEFERRED") as connection:
                if kept_stamps(connection, metric, scheme) != before:
                    return None
        return total

    def row_reports(
        self, metric: str, scheme: str, windows: Iterable[str]
    ) -> dict[str, NDArray[np.int64]]:
        shape = self._shapes.of(metric, scheme)
        rows, labels = len(shape.widths), list(windows)
        found = {label: np.zeros(rows, np.int64) for label in labels}
        with self._file.transaction("DEFERRED") as connection:
            count_reports(connection, metric, scheme, found, shape.size)
            sizes = sizes_of(connection, metric, scheme, labels)
        for tally, block in self._blocks(metric, scheme, sizes):
            if block is not None:
                found[tally.window] += reports_in(tally, block)
            else:
                found[tally.window] += self._again(tally, shape.size)[:rows]
        return found

    def _blocks(
        self, metric: str, scheme: str, sizes: Mapping[str, int]
    ) -> Iterator[tuple[TallyKey, bytes | None]]:
        """The blocks of sealed windows; None for those that were opened again since.

        Blocks are immutable, so they are read outside of the transaction that has found them: a
        slow folder or bucket stops no commit.
        """
        return read_blocks(self._archive, self._kept(metric, scheme, sizes))

    def _kept(
        self, metric: str, scheme: str, sizes: Mapping[str, int]
    ) -> Iterator[tuple[TallyKey, bytes | None]]:
        some: list[str] = []
        size = 0
        last = len(sizes)
        for number, (label, each) in enumerate(sizes.items(), 1):
            some.append(label)
            size += each
            if size >= _READ_BYTES or number == last:
                with self._file.transaction("DEFERRED") as connection:
                    found = dict(blocks_of(connection, metric, scheme, some))
                for window in some:
                    tally = TallyKey(metric, scheme, window)
                    yield tally, found.get(tally)
                some, size = [], 0

    def _again(self, tally: TallyKey, size: int) -> NDArray[np.int64]:
        """The vector of a tally that was sealed, and may be open now."""
        counters = np.zeros(size, np.int64)
        with self._file.transaction("DEFERRED") as connection:
            add_pages(connection, *tally[:2], {tally.window: counters})
            kept = blocks_of(connection, *tally[:2], [tally.window])
        for _, each in kept:
            add_counters(tally, counters, self._archive.get(tally, each))
        return counters

    def sealed(self, metric: str, scheme: str, windows: Iterable[str]) -> frozenset[str]:
        with self._file.transaction("DEFERRED") as connection:
            return sealed_windows(connection, metric, scheme, windows)

    def block_files(self) -> frozenset[str]:
        with self._file.transaction("DEFERRED") as connection:
            found = connection.execute("SELECT substr(block, 1, ?) FROM blocks", (_NAMED,))
            return frozenset(name for (kept,) in found if (name := file_of(kept)))

    def kept_blocks(self, tally: TallyKey) -> list[KeptBlock]:
        with self._file.transaction("DEFERRED") as connection:
            found = find_block(connection, tally)
        return [] if found is None else [KeptBlock(tally, 0, found[1])]

    def keep_otherwise(self, block: KeptBlock, kept: bytes) -> bool:
        with self._file.transaction("IMMEDIATE") as connection:
            return keep_otherwise(connection, block.tally, block.kept, kept)

    def identity(self) -> str:
        with self._file.transaction("DEFERRED") as connection:
            ((seed,),) = connection.execute("SELECT seed FROM secrets")
        return identity_of(seed)

    def archive_id(self) -> str | None:
        with self._file.transaction("DEFERRED") as connection:
            return archive_id(connection)

    def archive_trouble(self) -> str | None:
        return self._archive.trouble()

    def keep_archive_id(self, identity: str) -> str:
        with self._file.transaction("IMMEDIATE") as connection:
            keep_archive_id(connection, identity)
            return archive_id(connection) or identity

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
        with self._file.transaction("DEFERRED") as connection:
            found = connection.execute(
                "SELECT metric, scheme, window FROM tallies"
                + " WHERE metric IN (SELECT value FROM json_each(?))" * (metrics is not None),
                () if metrics is None else (json.dumps(list(metrics)),),
            ).fetchall()
            old = [TallyKey(*names) for names in found if end(names[2]) <= before]
            kept = {each: block for each in old if (block := find_block(connection, each))}
        for tally, (_, each) in kept.items():
            if file_of(each):
                # All files are in one place.
                self._archive.check_forgetting(tally, each)
                break
        with self._file.transaction("IMMEDIATE") as connection:
            gone = [(tally, find_block(connection, tally)) for tally in old]
            dropped = sum(forget(connection, tally) for tally in old)
            dropped += drop_ended(connection, old, before, metrics)
        for tally, block in gone:
            if block is not None:
                self._archive.forget(tally, block[1])
        return dropped

    def ping(self) -> None:
        self._file.probe()

    def clear_journal(self, older_than: float) -> float | None:
        return self._file.clear_log(older_than)

    def close(self) -> None:
        self._file.close()

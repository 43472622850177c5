"""The embedded store: one SQLite file, shared by all threads and processes of a machine.

Write-ahead log with synchronous=FULL: acknowledged batches survive a power cut. A fold is one BEGIN
IMMEDIATE transaction, which appends increments to the tallies that it changes (`tallies.py`).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path

from deniable import Scheme
from deniable_collector.stores.base import Store
from deniable_collector.stores.commits import Commit, TallyKey, new_stamp, read_scheme
from deniable_collector.stores.contract import Change, Found, Head, Heads, Of, Take
from deniable_collector.stores.errors import StoreError
from deniable_collector.stores.ids import terms_of
from deniable_collector.stores.increments import SEALED
from deniable_collector.stores.sealed import DamagedBlock
from deniable_collector.stores.sqlite.file import SqliteFile
from deniable_collector.stores.sqlite.ids import prune, remember
from deniable_collector.stores.sqlite.tallies import add_to, forget, held, merge, put_block, tallies

_AT_ONCE = 0.02
"""Seconds for which tallies are merged before others may write."""


class SqliteStore(Store):
    """Tallies in one file. Writers create it; readers fail if it does not exist.

    Raises:
        StoreError: the file is no store of this version of deniable.
    """

    def __init__(self, path: str | Path) -> None:
        super().__init__()
        self._file = SqliteFile(path)
        self._folded = False

    @property
    def shards(self) -> int:
        return 1

    def identity(self) -> str:
        with self._file.transaction("DEFERRED") as connection:
            ((identity,),) = connection.execute("SELECT identity FROM secrets")
        return str(identity)

    def fold(self, commit: Commit, now: float) -> frozenset[str]:
        self.check(commit)
        self._folded = True
        with self._file.transaction("IMMEDIATE", create=True) as connection:
            seen = remember(connection, commit.ids, terms_of(commit), now)
            if not seen:
                prune(connection, len(commit.ids), now)
                for tally, addition in commit.additions.items():
                    add_to(connection, tally, self.shape(*tally[:2]), addition)
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

    def names(self, shard: int, metric: str, scheme: str) -> list[str]:
        with self._file.transaction("DEFERRED") as connection:
            found = connection.execute(
                "SELECT window FROM tallies WHERE metric = ? AND scheme = ?", (metric, scheme)
            )
            return list(chain.from_iterable(found))

    def heads(self, shard: int, asked: Mapping[Of, Sequence[str]]) -> Heads:
        with self._file.transaction("DEFERRED") as connection:
            return {
                of: {
                    name: Head(f"{stamp:016x}", kind == SEALED, record)
                    for _, name, stamp, kind, _, _, record in tallies(connection, *of, names)
                }
                for of, names in asked.items()
            }

    def read(
        self, shard: int, metric: str, scheme: str, names: Iterable[str], take: Take
    ) -> dict[str, Found]:
        found: dict[str, Found] = {}
        with self._file.transaction("DEFERRED") as connection:
            for each in tallies(connection, metric, scheme, names):
                take(TallyKey(metric, scheme, each.window), held(connection, each))
                found[each.window] = Found(f"{each.stamp:016x}", each.block + each.added)
        return found

    def change(self, shard: int, metric: str, scheme: str, change: Change) -> bool:
        with self._file.transaction("IMMEDIATE") as connection:
            there = {
                each.window: each for each in tallies(connection, metric, scheme, change.expected)
            }
            if any(
                (f"{there[name].stamp:016x}" if name in there else "") != stamp
                for name, stamp in change.expected.items()
            ):
                return False
            forget(connection, metric, scheme, [*change.dropped, *change.put])
            for name, block in change.sealed.items():
                put_block(connection, there[name].identity, block)
            for name, (record, block) in change.put.items():
                made = connection.execute(
                    "INSERT INTO tallies (metric, scheme, window, stamp, kind, record) "
                    "VALUES (?, ?, ?, ?, ?, ?)",
                    (metric, scheme, name, new_stamp(), SEALED, record),
                )
                put_block(connection, made.lastrowid or 0, block)
        return True

    def merge(self) -> None:
        with self._file.transaction("DEFERRED") as connection:
            found = connection.execute(
                "SELECT metric, scheme, window FROM tallies WHERE added > 0"
            ).fetchall()
        due = [(tally, self.shape(*tally[:2])) for tally in map(TallyKey._make, found)]
        trouble: DamagedBlock | None = None
        while due:
            ends = time.monotonic() + _AT_ONCE
            with self._file.transaction("IMMEDIATE") as connection:
                while due and time.monotonic() < ends:
                    tally, shape = due.pop()
                    try:
                        for each in tallies(connection, *tally[:2], [tally.window]):
                            if each.added:
                                merge(connection, each, tally, shape)
                    except DamagedBlock as error:
                        trouble = error
        if trouble is not None:
            raise trouble

    def ping(self) -> None:
        self._file.probe()

    def clear_journal(self, older_than: float) -> float | None:
        return self._file.clear_log(older_than, self.merge)

    def close(self) -> None:
        # Readers leave it to the collector, and what cannot be merged now to the next one.
        with suppress(StoreError):
            if self._folded:
                self.merge()
        self._file.close()

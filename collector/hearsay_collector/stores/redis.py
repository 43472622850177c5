"""The store that scales out: packed rows of counters in Redis, one atomic script per fold.

All keys begin with one prefix, and the keys of a shard carry its tag, `{s}`, so that a
commit stays in one slot of a cluster; readers add the shards. `fold.lua` beside this file
describes the layout of a row. Nothing here scans the keyspace.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from importlib.resources import files
from typing import Any, cast

import numpy as np
import redis
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
    TallyKey,
)
from hearsay_collector.stores.definitions import read_scheme, unpublished
from hearsay_collector.stores.driver import Driver, translated
from hearsay_collector.tally import Tally, TallyRow, empty_tally

__all__ = ["RedisStore"]

_LAYOUT = 1
"""The version of everything this file and `fold.lua` write."""

_DAY = 86_400
_DAYS_KEPT = int(ID_LIFETIME // _DAY) + 1
_BUCKET_SECONDS = (_DAYS_KEPT + 2) * _DAY
"""A bucket is made on the first id of its day, and must outlive the last one."""

_HEADER = struct.Struct("<QQ")
_RUN = struct.Struct("<II")
_RUN_CELLS = 512
_RUN_GAP = 8
"""Reading and writing so many zeros costs less than one more pair of calls."""


class RedisStore(Store):
    """Tallies in the Redis behind `driver`, under `prefix`.

    `shards` is how many shards a new store is laid out with; a store that exists keeps
    its own number, because a retry must meet the shard that knows its id.
    """

    def __init__(self, driver: Driver, *, prefix: str = "hearsay", shards: int = 1) -> None:
        self._driver = driver
        self._prefix = prefix
        self._wished_shards = shards
        self._shards: int | None = None
        script = files(__package__).joinpath("fold.lua").read_text(encoding="utf-8")
        self._fold = driver.script(script)

    @property
    def shards(self) -> int:
        if self._shards is None:
            # Nothing is remembered of a store that is not laid out yet: its writer may
            # still choose another number.
            self._shards = self._read_layout()
        return self._shards or self._wished_shards

    def fold(self, commit: Commit, now: float) -> frozenset[str]:
        tallies = list(dict.fromkeys(key.tally for key in commit.increments))
        today = int(now // _DAY)
        # A collector whose clock is ahead may already write to the bucket of tomorrow.
        days = (today, today + 1, *range(today - 1, today - _DAYS_KEPT - 1, -1))
        keys = [self._key(commit.shard, "ids", str(day)) for day in days]
        keys += [self._key(commit.shard, "windows", tally[0], tally[1]) for tally in tallies]
        arguments: list[Any] = [len(days), len(tallies), _BUCKET_SECONDS, MAX_CELL]
        arguments += [len(commit.ids), *map(bytes.fromhex, commit.ids)]
        arguments += [tally.window for tally in tallies]
        for (tally, row), increment in commit.increments.items():
            if increment.top > MAX_CELL:
                raise _full(tally.metric, tally.window)
            keys.append(self._row_key(commit.shard, tally, row))
            arguments += [increment.reports, b"".join(_runs(increment))]
        with translated():
            verdict, *places = cast(list[int], self._fold(keys, arguments))
            # Of ids that were seen as well: their first commit may still be on its way.
            self._driver.wait_for_replicas(self._key(commit.shard, "replicated"))
        if verdict == 2:
            tally, _ = list(commit.increments)[places[0] - 1]
            raise _full(tally.metric, tally.window)
        return frozenset(commit.ids[place - 1] for place in places)

    def publish(self, schemes: Mapping[str, Iterable[Scheme]]) -> None:
        fields = {
            f"{metric}:{scheme.fingerprint}": scheme.canonical()
            for metric, each in schemes.items()
            for scheme in each
        }
        with translated():
            layout = f"{self._prefix}:layout"
            self._client.hsetnx(layout, "version", str(_LAYOUT))
            self._client.hsetnx(layout, "shards", str(self._wished_shards))
            laid_out = self._read_layout()
            if laid_out != self._wished_shards:
                raise StoreError(
                    f"this store was laid out with {laid_out} shards, which cannot change: "
                    f"set HEARSAY_SHARDS={laid_out}"
                )
            if fields:
                self._client.hset(self._schemes_key, mapping=cast(Any, fields))

    def schemes(self) -> dict[str, dict[str, Scheme]]:
        with translated():
            found = cast(dict[bytes, bytes], self._client.hgetall(self._schemes_key))
        published: dict[str, dict[str, Scheme]] = {}
        for name, definition in found.items():
            metric, fingerprint = name.decode().split(":")
            published.setdefault(metric, {})[fingerprint] = read_scheme(definition)
        return published

    def scheme(self, metric: str, fingerprint: str) -> Scheme:
        with translated():
            found = self._client.hget(self._schemes_key, f"{metric}:{fingerprint}")
        if found is None:
            raise unpublished(metric, fingerprint)
        return read_scheme(cast(bytes, found))

    def windows(self, metric: str, scheme: str) -> list[str]:
        labels: set[str] = set()
        for shard in range(self.shards):
            labels.update(self._windows(shard, metric, scheme))
        return sorted(labels, key=start)

    def tally(self, metric: str, scheme: str, windows: Iterable[str]) -> Tally:
        labels = tuple(dict.fromkeys(windows))
        rows = self.scheme(metric, scheme).mechanism.rows
        total = empty_tally(metric, scheme, labels, rows)
        reports = [0] * len(rows)
        for shard in range(self.shards):
            for label in labels:
                key = TallyKey(metric, scheme, label)
                keys = [self._row_key(shard, key, row) for row in range(len(rows))]
                with translated():
                    # A row is one string, so its reports and its cells belong together.
                    packed = cast(list[bytes | None], self._client.mget(keys))
                for row, value in enumerate(packed):
                    if value is not None:
                        count, size = _HEADER.unpack_from(value)
                        cells = np.frombuffer(value, f"<u{size}", offset=_HEADER.size)
                        total.rows[row].cells[: len(cells)] += cells.astype(np.int64)
                        reports[row] += count
        counted = zip(reports, total.rows, strict=True)
        return replace(total, rows=tuple(TallyRow(count, row.cells) for count, row in counted))

    def drop(self, before: float) -> int:
        gone = set()
        for metric, published in self.schemes().items():
            for fingerprint, scheme in published.items():
                for shard in range(self.shards):
                    for label in self._windows(shard, metric, fingerprint):
                        if end(label) <= before:
                            key = TallyKey(metric, fingerprint, label)
                            self._forget(shard, key, len(scheme.mechanism.rows))
                            gone.add(key)
        return len(gone)

    def ping(self) -> None:
        # A write: a replica, or a server that cannot save, answers a bare PING.
        with translated():
            self._client.set(f"{self._prefix}:ping", b"", ex=60)

    def close(self) -> None:
        self._driver.close()

    @property
    def _client(self) -> redis.Redis:
        return self._driver.client

    @property
    def _schemes_key(self) -> str:
        return f"{self._prefix}:schemes"

    def _key(self, shard: int, *parts: str) -> str:
        return ":".join((self._prefix, f"{{{shard}}}", *parts))

    def _row_key(self, shard: int, tally: TallyKey, row: int) -> str:
        return self._key(shard, "row", *tally, str(row))

    def _windows(self, shard: int, metric: str, scheme: str) -> list[str]:
        with translated():
            found = self._client.smembers(self._key(shard, "windows", metric, scheme))
        return [label.decode() for label in cast(set[bytes], found)]

    def _forget(self, shard: int, tally: TallyKey, rows: int) -> None:
        index = self._key(shard, "windows", tally.metric, tally.scheme)
        with translated(), self._client.pipeline(transaction=True) as pipeline:
            pipeline.unlink(*(self._row_key(shard, tally, row) for row in range(rows)))
            pipeline.srem(index, tally.window)
            pipeline.execute()

    def _read_layout(self) -> int | None:
        """The number of shards that the store was laid out with; None before the first publish."""
        with translated():
            found = cast(dict[bytes, bytes], self._client.hgetall(f"{self._prefix}:layout"))
        if not found:
            return None
        if int(found[b"version"]) > _LAYOUT:
            raise StoreError("a newer version of hearsay wrote this store: upgrade this one")
        return int(found[b"shards"])


def _runs(increment: Increment) -> Iterator[bytes]:
    """The increment as runs of neighbouring columns, dense within a run."""
    columns: NDArray[np.int64] = np.asarray(increment.columns, np.int64)
    counts: NDArray[np.int64] = np.asarray(increment.counts, np.int64)
    if not len(columns):
        return
    first = int(columns.min())
    span = int(columns.max()) - first + 1
    if span <= min(_RUN_CELLS, _RUN_GAP * len(columns)):
        # The rows of devices' batches are mostly like this, and a commit has many of them.
        dense = np.zeros(span, "<u8")
        dense[columns - first] = counts
        yield _RUN.pack(first, span) + dense.tobytes()
        return
    order = np.argsort(columns)
    columns, counts = columns[order], counts[order]
    breaks = np.flatnonzero(np.diff(columns) > _RUN_GAP) + 1
    for near, added in zip(np.split(columns, breaks), np.split(counts, breaks), strict=True):
        first = int(near[0])
        dense = np.zeros(int(near[-1]) - first + 1, "<u8")
        dense[near - first] = added
        for offset in range(0, len(dense), _RUN_CELLS):
            piece = dense[offset : offset + _RUN_CELLS]
            yield _RUN.pack(first + offset, len(piece)) + piece.tobytes()


def _full(metric: str, window: str) -> StoreError:
    return StoreError(
        f"a counter of metric {metric}, window {window} is at its top ({MAX_CELL}): "
        "nothing was added"
    )

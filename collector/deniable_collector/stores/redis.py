"""The store that scales out: packed rows of counters in Redis, one atomic script per fold.

All keys begin with one prefix, and the keys of a shard carry its tag, `{s}`, so that a
commit stays in one slot of a cluster; readers add the shards. A tally is one string, and
`fold.lua` beside this file says what is in it. Nothing here scans the keyspace.

Many counters are added by numpy: the tally is read, added to, and swapped for the sum if
nobody has changed it meanwhile. Few are added by the script, in place.
"""

from __future__ import annotations

import math
import secrets
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Any, cast

import numpy as np
import redis
from numpy.typing import NDArray

from deniable import Scheme
from deniable.windows import end, start
from deniable_collector.stores import ids
from deniable_collector.stores.base import (
    MAX_CELL,
    Commit,
    Store,
    StoreError,
    StoreUnavailable,
    TallyKey,
    new_stamp,
    version_of,
)
from deniable_collector.stores.definitions import read_scheme, unpublished
from deniable_collector.stores.driver import Driver
from deniable_collector.stores.redis_errors import translated
from deniable_collector.stores.redis_journal import AppendOnlyFiles
from deniable_collector.stores.vectors import Addition, Shapes, full, gather, rows_of
from deniable_collector.tally import Tally

__all__ = ["RedisStore"]

_LAYOUT = 2
"""The version of everything this file and `fold.lua` write."""

_HEADER = struct.Struct("<QQ")
_NARROW_TOP = 2**32 - 1

_FULL, _CHANGED, _NEEDS_SWAP, _OTHER_SEED = 2, 3, 4, 5
"""What the script can answer beside that the commit is in, or that ids were seen."""

_SWAPS = 2
"""Times that a commit tries to swap a tally; where others are faster, it adds in place."""

_ATTEMPTS = 100
"""Calls of the script for one commit: where a swap is the only way, others may be faster."""

_SWAP, _SWAP_COUNTER = 110.0, 0.0135
_RUN, _RUN_COUNTER = 3.5, 0.15
"""What the ways of adding cost, in microseconds of both sides: a swap for itself and for each
counter of the tally, a run for itself and for each of its counters (benchmarks/stores.py)."""

_RUN_GAP = 16
_RUN_COUNTERS = 512
"""Reading and writing up to so many zeros costs less than another run; the longest run."""

_PINGED = 3
"""Shards that are asked whether one of them takes a commit; more would take too long."""

_READ_BYTES = 1 << 23
"""Bytes of tallies that are read at once."""


class RedisStore(Store):
    """Tallies in the Redis behind `driver`, under `prefix`.

    `shards` is how many shards a new store is laid out with; a store that exists keeps
    its own number, because a retry must meet the shard that knows its id.
    """

    def __init__(self, driver: Driver, *, prefix: str = "deniable", shards: int = 1) -> None:
        self._driver = driver
        self._prefix = prefix
        self._wished_shards = shards
        self._shards: int | None = None
        script = files(__package__).joinpath("fold.lua").read_text(encoding="utf-8")
        self._fold = driver.script(script)
        self._shapes = Shapes(self.scheme)
        self._files = AppendOnlyFiles(driver)
        # Each shard has its own seed; which one it is, the first commit to it tells.
        self._seed = secrets.token_bytes(ids.SEED_BYTES)
        self._seeds: dict[int, bytes] = {}

    @property
    def shards(self) -> int:
        if self._shards is None:
            # Nothing is remembered of a store that is not laid out yet: its writer may
            # still choose another number.
            self._shards = self._read_layout()
        return self._shards or self._wished_shards

    def fold(self, commit: Commit, now: float) -> frozenset[str]:
        parts = [
            _TallyWrite(tally, self._tally_key(commit.shard, tally), addition)
            for tally, addition in gather(commit.increments, self._shapes).items()
        ]
        keys = [self._key(commit.shard, "ids", "seed")]
        for term, seconds in enumerate(ids.TERMS):
            # The shortest term has the names of the versions before there were others.
            parent = ("ids", f"{seconds / 86_400:.0f}d") if term else ("ids",)
            keys += [
                self._key(commit.shard, *parent, str(each))
                for each in ids.generations_at(now, term)
            ]
        for part in parts:
            keys += [self._key(commit.shard, "windows", *part.tally[:2]), part.key]
        lifetimes = [math.ceil(ids.lifetime_at(now, term)) for term in range(len(ids.TERMS))]
        stamps = b"".join(part.stamp for part in parts)
        limits = (" ".join(map(str, lifetimes)), MAX_CELL, ids.FIRST_LEVEL, ids.DEEPEST, stamps)
        terms = "".join(map(str, ids.terms_of(commit)))
        must_swap: set[int] = set()
        with self._files.writing(), translated():
            for attempt in range(_ATTEMPTS):
                seed = self._seeds.get(commit.shard, self._seed)
                arguments: list[Any] = [seed, *limits, terms, *ids.name(commit.ids, seed)]
                swaps = {
                    number
                    for number, part in enumerate(parts)
                    if number in must_swap or part.must_swap or (attempt < _SWAPS and part.may_swap)
                }
                found = self._read([parts[number].key for number in sorted(swaps)])
                for number, part in enumerate(parts):
                    swap = part.swap(next(found)) if number in swaps else ("+", part.runs)
                    arguments += [part.tally.window, *swap]
                verdict, *places = cast(list[Any], self._fold(keys, arguments))
                if verdict == _NEEDS_SWAP:
                    must_swap.add(places[0] - 1)
                elif verdict == _OTHER_SEED:
                    self._seeds[commit.shard] = places[0]
                elif verdict != _CHANGED:
                    break
            else:
                raise StoreUnavailable("others change the same tally all the time")
            # Of ids that were seen as well: their first commit may still be on its way.
            self._driver.wait_for_replicas(self._key(commit.shard, "replicated"))
        if verdict == _FULL:
            raise full(parts[places[0] - 1].tally)
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
                    f"set DENIABLE_SHARDS={laid_out}"
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
        shape = self._shapes.of(metric, scheme)
        total = np.zeros(shape.size, np.int64)
        at_once = max(1, _READ_BYTES // (4 * shape.size))
        for shard in range(self.shards):
            keys = [self._tally_key(shard, TallyKey(metric, scheme, label)) for label in labels]
            for first in range(0, len(keys), at_once):
                with translated():
                    for value in self._read(keys[first : first + at_once]):
                        if value is not None:
                            counters = _counters(value)
                            total[: len(counters)] += counters
        return Tally(metric, scheme, labels, tuple(rows_of(shape, total)))

    def row_reports(
        self, metric: str, scheme: str, windows: Iterable[str]
    ) -> dict[str, NDArray[np.int64]]:
        rows = len(self._shapes.of(metric, scheme).widths)
        found = {label: np.zeros(rows, np.int64) for label in windows}
        asked = [(label, shard) for label in found for shard in range(self.shards)]
        with translated(), self._client.pipeline(transaction=False) as pipeline:
            for label, shard in asked:
                key = self._tally_key(shard, TallyKey(metric, scheme, label))
                # The rows' reports come first, in 8 bytes each at most.
                pipeline.getrange(key, 0, _HEADER.size + 8 * rows - 1)
            values = pipeline.execute() if asked else []
        for (label, _), value in zip(asked, values, strict=True):
            if value:
                counts = _counters(value)[:rows]
                found[label][: len(counts)] += counts
        return found

    def version(self, metric: str, scheme: str, windows: Iterable[str]) -> bytes:
        return version_of(metric, scheme, self._stamps(metric, scheme, windows))

    def each_version(self, metric: str, scheme: str, windows: Iterable[str]) -> dict[str, bytes]:
        found: dict[str, list[tuple[object, ...]]] = {label: [] for label in windows}
        for stamp in self._stamps(metric, scheme, found):
            found[str(stamp[0])].append(stamp)
        return {label: version_of(metric, scheme, each) for label, each in found.items()}

    def _stamps(self, metric: str, scheme: str, windows: Iterable[str]) -> list[tuple[object, ...]]:
        """Window, shard and header of each existing part of these tallies."""
        labels = tuple(dict.fromkeys(windows))
        asked = [(label, shard) for label in labels for shard in range(self.shards)]
        with translated(), self._client.pipeline(transaction=False) as pipeline:
            for label, shard in asked:
                key = self._tally_key(shard, TallyKey(metric, scheme, label))
                pipeline.getrange(key, 0, _HEADER.size - 1)
            headers = pipeline.execute() if asked else []
        return [(*place, header) for place, header in zip(asked, headers, strict=True) if header]

    def versions(self, asked: Mapping[str, Iterable[str]]) -> dict[str, bytes]:
        with translated():
            # Not HKEYS, which readers that were set up earlier may not call.
            names = cast(dict[bytes, bytes], self._client.hgetall(self._schemes_key))
        keys = [
            (metric, (scheme, label, shard))
            for metric, scheme in (name.decode().split(":") for name in names)
            for label in asked.get(metric, ())
            for shard in range(self.shards)
        ]
        found: dict[str, list[tuple[object, ...]]] = {}
        with translated(), self._client.pipeline(transaction=False) as pipeline:
            for metric, (scheme, label, shard) in keys:
                key = self._tally_key(shard, TallyKey(metric, scheme, label))
                pipeline.getrange(key, 0, _HEADER.size - 1)
            headers = pipeline.execute() if keys else []
        for (metric, place), header in zip(keys, headers, strict=True):
            if header:
                found.setdefault(metric, []).append((*place, header))
        return {metric: version_of(metric, "", each) for metric, each in found.items()}

    def drop(self, before: float) -> int:
        gone = set()
        for metric, published in self.schemes().items():
            for fingerprint in published:
                for shard in range(self.shards):
                    for label in self._windows(shard, metric, fingerprint):
                        if end(label) <= before:
                            key = TallyKey(metric, fingerprint, label)
                            self._forget(shard, key)
                            gone.add(key)
        return len(gone)

    def ping(self) -> None:
        trouble: StoreUnavailable | None = None
        # Where one shard's node is away, the others take commits.
        for shard in range(min(self.shards, _PINGED)):
            try:
                with translated():
                    # A write: a replica, or a server that cannot save, answers a bare PING.
                    # Its expiry would be a time in Redis's log.
                    self._client.set(self._key(shard, "ping"), b"")
                    self._driver.wait_for_replicas(self._key(shard, "replicated"))
                return
            except StoreUnavailable as error:
                trouble = error
        if trouble is not None:
            raise trouble

    def clear_journal(self, older_than: float) -> float | None:
        return self._files.clear(older_than)

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

    def _tally_key(self, shard: int, tally: TallyKey) -> str:
        return self._key(shard, "tally", *tally)

    def _read(self, keys: Sequence[str]) -> Iterator[bytes | None]:
        return iter(cast(list[bytes | None], self._client.mget(keys)) if keys else ())

    def _windows(self, shard: int, metric: str, scheme: str) -> list[str]:
        with translated():
            found = self._client.smembers(self._key(shard, "windows", metric, scheme))
        return [label.decode() for label in cast(set[bytes], found)]

    def _forget(self, shard: int, tally: TallyKey) -> None:
        index = self._key(shard, "windows", tally.metric, tally.scheme)
        with translated(), self._client.pipeline(transaction=True) as pipeline:
            pipeline.unlink(self._tally_key(shard, tally))
            pipeline.srem(index, tally.window)
            pipeline.execute()

    def _read_layout(self) -> int | None:
        """The number of shards that the store was laid out with; None before the first publish."""
        with translated():
            found = cast(dict[bytes, bytes], self._client.hgetall(f"{self._prefix}:layout"))
        if not found:
            return None
        version = int(found[b"version"])
        if version > _LAYOUT:
            raise StoreError("a newer version of deniable wrote this store: upgrade this one")
        if version < _LAYOUT:
            raise StoreError(
                f"a version of deniable before its release wrote this store (layout {version}), "
                "which this one cannot read: set another DENIABLE_REDIS_PREFIX"
            )
        return int(found[b"shards"])


class _TallyWrite:
    """What a commit adds to one tally, and the ways in which it can be added."""

    def __init__(self, tally: TallyKey, key: str, addition: Addition) -> None:
        self.tally = tally
        self.key = key
        self.stamp = new_stamp().to_bytes(8, "little")
        self._addition = addition
        self._sparse: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None
        self.must_swap = int(addition.counts.max()) > _NARROW_TOP
        if addition.places is None:
            touched, runs = addition.size, 1 + addition.size // _RUN_COUNTERS
        else:
            self._sparse = places, _ = addition.sparse()
            touched = len(places)
            runs = 1 + int(np.count_nonzero(np.diff(places) > _RUN_GAP))
        swap = _SWAP + _SWAP_COUNTER * addition.size
        self.may_swap = swap < _RUN * runs + _RUN_COUNTER * touched

    def swap(self, old: bytes | None) -> tuple[bytes, bytes]:
        """The header of the old string, and the whole new one.

        Raises:
            StoreError: a counter would exceed the highest.
        """
        counters = np.zeros(self._addition.size, np.int64)
        if old is not None:
            before = _counters(old)
            counters[: len(before)] = before
        self._addition.to(counters)
        top = int(counters.max())
        if top > MAX_CELL:
            raise full(self.tally)
        size = 4 if top <= _NARROW_TOP else 8
        new = self.stamp + size.to_bytes(8, "little") + counters.astype(f"<u{size}").tobytes()
        return (old or b"")[: _HEADER.size], new

    @property
    def runs(self) -> bytes:
        """The addition as runs of neighbouring counters, dense within a run."""
        places, counts = self._sparse or self._addition.sparse()
        new = np.diff(places, prepend=-_RUN_GAP - 1) > _RUN_GAP
        # Long runs are cut: the script has them on its stack.
        starts = places[new]
        since = places - np.repeat(starts, np.diff(np.flatnonzero(new), append=len(places)))
        new[1:] |= np.diff(since // _RUN_COUNTERS) > 0
        begins = np.flatnonzero(new)
        ends = np.append(begins[1:], len(places)) - 1
        firsts, lengths = places[begins], places[ends] - places[begins] + 1
        heads = np.cumsum(2 + lengths) - lengths - 2
        runs = np.zeros(int(np.sum(2 + lengths)), "<u4")
        runs[heads], runs[heads + 1] = firsts, lengths
        runs[places + np.repeat(heads + 2 - firsts, ends + 1 - begins)] = counts
        return runs.tobytes()


def _counters(value: bytes) -> NDArray[np.int64]:
    """The counters in a tally's string; zeros at its end may be missing."""
    _, size = _HEADER.unpack_from(value)
    return np.frombuffer(value, f"<u{size}", offset=_HEADER.size).astype(np.int64)

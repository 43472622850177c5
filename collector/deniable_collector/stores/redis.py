"""The store that scales out: packed rows of counters in Redis, one atomic script per fold.

All keys begin with one prefix, and the keys of a shard carry its tag, `{s}`, so that a
commit stays in one slot of a cluster; readers add the shards. A tally is one string, and
`fold.lua` beside this file says what is in it. Nothing here scans the keyspace.

Many counters are added by numpy: the tally is read, added to, and swapped for the sum if
nobody has changed it meanwhile. Few are added by the script, in place.

A sealed tally that has its block in a file is opened by a commit, and the file stays: a Redis that
crashes may forget its last second, and refer to it again. `block_files` tells which are in use.
"""

from __future__ import annotations

import hashlib
import math
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
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
    Sealing,
    Store,
    StoreError,
    StoreUnavailable,
    TallyKey,
    version_of,
)
from deniable_collector.stores.blocks import IN_THE_STORE, Archive, GoneFile, block_of, file_of
from deniable_collector.stores.definitions import read_scheme, unpublished
from deniable_collector.stores.driver import Driver
from deniable_collector.stores.redis_errors import translated
from deniable_collector.stores.redis_forms import (
    HEADER,
    TallyWrite,
    add_value,
    counters_of,
    is_sealed,
    kept_in,
    reports_of,
    sealed_reports,
    sealed_value,
)
from deniable_collector.stores.redis_journal import AppendOnlyFiles
from deniable_collector.stores.vectors import Shape, Shapes, full, gather, rows_of
from deniable_collector.tally import Tally

__all__ = ["RedisStore"]

_LAYOUT, _OLDEST_LAYOUT = 3, 2
"""The version of everything this file and `fold.lua` write, and the oldest one that they read, in
which all tallies are dense."""

_FULL, _CHANGED, _NEEDS_SWAP, _OTHER_SEED = 2, 3, 4, 5
"""What the script can answer beside that the commit is in, or that ids were seen."""

_SWAPS = 2
"""Times that a commit tries to swap a tally; where others are faster, it adds in place."""

_ATTEMPTS = 100
"""Calls of the script for one commit: where a swap is the only way, others may be faster."""

_STAMP = 8
"""Bytes of a tally's stamp, which its string begins with."""

_PINGED = 3
"""Shards that are asked whether one of them takes a commit; more would take too long."""

_NAMED = 1024
"""The beginning of a sealed string, which has the whole name of its file if it has one."""

_READ_BYTES = 1 << 23
"""Bytes of tallies that are read at once."""


class RedisStore(Store):
    """Tallies in the Redis behind `driver`, under `prefix`.

    `shards` is how many shards a new store is laid out with; a store that exists keeps
    its own number, because a retry must meet the shard that knows its id.
    """

    def __init__(
        self,
        driver: Driver,
        *,
        prefix: str = "deniable",
        shards: int = 1,
        archive: Archive = IN_THE_STORE,
    ) -> None:
        self._driver = driver
        self._archive = archive
        self._prefix = prefix
        self._wished_shards = shards
        self._shards: int | None = None
        self._fold = driver.script(_script("fold.lua"))
        self._seal = driver.script(_script("seal.lua"))
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
            TallyWrite(
                tally,
                self._tally_key(commit.shard, tally),
                addition,
                self._shapes.of(tally.metric, tally.scheme),
                self._archive,
            )
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
                asked = sorted(swaps)
                found = dict(
                    zip(asked, self._read([parts[each].key for each in asked]), strict=True)
                )
                for number, part in enumerate(parts):
                    if number in swaps:
                        swap = part.swap(found[number])
                    else:
                        swap = part.first_form, part.runs
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
            self._raise_layout()
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
        tallies = [TallyKey(metric, scheme, label) for label in labels]
        for shard in range(self.shards):
            for first in range(0, len(tallies), at_once):
                some = tallies[first : first + at_once]
                with translated():
                    values = self._read([self._tally_key(shard, each) for each in some])
                    for tally, value in zip(some, values, strict=True):
                        self._add(shard, tally, value, total)
        return Tally(metric, scheme, labels, tuple(rows_of(shape, total)))

    def _add(
        self, shard: int, tally: TallyKey, value: bytes | None, total: NDArray[np.int64]
    ) -> None:
        """Add the counters in a string that was read, if there is one."""
        try:
            if value is not None:
                add_value(value, tally, total, self._archive)
        except GoneFile:
            # It was opened again since it was read; a second look tells.
            (again,) = self._read([self._tally_key(shard, tally)])
            if again is not None:
                add_value(again, tally, total, self._archive)

    def row_reports(
        self, metric: str, scheme: str, windows: Iterable[str]
    ) -> dict[str, NDArray[np.int64]]:
        shape = self._shapes.of(metric, scheme)
        rows = len(shape.widths)
        found = {label: np.zeros(rows, np.int64) for label in windows}
        # The rows' reports come first in open forms, in 8 bytes each at most.
        sealed = []
        for label, shard, value in self._beginnings(metric, scheme, found, 8 * rows):
            if is_sealed(value):
                sealed.append((TallyKey(metric, scheme, label), shard))
            else:
                found[label] += reports_of(value, rows)
        with translated(), self._client.pipeline(transaction=False) as pipeline:
            for tally, shard in sealed:
                pipeline.get(self._tally_key(shard, tally))
            values = pipeline.execute() if sealed else []
            for (tally, shard), value in zip(sealed, values, strict=True):
                if value is not None and is_sealed(value):
                    with suppress(GoneFile):
                        found[tally.window] += sealed_reports(value, tally, self._archive)
                        continue
                # It was opened again since its beginning was read.
                (again,) = self._read([self._tally_key(shard, tally)])
                counters = np.zeros(shape.size, np.int64)
                self._add(shard, tally, again, counters)
                found[tally.window] += counters[:rows]
        return found

    def sealed(self, metric: str, scheme: str, windows: Iterable[str]) -> frozenset[str]:
        parts: dict[str, bool] = {}
        for label, _, value in self._beginnings(metric, scheme, windows, 0):
            parts[label] = parts.get(label, True) and is_sealed(value)
        return frozenset(label for label, each in parts.items() if each)

    def block_files(self) -> frozenset[str]:
        found = set()
        for metric, published in self.schemes().items():
            for scheme in published:
                labels = self.windows(metric, scheme)
                for _, _, value in self._beginnings(metric, scheme, labels, _NAMED):
                    if is_sealed(value) and (name := file_of(kept_in(value))):
                        found.add(name)
        return frozenset(found)

    def _beginnings(
        self, metric: str, scheme: str, windows: Iterable[str], more: int
    ) -> list[tuple[str, int, bytes]]:
        """Window, shard and header of each existing part of these tallies, with `more` bytes."""
        labels = tuple(dict.fromkeys(windows))
        asked = [(label, shard) for label in labels for shard in range(self.shards)]
        with translated(), self._client.pipeline(transaction=False) as pipeline:
            for label, shard in asked:
                key = self._tally_key(shard, TallyKey(metric, scheme, label))
                pipeline.getrange(key, 0, HEADER.size + more - 1)
            values = pipeline.execute() if asked else []
        return [(*place, value) for place, value in zip(asked, values, strict=True) if value]

    def seal(self, tally: TallyKey) -> Sealing | None:
        shape = self._shapes.of(tally.metric, tally.scheme)
        with translated():
            # `deniable store seal` may come before the first collector of this version.
            self._raise_layout()
        found = [self._seal_part(shard, tally, shape) for shard in range(self.shards)]
        parts = [each for each in found if each is not None]
        if not parts:
            return None
        return Sealing(*(sum(sizes) for sizes in zip(*parts, strict=True)))

    def _seal_part(self, shard: int, tally: TallyKey, shape: Shape) -> Sealing | None:
        key = self._tally_key(shard, tally)
        with translated():
            # Most have been sealed before, and need not be read whole.
            if is_sealed(cast(bytes, self._client.getrange(key, 0, HEADER.size - 1))):
                return None
            (value,) = self._read([key])
        if value is None or is_sealed(value):
            return None
        counters = counters_of(value, tally, shape.size, self._archive)
        block = block_of(tally, len(shape.widths), counters)
        kept = self._archive.put(tally, block)
        new = sealed_value(value, kept)
        digest = hashlib.sha1(new, usedforsecurity=False).hexdigest()
        with translated():
            verdict = self._seal([key], [value[: HEADER.size], new, digest])
        if verdict != 1:
            self._archive.forget(tally, kept)
            return None
        return Sealing(len(value), HEADER.size + len(block))

    def version(self, metric: str, scheme: str, windows: Iterable[str]) -> bytes:
        return version_of(metric, scheme, self._stamps(metric, scheme, windows))

    def each_version(self, metric: str, scheme: str, windows: Iterable[str]) -> dict[str, bytes]:
        found: dict[str, list[tuple[object, ...]]] = {label: [] for label in windows}
        for stamp in self._stamps(metric, scheme, found):
            found[str(stamp[0])].append(stamp)
        return {label: version_of(metric, scheme, each) for label, each in found.items()}

    def _stamps(self, metric: str, scheme: str, windows: Iterable[str]) -> list[tuple[object, ...]]:
        """Window, shard and stamp of each existing part of these tallies. Sealing keeps stamps."""
        return [
            (label, shard, value[:_STAMP])
            for label, shard, value in self._beginnings(metric, scheme, windows, 0)
        ]

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
                pipeline.getrange(key, 0, _STAMP - 1)
            headers = pipeline.execute() if keys else []
        for (metric, place), header in zip(keys, headers, strict=True):
            if header:
                found.setdefault(metric, []).append((*place, header))
        return {metric: version_of(metric, "", each) for metric, each in found.items()}

    def drop(self, before: float) -> int:
        old = [
            (shard, TallyKey(metric, fingerprint, label))
            for metric, published in self.schemes().items()
            for fingerprint in published
            for shard in range(self.shards)
            for label in self._windows(shard, metric, fingerprint)
            if end(label) <= before
        ]
        with translated(), self._client.pipeline(transaction=False) as pipeline:
            for shard, tally in old:
                pipeline.getrange(self._tally_key(shard, tally), 0, _NAMED - 1)
            beginnings = pipeline.execute() if old else []
        for (_, tally), beginning in zip(old, beginnings, strict=True):
            if is_sealed(beginning):
                self._archive.check_forgetting(tally, kept_in(beginning))
        for shard, tally in old:
            self._forget(shard, tally)
        return len({tally for _, tally in old})

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
            # A sealed one may have a file, whose name is here.
            pipeline.getrange(self._tally_key(shard, tally), 0, _NAMED - 1)
            pipeline.unlink(self._tally_key(shard, tally))
            pipeline.srem(index, tally.window)
            beginning = pipeline.execute()[0]
        if is_sealed(beginning):
            self._archive.forget(tally, kept_in(beginning))

    def _raise_layout(self) -> None:
        """Make earlier versions refuse the store: they cannot read what is written from now on."""
        layout = f"{self._prefix}:layout"
        version = cast(bytes | None, self._client.hget(layout, "version"))
        if version is not None and int(version) < _LAYOUT:
            self._client.hset(layout, "version", str(_LAYOUT))

    def _read_layout(self) -> int | None:
        """The number of shards that the store was laid out with; None before the first publish."""
        with translated():
            found = cast(dict[bytes, bytes], self._client.hgetall(f"{self._prefix}:layout"))
        if not found:
            return None
        version = int(found[b"version"])
        if version > _LAYOUT:
            raise StoreError("a newer version of deniable wrote this store: upgrade this one")
        if version < _OLDEST_LAYOUT:
            raise StoreError(
                f"a version of deniable before its release wrote this store (layout {version}), "
                "which this one cannot read: set another DENIABLE_REDIS_PREFIX"
            )
        return int(found[b"shards"])


def _script(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")

"""The store that scales out: packed rows of counters in Redis, one atomic script per fold.

A tally is one string in each shard, and `fold.lua` beside this file says what is in it. This file
has what a commit and a drop do; `strings.py` has the keys, `reading.py`, `sealing.py` and `sums.py`
the rest.

Many counters are added by numpy: the tally is read, added to, and swapped for the sum if
nobody has changed it meanwhile. Few are added by the script, in place.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Collection, Iterable, Mapping, Sequence
from importlib.resources import files
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from deniable import Scheme
from deniable.windows import end, start
from deniable_collector.stores import ids
from deniable_collector.stores.base import Sealing, Store
from deniable_collector.stores.commits import MAX_CELL, Commit, TallyKey
from deniable_collector.stores.definitions import read_scheme, unpublished
from deniable_collector.stores.errors import StoreUnavailable
from deniable_collector.stores.redis.driver import Driver
from deniable_collector.stores.redis.errors import lacks_right, translated
from deniable_collector.stores.redis.forms import TallyWrite
from deniable_collector.stores.redis.journal import AppendOnlyFiles
from deniable_collector.stores.redis.reading import RedisReader
from deniable_collector.stores.redis.sealing import RedisBlocks
from deniable_collector.stores.redis.strings import RedisStrings
from deniable_collector.stores.redis.sums import RedisSums
from deniable_collector.stores.summed.summing import Sums
from deniable_collector.stores.vectors import Shapes, full, gather
from deniable_collector.tally import Tally

_FULL, _CHANGED, _NEEDS_SWAP, _OTHER_SEED, _NO_RIGHT = 2, 3, 4, 5, 6
"""What the script can answer beside that the commit is in, or that ids were seen."""

_SWAPS = 2
"""Times that a commit tries to swap a tally; where others are faster, it adds in place."""

_ATTEMPTS = 100
"""Calls of the script for one commit: where a swap is the only way, others may be faster."""

_PINGED = 3
"""Shards that are asked whether one of them takes a commit; more would take too long."""


class RedisStore(Store):
    """Tallies in the Redis behind `driver`, under `prefix`.

    `shards` is how many shards a new store is laid out with; a store that exists keeps
    its own number, because a retry must meet the shard that knows its id.
    """

    def __init__(self, driver: Driver, *, prefix: str = "deniable", shards: int = 1) -> None:
        self._driver = driver
        self._strings = strings = RedisStrings(driver, prefix, shards)
        self.key, self._tally_key, self._read = strings.key, strings.tally_key, strings.read
        self._fold = driver.script(_script("fold.lua"))
        self._shapes = shapes = Shapes(self.scheme)
        self._summed = RedisSums(driver, strings, shapes, _script("sums.lua"))
        self._sums = Sums(self._summed)
        self._files = AppendOnlyFiles(driver)
        self._reader = RedisReader(strings, shapes, self._summed)
        self._blocks = RedisBlocks(driver, strings, shapes, _script("seal.lua"))
        # Each shard has its own seed; which one it is, the first commit to it tells.
        self._seed = secrets.token_bytes(ids.SEED_BYTES)
        self._seeds: dict[int, bytes] = {}

    @property
    def shards(self) -> int:
        return self._strings.shards

    @property
    def sums(self) -> Sums:
        return self._sums

    def fold(self, commit: Commit, now: float) -> frozenset[str]:
        parts = [
            TallyWrite(
                tally,
                self._tally_key(commit.shard, tally),
                addition,
                self._shapes.of(tally.metric, tally.scheme),
            )
            for tally, addition in gather(commit.increments, self._shapes).items()
        ]
        keys = [self.key(commit.shard, "ids", "seed")]
        for term, seconds in enumerate(ids.TERMS):
            days = f"{seconds / 86_400:.0f}d"
            keys += [
                self.key(commit.shard, "ids", days, str(each))
                for each in ids.generations_at(now, term)
            ]
        for part in parts:
            keys += [self.key(commit.shard, "windows", *part.tally[:2]), part.key]
        lifetimes = [math.ceil(ids.lifetime_at(now, term)) for term in range(len(ids.TERMS))]
        stamps = b"".join(part.stamp for part in parts)
        limits = (" ".join(map(str, lifetimes)), MAX_CELL, ids.FIRST_LEVEL, ids.DEEPEST, stamps)
        terms = "".join(map(str, ids.terms_of(commit)))
        must_swap: set[int] = set()
        replicated = self.key(commit.shard, "replicated")
        with self._files.writing(), translated():
            master = self._driver.master_of(replicated)
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
            if verdict == _NO_RIGHT:
                raise lacks_right(places[0].decode())
            # Of ids that were seen as well: their first commit may still be on its way.
            self._driver.wait_for_replicas(replicated, master)
        if verdict == _FULL:
            raise full(parts[places[0] - 1].tally)
        return frozenset(commit.ids[place - 1] for place in places)

    def publish(self, schemes: Mapping[str, Iterable[Scheme]]) -> None:
        fields = {
            f"{metric}:{scheme.fingerprint}": scheme.canonical()
            for metric, each in schemes.items()
            for scheme in each
        }
        self._strings.lay_out()
        if fields:
            with translated():
                self._strings.client.hset(self._strings.schemes_key, mapping=cast(Any, fields))

    def schemes(self) -> dict[str, dict[str, Scheme]]:
        with translated():
            found = self._strings.client.hgetall(self._strings.schemes_key)
        published: dict[str, dict[str, Scheme]] = {}
        for name, definition in cast(dict[bytes, bytes], found).items():
            metric, fingerprint = name.decode().split(":")
            published.setdefault(metric, {})[fingerprint] = read_scheme(definition)
        return published

    def scheme(self, metric: str, fingerprint: str) -> Scheme:
        with translated():
            found = self._strings.client.hget(self._strings.schemes_key, f"{metric}:{fingerprint}")
        if found is None:
            raise unpublished(metric, fingerprint)
        return read_scheme(cast(bytes, found))

    def windows(self, metric: str, scheme: str) -> list[str]:
        labels: set[str] = set()
        for shard in range(self.shards):
            labels.update(self._strings.labels(shard, metric, scheme))
        return sorted(labels, key=start)

    def tally(self, metric: str, scheme: str, windows: Iterable[str]) -> Tally:
        return self._reader.tally(metric, scheme, windows)

    def own_tally(self, tally: TallyKey) -> Tally:
        return self._reader.own_tally(tally)

    def _own_tallies(self, metric: str, scheme: str, windows: Sequence[str]) -> dict[str, Tally]:
        return self._reader.own_tallies(metric, scheme, windows)

    def row_reports(
        self, metric: str, scheme: str, windows: Iterable[str]
    ) -> dict[str, NDArray[np.int64]]:
        return self._reader.row_reports(metric, scheme, windows)

    def sealed(self, metric: str, scheme: str, windows: Iterable[str]) -> frozenset[str]:
        return self._blocks.sealed(metric, scheme, windows)

    def identity(self) -> str:
        return self._strings.identity()

    def seal(self, tally: TallyKey) -> Sealing | None:
        return self._blocks.seal(tally)

    def version(self, metric: str, scheme: str, windows: Iterable[str]) -> bytes:
        return self._reader.version(metric, scheme, windows)

    def each_version(self, metric: str, scheme: str, windows: Iterable[str]) -> dict[str, bytes]:
        return self._reader.each_version(metric, scheme, windows)

    def versions(self, asked: Mapping[str, Iterable[str]]) -> dict[str, bytes]:
        return self._reader.versions(asked)

    def drop(self, before: float, metrics: Collection[str] | None = None) -> int:
        return sum(
            self._drop(metric, scheme, before)
            for metric, published in self.schemes().items()
            if metrics is None or metric in metrics
            for scheme in published
        )

    def _drop(self, metric: str, scheme: str, before: float) -> int:
        gone = set[str]()
        for shard in range(self.shards):
            old = [
                label
                for label in self._strings.labels(shard, metric, scheme)
                if end(label) <= before
            ]
            index = self.key(shard, "windows", metric, scheme)
            for label in old:
                with translated(), self._strings.client.pipeline(transaction=True) as pipeline:
                    pipeline.unlink(self._tally_key(shard, TallyKey(metric, scheme, label)))
                    pipeline.srem(index, label)
                    pipeline.execute()
            gone.update(old)
        return len(gone) + self._summed.drop_ended(metric, scheme, sorted(gone), before)

    def ping(self) -> None:
        trouble: StoreUnavailable | None = None
        # Where one shard's node is away, the others take commits.
        for shard in range(min(self.shards, _PINGED)):
            try:
                with translated():
                    # A write: a replica, or a server that cannot save, answers a bare PING.
                    # Its expiry would be a time in Redis's log.
                    self._strings.client.set(self.key(shard, "ping"), b"")
                    self._driver.wait_for_replicas(self.key(shard, "replicated"))
                return
            except StoreUnavailable as error:
                trouble = error
        if trouble is not None:
            raise trouble

    def clear_journal(self, older_than: float) -> float | None:
        return self._files.clear(older_than)

    def close(self) -> None:
        self._driver.close()


def _script(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")

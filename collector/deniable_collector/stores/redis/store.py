"""The store that scales out: packed rows of counters in Redis, one atomic script per fold.

A tally is one string in each shard, and `fold.lua` beside this file says what is in it. This file
has what a commit does; `strings.py` has the keys, `reading.py`, `sealing.py`, `dropping.py` and
`sums.py` the rest.

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
from deniable.windows import start
from deniable_collector.stores import ids
from deniable_collector.stores.base import KeptBlock, Sealing, Store
from deniable_collector.stores.commits import MAX_CELL, Commit, TallyKey
from deniable_collector.stores.definitions import read_scheme, unpublished
from deniable_collector.stores.errors import StoreUnavailable
from deniable_collector.stores.redis.driver import Driver
from deniable_collector.stores.redis.dropping import RedisDropper
from deniable_collector.stores.redis.errors import lacks_right, translated
from deniable_collector.stores.redis.forms import TallyWrite
from deniable_collector.stores.redis.journal import AppendOnlyFiles
from deniable_collector.stores.redis.reading import RedisReader
from deniable_collector.stores.redis.sealing import RedisBlocks
from deniable_collector.stores.redis.strings import RedisStrings
from deniable_collector.stores.redis.sums import RedisSums
from deniable_collector.stores.sealed.archive import IN_THE_STORE, Archive
from deniable_collector.stores.summed.summing import Sums
from deniable_collector.stores.vectors import Shapes, full, gather
from deniable_collector.tally import Tally

__all__ = ["RedisStore"]

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

    def __init__(
        self,
        driver: Driver,
        *,
        prefix: str = "deniable",
        shards: int = 1,
        archive: Archive = IN_THE_STORE,
    ) -> None:
        self._driver = driver
        self._archive = archive.of(self)
        self._wished_shards = shards
        self._strings = strings = RedisStrings(driver, prefix, shards)
        self._layout, self.key = strings.layout, strings.key
        self._tally_key, self._read = strings.tally_key, strings.read
        self._fold = driver.script(_script("fold.lua"))
        self._shapes = shapes = Shapes(self.scheme)
        self._summed = RedisSums(driver, strings, self._archive, shapes, _script("sums.lua"))
        self._sums = Sums(self._summed)
        self._files = AppendOnlyFiles(driver)
        self._reader = RedisReader(strings, self._archive, shapes, self._summed)
        self._blocks = RedisBlocks(driver, strings, self._archive, shapes, _script("seal.lua"))
        self._dropper = RedisDropper(strings, self._archive, self._summed, self._files)
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
                self._archive,
            )
            for tally, addition in gather(commit.increments, self._shapes).items()
        ]
        keys = [self.key(commit.shard, "ids", "seed")]
        for term, seconds in enumerate(ids.TERMS):
            # The shortest term has the names of the versions before there were others.
            parent = ("ids", f"{seconds / 86_400:.0f}d") if term else ("ids",)
            keys += [
                self.key(commit.shard, *parent, str(each)) for each in ids.generations_at(now, term)
            ]
        for part in parts:
            keys += [self.key(commit.shard, "windows", *part.tally[:2]), part.key]
        lifetimes = [math.ceil(ids.lifetime_at(now, term)) for term in range(len(ids.TERMS))]
        stamps = b"".join(part.stamp for part in parts)
        limits = (" ".join(map(str, lifetimes)), MAX_CELL, ids.FIRST_LEVEL, ids.DEEPEST, stamps)
        terms = "".join(map(str, ids.terms_of(commit)))
        must_swap: set[int] = set()
        self._layout.check()
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
        self._layout.lay_out(self._wished_shards)
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

    def block_files(self) -> frozenset[str]:
        return self._blocks.files(
            (metric, scheme, self.windows(metric, scheme))
            for metric, published in self.schemes().items()
            for scheme in published
        )

    def kept_blocks(self, tally: TallyKey) -> list[KeptBlock]:
        return self._blocks.kept_blocks(tally)

    def keep_otherwise(self, block: KeptBlock, kept: bytes) -> bool:
        return self._blocks.keep_otherwise(block, kept)

    def identity(self) -> str:
        with translated():
            seed = self._strings.client.get(self.key(0, "ids", "seed"))
        return ids.identity_of(cast(bytes | None, seed))

    def archive_id(self) -> str | None:
        with translated():
            found = self._strings.client.hget(self._strings.layout_key, "archive")
        return None if found is None else cast(bytes, found).decode()

    def archive_trouble(self) -> str | None:
        return self._archive.trouble()

    def keep_archive_id(self, identity: str) -> str:
        with translated():
            self._strings.client.hsetnx(self._strings.layout_key, "archive", identity)
        return self.archive_id() or identity

    def seal(self, tally: TallyKey) -> Sealing | None:
        return self._blocks.seal(tally)

    def version(self, metric: str, scheme: str, windows: Iterable[str]) -> bytes:
        return self._reader.version(metric, scheme, windows)

    def each_version(self, metric: str, scheme: str, windows: Iterable[str]) -> dict[str, bytes]:
        return self._reader.each_version(metric, scheme, windows)

    def versions(self, asked: Mapping[str, Iterable[str]]) -> dict[str, bytes]:
        return self._reader.versions(asked)

    def drop(self, before: float, metrics: Collection[str] | None = None) -> int:
        schemes = {
            name: each
            for name, each in self.schemes().items()
            if metrics is None or name in metrics
        }
        return self._dropper.drop(schemes, before)

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

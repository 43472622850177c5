"""The store that scales out: tallies in Redis, one atomic script per fold.

All keys begin with one prefix, and the keys of a shard carry its tag, `{s}`, so that a commit stays
in one slot of a cluster. Nothing here scans the keyspace.

A tally is one string in each shard, and `forms.py` beside this file says what is in it. The script
appends increments to it. Or it is read, merged, and swapped if nobody has changed it meanwhile.
"""

from __future__ import annotations

import hashlib
import json
import math
import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from itertools import compress
from typing import Any, cast

import redis

from deniable import Scheme
from deniable.protocol.coded_message import counted
from deniable_collector.settings import Settings
from deniable_collector.stores import ids, increments
from deniable_collector.stores.base import Store
from deniable_collector.stores.commits import Addition, Commit, TallyKey, read_scheme
from deniable_collector.stores.contract import Change, Found, Heads, Of, Take
from deniable_collector.stores.errors import StoreError, StoreUnavailable
from deniable_collector.stores.redis import forms
from deniable_collector.stores.redis.driver import Driver
from deniable_collector.stores.redis.errors import lacks_right, translated
from deniable_collector.stores.redis.journal import AppendOnlyFiles
from deniable_collector.stores.sealed import DamagedBlock
from deniable_collector.stores.sums import is_sum

_LAYOUT = b"2"
"""The version of everything that RedisStore and its scripts write."""

_CHANGED, _NEEDS_SWAP, _OTHER_SEED, _NO_RIGHT = 2, 3, 4, 5
"""What the script can answer beside that the commit is in, or that ids were seen."""

_SWAPS = 2
"""Times that a large commit tries to swap a tally; where others are faster, it appends."""

_ATTEMPTS = 100
"""Calls of the script for one commit: where a swap is the only way, others may be faster."""

_FIRST_READ = 8_192
"""Bytes of a sum that are read to know its record; most are shorter."""

_READ_BYTES = 1 << 23
"""Bytes of tallies that are read at once."""

_PINGED = 3
"""Shards that are asked whether one of them takes a commit; more would take too long."""


class RedisStore(Store):
    """Tallies in the Redis that the settings name.

    Their shards are how many a new store is laid out with; a store that exists keeps its own
    number, because a retry must meet the shard that knows its id.
    """

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self._driver = driver = Driver(settings)
        self._prefix = prefix = settings.redis_prefix
        self._layout_key, self._schemes_key = f"{prefix}:layout", f"{prefix}:schemes"
        self._wished_shards = settings.shards
        self._layout: dict[bytes, bytes] = {}
        self._fold = driver.script(_script("fold.lua"))
        self._change = driver.script(_script("change.lua"))
        self._files = AppendOnlyFiles(driver)
        self._merged = -math.inf
        # Each shard has its own seed; which one it is, the first commit to it tells.
        self._seed = secrets.token_bytes(ids.SEED_BYTES)
        self._seeds: dict[int, bytes] = {}

    @property
    def shards(self) -> int:
        return int(self._laid_out().get(b"shards", self._wished_shards))

    @property
    def _client(self) -> redis.Redis:
        """The driver's client, if the store is one that this version can read."""
        self._laid_out()
        return self._driver.client

    def _laid_out(self) -> dict[bytes, bytes]:
        """How the store is laid out; empty if nobody has published to it.

        Raises:
            StoreError: another version of deniable has written the store.
        """
        # Nothing is remembered of a store that is not laid out yet: its writer may still choose
        # another number.
        if not self._layout:
            with translated():
                found = cast(dict[bytes, bytes], self._driver.client.hgetall(self._layout_key))
            if found and found.get(b"version") != _LAYOUT:
                raise StoreError(
                    "another version of deniable has written this store: set another "
                    "DENIABLE_REDIS_PREFIX, or install that version"
                )
            self._layout = found
        return self._layout

    def identity(self) -> str:
        with translated():
            return cast(bytes, self._client.hget(self._layout_key, "identity") or b"").decode()

    def fold(self, commit: Commit, now: float) -> frozenset[str]:
        self.check(commit)
        additions = commit.additions
        tally_keys = [self._tally_key(commit.shard, tally) for tally in additions]
        keys = [self._key(commit.shard, "ids", "seed"), self._unmerged_key(commit.shard)]
        for term, seconds in enumerate(ids.TERMS):
            days = f"{seconds / 86_400:.0f}d"
            keys += [
                self._key(commit.shard, "ids", days, str(each))
                for each in ids.generations_at(now, term)
            ]
        for tally, key in zip(additions, tally_keys, strict=True):
            keys += [self._index_key(commit.shard, tally[:2]), key]
        lifetimes = [math.ceil(ids.lifetime_at(now, term)) for term in range(len(ids.TERMS))]
        stamps = [forms.fresh_stamp() for _ in additions]
        limits = [increments.OPEN, increments.LEAST, increments.MOST, ids.FIRST_LEVEL, ids.DEEPEST]
        told = json.dumps(lifetimes), json.dumps(limits), b"".join(stamps)
        terms = "".join(map(str, ids.terms_of(commit)))
        added = list(additions.values())
        must_swap = {number for number, each in enumerate(added) if not increments.fits(each)}
        replicated = self._key(commit.shard, "replicated")
        with self._files.writing(), translated():
            master = self._driver.master_of(replicated)
            for attempt in range(_ATTEMPTS):
                seed = self._seeds.get(commit.shard, self._seed)
                arguments: list[Any] = [seed, *told, terms]
                arguments += ids.name(commit.ids, seed)
                swaps = [
                    number in must_swap or (attempt < _SWAPS and increments.is_large(each))
                    for number, each in enumerate(added)
                ]
                old = iter(self._values(list(compress(tally_keys, swaps))))
                for number, (tally, addition) in enumerate(additions.items()):
                    if swaps[number]:
                        way = self._swap(next(old), tally, stamps[number], addition)
                    else:
                        way = b"+", increments.packed(addition)
                    arguments += [tally.window, *way]
                verdict, *places = cast(list[Any], self._fold(keys, arguments))
                if verdict == _NEEDS_SWAP:
                    must_swap.update(place - 1 for place in places)
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
        return frozenset(commit.ids[place - 1] for place in places)

    def _swap(
        self, old: bytes | None, tally: TallyKey, stamp: bytes, addition: Addition | None = None
    ) -> tuple[bytes, bytes]:
        """The header of a tally's string, and the whole string that is merged from it.

        Raises:
            StoreError: a counter would exceed the highest, or what is there cannot be read.
        """
        shape = self.shape(tally[:2])
        new = increments.merged(tally, shape, forms.held_in(old, tally), addition)
        return (old or b"")[: forms.HEADER.size], forms.value_of(stamp, *new)

    def publish(self, schemes: Iterable[tuple[str, Scheme]]) -> None:
        layout: dict[str, str | bytes] = {
            "version": _LAYOUT,
            "shards": str(self._wished_shards),
            "identity": secrets.token_hex(8),
        }
        # By one step: nobody sees a store without its number of shards.
        with translated(), self._driver.client.pipeline(transaction=True) as pipeline:
            for name, value in layout.items():
                pipeline.hsetnx(self._layout_key, name, value)
            pipeline.execute()
        if self.shards != self._wished_shards:
            raise StoreError(
                f"this store was laid out with {counted(self.shards, 'shard')}, which cannot "
                f"change: set DENIABLE_SHARDS={self.shards}"
            )
        fields = {f"{metric}:{each.fingerprint}": each.canonical() for metric, each in schemes}
        if fields:
            with translated():
                self._client.hset(self._schemes_key, mapping=cast(Any, fields))

    def schemes(self) -> dict[Of, Scheme]:
        with translated():
            found = cast(dict[bytes, bytes], self._client.hgetall(self._schemes_key))
        published: dict[Of, Scheme] = {}
        for name, definition in found.items():
            metric, fingerprint = name.decode().split(":")
            published[metric, fingerprint] = read_scheme(definition)
        return published

    def names(self, shard: int, of: Of) -> list[str]:
        with translated():
            found = self._client.smembers(self._index_key(shard, of))
        return list(map(bytes.decode, cast(set[bytes], found)))

    def heads(self, shard: int, asked: Mapping[Of, Sequence[str]]) -> Heads:
        tallies = [TallyKey(*of, name) for of, names in asked.items() for name in names]
        keys = [self._tally_key(shard, tally) for tally in tallies]
        sizes = [_FIRST_READ if is_sum(tally.window) else forms.HEADER.size for tally in tallies]
        found: Heads = {of: {} for of in asked}
        with translated(), self._client.pipeline(transaction=False) as pipeline:
            for key, size in zip(keys, sizes, strict=True):
                pipeline.getrange(key, 0, size - 1)
            values = pipeline.execute() if keys else []
        for tally, key, value in zip(tallies, keys, values, strict=True):
            head = forms.head_of(value) if value else None
            if value and head is None:
                (whole,) = self._values([key])
                head = forms.head_of(whole) if whole else None
            if head is not None:
                found[tally[:2]][tally.window] = head
        return found

    def read(self, shard: int, of: Of, names: Iterable[str], take: Take) -> dict[str, Found]:
        tallies = [TallyKey(*of, name) for name in names]
        at_once = max(1, _READ_BYTES // (4 * self.shape(of).size))
        found: dict[str, Found] = {}
        for first in range(0, len(tallies), at_once):
            some = tallies[first : first + at_once]
            values = self._values([self._tally_key(shard, tally) for tally in some])
            for tally, value in zip(some, values, strict=True):
                if value is not None:
                    take(tally, forms.held_in(value, tally))
                    found[tally.window] = Found(value[:8].hex(), len(value))
        return found

    def change(self, shard: int, of: Of, change: Change) -> bool:
        new = {
            name: forms.value_of(forms.fresh_stamp(), forms.SUM, *each)
            for name, each in change.put.items()
        }
        for name, block in change.sealed.items():
            # With the same stamp, because the sums are the same.
            new[name] = forms.value_of(
                bytes.fromhex(change.expected[name]), increments.SEALED, block
            )
        return self._put(shard, of, new, change)

    def _put(self, shard: int, of: Of, new: Mapping[str, bytes], change: Change) -> bool:
        """Make a change, with these strings for what is new, if nothing has changed meanwhile."""
        keys = [self._index_key(shard, of), self._unmerged_key(shard)]
        arguments: list[Any] = []
        for name in dict.fromkeys((*change.expected, *change.dropped, *new)):
            keys.append(self._tally_key(shard, TallyKey(*of, name)))
            todo = "put" if name in new else "drop" if name in change.dropped else "same"
            known, value = name in change.expected, new.get(name, b"")
            stamp = bytes.fromhex(change.expected[name]) if known else "*"
            digest = hashlib.sha1(value, usedforsecurity=False).hexdigest()
            arguments += [todo, name, stamp, value, digest]
        with translated():
            done = bool(self._change(keys, arguments) == 1)
            if done:
                self._driver.wait_for_replicas(self._key(shard, "replicated"))
        return done

    def merge(self) -> None:
        trouble: StoreError | None = None
        # Where one shard's node is away, the others are merged.
        for shard in range(self.shards):
            try:
                with translated():
                    found = self._client.smembers(self._unmerged_key(shard))
                for key in map(bytes.decode, cast(set[bytes], found)):
                    try:
                        self._merge(shard, key)
                    except DamagedBlock as error:
                        trouble = error
            except StoreError as error:
                trouble = error
        if trouble is not None:
            raise trouble
        self._merged = time.monotonic()

    def _merge(self, shard: int, key: str) -> None:
        begins = self._tally_key(shard, TallyKey("", "", "")).removesuffix("::")
        tally = TallyKey(*key.removeprefix(begins).split(":"))
        (value,) = self._values([key])
        if value is not None and forms.held_in(value, tally).added:
            stamp = value[:8]
            _, new = self._swap(value, tally, stamp)
            with self._files.writing():
                # If others have changed it, it is merged the next time.
                expected = Change({tally.window: stamp.hex()})
                self._put(shard, tally[:2], {tally.window: new}, expected)

    def _values(self, keys: Sequence[str]) -> list[bytes | None]:
        """The strings at these keys of one slot; None where there is none."""
        with translated():
            return cast(list[bytes | None], self._client.mget(keys)) if keys else []

    def _key(self, shard: int, *parts: str) -> str:
        """The key of a shard that ends with these parts."""
        return ":".join((self._prefix, f"{{{shard}}}", *parts))

    def _tally_key(self, shard: int, tally: TallyKey) -> str:
        return self._key(shard, "tally", *tally)

    def _unmerged_key(self, shard: int) -> str:
        return self._key(shard, "unmerged")

    def _index_key(self, shard: int, of: Of) -> str:
        return self._key(shard, "windows", *of)

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
        try:
            if time.monotonic() - self._merged >= older_than:
                self.merge()
        finally:
            age = self._files.clear(older_than)
        return age

    def close(self) -> None:
        self._driver.close()


def _script(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")

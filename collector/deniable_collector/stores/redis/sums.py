"""Sums over calendars in Redis: one string each, in the slot of its shard, and an index of them.

A string is 8 bytes of a stamp, the length of the record in 4 bytes, little-endian, the record, and
the block.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Sequence
from typing import Any, cast

import msgspec
import numpy as np
import redis
from numpy.typing import NDArray

from deniable_collector.stores.commits import TallyKey, new_stamp
from deniable_collector.stores.redis.driver import Driver
from deniable_collector.stores.redis.errors import translated
from deniable_collector.stores.redis.forms import counters_of
from deniable_collector.stores.redis.strings import RedisStrings
from deniable_collector.stores.summed.imported import Imported
from deniable_collector.stores.summed.place import SumChange
from deniable_collector.stores.summed.sums import (
    Cover,
    Holding,
    SumName,
    SumRecord,
    cover,
    relevant,
)
from deniable_collector.stores.vectors import Shape, Shapes

_STAMP = 8
_HEAD = struct.Struct("<8sI")
_FIRST_READ = 8_192
"""Bytes of a sum that are read to know its record; most are shorter."""

_NOTED = 1_000
"""Imported windows that are noted by one command."""


class RedisSums:
    """The sums of one Redis or cluster; see `place.SumPlace`."""

    def __init__(self, driver: Driver, keys: RedisStrings, shapes: Shapes, script: str) -> None:
        self._driver = driver
        self._keys = keys
        self._shapes = shapes
        self._change = driver.script(script)

    @property
    def shards(self) -> int:
        return self._keys.shards

    def sum_shape(self, metric: str, scheme: str) -> Shape:
        return self._shapes.of(metric, scheme)

    def sum_names(self, shard: int, metric: str, scheme: str) -> list[str]:
        with translated():
            found = self._client.smembers(self._keys.key(shard, "sums", metric, scheme))
        return [name.decode() for name in cast(set[bytes], found)]

    def imports(self, metric: str, scheme: str) -> list[str]:
        with translated():
            found = self._client.smembers(self._imports_key(metric, scheme))
        return [text.decode() for text in cast(set[bytes], found)]

    def note_imports(self, metric: str, scheme: str, texts: Iterable[str]) -> None:
        listed = list(texts)
        with translated():
            for first in range(0, len(listed), _NOTED):
                some = listed[first : first + _NOTED]
                self._client.sadd(self._imports_key(metric, scheme), *some)

    def holding(
        self, shard: int, metric: str, scheme: str, names: Sequence[SumName]
    ) -> tuple[Holding, dict[SumName, str]]:
        with translated():
            # Windows first: one that is dropped meanwhile is then in the sum that is read next.
            found = self._client.smembers(self._keys.key(shard, "windows", metric, scheme))
            labels = sorted(label.decode() for label in cast(set[bytes], found))
            copied = [name for name in names if not name.kept]
            read = [each for each in labels if any(name.covers(each) for name in copied)]
            with self._client.pipeline(transaction=False) as pipeline:
                for label in read:
                    key = self._window_key(shard, TallyKey(metric, scheme, label))
                    pipeline.getrange(key, 0, _STAMP - 1)
                for name in names:
                    key = self._sum_key(shard, TallyKey(metric, scheme, str(name)))
                    pipeline.getrange(key, 0, _FIRST_READ - 1)
                values = cast(list[bytes], pipeline.execute() if read or names else [])
        windows = dict.fromkeys(labels, "")
        windows |= {label: value.hex() for label, value in zip(read, values, strict=False)}
        sums, stamps = {}, {}
        for name, value in zip(names, values[len(read) :], strict=True):
            if not value:
                continue
            stamp, length = _HEAD.unpack_from(value)
            if len(value) < _HEAD.size + length:
                with translated():
                    key = self._sum_key(shard, TallyKey(metric, scheme, str(name)))
                    value = cast(bytes, self._client.get(key) or b"")
                if not value:
                    continue
                stamp, length = _HEAD.unpack_from(value)
            sums[name] = msgspec.json.decode(
                value[_HEAD.size : _HEAD.size + length], type=SumRecord
            )
            stamps[name] = stamp.hex()
        return Holding(windows, sums), stamps

    def window_counters(self, shard: int, tally: TallyKey) -> tuple[str, NDArray[np.int64]] | None:
        with translated():
            value = cast(bytes | None, self._client.get(self._window_key(shard, tally)))
        if value is None:
            return None
        size = self._shapes.of(tally.metric, tally.scheme).size
        return value[:_STAMP].hex(), counters_of(value, tally, size)

    def sum_block(self, shard: int, tally: TallyKey) -> bytes | None:
        with translated():
            value = cast(bytes | None, self._client.get(self._sum_key(shard, tally)))
        return None if value is None else value[_HEAD.size + _HEAD.unpack_from(value)[1] :]

    def plan(
        self, shard: int, metric: str, scheme: str, asked: Sequence[str]
    ) -> tuple[Cover, dict[str, str]]:
        """What to read of a shard for these windows, and the stamps of the kept sums that it rests
        on: if they are others after reading, windows were dropped meanwhile.

        Raises:
            NotKept: some were dropped, and only sums with others have them.
        """
        names = relevant(self.sum_names(shard, metric, scheme), asked)
        if not names:
            return Cover(tuple(asked), ()), {}
        holding, stamps = self.holding(shard, metric, scheme, names)
        return cover(asked, holding), {
            str(name): stamp for name, stamp in stamps.items() if name.kept
        }

    def kept_stamps(
        self, shard: int, metric: str, scheme: str, asked: Sequence[str]
    ) -> dict[str, str]:
        """The stamps of the kept sums that have a part of the range of these windows."""
        names = [
            str(name)
            for name in relevant(self.sum_names(shard, metric, scheme), asked)
            if name.kept
        ]
        with translated(), self._client.pipeline(transaction=False) as pipeline:
            for name in names:
                key = self._sum_key(shard, TallyKey(metric, scheme, name))
                pipeline.getrange(key, 0, _STAMP - 1)
            values = cast(list[bytes], pipeline.execute() if names else [])
        return {name: each.hex() for name, each in zip(names, values, strict=True) if each}

    def change(self, shard: int, metric: str, scheme: str, change: SumChange) -> bool:
        keys = [self._keys.key(shard, each, metric, scheme) for each in ("windows", "sums")]
        arguments: list[Any] = []

        def item(todo: str, label: str, stamp: str, value: bytes = b"") -> None:
            tally = TallyKey(metric, scheme, label)
            window = label in change.windows
            keys.append((self._window_key if window else self._sum_key)(shard, tally))
            digest = hashlib.sha1(value, usedforsecurity=False).hexdigest()
            arguments.extend((todo, label, bytes.fromhex(stamp), value, digest))

        for label, stamp in change.windows.items():
            item("drop" if label in change.dropped else "same", label, stamp)
        for name, stamp in change.sums.items():
            if name not in change.put and name not in change.removed:
                item("same", str(name), stamp)
        for name in change.removed:
            item("remove", str(name), "")
        for name, (record, block) in change.put.items():
            head = _HEAD.pack(new_stamp().to_bytes(8, "little"), len(record))
            item("put", str(name), change.sums.get(name, ""), head + record + block)
        with translated():
            done = bool(self._change(keys, arguments) == 1)
            if done:
                self._driver.wait_for_replicas(self._keys.key(shard, "replicated"))
        return done

    def drop_ended(
        self,
        metric: str,
        scheme: str,
        windows: Sequence[str],
        before: float,
    ) -> int:
        """Delete the copies of dropped windows, and the kept sums that had ended by `before`; and
        what is remembered of imports of that time. Returns how many kept sums were deleted."""
        gone = set[SumName]()
        for shard in range(self.shards):
            names = list(map(SumName.parse, self.sum_names(shard, metric, scheme)))
            old = [
                name
                for name in names
                if (name.ended(before) if name.kept else any(map(name.covers, windows)))
            ]
            if old:
                self.change(shard, metric, scheme, SumChange(removed=old))
                gone.update(name for name in old if name.kept)
        past = [each for each in self.imports(metric, scheme) if Imported.parse(each).ended(before)]
        if past:
            with translated():
                self._client.srem(self._imports_key(metric, scheme), *past)
        return len(gone)

    @property
    def _client(self) -> redis.Redis:
        return self._driver.client

    def _window_key(self, shard: int, tally: TallyKey) -> str:
        return self._keys.key(shard, "tally", *tally)

    def _imports_key(self, metric: str, scheme: str) -> str:
        return self._keys.key(0, "imports", metric, scheme)

    def _sum_key(self, shard: int, tally: TallyKey) -> str:
        return self._keys.key(shard, "sum", *tally)

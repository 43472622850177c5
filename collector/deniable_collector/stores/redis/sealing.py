"""Seals the tallies of a store in Redis, and finds and moves their blocks.

A sealed tally that has its block in a file is opened by a commit, and the file stays: a Redis that
crashes may forget its last second, and refer to it again. `files` tells which are in use.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import cast

from deniable_collector.stores.base import KeptBlock, Sealing
from deniable_collector.stores.commits import TallyKey
from deniable_collector.stores.redis.driver import Driver
from deniable_collector.stores.redis.errors import translated
from deniable_collector.stores.redis.forms import (
    HEADER,
    counters_of,
    is_sealed,
    kept_in,
    sealed_value,
)
from deniable_collector.stores.redis.strings import NAMED, RedisStrings
from deniable_collector.stores.sealed.archive import Archive, file_of
from deniable_collector.stores.sealed.blocks import block_of
from deniable_collector.stores.vectors import Shape, Shapes

__all__ = ["RedisBlocks"]


class RedisBlocks:
    """The sealed tallies of a store; `script` is that of seal.lua. The methods are as `Store` says
    of those of these names."""

    def __init__(
        self, driver: Driver, strings: RedisStrings, archive: Archive, shapes: Shapes, script: str
    ) -> None:
        self._strings = strings
        self._archive = archive
        self._shapes = shapes
        self._seal = driver.script(script)

    def sealed(self, metric: str, scheme: str, windows: Iterable[str]) -> frozenset[str]:
        parts: dict[str, bool] = {}
        for label, _, value in self._strings.beginnings(metric, scheme, windows, 0):
            parts[label] = parts.get(label, True) and is_sealed(value)
        return frozenset(label for label, each in parts.items() if each)

    def kept_blocks(self, tally: TallyKey) -> list[KeptBlock]:
        # Open forms are large, and not read whole.
        sealed = [
            shard
            for _, shard, value in self._strings.beginnings(*tally[:2], [tally.window], 0)
            if is_sealed(value)
        ]
        with translated():
            keys = [self._strings.tally_key(shard, tally) for shard in sealed]
            values = list(self._strings.read(keys))
        return [
            KeptBlock(tally, shard, kept_in(value))
            for shard, value in zip(sealed, values, strict=True)
            if value is not None and is_sealed(value)
        ]

    def keep_otherwise(self, block: KeptBlock, kept: bytes) -> bool:
        key = self._strings.tally_key(block.shard, block.tally)
        with translated():
            header = cast(bytes, self._strings.client.getrange(key, 0, HEADER.size - 1))
            if not is_sealed(header):
                return False
            # All that was kept is compared: another process may move the same block.
            return self._swap(key, header + block.kept, sealed_value(header, kept))

    def seal(self, tally: TallyKey) -> Sealing | None:
        shape = self._shapes.of(tally.metric, tally.scheme)
        # `deniable store seal` may come before the first collector of this version.
        self._strings.layout.upgrade()
        found = [self._seal_part(shard, tally, shape) for shard in range(self._strings.shards)]
        parts = [each for each in found if each is not None]
        if not parts:
            return None
        return Sealing(*(sum(sizes) for sizes in zip(*parts, strict=True)))

    def _seal_part(self, shard: int, tally: TallyKey, shape: Shape) -> Sealing | None:
        key = self._strings.tally_key(shard, tally)
        with translated():
            # Most have been sealed before, and need not be read whole.
            if is_sealed(cast(bytes, self._strings.client.getrange(key, 0, HEADER.size - 1))):
                return None
            (value,) = self._strings.read([key])
        if value is None or is_sealed(value):
            return None
        counters = counters_of(value, tally, shape.size, self._archive)
        block = block_of(tally, len(shape.widths), counters)
        kept = self._archive.put(tally, block)
        new = sealed_value(value, kept)
        with translated():
            sealed = self._swap(key, value[: HEADER.size], new)
        if not sealed:
            self._archive.forget(tally, kept)
            return None
        return Sealing(len(value), HEADER.size + len(block))

    def _swap(self, key: str, old: bytes, new: bytes) -> bool:
        """Put a sealed string in the place of one that begins with `old`."""
        digest = hashlib.sha1(new, usedforsecurity=False).hexdigest()
        return bool(self._seal([key], [old, new, digest]) == 1)

    def files(self, tallies: Iterable[tuple[str, str, list[str]]]) -> frozenset[str]:
        """The names of the files that have the blocks of these metrics, schemes and windows."""
        found = set()
        for metric, scheme, labels in tallies:
            for _, _, value in self._strings.beginnings(metric, scheme, labels, NAMED):
                if is_sealed(value) and (name := file_of(kept_in(value))):
                    found.add(name)
        return frozenset(found)

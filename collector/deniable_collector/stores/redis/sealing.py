"""Seals the tallies of a store in Redis."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import cast

from deniable_collector.stores.base import Sealing
from deniable_collector.stores.commits import TallyKey
from deniable_collector.stores.redis.driver import Driver
from deniable_collector.stores.redis.errors import translated
from deniable_collector.stores.redis.forms import HEADER, counters_of, is_sealed, sealed_value
from deniable_collector.stores.redis.strings import RedisStrings
from deniable_collector.stores.sealed.blocks import block_of
from deniable_collector.stores.vectors import Shape, Shapes


class RedisBlocks:
    """The sealed tallies of a store; `script` is that of seal.lua. The methods are as `Store` says
    of those of these names."""

    def __init__(self, driver: Driver, strings: RedisStrings, shapes: Shapes, script: str) -> None:
        self._strings = strings
        self._shapes = shapes
        self._seal = driver.script(script)

    def sealed(self, metric: str, scheme: str, windows: Iterable[str]) -> frozenset[str]:
        parts: dict[str, bool] = {}
        for label, _, value in self._strings.beginnings(metric, scheme, windows, 0):
            parts[label] = parts.get(label, True) and is_sealed(value)
        return frozenset(label for label, each in parts.items() if each)

    def seal(self, tally: TallyKey) -> Sealing | None:
        shape = self._shapes.of(tally.metric, tally.scheme)
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
        block = block_of(tally, len(shape.widths), counters_of(value, tally, shape.size))
        new = sealed_value(value, block)
        digest = hashlib.sha1(new, usedforsecurity=False).hexdigest()
        with translated():
            if self._seal([key], [value[: HEADER.size], new, digest]) != 1:
                return None
        return Sealing(len(value), len(new))

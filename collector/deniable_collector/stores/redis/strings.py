"""The keys of a store in Redis, and the strings of its tallies as they are.

All keys begin with one prefix, and the keys of a shard carry its tag, `{s}`, so that a commit stays
in one slot of a cluster. Nothing here scans the keyspace.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import cast

import redis

from deniable_collector.stores.commits import TallyKey
from deniable_collector.stores.redis.driver import Driver
from deniable_collector.stores.redis.errors import translated
from deniable_collector.stores.redis.forms import HEADER
from deniable_collector.stores.redis.layout import RedisLayout

__all__ = ["NAMED", "RedisStrings"]

NAMED = 1024
"""The beginning of a sealed string, which has the whole name of its file if it has one."""


class RedisStrings:
    """The keys under `prefix` in the Redis behind `driver`.

    `shards` is how many shards a new store is laid out with; a store that exists keeps its own
    number.
    """

    def __init__(self, driver: Driver, prefix: str, shards: int) -> None:
        self._driver = driver
        self._prefix = prefix
        self._wished_shards = shards
        self._shards: int | None = None
        self.layout = RedisLayout(driver, prefix)

    @property
    def shards(self) -> int:
        """How many shards the store has."""
        if self._shards is None:
            # Nothing is remembered of a store that is not laid out yet: its writer may
            # still choose another number.
            self._shards = self.layout.shards()
        return self._shards or self._wished_shards

    @property
    def client(self) -> redis.Redis:
        """The driver's client, if the store is one that this version can read."""
        self.layout.check()
        return self._driver.client

    @property
    def schemes_key(self) -> str:
        """The key of the published schemes."""
        return f"{self._prefix}:schemes"

    @property
    def layout_key(self) -> str:
        """The key of the layout, and of the mark of the archive."""
        return f"{self._prefix}:layout"

    def key(self, shard: int, *parts: str) -> str:
        """The key of a shard that ends with these parts."""
        return ":".join((self._prefix, f"{{{shard}}}", *parts))

    def tally_key(self, shard: int, tally: TallyKey) -> str:
        """The key of a tally in a shard."""
        return self.key(shard, "tally", *tally)

    def read(self, keys: Sequence[str]) -> Iterator[bytes | None]:
        """The strings at these keys of one slot; None where there is none."""
        return iter(cast(list[bytes | None], self.client.mget(keys)) if keys else ())

    def labels(self, shard: int, metric: str, scheme: str) -> list[str]:
        """The windows of which a shard has a tally, in any order."""
        with translated():
            found = self.client.smembers(self.key(shard, "windows", metric, scheme))
        return [label.decode() for label in cast(set[bytes], found)]

    def beginnings(
        self, metric: str, scheme: str, windows: Iterable[str], more: int
    ) -> list[tuple[str, int, bytes]]:
        """Window, shard and header of each existing part of these tallies, with `more` bytes."""
        labels = tuple(dict.fromkeys(windows))
        asked = [(label, shard) for label in labels for shard in range(self.shards)]
        with translated(), self.client.pipeline(transaction=False) as pipeline:
            for label, shard in asked:
                key = self.tally_key(shard, TallyKey(metric, scheme, label))
                pipeline.getrange(key, 0, HEADER.size + more - 1)
            values = pipeline.execute() if asked else []
        return [(*place, value) for place, value in zip(asked, values, strict=True) if value]

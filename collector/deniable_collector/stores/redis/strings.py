"""The keys of a store in Redis and the strings there, and its layout.

All keys begin with one prefix, and the keys of a shard carry its tag, `{s}`, so that a commit stays
in one slot of a cluster. Nothing here scans the keyspace.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import cast

import redis

from deniable.protocol.coded_message import counted
from deniable_collector.stores.commits import TallyKey
from deniable_collector.stores.errors import StoreError
from deniable_collector.stores.redis.driver import Driver
from deniable_collector.stores.redis.errors import translated

_LAYOUT = b"2"
"""The version of everything that RedisStore and its scripts write."""


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

    @property
    def shards(self) -> int:
        """How many shards the store has.

        Raises:
            StoreError: another version of deniable has written the store.
        """
        if self._shards is None:
            # Nothing is remembered of a store that is not laid out yet: its writer may
            # still choose another number.
            self._shards = self._laid_out()
        return self._shards or self._wished_shards

    def lay_out(self) -> None:
        """Make a new store one of the wished number of shards.

        Raises:
            StoreError: it has another number, or another version of deniable has written it.
        """
        chosen: dict[str, str | bytes] = {
            "version": _LAYOUT,
            "shards": str(self._wished_shards),
            "identity": secrets.token_hex(8),
        }
        # By one step: nobody sees a store without its number of shards.
        with translated(), self._driver.client.pipeline(transaction=True) as pipeline:
            for name, value in chosen.items():
                pipeline.hsetnx(self._layout_key, name, value)
            pipeline.execute()
        found = self.shards
        if found != self._wished_shards:
            raise StoreError(
                f"this store was laid out with {counted(found, 'shard')}, which cannot change: "
                f"set DENIABLE_SHARDS={found}"
            )

    def identity(self) -> str:
        """The store's name; empty before it is laid out."""
        with translated():
            found = cast(dict[bytes, bytes], self.client.hgetall(self._layout_key))
        return found.get(b"identity", b"").decode()

    def _laid_out(self) -> int | None:
        with translated():
            found = cast(dict[bytes, bytes], self._driver.client.hgetall(self._layout_key))
        if not found:
            return None
        if found.get(b"version") != _LAYOUT:
            raise StoreError(
                "another version of deniable has written this store: set another "
                "DENIABLE_REDIS_PREFIX, or install that version"
            )
        return int(found[b"shards"])

    @property
    def client(self) -> redis.Redis:
        """The driver's client, if the store is one that this version can read."""
        if self._shards is None:
            self._shards = self._laid_out()
        return self._driver.client

    @property
    def schemes_key(self) -> str:
        """The key of the published schemes."""
        return f"{self._prefix}:schemes"

    @property
    def _layout_key(self) -> str:
        return f"{self._prefix}:layout"

    def key(self, shard: int, *parts: str) -> str:
        """The key of a shard that ends with these parts."""
        return ":".join((self._prefix, f"{{{shard}}}", *parts))

    def values(self, keys: Sequence[str]) -> list[bytes | None]:
        """The strings at these keys of one slot; None where there is none."""
        with translated():
            return cast(list[bytes | None], self.client.mget(keys)) if keys else []

    def beginnings(self, keys: Sequence[str], sizes: Sequence[int]) -> list[bytes]:
        """As many first bytes of each of these strings; none where there is none."""
        with translated(), self.client.pipeline(transaction=False) as pipeline:
            for key, size in zip(keys, sizes, strict=True):
                pipeline.getrange(key, 0, size - 1)
            return pipeline.execute() if keys else []

    def tally_key(self, shard: int, tally: TallyKey) -> str:
        """The key of a tally in a shard."""
        return self.key(shard, "tally", *tally)

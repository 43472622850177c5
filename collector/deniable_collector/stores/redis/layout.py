"""The layout of a store in Redis: its version, its number of shards, and how it is upgraded.

Before a call, a process reads the version again if it has not done so for LOOK_SECONDS. The first
process of a version with another layout raises the number, waits for longer than that, and only
then writes in its own form. So processes of earlier versions that still run refuse the store in
words, miss nothing and count nothing wrong; devices keep their batches meanwhile.
"""

from __future__ import annotations

import time
from typing import cast

from deniable.told import counted
from deniable_collector.stores.errors import NewerStore, StoreError, StoreUnavailable
from deniable_collector.stores.redis.driver import Driver
from deniable_collector.stores.redis.errors import translated

__all__ = ["AWAY_SECONDS", "LAYOUT", "LOOK_SECONDS", "RedisLayout"]

LAYOUT, _OLDEST = 3, 2
"""The version of everything that RedisStore and `fold.lua` write, and the oldest one that they
read, in which all tallies are dense."""

LOOK_SECONDS = 1.0
"""Seconds for which a version that was read is relied on."""

AWAY_SECONDS = 60.0
"""The same while the node that has the layout does not respond: asking may take until a timeout."""

_WAIT_SECONDS = 2 * LOOK_SECONDS
"""How long a newer version waits before it writes what earlier ones cannot read."""

_RAISE = """
if tonumber(redis.call('HGET', KEYS[1], 'version')) >= tonumber(ARGV[1]) then return 0 end
redis.call('HSET', KEYS[1], 'version', ARGV[1])
return 1
"""
"""Two versions may raise it at once: the higher one stays."""


class RedisLayout:
    """What is under PREFIX:layout in one Redis or cluster."""

    def __init__(self, driver: Driver, prefix: str) -> None:
        self._driver = driver
        self._key = f"{prefix}:layout"
        self._raise = driver.script(_RAISE)
        self._next_look = 0.0

    def check(self) -> None:
        """Return if this version can read and write the store, as far as was known a moment ago.

        Raises:
            NewerStore: a newer version has written it.
            StoreError: it is from before the first release.
            StoreUnavailable: it cannot be read.
        """
        if time.monotonic() < self._next_look:
            return
        known = self._next_look > 0
        # Other threads rely on what is known while this one looks.
        self._next_look = time.monotonic() + LOOK_SECONDS
        try:
            with translated():
                found = self._driver.client.hget(self._key, "version")
        except StoreUnavailable:
            self._next_look = time.monotonic() + AWAY_SECONDS if known else 0.0
            if not known:
                raise
            # Its node is away, so nobody can raise the number now. Shards on others must go on.
            return
        try:
            if found is not None:
                _check(int(cast(bytes, found)))
        except StoreError:
            self._next_look = 0.0
            raise

    def shards(self) -> int | None:
        """The number of shards that the store was laid out with; None before the first publish.

        Raises:
            NewerStore, StoreError, StoreUnavailable: as `check` does.
        """
        with translated():
            found = cast(dict[bytes, bytes], self._driver.client.hgetall(self._key))
        if not found:
            return None
        _check(int(found[b"version"]))
        return int(found[b"shards"])

    def lay_out(self, shards: int) -> None:
        """Make a new store one of so many shards, and an older one one of this version.

        Raises:
            NewerStore, StoreError, StoreUnavailable: as `check` does, or it has another number.
        """
        with translated():
            self._driver.client.hsetnx(self._key, "version", str(LAYOUT))
            self._driver.client.hsetnx(self._key, "shards", str(shards))
        laid_out = self.shards()
        assert laid_out is not None
        if laid_out != shards:
            raise StoreError(
                f"this store was laid out with {counted(laid_out, 'shard')}, which cannot change: "
                f"set DENIABLE_SHARDS={laid_out}"
            )
        self.upgrade()

    def upgrade(self) -> None:
        """Make earlier versions refuse the store: they cannot read what is written from now on.

        If it was one of an earlier version, this waits until those that still run must know.
        """
        with translated():
            found = cast(bytes | None, self._driver.client.hget(self._key, "version"))
            if found is not None and int(found) < LAYOUT and self._raise([self._key], [LAYOUT]):
                time.sleep(_WAIT_SECONDS)


def _check(version: int) -> None:
    if version > LAYOUT:
        raise NewerStore("this store")
    if version < _OLDEST:
        raise StoreError(
            f"a version of deniable before its release wrote this store (layout {version}), "
            "which this one cannot read: set another DENIABLE_REDIS_PREFIX"
        )

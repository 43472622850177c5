"""Stores by address: an SQLite file for one machine, Redis or a Redis Cluster for more."""

from __future__ import annotations

import re
from urllib.parse import unquote

from deniable_collector.settings import Settings
from deniable_collector.stores.base import Store
from deniable_collector.stores.errors import StoreError, StoreUnavailable
from deniable_collector.stores.sqlite.store import SqliteStore

__all__ = ["Store", "StoreError", "StoreUnavailable", "open_store", "store_of"]

_REDIS = ("redis", "rediss", "unix", "redis+cluster", "rediss+cluster")


def open_store(
    url: str,
    *,
    prefix: str = "deniable",
    shards: int = 1,
    password: str = "",
    replicas: int = 0,
) -> Store:
    """The store at an address; nothing is connected before it is used.

    sqlite:///relative.db, sqlite:////absolute.db, redis://host:port/0, rediss://... (TLS),
    unix:///path/to/socket, or redis+cluster://host:port,host:port and rediss+cluster://...
    for a cluster, with one or more of its nodes. The rest is for Redis: `prefix` begins every key,
    `shards` is the number of shards of a new store, and the others are those of `driver.Driver`.

    Raises:
        StoreError: the address names no store, or a file for TLS is missing.
    """
    if url.partition("://")[0] in _REDIS:
        from deniable_collector.stores.redis.driver import Driver
        from deniable_collector.stores.redis.store import RedisStore

        return RedisStore(Driver(url, password, replicas), prefix=prefix, shards=shards)
    if found := re.fullmatch(r"sqlite:///([^?#]+)", url):
        return SqliteStore(unquote(found[1]))
    # The address may contain a password, which must not reach a log.
    raise StoreError(
        "the store's address must be sqlite:///relative.db, sqlite:////absolute.db, "
        "redis://host:port/0, rediss://host:port/0, unix:///path/to/socket, or "
        "redis+cluster://host:port,host:port for a cluster"
    )


def store_of(settings: Settings) -> Store:
    """The store that the settings name.

    Raises:
        StoreError: as `open_store` does.
    """
    return open_store(
        settings.store,
        prefix=settings.redis_prefix,
        shards=settings.shards,
        password=settings.redis_password,
        replicas=settings.redis_replicas,
    )

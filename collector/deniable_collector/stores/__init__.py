"""Stores by address: an SQLite file for one machine, Redis or a Redis Cluster for more."""

from __future__ import annotations

import re
from urllib.parse import unquote

from deniable_collector.settings import Settings
from deniable_collector.stores.base import Store
from deniable_collector.stores.errors import StoreError, StoreUnavailable
from deniable_collector.stores.sqlite.store import SqliteStore

__all__ = ["Store", "StoreError", "StoreUnavailable", "open_store"]

_REDIS = ("redis", "rediss", "unix", "redis+cluster", "rediss+cluster")


def open_store(settings: Settings) -> Store:
    """The store that the settings name; nothing is connected before it is used.

    sqlite:///relative.db, sqlite:////absolute.db, redis://host:port/0, rediss://... (TLS),
    unix:///path/to/socket, or redis+cluster://host:port,host:port and rediss+cluster://...
    for a cluster, with one or more of its nodes.

    Raises:
        StoreError: the address names no store, or a file for TLS is missing.
    """
    if settings.store.partition("://")[0] in _REDIS:
        from deniable_collector.stores.redis.store import RedisStore

        return RedisStore(settings)
    if found := re.fullmatch(r"sqlite:///([^?#]+)", settings.store):
        return SqliteStore(unquote(found[1]))
    # The address may contain a password, which must not reach a log.
    raise StoreError(
        "the store's address must be sqlite:///relative.db, sqlite:////absolute.db, "
        "redis://host:port/0, rediss://host:port/0, unix:///path/to/socket, or "
        "redis+cluster://host:port,host:port for a cluster"
    )

"""Stores by address: an SQLite file for one machine, Redis for more."""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

from hearsay_collector.stores.base import Store, StoreError, StoreUnavailable
from hearsay_collector.stores.sqlite import SqliteStore

__all__ = ["Store", "StoreError", "StoreUnavailable", "open_store"]

_REDIS = ("redis", "rediss", "unix")


def open_store(url: str, *, prefix: str = "hearsay", shards: int = 1) -> Store:
    """The store at an address; nothing is connected before it is used.

    sqlite:///relative.db, sqlite:////absolute.db, redis://host:port/0, rediss://... (TLS)
    or unix:///path/to/socket. `prefix` begins every key in Redis, and `shards` is how many
    shards a new store in Redis is laid out with.

    Raises:
        StoreError: the address names no store.
    """
    try:
        scheme, host, path, query, fragment = urlsplit(url)
    except ValueError:
        scheme = host = path = query = fragment = ""
    if scheme == "sqlite" and len(path) > 1 and not (host or query or fragment):
        return SqliteStore(unquote(path[1:]))
    if scheme in _REDIS:
        from hearsay_collector.stores.redis import RedisStore

        return RedisStore.from_url(url, prefix=prefix, shards=shards)
    # The address itself may hold a password, which must not reach a log.
    raise StoreError(
        "the store's address must be sqlite:///relative.db, sqlite:////absolute.db, "
        "redis://host:port/0, rediss://host:port/0 or unix:///path/to/socket"
    )

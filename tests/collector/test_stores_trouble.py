"""Moods of Redis: what a server says while it cannot serve is unavailable, and nothing else."""

from __future__ import annotations

from contextlib import closing

import pytest
import redis

from deniable_collector.stores import StoreUnavailable, open_store
from deniable_collector.stores.commits import Commit, Increment, TallyKey, TallyRowKey
from deniable_collector.stores.redis import driver

WINDOW = "2026-11-20"


@pytest.fixture
def scheme(shelf):
    return shelf(8)


@pytest.fixture
def commit(scheme):
    def commit(batch):
        key = TallyRowKey(TallyKey("m", scheme.fingerprint, WINDOW), 0)
        return Commit((batch,), {key: Increment(8, 1, (1,), (1,))})

    return commit


@pytest.fixture
def total(scheme):
    return lambda store: store.tally("m", scheme.fingerprint, [WINDOW]).reports


@pytest.fixture
def server(new_redis):
    """A server that the test may harm."""
    server = new_redis()
    yield server
    server.kill()


def test_a_server_whose_memory_is_full(server, scheme, commit, total, new_id, noon):
    """A Redis at maxmemory that evicts nothing refuses a ping as it refuses a commit, and says
    why; it can still be read, and takes both when it has room again."""
    with closing(open_store(server.url)) as store, closing(redis.Redis.from_url(server.url)) as one:
        store.publish({"m": [scheme]})
        store.fold(commit(new_id()), noon)
        one.config_set("maxmemory-policy", "noeviction")
        one.config_set("maxmemory", 1)
        for act in (lambda: store.fold(commit(new_id()), noon), store.ping):
            with pytest.raises(StoreUnavailable, match="maxmemory"):
                act()
        assert total(store) == 1
        one.config_set("maxmemory", 0)
        store.ping()
        assert store.fold(commit(new_id()), noon) == frozenset()


def test_replicas_that_are_not_there(server, scheme, commit, total, new_id, noon, monkeypatch):
    """A batch that must reach a replica is not acknowledged without one, and counted once."""
    monkeypatch.setattr(driver, "_WAIT_MILLISECONDS", 100)
    batch = new_id()
    with closing(open_store(server.url, replicas=1)) as store:
        store.publish({"m": [scheme]})
        for _ in range(2):
            with pytest.raises(StoreUnavailable, match="DENIABLE_REDIS_REPLICAS"):
                store.fold(commit(batch), noon)
        assert total(store) == 1

"""Moods of Redis: what a server says while it cannot serve is unavailable, and nothing else."""

from __future__ import annotations

import socket
from contextlib import closing

import pytest
import redis

from deniable_collector.stores import StoreError, StoreUnavailable, open_store
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


def said_by(url, **access):
    """Why a store cannot be used, in the words of its ping."""
    with closing(open_store(url, **access)) as store:
        with pytest.raises(StoreUnavailable) as caught:
            store.ping()
        return str(caught.value)


def test_a_wrong_password_is_called_that(server):
    """No password, a wrong one and an unknown user are told as such, and where to set them; a
    right one that loses a right, as that. No text holds what was sent."""
    password = "DENIABLE_REDIS_PASSWORD"
    with closing(redis.Redis.from_url(server.url)) as one:
        one.config_set("requirepass", "secret")
        one.acl_setuser("reader", enabled=True, passwords=["+secret"], commands=["+get"])
        for access in ({}, {"password": "hush"}, {"user": "nobody", "password": "hush"}):
            said = said_by(server.url, **access)
            assert password in said, access
            assert "cannot be reached" not in said
            assert "hush" not in said
            assert "nobody" not in said
        said = said_by(server.url, user="reader", password="secret")
        assert "operating-stores.md" in said
        assert "NoPermission" in said
        one.config_set("requirepass", "")


def test_why_a_server_cannot_be_reached(monkeypatch):
    """A closed port, an unknown name and a server that never answers are told apart, without
    the address."""
    monkeypatch.setattr(driver, "_CONNECT_TIMEOUT", 0.5)
    monkeypatch.setattr(driver, "_TIMEOUT", 0.5)
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        port = silent.getsockname()[1]
        said = [
            said_by(f"redis://{place}")
            for place in ("127.0.0.1:1", "nowhere.invalid:6379", f"127.0.0.1:{port}")
        ]
    assert "connection refused" in said[0]
    assert "host name" in said[1]
    assert "in time" in said[2]
    assert not any("127.0.0.1" in each or "nowhere" in each for each in said)


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


@pytest.mark.parametrize(
    "url",
    [
        *("redis+cluster://", "redis+cluster://me:hush@", "redis+cluster://:hush@host:port"),
        *("redis+cluster://:hush@a:1,", "redis+cluster://:hush@a:1/3", "redis+cluster://a:1?hush"),
        *("redis+cluster://:hush@[::1", "redis+cluster://:hush@a:99999"),
    ],
)
def test_cluster_addresses_that_make_no_sense(url):
    """An address of a cluster that cannot be read is an error that does not repeat it."""
    with pytest.raises(StoreError, match=r"redis\+cluster://host:port") as caught:
        open_store(url)
    assert "hush" not in str(caught.value)
    assert caught.value.__cause__ is None

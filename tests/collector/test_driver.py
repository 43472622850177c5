"""Addresses of stores: what each becomes, and how Redis is connected to, without a server."""

from contextlib import closing, nullcontext, suppress
from pathlib import Path
from unittest.mock import MagicMock, Mock, call
from urllib.parse import urlencode

import pytest
import redis

from deniable_collector.settings import Settings
from deniable_collector.stores import StoreError, StoreUnavailable, open_store
from deniable_collector.stores.redis import driver
from deniable_collector.stores.redis.driver import Driver
from deniable_collector.stores.redis.store import RedisStore
from deniable_collector.stores.sqlite.store import SqliteStore


def options(url, password=""):
    """What each connection of one server is made with."""
    settings = Settings(store=url, redis_password=password)
    return Driver(settings).client.connection_pool.connection_kwargs


def test_what_an_address_becomes():
    """Its parts, and seconds after which a server counts as silent; nothing is tried again."""
    found = options("redis://me:p%40ss@example.test:7000/3")
    assert (found["host"], found["port"], found["db"]) == ("example.test", 7000, 3)
    assert (found["username"], found["password"]) == ("me", "p@ss")
    assert (found["socket_timeout"], found["socket_connect_timeout"]) == (5, 2)
    tries = []

    def fails():
        tries.append(1)
        raise redis.ConnectionError

    with suppress(redis.ConnectionError):
        found["retry"].call_with_retry(fails, lambda error: None)
    assert tries == [1]
    assert "ssl_cert_reqs" not in found
    given = options("redis://app@example.test", password="p@ss")
    assert (given["username"], given["password"]) == ("app", "p@ss")
    assert "username" not in options("redis://example.test", password="p@ss")


@pytest.mark.parametrize("scheme", ["rediss", "rediss+cluster"])
def test_tls_always_asks_for_a_certificate(tmp_path, scheme, monkeypatch):
    """The files are those of the address, or the system's; the server must show a certificate for
    its host."""
    made = []
    monkeypatch.setattr(driver, "_Cluster", lambda **options: made.append(options))
    path = tmp_path / "a&b.pem"
    path.write_text("")
    files = dict.fromkeys(("ssl_ca_certs", "ssl_certfile", "ssl_keyfile"), str(path))
    for given in ({}, files):
        one = Driver(Settings(store=f"{scheme}://example.test?{urlencode(given)}")).client
        found = made[-1] if made else one.connection_pool.connection_kwargs
        assert {name: found[name] for name in given} == given
        assert found["ssl_cert_reqs"] == "required"
        assert found["ssl_check_hostname"] is True
    for name in files:
        with pytest.raises(StoreError, match=f"^{name} is for TLS"):
            Driver(Settings(store=f"{scheme[:5]}{scheme[6:]}://example.test?{name}={path}"))
        with pytest.raises(StoreError, match=f"^{name} names no file"):
            Driver(Settings(store=f"{scheme}://example.test?{name}={tmp_path}"))
    with pytest.raises(StoreError, match="always checked"):
        Driver(Settings(store=f"{scheme}://example.test?ssl_cert_reqs=none"))


@pytest.mark.parametrize(
    ("rest", "nodes", "named"),
    [
        ("a:1,b", [("a", 1), ("b", 6379)], (None, None)),
        ("a/", [("a", 6379)], (None, None)),
        ("a/0", [("a", 6379)], (None, None)),
        ("me:p%40s%3as@a:1", [("a", 1)], ("me", "p@s:s")),
        ("m%40e@[::1]:7", [("::1", 7)], ("m@e", None)),
        (":a:b@a", [("a", 6379)], (None, "a:b")),
    ],
)
@pytest.mark.parametrize("scheme", ["redis+cluster", "rediss+cluster"])
def test_what_a_cluster_is_made_with(scheme, rest, nodes, named, monkeypatch):
    """Hosts with their ports, 6379 if none is named, and the user and password before them; the
    same options, TLS where the address asks for it, and shards that are there work without the
    others."""
    made = []
    monkeypatch.setattr(driver, "_Cluster", lambda **options: made.append(options) or "client")
    asked = Driver(Settings(store=f"{scheme}://{rest}"))
    assert made == []
    assert asked.client == asked.client == "client"
    (found,) = made
    assert [(node.host, node.port) for node in found["startup_nodes"]] == nodes
    assert found["require_full_coverage"] is False
    assert (found.get("username"), found.get("password")) == named
    assert (found["socket_timeout"], found["socket_connect_timeout"]) == (5, 2)
    assert found.get("ssl") == (True if scheme == "rediss+cluster" else None)
    assert found.get("ssl_check_hostname") == found.get("ssl")


@pytest.mark.parametrize("reached", [1, 2, 3])
def test_a_commit_waits_for_its_replicas(reached):
    """Two seconds for as many as are asked for; fewer are too few."""
    one = Driver(Settings(store="redis://example.test", redis_replicas=2))
    one.client = server = MagicMock()
    pipeline = server.pipeline.return_value.__enter__.return_value
    pipeline.execute.return_value = [True, reached]
    with pytest.raises(StoreUnavailable, match="1 of 2") if reached == 1 else nullcontext():
        one.wait_for_replicas("key")
    pipeline.wait.assert_called_once_with(2, 2000)


def test_a_node_that_has_joined_is_found(monkeypatch):
    """A node that is not known is looked for once more after the cluster was asked for its nodes;
    one that is known is not."""
    find = Mock(side_effect=["first", None, "second", None, None])
    monkeypatch.setattr(driver.RedisCluster, "get_node", find)
    cluster = object.__new__(driver._Cluster)
    cluster.nodes_manager = Mock()
    assert cluster.get_node("h", 1, "n") == "first"
    assert not cluster.nodes_manager.initialize.called
    assert cluster.get_node("h", 1, "n") == "second"
    cluster.nodes_manager.initialize.assert_called_once_with()
    with pytest.raises(redis.exceptions.TryAgainError):
        cluster.get_node("h", 1, "n")
    assert find.call_args_list == [call("h", 1, "n")] * 5


def test_one_password():
    """Two of them do not go together, which is told before anything is sent."""
    for url in ("redis://me:hush@localhost", "redis+cluster://:hush@localhost"):
        with pytest.raises(StoreError, match="keep one of them") as caught:
            open_store(Settings(store=url, redis_password="other"))
        assert "hush" not in str(caught.value)
    with pytest.raises(StoreError, match="cannot be read"):
        open_store(Settings(store="rediss+cluster://localhost?db=1"))


def test_sqlite_paths(tmp_path, monkeypatch):
    """Three slashes are a path from here, four an absolute one, and %20 is a space."""
    monkeypatch.chdir(tmp_path)
    absolute = tmp_path / "with space.db"
    for url in ("sqlite:///relative.db", f"sqlite:///{str(absolute).replace(' ', '%20')}"):
        with closing(open_store(Settings(store=url))) as store:
            assert isinstance(store, SqliteStore)
            store.publish(())
    assert Path("relative.db").exists()
    assert absolute.exists()


@pytest.mark.parametrize("url", ["redis://localhost", "rediss://u:p@host:1/2", "unix:///run/r"])
def test_redis_addresses(url):
    """Redis addresses open no connection yet."""
    with closing(open_store(Settings(store=url))) as store:
        assert isinstance(store, RedisStore)


@pytest.mark.parametrize(
    "url",
    [
        *("", "deniable.db", "sqlite:", "sqlite://", "sqlite:///", "sqlite://host/x.db"),
        *("sqlite:///x.db?mode=ro", "postgres://hush@host/db", "redis://:hush@host:port"),
        *("redis://:hush@[::1", "redis://host:99999999/hush"),
        *(
            f"redis+cluster://{each}"
            for each in ("", "a,", "a/1", "a?x=1", "a#x", "a:b", "me:hush@")
        ),
    ],
)
def test_anything_else_is_refused_without_repeating_it(url):
    """An address that names no store is an error that says what to write, not what was written."""
    with pytest.raises(StoreError, match="redis://") as caught:
        open_store(Settings(store=url))
    assert "hush" not in str(caught.value)
    assert caught.value.__cause__ is None

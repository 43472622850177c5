"""Two versions of deniable on one store: an earlier one refuses in words what it cannot read, and
nothing is lost or counted twice while collectors are upgraded under load."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest
from click.testing import CliRunner

from deniable_collector.commands import collect
from deniable_collector.stores.errors import NewerStore
from deniable_collector.stores.redis import layout
from deniable_collector.stores.redis.driver import Driver
from deniable_collector.upkeep import commands as store_commands

from .store_calls import WINDOW

STORES = ["sqlite", "redis", "cluster"]
FUTURE = 99


def connect(home):
    """redis-py's own client of a store."""
    return Driver(home.url).client


class Upgrade:
    """Makes a store one of a future version, and back, as another process would."""

    def __init__(self, home):
        self._home = home
        self._before = None

    def _version(self, version):
        if self._home.kind == "sqlite":
            with closing(sqlite3.connect(self._home.url.removeprefix("sqlite:///"))) as connection:
                (found,) = connection.execute("PRAGMA user_version").fetchone()
                connection.execute(f"PRAGMA user_version = {version}")
            return found
        with closing(connect(self._home)) as client:
            found = int(client.hget(f"{self._home.prefix}:layout", "version"))
            client.hset(f"{self._home.prefix}:layout", "version", str(version))
        return found

    def __enter__(self):
        self._before = self._version(FUTURE)

    def __exit__(self, *exception):
        self._version(self._before)


@pytest.fixture(autouse=True)
def _looks_at_each_call(monkeypatch):
    monkeypatch.setattr(layout, "LOOK_SECONDS", 0.0)


def test_a_store_that_is_upgraded_while_it_is_open(home, store, calls):
    """A process that runs when a newer version takes the store over refuses every call in words,
    changes nothing, and goes on when the store is one of its version again."""
    assert not calls.fold()
    with Upgrade(home):
        for call in calls.all.values():
            with pytest.raises(NewerStore, match=r"has written .*: upgrade this one"):
                call()
    assert store.tally("m", calls.scheme.fingerprint, [WINDOW]).reports == 1
    for call in calls.all.values():
        call()


def test_commands_refuse_a_newer_store(home, calls, tmp_path, metrics):
    """`deniable collect` does not start on a newer store, and `deniable store` ends with words."""
    calls.fold()
    (tmp_path / "metrics.toml").write_text(metrics)
    environ = {**home.environ, "DENIABLE_REGISTRY": str(tmp_path / "metrics.toml")}
    environ["DENIABLE_BIND"] = "127.0.0.1:0"
    with Upgrade(home):
        for command, arguments in (
            (collect, []),
            (store_commands.store, ["info"]),
            (store_commands.store, ["seal"]),
            (store_commands.store, ["verify"]),
            (store_commands.store, ["drop", "--before", "2026-12-01", "--yes"]),
            (store_commands.store, ["export", str(tmp_path / "tallies.gz")]),
        ):
            done = CliRunner().invoke(command, arguments, env=environ)
            assert done.exit_code == 1, (arguments, done.output)
            assert "a newer version of deniable has written" in done.output
            assert "Traceback" not in done.output
    assert not (tmp_path / "tallies.gz").exists()

"""Addresses of stores."""

from contextlib import closing
from pathlib import Path

import pytest

from deniable_collector.stores import StoreError, open_store
from deniable_collector.stores.redis.store import RedisStore
from deniable_collector.stores.sqlite.store import SqliteStore


def test_sqlite_paths(tmp_path, monkeypatch):
    """Three slashes are a path from here, four an absolute one, and %20 is a space."""
    monkeypatch.chdir(tmp_path)
    absolute = tmp_path / "with space.db"
    for url in ("sqlite:///relative.db", f"sqlite:///{str(absolute).replace(' ', '%20')}"):
        with closing(open_store(url)) as store:
            assert isinstance(store, SqliteStore)
            store.publish({})
    assert Path("relative.db").exists()
    assert absolute.exists()


@pytest.mark.parametrize("url", ["redis://localhost", "rediss://u:p@host:1/2", "unix:///run/r"])
def test_redis_addresses(url):
    """Redis addresses open no connection yet."""
    with closing(open_store(url)) as store:
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
        open_store(url)
    assert "hush" not in str(caught.value)
    assert caught.value.__cause__ is None

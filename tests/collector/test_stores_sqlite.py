"""What is particular to the SQLite store: the file, its version and its locks."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from hearsay_collector.stores import StoreError, StoreUnavailable
from hearsay_collector.stores import sqlite_file as module
from hearsay_collector.stores.base import ID_RETENTION, Commit, Increment, TallyKey, TallyRowKey
from hearsay_collector.stores.sqlite import SqliteStore

KEY = TallyRowKey(TallyKey("m", "abc", "2026-11-20"), 0)


def one(batch):
    return Commit((batch,), {KEY: Increment(8, 1, (1,), (1,))})


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store.db"


@pytest.fixture
def store(path):
    store = SqliteStore(path)
    yield store
    store.close()


def test_commits_are_synced(store, path):
    """The log is write-ahead, synced at every commit, and the file says its version."""
    store.publish({})
    connection = store._file._connection
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert connection.execute("PRAGMA synchronous").fetchone() == (2,)
    assert connection.execute("PRAGMA user_version").fetchone() == (1,)


def test_readers_do_not_make_a_file(store, path):
    """A mistyped path is an error for a reader, and leaves no file behind."""
    for read in (store.schemes, store.ping, lambda: store.windows("m", "abc")):
        with pytest.raises(StoreError, match="correct the path"):
            read()
    assert not path.exists()


def test_ids_are_pruned_as_others_come(store, path, new_id, noon):
    """Expired ids leave the file as commits arrive, a few at a time."""
    for _ in range(20):
        store.fold(one(new_id()), noon)
    for number in range(4):
        store.fold(one(new_id()), noon + 2 * ID_RETENTION + number)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM ids").fetchone() == (4,)


def test_a_newer_file_is_refused(store, path):
    """A file that a later version wrote is left alone."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(StoreError, match="upgrade"):
        store.schemes()


def test_another_program_s_file_is_refused(store, path):
    """A database of something else is not written to."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE songs (title TEXT)")
    with pytest.raises(StoreError, match="something else"):
        store.publish({})
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("songs",)]


def test_a_file_that_is_no_database(store, path):
    """Any other file is refused, and not called a passing trouble."""
    path.write_bytes(b"no database at all" * 100)
    with pytest.raises(StoreError) as caught:
        store.publish({})
    assert not isinstance(caught.value, StoreUnavailable)


def test_a_locked_file_is_unavailable(store, path, new_id, noon, monkeypatch):
    """A writer that holds the file too long makes the store unavailable, with nothing added."""
    monkeypatch.setattr(module, "_BUSY_SECONDS", 0.05)
    store.fold(one(new_id()), noon)
    batch = new_id()
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailable, match="BUSY"):
            store.fold(one(batch), noon)
        with pytest.raises(StoreUnavailable):
            store.ping()
        other.execute("ROLLBACK")
    assert store.fold(one(batch), noon) == frozenset()


def test_a_full_disk_is_unavailable(store, path, new_id, noon):
    """A commit for which there is no room adds nothing, and passes when there is room again."""
    store.fold(one(new_id()), noon)
    connection = store._file._connection
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count = {pages}")
    batch = new_id()
    wide = {KEY._replace(row=1): Increment(100_000, 1, tuple(range(100_000)), (1,) * 100_000)}
    with pytest.raises(StoreUnavailable, match="FULL"):
        store.fold(Commit((batch,), wide), noon)
    connection.execute("PRAGMA max_page_count = 1000000")
    assert store.fold(one(batch), noon) == frozenset()
    with closing(sqlite3.connect(path)) as other:
        assert other.execute("SELECT row, reports FROM tally_rows").fetchall() == [(0, 2)]


def test_a_folder_that_is_missing_is_unavailable(tmp_path):
    """A path into a folder that does not exist yet is told as such."""
    with pytest.raises(StoreUnavailable, match="CANTOPEN"):
        SqliteStore(tmp_path / "none" / "store.db").publish({})

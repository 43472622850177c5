"""One SQLite file: how it is opened and waited for, and what is left of its log."""

import os
import sqlite3
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, nullcontext
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from deniable_collector.stores import StoreError, StoreUnavailable
from deniable_collector.stores.sqlite import file as module
from deniable_collector.stores.sqlite.file import SqliteFile


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store.db"


@pytest.fixture
def file(path):
    """A file that has been opened, with a table of our own."""
    file = SqliteFile(path)
    with file.transaction("IMMEDIATE", create=True) as connection:
        connection.execute("CREATE TABLE t (text)")
    yield file
    file.close()


@pytest.fixture
def clock(monkeypatch):
    """The clock of the module, which stands still but for its sleeps."""
    clock = SimpleNamespace(now=1_000.0, sleeps=[])

    def sleep(seconds):
        clock.sleeps.append(seconds)
        clock.now += seconds

    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: clock.now, sleep=sleep))
    return clock


def write(file, text="x"):
    with file.transaction("IMMEDIATE") as connection:
        connection.execute("INSERT INTO t VALUES (?)", (text,))


def texts(path):
    with closing(sqlite3.connect(path)) as other:
        return [text for (text,) in other.execute("SELECT text FROM t")]


def pragma(file, name):
    ((value,),) = file._connection.execute(f"PRAGMA {name}")
    return value


def test_how_a_file_is_opened(file):
    """Deleted content is overwritten, commits are synced, and others are waited for."""
    assert pragma(file, "secure_delete") == 1
    assert pragma(file, "page_size") == 4096
    assert pragma(file, "journal_mode") == "wal"
    assert pragma(file, "synchronous") == 2
    assert pragma(file, "busy_timeout") == 10_000
    assert file._connection.isolation_level is None


def test_a_log_is_emptied_when_it_is_due(file, path, clock):
    """At once if it never was; then, once commits may have been in it for so long; until then it
    is told for how long. A log that is seen empty begins anew."""
    write(file)
    assert not file._log_is_empty()
    assert file.clear_log(60.0, list) is None
    assert file._log_is_empty()
    write(file)
    for passed in (0.0, 59.0):
        clock.now = 1_000.0 + passed
        assert file.clear_log(60.0, list) == passed
        assert not file._log_is_empty()
    clock.now = 1_060.0
    assert file.clear_log(60.0, list) is None
    assert file._log_is_empty()
    clock.now = 1_100.0
    assert file.clear_log(60.0, list) is None
    write(file)
    clock.now = 1_159.0
    assert file.clear_log(60.0, list) == 59.0
    assert texts(path) == ["x"] * 3


def test_a_reader_keeps_the_log(file, path, monkeypatch):
    """While somebody reads, a log that is due cannot be emptied, which is told; then it can."""
    monkeypatch.setattr(module, "_CLEAR_SECONDS", 0.01)
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM t").fetchall()
        write(file)
        with pytest.raises(StoreUnavailable, match="end the long read"):
            file.clear_log(0.0, list)
        assert not file._log_is_empty()
        reader.execute("ROLLBACK")
    assert file.clear_log(0.0, list) is None
    assert file._log_is_empty()


@pytest.mark.parametrize(
    ("name", "outcome"),
    [
        ("SQLITE_BUSY_RECOVERY", nullcontext()),
        ("SQLITE_IOERR_TRUNCATE", pytest.raises(sqlite3.OperationalError)),
    ],
)
def test_a_log_that_cannot_be_emptied(name, outcome):
    """A busy file is no error, anything else is; the waiting time is set back after both."""
    error = sqlite3.OperationalError("no")
    error.sqlite_errorname = name
    connection = Mock(**{"execute.side_effect": [None, error, None]})
    with outcome:
        assert module._empty_log(connection) is False
    connection.execute.assert_called_with("PRAGMA busy_timeout = 10000")


def test_where_a_log_is_looked_for(file, path, tmp_path):
    """A log that is not there is empty; it is beside the file, not beside a link; and where
    nobody can look it is not called empty."""
    write(file)
    link = tmp_path / "link.db"
    link.symlink_to(path)
    assert not SqliteFile(link)._log_is_empty()
    assert SqliteFile(tmp_path / "none.db")._log_is_empty()
    (tmp_path / "flat").write_text("")
    assert not SqliteFile(tmp_path / "flat" / "store.db")._log_is_empty()


def test_threads_take_turns(file, path):
    """One transaction waits until the one of another thread has ended."""

    def write_many():
        for _ in range(50):
            write(file)

    with ThreadPoolExecutor(4) as pool:
        for each in [pool.submit(write_many) for _ in range(4)]:
            each.result()
    assert len(texts(path)) == 200


def test_a_child_leaves_its_parent_s_connection_alone(file, path, monkeypatch):
    """After a fork the child has neither connection nor lock of its parent, and does not close the
    connection, which would end the parent's locks."""
    parent = file._connection
    # Files that other tests have left to the garbage collector are not this test's.
    monkeypatch.setattr(module, "_FILES", weakref.WeakSet({file}))
    never = SqliteFile(path)
    with file._lock:
        child = os.fork()
        if child == 0:
            left = file._connection is None and not file._lock.locked()
            kept = [each is parent for each in module._ABANDONED]
            os._exit(0 if left and kept == [True] and never._connection is None else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert file._connection is parent
    assert module._ABANDONED == []


def test_a_busy_file_is_waited_for(clock):
    """Ten seconds, looking every fiftieth of one, and no longer."""
    locked, opened = sqlite3.OperationalError("database is locked"), Mock()
    opened.fetchone.return_value = ("wal",)
    for times in (0, 490):
        clock.sleeps.clear()
        connection = Mock(**{"execute.side_effect": [*[locked] * times, opened]})
        module._write_ahead(connection)
        assert clock.sleeps == [0.02] * times
    connection.execute.assert_called_with("PRAGMA journal_mode = WAL")
    clock.sleeps.clear()
    with pytest.raises(sqlite3.OperationalError):
        module._write_ahead(Mock(**{"execute.side_effect": locked}))
    assert 499 <= len(clock.sleeps) <= 502


@pytest.mark.parametrize(
    ("name", "passes"),
    [
        *((f"SQLITE_{each}", True) for each in ("BUSY", "LOCKED_SHAREDCACHE", "IOERR_FSYNC")),
        *((f"SQLITE_{each}", True) for each in ("FULL", "CANTOPEN", "READONLY", "NOMEM")),
        *((f"SQLITE_{each}", False) for each in ("CORRUPT", "NOTADB", "ERROR", "SCHEMA")),
        (None, False),
    ],
)
def test_trouble_is_told_by_its_name(name, passes):
    """What passes by itself is unavailable, anything else an error; each by SQLite's name."""
    error = sqlite3.OperationalError("a value")
    if name:
        error.sqlite_errorname = name
    with pytest.raises(StoreError, match=name or "SQLITE_UNKNOWN") as caught, module._translated():
        raise error
    assert isinstance(caught.value, StoreUnavailable) == passes
    assert "a value" not in str(caught.value)

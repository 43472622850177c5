"""The state file: private, wiped of true values, and never trusted once it is damaged."""

import errno
import json
import os
import sqlite3
import stat
import subprocess
import sys
import time
from pathlib import Path
from unittest.mock import Mock

import pytest

from deniable import Registry, StateError
from deniable.device.state import (
    FILE_NAME,
    PLACED_WITHIN,
    State,
    _create_file,
    distrust,
    states_root,
)


@pytest.fixture
def fast_disk():
    """These tests are of the disk as it is."""


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX permissions")
def test_only_its_owner_can_read_it(tmp_path):
    """The directory is created 0700 and every file in it 0600, whatever the umask."""
    before = os.umask(0)
    try:
        state = State(tmp_path / "deep" / "state")
        with state.transaction():
            pass
        state.close()
    finally:
        os.umask(before)
    folder = tmp_path / "deep" / "state"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
    assert modes
    assert set(modes.values()) == {0o600}


@pytest.mark.skipif(os.name != "posix", reason="needs names that Windows does not allow")
@pytest.mark.parametrize(
    "name",
    [b"plain", b"a b", b"50%25", b"why?mode=memory", b"no#1", "gerät".encode(), b"\xff", b"a&b"],
)
def test_its_directory_may_have_any_name(tmp_path, name):
    """No character of the path has a meaning in the address that SQLite is given."""
    folder = tmp_path / os.fsdecode(name)
    for _ in range(2):  # creates it, then opens it again
        state = State(folder)
        with state.transaction() as connection:
            (file,) = (
                connection.execute(
                    "SELECT file FROM pragma_database_list WHERE name = 'main'"
                ).fetchone()
                if name != b"\xff"
                else ("",)
            )
        state.close()
        assert [path.name for path in folder.iterdir() if path.stat().st_size] == [FILE_NAME]
        assert file in ("", str(folder / FILE_NAME))
    assert [each.name for each in tmp_path.iterdir()] == [folder.name]


def test_a_relative_directory_stays_where_it_was(tmp_path, monkeypatch):
    """An app that changes its working directory keeps its state."""
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    state = State("here")
    monkeypatch.chdir("elsewhere")
    with state.transaction():
        pass
    state.close()
    assert (tmp_path / "here" / FILE_NAME).exists()


def test_it_is_durable_and_wipes_what_it_deletes(tmp_path):
    """synchronous is FULL, secure_delete is on, and SQLite neither unlinks nor cuts the journal,
    which is empty afterwards."""
    state = State(tmp_path)
    with state.transaction() as connection:
        found = [
            connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("synchronous", "secure_delete", "journal_mode")
        ]
    state.close()
    assert found == [2, 1, "persist"]
    assert [path.name for path in tmp_path.iterdir() if path.stat().st_size] == [FILE_NAME]


def test_the_journal_is_overwritten_before_its_blocks_are_freed(tmp_path, monkeypatch):
    """After each transaction, also the first one after a kill in the middle of a commit."""
    real, wiped = os.fsync, []

    def fsync(opened):
        if stat.S_ISREG(os.fstat(opened).st_mode):
            wiped.append(os.pread(opened, 1 << 24, 0).strip(b"\0"))
        real(opened)

    monkeypatch.setattr(os, "fsync", fsync)
    (tmp_path / "other").mkdir()
    (tmp_path / FILE_NAME).symlink_to(tmp_path / "other" / FILE_NAME)
    for folder in (tmp_path / "other", tmp_path):  # SQLite's journal is beside the file itself
        state = State(folder)
        with state.transaction() as connection:
            connection.execute("INSERT INTO pauses VALUES (1, 0, zeroblob(9999))")
        state.close()
    killed = """
import os, sys
from deniable.device.state import State
with State(sys.argv[1]).transaction() as connection:
    connection.execute("PRAGMA cache_size = 1")
    connection.execute("UPDATE pauses SET asked = randomblob(9999)")
    os._exit(9)
"""
    assert subprocess.run([sys.executable, "-c", killed, str(tmp_path)]).returncode == 9
    left = tmp_path / "other" / f"{FILE_NAME}-journal"
    assert left.stat().st_size
    os.link(left, tmp_path / "same")
    with State(tmp_path).transaction():
        pass
    assert (tmp_path / "same").stat().st_size == 0
    assert wiped == [b""] * 3


def test_a_true_value_leaves_the_disk_when_its_window_is_sealed(make_client, clock, tmp_path):
    """While a window is open its value is on the disk; after sealing no file holds it.

    Many metrics and overwritten values of many lengths leave SQLite room for leftovers.
    """
    values = [f"marker-{index:04}-" + "x" * (index % 60) for index in range(1500)]
    metrics = "".join(
        f'[metrics.m{index}]\ntype = "category"\ndescription = "Metric."\nowner = "a"\n'
        "expires = 2030-01-01\nepsilon = 4\nlifetime_epsilon = 100\n"
        f"values = {json.dumps(values)}\n"
        for index in range(3)
    )
    registry = Registry.parse("schema = 1\napp = 'example'\n" + metrics)
    client = make_client(registry=registry)

    def on_disk():
        found = b"".join(path.read_bytes() for path in (tmp_path / "state").iterdir())
        return b"marker-" in found

    for day in range(2):
        for turn in range(5):
            for metric in registry:
                client.record(metric.name, values[(day * 400 + turn * 37) % 1500])
            assert client.flush()
        assert on_disk()
        clock.days(1)
        assert client.flush()
        assert not on_disk()


@pytest.mark.parametrize("memory", [False, True])
def test_a_transaction_is_all_or_nothing(tmp_path, memory):
    """An error inside a transaction undoes it, and the next one works."""
    state = State(None if memory else tmp_path)
    with state.transaction():
        pass

    def fail():
        with state.transaction() as connection:
            connection.execute("DELETE FROM pauses")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    with state.transaction() as connection:
        assert len(connection.execute("SELECT * FROM pauses").fetchall()) == 1
    state.close()


def test_a_busy_file_is_no_reason_to_stop(tmp_path):
    """A lock that another process holds too long raises in time, and the next transaction may
    work."""
    one, two = State(tmp_path), State(tmp_path)
    two.until = time.monotonic() + 0.05
    with one.transaction(), pytest.raises(sqlite3.OperationalError), two.transaction():
        pass
    two.until = None
    with two.transaction():
        pass
    assert two.failure is None
    one.close()
    two.close()


def _empty(path):
    path.write_bytes(b"")
    os.utime(path, (0, time.time() - PLACED_WITHIN - 1))


def _truncate(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _scramble(path):
    data = bytearray(path.read_bytes())
    data[5000:30000] = b"\xaa" * 25000
    path.write_bytes(data)


def _newer(path):
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()


def _without_ledger(path):
    connection = sqlite3.connect(path)
    connection.execute("DROP TABLE ledger")
    connection.close()


def _foreign(path):
    path.unlink()
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE other (x)")
    connection.close()


@pytest.mark.parametrize(
    "damage",
    [
        _empty,
        lambda path: path.write_bytes(b"x" * 8192),
        _truncate,
        _scramble,
        _newer,
        _without_ledger,
        _foreign,
    ],
    ids=["empty", "garbage", "truncated", "scrambled", "newer", "no_ledger", "foreign"],
)
def test_a_damaged_file_fails_closed(tmp_path, damage):
    """Damaged, foreign and newer files raise StateError for good, and are left as they are."""
    state = State(tmp_path)
    with state.transaction():
        pass
    state.close()
    path = tmp_path / FILE_NAME
    damage(path)
    before = path.read_bytes()
    state = State(tmp_path)
    for _ in range(2):
        with pytest.raises(StateError), state.transaction() as connection:
            connection.execute("SELECT * FROM ledger")
    assert state.failure
    state.close()
    assert path.read_bytes() == before


def test_a_file_that_is_still_empty_may_be_being_placed(tmp_path):
    """Where there are no hard links, a new file is empty for a moment: it is used a little later.
    One that stays empty is damaged."""
    whole = State(tmp_path / "whole")
    with whole.transaction():
        pass
    whole.close()
    path, state = tmp_path / FILE_NAME, State(tmp_path)
    path.touch()
    with pytest.raises(BlockingIOError, match="try again"), state.transaction():
        pass
    assert state.failure is None
    (tmp_path / "whole" / FILE_NAME).replace(path)
    with state.transaction():
        pass
    state.close()
    _empty(path)
    state = State(tmp_path)
    with pytest.raises(StateError, match="it is empty") as caught, state.transaction():
        pass
    assert caught.value.damaged


def test_processes_that_begin_at_once_share_one_file(tmp_path):
    """Of six processes that create the same state together none fails and none overwrites."""
    script = (
        "import sys, pathlib\n"
        "from deniable.device.state import State\n"
        "sys.stdin.read()\n"
        "state = State(pathlib.Path(sys.argv[1]))\n"
        "with state.transaction() as c:\n"
        "    c.execute('INSERT INTO schemes VALUES (?, ?, ?, NULL)', (sys.argv[2], '', ''))\n"
        "state.close()\n"
    )
    arguments = [sys.executable, "-c", script, str(tmp_path / "s")]
    children = [
        subprocess.Popen([*arguments, str(each)], stdin=subprocess.PIPE) for each in range(6)
    ]
    for child in children:
        assert child.stdin is not None
        child.stdin.close()
    assert [child.wait() for child in children] == [0] * 6
    state = State(tmp_path / "s")
    with state.transaction() as connection:
        assert connection.execute("SELECT count(*) FROM schemes").fetchone() == (6,)
    state.close()
    assert [path.name for path in (tmp_path / "s").iterdir() if "new-" in path.name] == []


def test_a_file_system_without_hard_links(tmp_path, monkeypatch):
    """A state is made all the same, and one that another process has made meanwhile is used."""
    monkeypatch.setattr(os, "link", Mock(side_effect=PermissionError(errno.EPERM, "no links")))
    state = State(tmp_path)
    with state.transaction() as connection:
        connection.execute("INSERT INTO memo_keys VALUES ('browser', '')")
    state.close()
    _create_file(str(tmp_path / FILE_NAME), None)
    with state.transaction() as connection:
        assert connection.execute("SELECT count(*) FROM memo_keys").fetchone() == (1,)
    state.close()
    assert not list(tmp_path.glob("*new-*"))


def test_what_is_no_text_is_damage():
    """Of some damage even SQLite's own message cannot be decoded."""
    error = UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte")
    found = distrust(error)
    assert found
    assert found.damaged
    assert str(found) == (
        "the state file is damaged, so nothing is reported: leave it, because a new one would "
        "start with an unspent ledger (in development, remove it)"
    )
    assert distrust(sqlite3.ProgrammingError("a mistake in the code")) is None


@pytest.mark.parametrize(
    ("kind", "code", "damage"),
    [
        (sqlite3.OperationalError, sqlite3.SQLITE_ERROR, True),
        (sqlite3.OperationalError, sqlite3.SQLITE_BUSY_SNAPSHOT, False),
        (sqlite3.OperationalError, sqlite3.SQLITE_FULL, False),
        (sqlite3.DatabaseError, sqlite3.SQLITE_NOTADB, True),
        (sqlite3.IntegrityError, sqlite3.SQLITE_CONSTRAINT_CHECK, True),
        (sqlite3.InterfaceError, sqlite3.SQLITE_MISUSE, False),
    ],
)
def test_what_passes_is_no_damage(kind, code, damage):
    """A full disk or a lock may pass; what the file itself holds does not."""
    error = kind("told")
    error.sqlite_errorcode = code
    assert (distrust(error) is not None) == damage


def test_a_switch_that_cannot_be_read_is_off(tmp_path):
    """Where nobody can tell what the owner has chosen, nothing is reported."""
    assert State(tmp_path / ("x" * 300)).switched_off
    assert not State(tmp_path / "x").switched_off


def test_states_have_a_default_place(monkeypatch):
    """XDG_STATE_HOME says where; a relative one is ignored."""
    monkeypatch.setenv("XDG_STATE_HOME", "/xdg")
    assert states_root() == "/xdg/deniable"
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    assert Path(states_root()).is_absolute()


def test_another_apps_state_is_refused(tmp_path):
    """A state belongs to the app that began it; who names no app may read it."""
    for app in ("editor", "editor", None):
        state = State(tmp_path, app)
        with state.transaction():
            pass
        state.close()
    state = State(tmp_path, "viewer")
    with pytest.raises(StateError, match="belongs to the app 'editor', and the registry is of"):
        state.transaction().__enter__()
    state.close()

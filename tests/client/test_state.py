"""The state file: private, wiped of true values, and never trusted once it is damaged."""

from __future__ import annotations

import json
import os
import random
import re
import sqlite3
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from deniable import Client, Registry, StateError, TransportError, integrity, state_file
from deniable.state import FILE_NAME, State, default_directory

MakeClient = Callable[..., Client]


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX permissions")
def test_only_its_owner_can_read_it(tmp_path: Path) -> None:
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
def test_its_directory_may_have_any_name(tmp_path: Path, name: bytes) -> None:
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


def test_a_relative_directory_stays_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An app that changes its working directory keeps its state."""
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    state = State("here")
    monkeypatch.chdir("elsewhere")
    with state.transaction():
        pass
    state.close()
    assert state.path == tmp_path / "here" / FILE_NAME
    assert state.path.exists()


def test_the_digest_of_its_definitions_is_that_of_a_new_file(tmp_path: Path) -> None:
    """Whoever changes a table, an index or a trigger must take the constant anew (and the version
    with it, if files of the field are to be read)."""
    state = State(tmp_path)
    path = tmp_path / FILE_NAME
    state_file._create_file(str(path), None)
    with closing(sqlite3.connect(path)) as connection:
        assert integrity.schema(connection) == state_file._SCHEMA
        before = integrity.schema(connection)
        connection.execute("CREATE INDEX extra ON device (app)")
        assert integrity.schema(connection) != before
        connection.commit()
    with pytest.raises(StateError, match="damaged"), state.transaction():
        pass


def test_it_is_durable_and_wipes_what_it_deletes(tmp_path: Path) -> None:
    """synchronous is FULL, secure_delete is on and no journal keeps old pages."""
    state = State(tmp_path)
    with state.transaction() as connection:
        found = [
            connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("synchronous", "secure_delete", "journal_mode")
        ]
    state.close()
    assert found == [2, 1, "truncate"]
    assert [path.name for path in tmp_path.iterdir() if path.stat().st_size] == [FILE_NAME]


def test_a_true_value_leaves_the_disk_when_its_window_is_sealed(
    make_client: MakeClient, clock: Any, tmp_path: Path
) -> None:
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

    def on_disk() -> bool:
        found = b"".join(path.read_bytes() for path in (tmp_path / "state").iterdir())
        return b"marker-" in found

    for day in range(6):
        for turn in range(20):
            for metric in registry:
                client.record(metric.name, values[(day * 400 + turn * 37) % 1500])
            assert client.flush()
        assert on_disk()
        clock.days(1)
        assert client.flush()
        assert not on_disk()


def test_a_transaction_is_all_or_nothing(tmp_path: Path) -> None:
    """An error inside a transaction undoes it, and the next one works."""
    state = State(tmp_path)

    def fail() -> None:
        with state.transaction() as connection:
            connection.execute("DELETE FROM pauses")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    with state.transaction() as connection:
        assert len(connection.execute("SELECT * FROM pauses").fetchall()) == 1
    state.close()


def test_a_busy_file_is_no_reason_to_stop(tmp_path: Path) -> None:
    """A lock that another process holds too long raises in time, and the next transaction may
    work."""
    one, two = State(tmp_path), State(tmp_path)
    with one.transaction():
        started = time.monotonic()
        with pytest.raises(sqlite3.OperationalError), two.transaction(0.05):
            pass
        assert time.monotonic() - started < 1.0
    with two.transaction():
        pass
    assert two.failure is None
    one.close()
    two.close()


def _truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _scramble(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[5000:30000] = b"\xaa" * 25000
    path.write_bytes(data)


def _newer(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()


def _foreign(path: Path) -> None:
    path.unlink()
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE other (x)")
    connection.close()


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(b"x" * 8192),
        _truncate,
        _scramble,
        _newer,
        _foreign,
    ],
    ids=["empty", "garbage", "truncated", "scrambled", "newer", "foreign"],
)
def test_a_damaged_file_fails_closed(tmp_path: Path, damage: Callable[[Path], Any]) -> None:
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
        with pytest.raises(StateError), state.transaction():
            pass
    assert state.failure
    state.close()
    assert path.read_bytes() == before


def test_an_unreadable_folder_recreates_nothing(tmp_path: Path) -> None:
    """Where the folder cannot be made, transactions raise OSError and nothing appears."""
    (tmp_path / "file").write_text("in the way")
    state = State(tmp_path / "file")
    with pytest.raises(OSError, match="file"), state.transaction():
        pass
    assert state.failure is None
    assert (tmp_path / "file").read_text() == "in the way"


def test_processes_that_begin_at_once_share_one_file(tmp_path: Path) -> None:
    """Of six processes that create the same state together none fails and none overwrites."""
    script = (
        "import sys, pathlib\n"
        "from deniable.state import State\n"
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


def test_states_in_memory_are_apart() -> None:
    """Each state in memory begins empty and shares nothing with the others."""
    one, two = State(None), State(None)
    with one.transaction() as connection:
        connection.execute("INSERT INTO schemes VALUES ('m', 's', '', NULL)")
    with two.transaction() as connection:
        assert connection.execute("SELECT count(*) FROM schemes").fetchone() == (0,)
    one.close()
    two.close()


def test_the_default_directory_is_the_apps(monkeypatch: pytest.MonkeyPatch) -> None:
    """An app's name alone says where its state is; a relative XDG_STATE_HOME is ignored."""
    monkeypatch.setenv("XDG_STATE_HOME", "/xdg")
    assert default_directory("editor") == Path("/xdg/deniable/editor")
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    assert default_directory("editor").is_absolute()


def test_another_apps_state_is_refused(tmp_path: Path) -> None:
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


ONE_METRIC = """
schema = 1
app = "example"
[metrics.m]
type = "category"
values = ["a", "b", "c", "d", "e", "f", "g", "h"]
description = "M."
owner = "a"
expires = 2040-01-01
epsilon = 1.0
lifetime_epsilon = 1000.0
"""


def test_a_flipped_bit_never_reports_a_window_twice(
    make_client: MakeClient, clock: Any, collector: Any, tmp_path: Path
) -> None:
    """Whichever bit of the file flips, no window has two reports, no batch travels
    under two ids, and the ledger never allows more: the state fails closed, or all is as it was.

    150 bits drawn with seed 5 from the room in use, and each that makes the last digit of a
    window's name, or of a batch's id, another one. The device has sent a report, has a batch
    whose response was lost and a report in no batch yet, and an open window.
    """
    registry = Registry.parse(ONE_METRIC)

    def live(**options: Any) -> Client:
        return make_client(registry=registry, on_trouble=lambda error: None, **options)

    client = live()
    client.record("m", "b")
    clock.days(1)
    assert client.flush()
    client.record("m", "c")
    clock.days(1)
    collector.replies = [TransportError("the response is lost")]
    assert not client.flush()
    client.record("m", "d")
    clock.days(1)
    client._write()  # sealed, and in no batch
    client.record("m", "e")
    client.close()
    before = [json.loads(body) for body in collector.bodies]
    path = tmp_path / "state" / FILE_NAME
    whole = path.read_bytes()
    rng = random.Random(5)
    used = [place for place in range(len(whole)) if any(whole[place & ~15 : (place & ~15) + 16])]
    flips = [(rng.choice(used), 1 << rng.randrange(8)) for _ in range(150)]
    for found in re.finditer(rb"2027-01-0\d|(?<![0-9a-f])[0-9a-f]{32}(?![0-9a-f])", whole):
        last = found.end() - 1
        digits = b"0123456789" if found.group().startswith(b"2027-") else b"0123456789abcdef"
        flips += [(last, bit) for bit in (1, 2, 4, 8) if whole[last] ^ bit in digits]
    failed, start = 0, clock.now
    for place, bit in flips:
        changed = bytearray(whole)
        changed[place] ^= bit
        path.write_bytes(changed)
        collector.bodies.clear()
        clock.now = start - 3 * 86_400
        client = live()
        for _ in range(4):  # the windows before, once more, and the one that is open
            client.record("m", "h")
            clock.days(1)
            client.flush()
        client.close()
        failed += client._state.failure is not None
        seen: dict[str, set[str]] = {}
        ids: dict[str, set[str]] = {}
        for document in before + [json.loads(body) for body in collector.bodies]:
            for report in document["reports"]:
                assert report["metric"] == "m"
                seen.setdefault(report["window"], set()).add(json.dumps(report))
                ids.setdefault(report["window"], set()).add(document["batch"])
        assert all(len(each) == 1 for each in seen.values()), (place, seen)
        assert all(len(each) == 1 for each in ids.values()), (place, ids)
    assert failed > 0.7 * len(flips) > 120


MEMOIZED = ONE_METRIC.replace("1000.0", "4.0") + 'longitudinal = "memoize"\n'


def test_every_column_is_under_the_checksum(
    make_client: MakeClient, clock: Any, collector: Any, tmp_path: Path
) -> None:
    """A row of any table in which a column has changed by itself is damage, and so is a row that
    is gone: the file fails closed, so a ledger without its memos is not read as nothing spent."""
    client = make_client(registry=Registry.parse(MEMOIZED), on_trouble=None)
    for value, clicks in (("b", 1), ("c", 1), ("d", 0)):
        client.record("m", value)
        clock.days(clicks)
        client._write()
    collector.replies = [TransportError("down")]
    client.flush()
    with client._state.transaction() as connection:
        connection.execute("INSERT INTO horizons VALUES ('m', 1.0)")
    client.close()
    path = tmp_path / "state" / FILE_NAME
    whole = path.read_bytes()
    with closing(sqlite3.connect(path)) as connection:
        tables = [
            name
            for (name,) in connection.execute(
                "SELECT name FROM sqlite_master WHERE sql LIKE 'CREATE TABLE%'"
            )
        ]
        columns = {
            table: [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            for table in tables
            if table != "integrity"
        }
    assert {"ledger", "ledger_memos", "memo_keys", "open_values", "batches"} <= columns.keys()
    another = {"state": "'passed'", "answers": "answers + 1"}
    for table, names in columns.items():
        changes = [f"UPDATE {table} SET {name} = {another.get(name, '7')}" for name in names]
        for change in (*changes, f"DELETE FROM {table}"):
            path.write_bytes(whole)
            with closing(sqlite3.connect(path)) as connection, connection:
                # The triggers leave the checksum as it was.
                connection.create_function("checksum_after", -1, lambda checksum, *row: checksum)
                connection.execute("PRAGMA trusted_schema = ON")
                connection.execute("PRAGMA ignore_check_constraints = ON")
                assert connection.execute(change.replace("UPDATE", "UPDATE OR REPLACE")).rowcount
            state = State(tmp_path / "state", "example")
            with pytest.raises(StateError, match="damaged") as caught, state.transaction():
                pass
            assert caught.value.damaged
            state.close()


def test_the_checksum_of_files_that_exist_stays() -> None:
    """A row's checksum is the same in every version, or files would seem damaged after an upgrade:
    eight bytes of BLAKE2b of its ASCII form, lowest first, as a signed number."""
    known = {
        ("ledger", "m", "s", "0x1p+0", 3): 2_730_181_320_157_245_883,
        ("\xf8", None, b"x"): -581_643_736_846_531_550,
    }
    for row, checksum in known.items():
        assert integrity._moved(0, *row) == checksum
        assert integrity._moved(5, *row) == 5 ^ checksum
        assert integrity._moved(checksum, *row) == 0

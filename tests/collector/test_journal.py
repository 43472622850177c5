"""What a store's files tell of single batches: nothing but sums after a clean stop, and in
operation nothing that is older than DENIABLE_JOURNAL_SECONDS. `thief.py` is the attacker."""

from __future__ import annotations

import itertools
import os
import random
import re
import secrets
import signal
import sqlite3
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path

import numpy as np
import pytest
import redis
import yaml
from click.testing import CliRunner
from deniable_collector.stores.sqlite.migrations import MIGRATIONS
from tests.ports import free_port
from tests.tools import leave_out

from deniable import windows, wire
from deniable_collector.stores import StoreError, StoreUnavailable, open_store
from deniable_collector.stores.commits import Commit, Increment, TallyKey, TallyRowKey
from deniable_collector.stores.sqlite.store import SqliteStore
from deniable_collector.upkeep.commands import store as store_commands
from deniable_collector.upkeep.journal import JournalKeeper

from . import thief
from .conftest import RedisServer, redis_binary
from .devices import post

STORES = ["sqlite", "redis"]

ROOT = Path(__file__).parents[2]
SECONDS = 4
"""DENIABLE_JOURNAL_SECONDS, where a test waits for it."""


def shipped_options():
    """The options with which docker-compose.yml starts Redis."""
    text = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
    return tuple(yaml.safe_load(text)["services"]["redis"]["command"][1:])


class Batches:
    """Single batches of yesterday's reports, and what each adds."""

    def __init__(self, registry, number, seed=3):
        draw = random.Random(seed)
        self.window = windows.window_at("day", time.time() - 86_400)
        self.bodies, self.cells = [], []
        for _ in range(number):
            reports, cells = [], Counter()
            for name in draw.sample(["browser", "dark_mode"], draw.randint(1, 2)):
                scheme = registry[name].scheme
                column = draw.randrange(scheme.mechanism.rows[0].width)
                reports.append(wire.SealedReport(name, scheme.fingerprint, self.window, 0, column))
                cells.update({(name, self.window, 0, place): 1 for place in (-1, column)})
            self.bodies.append(wire.encode_batch(wire.new_batch_id(), reports))
            self.cells.append(cells)

    def send(self, collector):
        """Each alone, so that each is a commit."""
        for body in self.bodies:
            status, _ = post(collector.address, body)
            assert status == 202

    def told_apart(self, found):
        """Whether these are the batches, in order; the first may have met the only worker when it
        started, and cleared the files."""
        return len(found) > 15 and found == self.cells[-len(found) :]


@pytest.fixture
def batches(registry):
    return Batches(registry, 20)


class SqliteDisk:
    """A folder for an SQLite file, and its thief."""

    def __init__(self, folder):
        self.folder = folder / "disk"
        self.folder.mkdir()
        self.path = self.folder / "store.db"
        self.environ = {"DENIABLE_STORE": f"sqlite:///{self.path}"}
        self._steps = itertools.count()

    def commits(self):
        return thief.sqlite_commits(self.path, self.folder.with_name(f"stolen-{next(self._steps)}"))

    def stop(self):
        """The files that are left when all has stopped."""
        return {file.name for file in self.folder.iterdir()}


class RedisDisk:
    """The folder of a Redis that runs as docker-compose.yml says, and its thief."""

    def __init__(self, server):
        self.server = server
        self.folder = server.folder
        self.environ = {"DENIABLE_STORE": server.url}

    def commits(self):
        copies = []

        def start(folder):
            copies.append(RedisServer(redis_binary(), folder))
            copies[-1].start()
            return copies[-1].url

        found = thief.redis_commits(self.folder, start, "deniable")
        for copy in copies:
            copy.kill()
        return found

    def stop(self):
        """The kinds of files that are left when all has stopped."""
        self.server.process.terminate()
        self.server.process.wait()
        names = [file.name for file in self.folder.rglob("*") if file.is_file()]
        return {re.sub(r"\d+", "N", name) for name in names}


def tallies(commands):
    """How many of these commands name a tally."""
    return sum(b":tally:" in part for command in commands for part in command)


LEFT = {
    SqliteDisk: {"store.db"},
    RedisDisk: {f"appendonly.aof.{kind}" for kind in ("N.base.rdb", "N.incr.aof", "manifest")},
}


@pytest.fixture(params=["sqlite", "redis"])
def disk(request, tmp_path, new_redis):
    """A place for a store of each kind, Redis as the compose file starts it."""
    return SqliteDisk(tmp_path) if request.param == "sqlite" else redis_disk(new_redis)


def redis_disk(new_redis, *options):
    server = new_redis(*shipped_options(), *options)
    if not (server.folder / "appendonlydir").exists():
        leave_out("redis-server")
    return RedisDisk(server)


def test_a_clean_stop_leaves_sums(disk, new_collector, batches):
    """Within the stated time the files hold each batch, in order; once the collector and its
    store have stopped, a thief finds nothing but sums in them."""
    collector = new_collector(**disk.environ, DENIABLE_WORKERS="1")
    batches.send(collector)
    assert batches.told_apart(disk.commits())
    assert collector.stop() == 0
    assert disk.stop() == LEFT[type(disk)]
    assert disk.commits() == []


def test_many_workers_stop_cleanly(disk, new_collector, batches):
    """The same with four workers, of which each has written, while a reader has the store open."""
    collector = new_collector(**disk.environ, DENIABLE_WORKERS="4")
    with closing(open_store(disk.environ["DENIABLE_STORE"])) as reader:
        with ThreadPoolExecutor(8) as pool:
            assert {
                status
                for status, _ in pool.map(
                    lambda body: post(collector.address, body), batches.bodies
                )
            } == {202}
        assert thief.contents(reader) == sum(batches.cells, Counter())
        assert collector.stop() == 0
        assert disk.commits() == []
    assert disk.stop() == LEFT[type(disk)]


def test_sums_after_the_stated_time(disk, new_collector, batches):
    """In operation, DENIABLE_JOURNAL_SECONDS after the last batch and without another one,
    nothing tells the batches apart."""
    collector = new_collector(**disk.environ, DENIABLE_JOURNAL_SECONDS=str(SECONDS))
    batches.send(collector)
    time.sleep(SECONDS)
    assert disk.commits() == []
    if isinstance(disk, SqliteDisk):
        # One page, of a commit that counts nothing.
        assert thief.log_pages(disk.path) == [1]
    assert collector.stop() == 0


def test_every_node_of_a_cluster(new_cluster, new_collector, batches, until):
    """In a cluster this holds for the files of every node, and those of replicas."""
    cluster = new_cluster(options=("--appendonly", "yes"))
    if not list(cluster.folder.glob("*/appendonlydir")):
        leave_out("redis-server")

    def commands():
        folders = [cluster.folder / str(node.port) for node in cluster.nodes]
        found = [thief.redis_commands(folder) for folder in folders]
        return [tallies(node) for node in found]

    collector = new_collector(
        DENIABLE_STORE=cluster.url, DENIABLE_SHARDS="8", DENIABLE_JOURNAL_SECONDS="0"
    )
    batches.send(collector)
    until(lambda: all(commands()), "the batches have not reached all nodes")
    assert collector.stop() == 0
    collector.environ["DENIABLE_JOURNAL_SECONDS"] = str(SECONDS)
    collector.start()
    time.sleep(SECONDS)
    assert commands() == [0] * 6
    assert collector.stop() == 0


def test_what_a_crash_has_left_goes_at_the_next_start(disk, new_collector, batches, until):
    """A collector that was killed leaves its commits in the files; the next one clears them at
    once, and not when its own time has come."""
    collector = new_collector(**disk.environ, DENIABLE_WORKERS="1")
    batches.send(collector)
    collector.kill()
    assert batches.told_apart(disk.commits())
    collector.start()
    until(lambda: disk.commits() == [], "what was left is still there", seconds=20)
    assert collector.stop() == 0


def test_a_reader_that_stays_is_told(tmp_path, new_collector, batches, until):
    """While somebody reads the SQLite file without end, its log cannot be emptied: batches are
    counted as before, the operator is told once, in the log and by the gauge, and so is the end."""
    disk = SqliteDisk(tmp_path)
    private = f"127.0.0.1:{free_port()}"
    collector = new_collector(
        **disk.environ,
        DENIABLE_JOURNAL_SECONDS="2",
        DENIABLE_WORKERS="1",
        DENIABLE_METRICS_BIND=private,
    )
    with closing(sqlite3.connect(disk.path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM schemes").fetchone()
        batches.send(collector)
        until(lambda: "journal-kept" in collector.log, "nothing is told")
        time.sleep(1)
        assert batches.told_apart(disk.commits())
        with urllib.request.urlopen(f"http://{private}/metrics", timeout=30) as answer:
            figures = answer.read().decode()
        assert float(re.search(r"^deniable_journal_seconds (\S+)$", figures, re.M)[1]) > 2
    until(lambda: "journal-cleared" in collector.log, "the end is not told")
    assert disk.commits() == []
    assert collector.log.count("journal-kept") == 1
    assert "a reader holds the SQLite file" in collector.log


def test_a_reader_does_not_hold_up_the_end(tmp_path, new_collector, batches):
    """A collector that is stopped while somebody reads says that its last commits can be told
    apart, and ends within seconds."""
    disk = SqliteDisk(tmp_path)
    collector = new_collector(**disk.environ, DENIABLE_WORKERS="1")
    with closing(sqlite3.connect(disk.path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM schemes").fetchone()
        batches.send(collector)
        began = time.monotonic()
        assert collector.stop() == 0
        assert time.monotonic() - began < 15
    assert "the last commits can still be read" in collector.log


def test_a_user_who_may_not(new_redis, new_collector, batches, until):
    """Where Redis lets the collector's user not rewrite its file, that is told once, with what to
    do; batches are counted as before; and when the right is given, the file is rewritten."""
    disk = redis_disk(new_redis)
    with closing(redis.Redis.from_url(disk.server.url)) as client:
        client.execute_command(
            *("ACL", "SETUSER", "app", "on", ">hush", "~*", "+@all", "-bgrewriteaof")
        )
        collector = new_collector(
            **disk.environ,
            DENIABLE_REDIS_USER="app",
            DENIABLE_REDIS_PASSWORD="hush",
            DENIABLE_JOURNAL_SECONDS="2",
            DENIABLE_WORKERS="1",
        )
        batches.send(collector)
        time.sleep(2)
        assert batches.told_apart(disk.commits())
        assert collector.log.count("journal-kept") == 1
        assert "give the user +info and +bgrewriteaof" in collector.log
        client.execute_command("ACL", "SETUSER", "app", "+bgrewriteaof")
        until(lambda: "journal-cleared" in collector.log, "the right is not used")
    assert disk.commits() == []
    assert collector.stop() == 0


@pytest.fixture
def scheme(shelf):
    return shelf(8)


@pytest.fixture
def add(scheme, new_id, noon):
    """Adds a report to the metric `m` of a store."""
    key = TallyRowKey(TallyKey("m", scheme.fingerprint, "2026-11-20"), 0)
    return lambda store: store.fold(Commit((new_id(),), {key: Increment(8, 1, (1,), (1,))}), noon)


def test_processes_share_the_rewrites(new_redis, scheme, add):
    """Six processes that write all the time have the file rewritten about as often as one would,
    and not at all when nobody writes any more, whoever asks whether the store is there."""
    server = new_redis(*shipped_options())
    stores = [open_store(server.url) for _ in range(6)]
    with closing(redis.Redis.from_url(server.url)) as client:

        def turn(seconds, write):
            begun, end = client.info()["aof_rewrites"], time.monotonic() + seconds
            while time.monotonic() < end:
                for store in stores:
                    store.ping()
                    if write:
                        add(store)
                    store.clear_journal(0.25)
                time.sleep(0.01)
            return client.info()["aof_rewrites"] - begun

        stores[0].publish({"m": [scheme]})
        turn(0.5, write=True)
        # Each alone would ask for six.
        assert 3 <= turn(1.5, write=True) <= 9
        turn(1, write=False)
        assert turn(0.5, write=False) == 0
    assert [store.clear_journal(0.25) for store in stores] == [None] * 6
    for store in stores:
        store.close()


def test_a_redis_that_was_restarted_is_rewritten(new_redis, scheme, add, until):
    """When Redis was killed and started again, a collector has its file rewritten at once, even if
    the commits in it are those of another collector that is gone."""
    server = new_redis()
    with closing(open_store(server.url)) as store, closing(open_store(server.url)) as gone:
        store.publish({"m": [scheme]})
        until(lambda: store.clear_journal(0.0) is None, "it is never cleared")
        add(gone)
        assert store.clear_journal(60.0) is None
        server.kill()
        server.start()
        assert tallies(thief.redis_commands(server.folder)) > 0
        assert store.clear_journal(60.0) is not None
        until(lambda: store.clear_journal(60.0) is None, "it is never cleared")
    assert tallies(thief.redis_commands(server.folder)) == 0


def test_a_rewrite_that_fails_is_told(new_redis, scheme, add, until):
    """When Redis does not finish the new file, the store says so, and goes on trying."""
    server = new_redis(*shipped_options())
    with (
        closing(open_store(server.url)) as store,
        closing(redis.Redis.from_url(server.url)) as client,
    ):
        store.publish({"m": [scheme]})
        add(store)
        client.config_set("rdb-key-save-delay", 1_000_000)
        assert store.clear_journal(0.0) is not None
        pid = server.process.pid
        (child,) = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        os.kill(int(child), signal.SIGKILL)
        client.config_set("rdb-key-save-delay", 0)
        with pytest.raises(StoreUnavailable, match="could not rewrite"):
            until(lambda: store.clear_journal(0.0) is None, "it is never told")

        def cleared():
            with suppress(StoreUnavailable):
                return store.clear_journal(0.0) is None

        until(cleared, "it is never cleared")


def test_redis_learns_no_time_of_a_commit(new_redis, scheme, add):
    """The append-only file names no time at which a batch came, nor one close to it: only ids
    expire, by a date weeks ahead."""
    server = new_redis(*shipped_options())
    with closing(open_store(server.url)) as store:
        store.publish({"m": [scheme]})
        for _ in range(3):
            add(store)
            store.ping()
    commands = thief.redis_commands(server.folder)
    times = [each for each in commands if {b"PXAT", b"EXAT", b"PX", b"EX"} & set(each)]
    assert times == []
    expiries = {each[1] for each in commands if each[0].upper() == b"PEXPIREAT"}
    assert all(b":ids:" in key for key in expiries)


def test_commits_leave_no_mark_in_common(home, shelf, new_id, noon):
    """Two tallies that one commit added to are not marked as such, in any store."""
    schemes = [shelf(8), shelf(20_000)]
    store = home.open()
    store.publish({"m": schemes})
    for step in (1, 2):
        counts = {
            TallyRowKey(TallyKey("m", each.fingerprint, window), 0): Increment(
                each.mechanism.rows[0].width, 1, columns, np.full(len(columns), step)
            )
            for each in schemes
            for window in ("2026-11-19", "2026-11-20")
            for columns in [range(each.mechanism.rows[0].width)]
        }
        store.fold(Commit((new_id(),), counts), noon)
    if home.kind == "sqlite":
        with closing(sqlite3.connect(home.url.removeprefix("sqlite:///"))) as connection:
            stamps = [stamp for (stamp,) in connection.execute("SELECT stamp FROM tallies")]
    else:
        keys = [store._tally_key(0, TallyKey("m", each.fingerprint, window))
                for each in schemes for window in ("2026-11-19", "2026-11-20")]  # fmt: skip
        stamps = [store._strings.client.getrange(key, 0, 7) for key in keys]
    assert len(set(stamps)) == 4


def test_the_database_holds_no_earlier_counts(tmp_path, shelf, new_id, noon):
    """No page of the SQLite file has anything left of what a tally was before, when others are
    begun between or dropped beside it: each of 1,200 earlier versions (seed 5) is looked for."""
    draw, path = random.Random(5), tmp_path / "store.db"
    small, wide = [shelf(4 + number) for number in range(20)], [shelf(2_500), shelf(30_000)]
    versions, now = set(), {}

    def add(key, width, places):
        counts = np.array([draw.randrange(1, 1 << 24) for _ in places])
        if width < 100:
            before = np.frombuffer(now.get(key, bytes(16)), "<u4")
            now[key] = (before + counts).astype("<u4").tobytes()
            versions.add(now[key])
        return Increment(width, 1, places, counts)

    def left():
        data = path.read_bytes()
        return [version for version in versions - set(now.values()) if version in data]

    with closing(SqliteStore(path)) as store:
        store.publish({"m": small + wide})
        for number in range(300):
            # Windows begin one after the other, and two at a time take reports.
            day = 20 - number // 15 - draw.randrange(2)
            increments = {}
            for scheme in draw.sample(small, 4) + draw.sample(wide, 1):
                width = scheme.mechanism.rows[0].width
                label = windows.window_at("day", noon - 86_400 * day)
                key = TallyKey("m", scheme.fingerprint, label)
                places = range(4) if scheme in small else [draw.randrange(width)]
                increments[TallyRowKey(key, 0)] = add(key, width, places)
            store.fold(Commit((new_id(),), increments), noon)
        assert store.clear_journal(0.0) is None
        assert len(versions) == 1_200
        assert all(version in path.read_bytes() for version in now.values())
        assert left() == []
        assert store.drop(noon - 86_400 * 10) > 0
    assert left() == []


def test_a_file_of_an_earlier_build_is_written_anew(tmp_path):
    """What an earlier build has deleted and left in the file goes when the file is opened."""
    path, mark = tmp_path / "store.db", secrets.token_bytes(64)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA secure_delete = OFF")
        for migrate in MIGRATIONS[:3]:
            migrate(connection)
        connection.execute("PRAGMA user_version = 3")
        connection.execute("INSERT INTO pages VALUES (1, ?)", (mark,))
        connection.execute("DELETE FROM pages")
    assert mark in path.read_bytes()
    with closing(SqliteStore(path)) as store:
        store.publish({})
    assert mark not in path.read_bytes()


def test_an_import_leaves_sums(tmp_path, shelf, new_id, noon):
    """After `deniable store import` the log of the SQLite file is empty, though a dashboard has
    the file open, and no temporary file is left."""
    source, target = (f"sqlite:///{tmp_path / name}.db" for name in ("source", "target"))
    scheme = shelf(8)
    with closing(open_store(source)) as store:
        store.publish({"m": [scheme]})
        for window in ("2026-11-18", "2026-11-19"):
            key = TallyRowKey(TallyKey("m", scheme.fingerprint, window), 0)
            store.fold(Commit((new_id(),), {key: Increment(8, 1, (1,), (1,))}), noon)
    with closing(open_store(target)) as dashboard:
        dashboard.publish({})
        dashboard.schemes()
        done = CliRunner().invoke(store_commands, ["merge", source, "--store", target])
        assert done.exit_code == 0, done.output
        assert thief.contents(dashboard).total() == 4
        assert thief.sqlite_commits(tmp_path / "target.db", tmp_path / "stolen") == []
    assert {file.name for file in tmp_path.iterdir() if file.is_file()} == {
        "source.db", "target.db"
    }  # fmt: skip


CHURN = """
import sys
from deniable_collector.stores import open_store
from deniable_collector.stores.commits import Commit, Increment, TallyKey, TallyRowKey
store, scheme, number = open_store(sys.argv[1]), sys.argv[2], int(sys.argv[3])
key = TallyRowKey(TallyKey("browser", scheme, "2026-11-20"), 0)
while True:
    one = {key: Increment(5, 1, (1,), (1,))}
    store.fold(Commit((f"{number:032x}",), one), 1795262400.0)
    print(number, flush=True)
    store.clear_journal(0.0)
    number += 1
"""


def test_a_process_that_is_killed_while_it_clears(tmp_path, registry):
    """Processes that empty SQLite's log after every commit are killed twelve times (seed 8): what
    they have told of is there, once, and at most the one commit more that they had not told."""
    url, draw, told = f"sqlite:///{tmp_path / 'store.db'}", random.Random(8), 0
    fingerprint = registry["browser"].scheme.fingerprint
    with closing(open_store(url)) as store:
        store.publish({"browser": [registry["browser"].scheme]})
        for _ in range(12):
            # The number that was not told is sent again, as a device would.
            command = [sys.executable, "-c", CHURN, url, fingerprint, str(told)]
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
                told += bool(process.stdout.readline())
                time.sleep(draw.uniform(0, 0.1))
                process.kill()
                told += len(process.stdout.read().split())
            found = store.tally("browser", fingerprint, ["2026-11-20"]).reports
            assert 0 <= found - told <= 1
    assert told > 24


class Clearing:
    """A store whose journal answers what a test puts into `answers`, and then the last of them."""

    def __init__(self, *answers):
        self.answers, self.asked, self.closed = list(answers), [], False

    def clear_journal(self, older_than):
        self.asked.append(older_than)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def close(self):
        self.closed = True


def test_what_is_told(caplog):
    """Commits that stay for longer than they may are told once, with the reason, and so is their
    end; a store that refuses is told at once, and once; a wait within the time is nobody's news."""
    caplog.set_level("INFO")
    now = [0.0]
    keeper = JournalKeeper(Clearing(StoreUnavailable("a reader"), None), 60, lambda: now[0])
    for now[0] in (1.0, 45.0, 50.0, 59.0):
        keeper._store.answers.insert(0, StoreUnavailable("a reader"))
        assert not keeper.apply(45.0)
    assert caplog.messages == []
    for now[0] in (61.0, 66.0, 71.0):
        keeper._store.answers.insert(0, StoreUnavailable("a reader"))
        assert not keeper.apply(45.0)
    assert len(caplog.messages) == 1
    assert "a reader" in caplog.messages[0]
    keeper._store.answers = [30.0, 61.0, StoreError("give it the right"), None]
    for now[0], told in ((80.0, 2), (90.0, 3), (91.0, 3), (92.0, 4)):
        keeper.apply(45.0)
        assert len(caplog.messages) == told
    assert "set DENIABLE_JOURNAL_SECONDS higher" in caplog.messages[2]
    refusing = JournalKeeper(Clearing(StoreError("give it the right")), 60, lambda: now[0])
    for _ in range(3):
        refusing.apply(45.0)
    assert caplog.messages[4:] == ["give it the right"]


def test_when_it_is_asked(until):
    """The keeper looks twelve times in the time that is allowed, from the start on, lets three
    quarters of it pass, and clears what is there at the end; with 0 it asks nothing."""
    store = Clearing(0.1, 0.1, 0.1, 0.1, 0.1, None)
    keeper = JournalKeeper(store, 2)
    began = time.monotonic()
    keeper.start()
    until(lambda: len(store.asked) == 3, "it does not look")
    assert 2 / 12 <= time.monotonic() - began < 2
    keeper.stop()
    assert store.closed
    assert store.asked[:3] == [1.5] * 3
    assert store.asked[-1] == 0.0
    left_alone = Clearing(None)
    keeper = JournalKeeper(left_alone, 0)
    keeper.start()
    keeper.stop()
    assert (left_alone.asked, left_alone.closed) == ([], True)

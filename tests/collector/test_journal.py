"""What a store's files tell of single batches: nothing but sums after a clean stop, and in
operation nothing that is older than DENIABLE_JOURNAL_SECONDS. `thief.py` is the attacker."""

import itertools
import json
import re
import threading
from collections import Counter
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
import redis
import yaml
from click.testing import CliRunner
from tests.ports import until

from deniable.tools.command_line import find
from deniable_collector.settings import Settings
from deniable_collector.stores import StoreError, StoreUnavailable, open_store
from deniable_collector.upkeep import journal_clearing
from deniable_collector.upkeep.journal_clearing import JournalKeeper

from . import thief
from .devices import Devices
from .filling import commit

ROOT = Path(__file__).parents[2]
SECONDS = 4
"""DENIABLE_JOURNAL_SECONDS, where a test waits for what happens then."""


def shipped_options():
    """The options with which docker-compose.yml starts Redis."""
    text = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
    return tuple(yaml.safe_load(text)["services"]["redis"]["command"][1:])


def cells_of(batch):
    """What the reports of a batch count."""
    found = Counter()
    for each in json.loads(batch)["reports"]:
        of = (each["metric"], each["window"], 0)
        found.update({(*of, -1): 1, (*of, each["columns"]): 1})
    return found


def send(registry, collector):
    """Send twenty batches, each alone, so that each is a commit; the cells of each, in order."""
    devices = Devices(registry, 20, [collector.address], senders=1, pause=0)
    devices.start()
    devices.finish()
    return [*map(cells_of, devices.done)]


def tallies(commands):
    """How many of these commands name a tally."""
    return sum(b":tally:" in part for command in commands for part in command)


@pytest.fixture(params=["sqlite", "redis"])
def disk(request, tmp_path, new_redis):
    """A place for a store of each kind, Redis as the compose file starts it: its address, its
    thief, and the kinds of files that are left, and that are to be left, when all has stopped."""
    folder = tmp_path / "disk"
    folder.mkdir()
    path, steps = folder / "store.db", itertools.count()
    if request.param == "sqlite":
        return SimpleNamespace(
            url=f"sqlite:///{path}",
            commits=lambda: thief.sqlite_commits(path, tmp_path / f"stolen-{next(steps)}"),
            stop=lambda: {file.name for file in folder.iterdir()},
            left={"store.db"},
        )
    server = new_redis(*shipped_options())
    server.need_7()

    def stop():
        server.process.terminate()
        server.process.wait()
        names = [file.name for file in server.folder.rglob("*") if file.is_file()]
        return {re.sub(r"\d+", "N", name) for name in names}

    return SimpleNamespace(
        url=server.url,
        # The commands that name a tally.
        commits=lambda: [each for each in thief.redis_commands(server.folder) if tallies([each])],
        stop=stop,
        left={f"appendonly.aof.{kind}" for kind in ("N.base.rdb", "N.incr.aof", "manifest")},
    )


@pytest.mark.campaign
def test_files_hold_sums(disk, new_collector, registry):
    """Within the stated time the files hold each batch, in order; once the collector and its store
    have stopped, a thief finds nothing but sums in them, and in operation, without another batch,
    after a while; after how long, `test_when_it_is_asked` says."""
    collector = new_collector(DENIABLE_STORE=disk.url, DENIABLE_WORKERS="1")
    sent, found = send(registry, collector), disk.commits()
    # The first may have met the only worker when it started, and cleared the files.
    assert len(found) > 15
    assert disk.url.startswith("redis") or found == sent[-len(found) :]
    assert collector.stop() == 0
    collector.environ["DENIABLE_JOURNAL_SECONDS"] = str(SECONDS)
    collector.start()
    send(registry, collector)
    until(lambda: disk.commits() == [], "single commits stay")
    assert collector.stop() == 0
    assert disk.stop() == disk.left
    assert disk.commits() == []


@pytest.fixture
def add(scheme, new_id, noon):
    """Adds a report to the metric `m` of a store."""
    return lambda store: store.fold(commit(scheme, new_id()), noon)


def test_processes_share_the_rewrites(new_redis, scheme, add):
    """When one of six processes has had the file rewritten, the others see it, and ask for no
    rewrite of their own; nor does anybody when nobody writes any more."""
    server = new_redis(*shipped_options())
    server.need_7()
    stores = [open_store(Settings(store=server.url)) for _ in range(6)]

    def rewrites():
        with closing(redis.Redis.from_url(server.url)) as client:
            return client.info()["aof_rewrites"]

    stores[0].publish([("m", scheme)])
    for store in stores:
        until(lambda store=store: store.clear_journal(0.0) is None, "it is never cleared")
    for _ in range(2):
        for store in stores:
            add(store)
            assert store.clear_journal(60.0) < 60
        begun = rewrites()
        assert stores[0].clear_journal(0.0) is not None
        until(lambda: stores[0].clear_journal(60.0) is None, "it is never cleared")
        for _ in range(2):
            for store in stores:
                store.ping()
                assert store.clear_journal(0.0) is None
        assert rewrites() == begun + 1
    for store in stores:
        store.close()


def test_a_redis_that_was_restarted_is_rewritten(new_redis, scheme, add):
    """When Redis was killed and started again, a collector has its file rewritten at once, even if
    the commits in it are those of another collector that is gone."""
    server = new_redis()
    server.need_7()
    with (
        closing(open_store(Settings(store=server.url))) as store,
        closing(open_store(Settings(store=server.url))) as gone,
    ):
        store.publish([("m", scheme)])
        until(lambda: store.clear_journal(0.0) is None, "it is never cleared")
        add(gone)
        assert store.clear_journal(60.0) is None
        server.kill()
        server.start()
        assert tallies(thief.redis_commands(server.folder)) > 0
        assert store.clear_journal(60.0) is not None
        until(lambda: store.clear_journal(60.0) is None, "it is never cleared")
    assert tallies(thief.redis_commands(server.folder)) == 0


def test_redis_learns_no_time_of_a_commit(new_redis, scheme, add):
    """The append-only file names no time at which a batch came, nor one close to it: only ids
    expire, by a date weeks ahead."""
    server = new_redis(*shipped_options())
    server.need_7()
    with closing(open_store(Settings(store=server.url))) as store:
        store.publish([("m", scheme)])
        for _ in range(3):
            add(store)
            store.ping()
    commands = thief.redis_commands(server.folder)
    times = [each for each in commands if {b"PXAT", b"EXAT", b"PX", b"EX"} & set(each)]
    assert times == []
    expiries = {each[1] for each in commands if each[0].upper() == b"PEXPIREAT"}
    assert all(b":ids:" in key for key in expiries)


def test_an_import_leaves_sums(tmp_path, scheme, new_id, noon):
    """After `deniable store import` the log of the SQLite file is empty, though a dashboard has
    the file open, and no temporary file is left."""
    source, target = (f"sqlite:///{tmp_path / name}.db" for name in ("source", "target"))
    with closing(open_store(Settings(store=source))) as store:
        store.publish([("m", scheme)])
        for window in ("2026-11-18", "2026-11-19"):
            store.fold(commit(scheme, new_id(), window=window), noon)
    with closing(open_store(Settings(store=target))) as dashboard:
        dashboard.publish(())
        dashboard.schemes()
        file = str(tmp_path / "tallies.gz")
        for command in (["export", file, "--store", source], ["import", file, "--store", target]):
            done = CliRunner().invoke(find("store"), command)
            assert done.exit_code == 0, done.output
        assert thief.contents(dashboard).total() == 4
        assert thief.sqlite_commits(tmp_path / "target.db", tmp_path / "stolen") == []
    assert {file.name for file in tmp_path.iterdir() if file.is_file()} == {
        "source.db", "tallies.gz", "target.db"
    }  # fmt: skip


def clearing(*answers):
    """A store whose journal answers these, and then the last of them for ever."""
    store = Mock()
    store.clear_journal.side_effect = itertools.chain(answers, itertools.repeat(answers[-1]))
    return store


def asked(store):
    """For how long commits may stay, each time that a store was asked to clear its journal."""
    return [call.args[0] for call in store.clear_journal.call_args_list]


def test_what_is_told(caplog):
    """Commits that stay for longer than they may are told once, with the reason, and so is their
    end; a store that refuses is told at once, and once; a wait within the time is nobody's news."""
    caplog.set_level("INFO")
    now = [0.0]
    store = clearing(StoreUnavailable("a reader"))
    keeper = JournalKeeper(store, 60, lambda: now[0])
    for now[0] in (1.0, 45.0, 50.0, 59.0, 61.0, 66.0, 71.0):
        assert not keeper.clear(45.0)
        assert len(caplog.messages) == (now[0] > 60)
    assert "a reader" in caplog.messages[0]
    store.clear_journal.side_effect = [30.0, 61.0, StoreError("give it the right"), None]
    for now[0], told in ((80.0, 2), (90.0, 3), (91.0, 3), (92.0, 4)):
        keeper.clear(45.0)
        assert len(caplog.messages) == told
    assert "set DENIABLE_JOURNAL_SECONDS higher" in caplog.messages[2]
    refusing = JournalKeeper(clearing(StoreError("give it the right")), 60, lambda: now[0])
    for _ in range(3):
        refusing.clear(45.0)
    assert caplog.messages[4:] == ["give it the right"]


def test_when_it_is_asked():
    """The keeper looks twelve times in the time that is allowed, from the start on, lets three
    quarters of it pass, and clears what is there at the end; with 0 only increments are merged."""
    store, waits = clearing(*[0.1] * 5, None), []
    keeper = JournalKeeper(store, 60)

    class Ended(threading.Event):
        def wait(self, timeout=None):
            waits.append(timeout)
            return len(waits) == 4

    keeper._ended = Ended()
    keeper.start()
    until(lambda: len(waits) == 4, "it does not look")
    keeper.stop()
    assert waits == [0.0, *[5.0] * 3]
    assert store.close.called
    assert asked(store) == [45.0] * 3 + [0.0] * 3
    left_alone = clearing(None)
    keeper = JournalKeeper(left_alone, 0)
    keeper.start()
    until(lambda: left_alone.merge.called, "nothing is merged")
    keeper.stop()
    assert (asked(left_alone), left_alone.merge.call_count) == ([], 2)
    assert left_alone.close.called


@pytest.mark.parametrize(("answer", "seconds"), [(StoreUnavailable("a reader"), 2.0), (5.0, 10.0)])
def test_an_end_that_cannot_clear(answer, seconds, monkeypatch, caplog):
    """A process that ends waits a moment for its last commits to be cleared, and says that they
    can be read; less where the store is away or a reader prevents it."""
    now = [0.0]

    def sleep(step):
        now[0] += step

    monkeypatch.setattr(journal_clearing, "time", SimpleNamespace(sleep=sleep))
    keeper = JournalKeeper(clearing(answer), 60, lambda: now[0])
    keeper._finish()
    assert seconds < now[0] < seconds + 0.2
    assert "the last commits can still be read in the store's files" in caplog.text

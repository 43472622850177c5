"""Sealing under faults: whatever breaks, a window has all of its counts, once.

`docs/faults.md` lists these tests.
"""

from __future__ import annotations

import resource
import signal
import sys
import time
from contextlib import closing

import numpy as np
import pytest
import redis as redis_driver

from deniable_collector.stores import StoreUnavailable, open_store
from deniable_collector.stores.commits import Commit, Increment, TallyKey, TallyRowKey
from deniable_collector.stores.redis import sealing as redis_sealing
from deniable_collector.stores.redis import strings as redis_strings
from deniable_collector.stores.sealed import blocks
from deniable_collector.stores.sqlite import blocks as sqlite_blocks
from deniable_collector.stores.sqlite import store as sqlite_store
from deniable_collector.stores.sqlite.file import SqliteFile

from .devices import Devices
from .filling import WIDTH, fill_windows, whole
from .killing import in_a_child, kill_at

pytestmark = pytest.mark.campaign
STORES = ["sqlite", "redis", "cluster"]
WATCHED = {
    each.__file__
    for each in (*(blocks, sqlite_store, sqlite_blocks, redis_sealing, redis_strings),)
} | {sys.modules[SqliteFile.__module__].__file__}


@pytest.fixture
def scheme(store, shelf):
    scheme = shelf(WIDTH)
    store.publish({"m": [scheme]})
    return scheme


@pytest.fixture
def fill(store, scheme, new_id, noon):
    """Puts the same counts into a window."""

    def fill(window):
        fill_windows(store, scheme.fingerprint, [window], new_id(), noon)
        return TallyKey("m", scheme.fingerprint, window)

    return fill


def full(store, tally, times=1):
    """Whether a window has the counts of `fill`, so many times."""
    return whole(store, tally.scheme, [tally.window], times)


def test_a_process_that_is_killed_at_each_line(home, store, fill, noon):
    """A process is killed at every few lines that it runs while it seals, until it gets through:
    each time the window has all of its counts once, open or sealed, and another process seals it.

    One line at a time (`step = 1`) takes half a minute, and holds as well.
    """
    days = iter(f"{year}-{month:02}-{day:02}" for year in range(1990, 2026)
                for month in range(1, 13) for day in range(1, 29))  # fmt: skip
    step = {"sqlite": 3, "redis": 3, "cluster": 7}[home.kind]
    line, sealed = 1, 0
    with closing(open_store(home.url, prefix=home.prefix)) as reader:
        while True:
            tally = fill(next(days))

            def seal(tally=tally, line=line):
                mine = open_store(home.url, prefix=home.prefix)
                kill_at(line, WATCHED)
                mine.seal(tally)

            ended = in_a_child(seal)
            assert ended in (0, -signal.SIGKILL)
            assert full(reader, tally), line
            done = tally.window in reader.sealed(*tally[:2], [tally.window])
            sealed += done
            assert (reader.seal(tally) is None) == done
            assert full(reader, tally), line
            if ended == 0:
                break
            line += step
    assert line > 20
    assert sealed >= 1


@pytest.mark.stores("sqlite")
def test_a_full_disk(home, store, fill, tmp_path):
    """Where nothing more fits on the disk, a window stays open and whole, the error says so, and
    it is sealed when there is room again."""
    tally = fill("2026-11-01")

    def seal():
        mine = open_store(home.url, prefix=home.prefix)
        resource.setrlimit(resource.RLIMIT_FSIZE, (10, resource.RLIM_INFINITY))
        with pytest.raises(StoreUnavailable):
            mine.seal(tally)

    assert in_a_child(seal) == 0
    with closing(open_store(home.url, prefix=home.prefix)) as reader:
        assert full(reader, tally)
        assert not reader.sealed(*tally[:2], [tally.window])
        assert reader.seal(tally) is not None
        assert full(reader, tally)


def test_a_full_memory(new_redis, shelf, new_id, noon):
    """A Redis without memory for the block keeps the open form, says so, and seals later."""
    server, scheme = new_redis(), shelf(WIDTH)
    tally = TallyKey("m", scheme.fingerprint, "2026-11-01")
    places = np.arange(0, WIDTH, 7)
    increment = Increment(WIDTH, 9, places, places + 1)
    with (
        closing(open_store(server.url)) as store,
        closing(redis_driver.Redis.from_url(server.url)) as client,
    ):
        store.publish({"m": [scheme]})
        store.fold(Commit((new_id(),), {TallyRowKey(tally, 0): increment}), noon)
        client.config_set("maxmemory", "1")
        with pytest.raises(StoreUnavailable, match="memory is full"):
            store.seal(tally)
        client.config_set("maxmemory", "0")
        assert full(store, tally)
        assert store.seal(tally) is not None
        assert full(store, tally)


def test_two_collectors_count_late_reports_while_others_seal(home, store, new_collector, registry):
    """Two collector processes take batches over HTTP for windows that somebody seals again and
    again: each batch is counted once, and the sums of the last sealed form are the same."""
    collectors = [new_collector(**home.environ, DENIABLE_WORKERS="1") for _ in range(2)]
    devices = Devices(registry, 150, [each.address for each in collectors], pause=0.01)
    tallies = [
        TallyKey(name, registry[name].scheme.fingerprint, devices.window)
        for name in ("browser", "dark_mode")
    ]
    devices.start()
    sealed = 0
    while devices.acknowledged < len(devices.batches):
        sealed += sum(store.seal(tally) is not None for tally in tallies)
        time.sleep(0.005)
    devices.finish()
    devices.check(store)
    assert sealed >= 5
    for tally in tallies:
        store.seal(tally)
        assert store.sealed(*tally[:2], [tally.window])
    devices.check(store)

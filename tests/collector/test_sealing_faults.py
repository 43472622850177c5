"""Sealing under faults: whatever breaks, a window has all of its counts, once.

`docs/how-to/operate.md` lists these tests.
"""

from __future__ import annotations

import signal
import sys
from contextlib import closing

import pytest

from deniable_collector.stores import open_store
from deniable_collector.stores.commits import TallyKey
from deniable_collector.stores.redis import sealing as redis_sealing
from deniable_collector.stores.redis import strings as redis_strings
from deniable_collector.stores.sealed import blocks
from deniable_collector.stores.sqlite import blocks as sqlite_blocks
from deniable_collector.stores.sqlite import store as sqlite_store
from deniable_collector.stores.sqlite.file import SqliteFile

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

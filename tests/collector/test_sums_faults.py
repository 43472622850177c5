"""Sums under faults: whatever breaks, each window counts once, as itself or in a kept sum.

`docs/how-to/operate.md` lists these tests.
"""

from __future__ import annotations

import signal
import sys
from contextlib import closing

import pytest

from deniable import windows
from deniable_collector.stores import open_store
from deniable_collector.stores.redis import sums as redis_sums
from deniable_collector.stores.sealed import blocks
from deniable_collector.stores.sqlite import sums as sqlite_sums
from deniable_collector.stores.sqlite.file import SqliteFile
from deniable_collector.stores.summed import copies, dropping, place, summing

from .filling import WIDTH, fill_windows, whole
from .killing import in_a_child, kill_at

pytestmark = pytest.mark.campaign
STORES = ["sqlite", "redis", "cluster"]
WATCHED = {
    each.__file__
    for each in (
        *(blocks, sqlite_sums, redis_sums),
        *(copies, dropping, place, summing),
    )
} | {sys.modules[SqliteFile.__module__].__file__}


@pytest.fixture
def scheme(store, shelf):
    scheme = shelf(WIDTH)
    store.publish({"m": [scheme]})
    return scheme


@pytest.fixture
def fill(store, scheme, new_id, noon):
    """Puts the same counts into windows."""
    return lambda labels: fill_windows(store, scheme.fingerprint, labels, new_id(), noon)


def test_a_process_that_is_killed_at_each_line(home, store, scheme, fill):
    """A process is killed at every few lines that it runs while it adds up a month and then drops
    its days, until it gets through: each time the month has all of its counts once, as days or
    as a sum, and another process finishes the work."""
    step = {"sqlite": 61, "redis": 61, "cluster": 101}[home.kind]
    line, dropped, name = 1, 0, scheme.fingerprint
    with closing(open_store(home.url, prefix=home.prefix)) as reader:
        for year in range(1971, 2026):
            days = [f"{year}-01-{day:02}" for day in (2, 3, 30)]
            fill(days)

            def work(year=year, days=days, line=line):
                mine = open_store(home.url, prefix=home.prefix)
                kill_at(line, WATCHED)
                mine.sums.add_up("m", name, "day", f"{year}-01")
                mine.sums.drop_windows("m", name, windows.end(days[-1]), ("week", "month"))

            ended = in_a_child(work)
            assert ended in (0, -signal.SIGKILL)
            assert whole(reader, name, days, 3), line
            gone = reader.dropped("m", name)
            left = reader.windows("m", name)
            assert [day for day in days if day in gone] == [day for day in days if day not in left]
            dropped += days[0] in gone
            reader.sums.drop_windows("m", name, windows.end(days[-1]), ("week", "month"))
            assert whole(reader, name, days, 3), line
            assert not reader.windows("m", name)
            if ended == 0:
                break
            line += step
        else:
            pytest.fail("it never got through")
    assert line > 5 * step
    assert dropped >= 1

"""Sealing and adding up under faults: whatever breaks, each window counts once."""
# ruff: noqa: F811  (fixtures are imported, and are arguments)

import signal
import sys
from contextlib import closing

import pytest

from deniable.protocol import windows
from deniable_collector.settings import Settings
from deniable_collector.stores import base, life, open_store, sealed, summing
from deniable_collector.stores.commits import TallyKey
from deniable_collector.stores.redis import store as redis_store
from deniable_collector.stores.sqlite import store as sqlite_store
from deniable_collector.stores.sqlite.file import SqliteFile

from .filling import fill, scheme, whole  # noqa: F401  (fixtures)
from .killing import in_a_child, kill_at

pytestmark = pytest.mark.campaign
STORES = ["sqlite", "redis", "cluster"]
FILE = sys.modules[SqliteFile.__module__]
SEALING = (sealed, base, life, sqlite_store, redis_store, FILE)
SUMMING = (sealed, life, sqlite_store, redis_store, summing, FILE)


def killed(home, line, modules, work):
    """Whether a process that works on a store was killed when it came to that line."""

    def child():
        mine = open_store(Settings(store=home.url, redis_prefix=home.prefix))
        kill_at(line, {each.__file__ for each in modules})
        work(mine)

    ended = in_a_child(child)
    assert ended in (0, -signal.SIGKILL)
    return ended != 0


def test_while_it_seals(home, scheme, fill):
    """A process is killed at every few lines that it runs while it seals, until it gets through:
    each time the window has all of its counts once, open or sealed, and another process seals it.

    One line at a time (`step = 1`) takes half a minute, and holds as well.
    """
    days = iter(f"{year}-{month:02}-{day:02}" for year in range(1990, 2026)
                for month in range(1, 13) for day in range(1, 29))  # fmt: skip
    step = {"sqlite": 3, "redis": 3, "cluster": 7}[home.kind]
    line, sealed, name = 1 - step, 0, scheme.fingerprint
    with closing(open_store(Settings(store=home.url, redis_prefix=home.prefix))) as reader:
        goes_on = True
        while goes_on:
            line += step
            day = next(days)
            fill(day)
            tally = TallyKey("m", name, day)
            goes_on = killed(home, line, SEALING, lambda mine, tally=tally: mine.seal(tally))
            assert whole(reader, name, [day]), line
            done = day in reader.sealed("m", name, [day])
            sealed += done
            assert (reader.seal(tally) is None) == done
            assert whole(reader, name, [day]), line
    assert line > 20
    assert sealed >= 1


def test_while_it_adds_up(home, scheme, fill):
    """A process is killed at every few lines that it runs while it adds up a month and then drops
    its days, until it gets through: each time the month has all of its counts once, as days or
    as a sum, and another process finishes the work."""
    step = {"sqlite": 97, "redis": 97, "cluster": 151}[home.kind]
    line, dropped, name = 1 - step, 0, scheme.fingerprint
    years = iter(range(1971, 2026))
    with closing(open_store(Settings(store=home.url, redis_prefix=home.prefix))) as reader:
        goes_on = True
        while goes_on:
            line += step
            year = next(years)
            days = [f"{year}-01-{day:02}" for day in (2, 3, 30)]
            fill(*days)
            end = windows.end(days[-1])

            def work(mine, year=year, end=end):
                mine.sums.add_up(("m", name), "day", f"{year}-01")
                mine.sums.drop_windows(("m", name), end, ("week", "month"))

            goes_on = killed(home, line, SUMMING, work)
            assert whole(reader, name, days, 3), line
            gone = reader.dropped("m", name)
            left = reader.windows("m", name)
            assert [day for day in days if day in gone] == [day for day in days if day not in left]
            dropped += days[0] in gone
            reader.sums.drop_windows(("m", name), end, ("week", "month"))
            assert whole(reader, name, days, 3), line
            assert not reader.windows("m", name)
    assert line > 5 * step
    assert dropped >= 1

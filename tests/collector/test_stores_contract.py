"""What every store must keep, asked of each of them: SQLite and a real Redis."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deniable import Registry, windows
from deniable_collector.stores import Store, StoreError
from deniable_collector.stores.commits import (
    ID_RETENTION,
    MAX_CELL,
    Commit,
    Increment,
    TallyKey,
    TallyRowKey,
    shard_of,
)
from deniable_collector.stores.ids import KEPT, PERIODS, TERMS

STORES = ["sqlite", "redis", "cluster"]

DAY = 86_400.0
WINDOW = "2026-11-20"


def commit(ids, cells, *, row=0, width=8, reports=1, window=WINDOW, scheme="abc", shard=0):
    """A commit to one row of the metric `m`."""
    key = TallyRowKey(TallyKey("m", scheme, window), row)
    increment = Increment(width, reports, tuple(cells), tuple(cells.values()))
    return Commit(tuple(ids), {key: increment}, shard)


def read(store, scheme, windows=(WINDOW,)):
    """The tally of the metric `m` as (reports, {column: count}) for each row."""
    tally = store.tally("m", scheme.fingerprint, windows)
    return [
        (row.reports, {int(at): int(row.cells[at]) for at in np.flatnonzero(row.cells)})
        for row in tally.rows
    ]


@pytest.fixture
def scheme(store, shelf):
    """A published scheme of one row of 8 columns."""
    scheme = shelf(8)
    store.publish({"m": [scheme]})
    return scheme


@pytest.fixture
def eight(store):
    """A published scheme of one row of 8 columns that every process can read."""
    metric = Registry.parse(EIGHT)["m"]
    store.publish({"m": [metric.scheme]})
    assert [row.width for row in metric.scheme.mechanism.rows] == [8]
    return metric.scheme


EIGHT = """
schema = 1
app = "example"

[metrics.m]
owner = "tests@acme.example"
expires = 2999-12-31
type = "category"
description = "One of eight."
values = ["a", "b", "c", "d", "e", "f", "g", "h"]
epsilon = 1.0
lifetime_epsilon = 8.0
"""


@pytest.fixture
def make(scheme):
    """Makes commits to that scheme."""
    return lambda ids, cells, **more: commit(ids, cells, scheme=scheme.fingerprint, **more)


def test_a_commit_is_in_the_tally(store, scheme, make, new_id, noon):
    """What was folded is read back exactly, reports and cells alike."""
    assert store.fold(make([new_id()], {1: 3, 7: 2}, reports=4), noon) == frozenset()
    assert store.fold(make([new_id()], {1: 1, 2: 5}, reports=6), noon) == frozenset()
    assert read(store, scheme) == [(10, {1: 4, 2: 5, 7: 2})]
    (row,) = store.tally("m", scheme.fingerprint, [WINDOW]).rows
    assert row.cells.dtype == np.int64
    assert type(row.reports) is int


def test_a_seen_id_keeps_the_whole_commit_out(store, scheme, make, new_id, noon):
    """A commit with some seen ids names exactly those and adds nothing at all."""
    first, second, third = new_id(), new_id(), new_id()
    store.fold(make([first, second], {0: 1}), noon)
    assert store.fold(make([second, third, first], {0: 1}), noon) == {first, second}
    assert read(store, scheme) == [(1, {0: 1})]
    assert store.fold(make([third], {0: 1}), noon) == frozenset()
    assert read(store, scheme) == [(2, {0: 2})]


def test_a_commit_of_nothing(store, scheme, new_id, noon):
    """A commit without batches changes nothing, in a store without any id too."""
    assert store.fold(Commit((), {}), noon) == frozenset()
    assert read(store, scheme) == [(0, {})]


def test_many_ids_in_one_commit(store, scheme, make, new_id, noon):
    """A commit of thousands of ids remembers every one of them."""
    ids = [new_id() for _ in range(2_500)]
    assert store.fold(make(ids, {0: 2_500}, reports=2_500), noon) == frozenset()
    assert store.fold(make([new_id(), *ids], {0: 1}), noon) == set(ids)
    assert read(store, scheme) == [(2_500, {0: 2_500})]


@pytest.mark.parametrize("later", [0.0, 1.0, DAY, 3.5 * DAY, ID_RETENTION - 1, ID_RETENTION])
def test_ids_are_remembered_for_the_retention(store, scheme, make, new_id, noon, later):
    """A retry within the retention is seen, up to its last second."""
    batch = new_id()
    store.fold(make([batch], {0: 1}), noon)
    store.fold(make([new_id()], {0: 1}), noon + later)
    assert store.fold(make([batch], {0: 1}), noon + later) == {batch}
    assert read(store, scheme) == [(2, {0: 2})]


def test_ids_are_forgotten_after_the_retention(store, scheme, make, new_id, noon):
    """An id is not kept for ever: some time after the retention it is new again."""
    batch = new_id()
    store.fold(make([batch], {0: 1}), noon)
    assert store.fold(make([batch], {0: 1}), noon + 2 * ID_RETENTION) == frozenset()


def test_drop_keeps_ids_of_every_age(store, scheme, make, new_id, noon):
    """As the clock moves on day by day and windows are dropped each day, the ids of the last
    week are known, and only windows that had ended are gone."""
    batches = {}
    for day in range(20):
        now = noon + day * DAY
        batches[day] = new_id()
        label = windows.window_at("day", now - DAY)
        assert not store.fold(make([batches[day]], {0: 1}, window=label), now)
        store.drop(now - 3 * DAY)
        assert len(store.windows("m", scheme.fingerprint)) == min(day + 1, 3)
        for age in range(min(day, 7) + 1):
            again = make([batches[day - age]], {0: 1}, window=label)
            assert store.fold(again, now) == {batches[day - age]}
        assert store.tally("m", scheme.fingerprint, [label]).reports == 1


def test_an_id_from_a_clock_ahead_is_seen(store, make, new_id, noon):
    """Two collectors whose clocks differ over midnight still know each other's ids."""
    batch = new_id()
    store.fold(make([batch], {0: 1}), noon + 0.9 * DAY)
    assert store.fold(make([batch], {0: 1}), noon) == {batch}


@pytest.mark.parametrize("apart", [-2, -1, 1, 2])
def test_generations_are_asked_and_kept_apart(store, make, new_id, noon, apart):
    """Thousands of ids of one generation and of another fall into the same slots: each is seen
    from the other, by clocks that are two generations apart, and none takes the place of one."""
    first, second, third = ([new_id() for _ in range(1_500)] for _ in range(3))
    assert not store.fold(make(first, {0: 1}), noon + apart * PERIODS[0])
    assert not store.fold(make(second, {0: 1}), noon)
    assert not store.fold(make(third, {0: 1}), noon)
    for moment in (noon, noon + apart * PERIODS[0]):
        for batches in (first, second, third):
            assert store.fold(make(batches, {0: 1}), moment) == set(batches)


def test_a_clock_that_jumped_ahead_forgets_nothing(store, scheme, make, new_id, noon):
    """A collector's clock that is two generations ahead for a while, in which many commits come,
    drops no id that a retry may still bring when it is set right."""
    batch = new_id()
    store.fold(make([batch], {0: 1}), noon)
    late = noon + 2 * PERIODS[0]
    for number in range(30):
        store.fold(make([new_id()], {0: 1}), late + 2 * PERIODS[0] + number)
    assert store.fold(make([batch], {0: 1}), late) == {batch}
    assert store.fold(make([batch], {0: 1}), noon) == {batch}


@pytest.mark.parametrize("ahead", [30 * DAY, 3_653 * DAY])
@pytest.mark.parametrize("term", range(len(TERMS)))
def test_a_clock_that_is_far_ahead_for_days_forgets_nothing(
    store, scheme, make, new_id, noon, ahead, term
):
    """A collector's clock that is a month or ten years ahead for six days, in which commits come
    all the time, drops no id that came before; nor do the days after it is right again."""
    batches, shortest = [], []
    for day in range(-int(TERMS[term] // DAY), 7):
        now = noon + day * DAY + (ahead if day >= 0 else 0)
        batches.append(new_id())
        shortest.append(new_id())
        some = make([batches[-1], shortest[-1], *(new_id() for _ in range(8))], {0: 1})
        assert not store.fold(dataclasses.replace(some, remember={batches[-1]: TERMS[term]}), now)
    # Those of the days of the jump are left out: no window of now was open by that clock.
    before = slice(-7 - int(TERMS[0] // DAY), -7)
    for day in (6, 7, 8):
        now = noon + day * DAY
        late = batches[day + 1 : -7] + shortest[before][day + 1 :]
        assert store.fold(make(late, {0: 1}), now) == set(late)
        assert not store.fold(make([new_id()], {0: 1}), now)


@pytest.mark.parametrize("term", range(len(TERMS)))
@pytest.mark.parametrize("part", [0.0, 0.4, 0.99])
def test_an_id_is_remembered_for_the_term_that_its_commit_asks_for(
    store, scheme, make, new_id, noon, term, part
):
    """An id of each term is seen until its last second, by commits that ask for any other term,
    with many other ids coming day by day; and it is not remembered for ever."""
    came = PERIODS[term] * (noon // PERIODS[term] + part)
    batch, others = new_id(), [new_id() for _ in TERMS]
    remember = dict(zip(others, TERMS, strict=True)) | {batch: TERMS[term]}
    first = dataclasses.replace(make([others[0], batch, *others[1:]], {0: 1}), remember=remember)
    assert not store.fold(first, came)
    moments = [DAY * day for day in range(0, int(TERMS[term] // DAY) + 1, 2)]
    for later in (*moments, TERMS[term], TERMS[term] + 3_600):
        again = make([new_id(), batch], {0: 1})
        assert store.fold(again, came + later) == {batch}
        for each in TERMS:
            asked = dataclasses.replace(again, remember={batch: each, again.ids[0]: each})
            assert store.fold(asked, came + later) == {batch}
        some = [new_id() for _ in range(4)]
        fresh = dataclasses.replace(
            make(some, {0: 1}), remember=dict(zip(some, TERMS, strict=False))
        )
        assert not store.fold(fresh, came + later)
        known = {each for each, seconds in zip(others, TERMS, strict=True) if later <= seconds}
        assert store.fold(make(others, {0: 1}), came + later) >= known
    gone = came + (KEPT + 1) * PERIODS[term]
    assert not store.fold(make([batch], {0: 1}), gone)


@pytest.mark.parametrize("term", range(len(TERMS)))
@pytest.mark.parametrize("apart", [-2, -1, 1, 2])
def test_the_generations_of_each_term_are_kept_apart(store, make, new_id, noon, term, apart):
    """Hundreds of ids of each term in one commit fall into the same slots, in two generations that
    are asked from each other: each is seen, and none takes the place of another."""
    batches = [[new_id() for _ in range(900)] for _ in range(3)]
    moments = (noon + apart * PERIODS[term], noon, noon)
    for some, moment in zip(batches, moments, strict=True):
        remember = {each: TERMS[number % 3] for number, each in enumerate(some)}
        assert not store.fold(dataclasses.replace(make(some, {0: 1}), remember=remember), moment)
    for some in batches:
        mine = some[term::3]
        for moment in (noon, noon + apart * PERIODS[term]):
            assert store.fold(make(mine, {0: 1}), moment) == set(mine)


def test_threads_that_race_with_one_batch(home, store, scheme, make, new_id, noon):
    """Of 16 threads that fold the same batch at once, exactly one adds it."""
    stores = [store, home.open()]
    for _ in range(5):
        one = make([new_id()], {3: 1})
        barrier = threading.Barrier(16)

        def race(number, one=one, barrier=barrier):
            barrier.wait()
            return stores[number % 2].fold(one, noon)

        with ThreadPoolExecutor(16) as pool:
            seen = list(pool.map(race, range(16)))
        assert sorted(map(len, seen)) == [0] + [1] * 15
    assert read(store, scheme) == [(5, {3: 5})]


RACER = """
import sys
from deniable_collector.stores import open_store
from deniable_collector.stores.commits import Commit, Increment, TallyKey, TallyRowKey

url, prefix, scheme, window, now = sys.argv[1:]
store = open_store(url, prefix=prefix)
key = TallyRowKey(TallyKey("m", scheme, window), 0)
new = 0
for number in range(200):
    increment = Increment(8, 1, (number % 8,), (1,))
    new += not store.fold(Commit((f"{number:032x}",), {key: increment}), float(now))
store.close()
print(new)
"""


def test_processes_that_race_with_the_same_batches(home, store, eight, noon):
    """Of four processes that fold the same 200 batches, all together add each exactly once."""
    command = [sys.executable, "-c", RACER, home.url, home.prefix, eight.fingerprint, WINDOW]
    racers = [
        subprocess.Popen([*command, str(noon)], stdout=subprocess.PIPE, text=True) for _ in range(4)
    ]
    new = [int(racer.communicate(timeout=120)[0]) for racer in racers]
    assert sum(new) == 200
    assert read(store, eight) == [(200, dict.fromkeys(range(8), 25))]


FORKER = """
import os, signal, sys
from deniable_collector.stores import open_store
from deniable_collector.stores.commits import Commit, Increment, TallyKey, TallyRowKey

url, prefix, scheme, window, now = sys.argv[1:]
store = open_store(url, prefix=prefix)
key = TallyRowKey(TallyKey("m", scheme, window), 0)

def fold(number, column):
    increment = Increment(8, 1, (column,), (1,))
    return len(store.fold(Commit((f"{number:032x}",), {key: increment}), float(now)))

for child in range(5):
    assert fold(1000 + child, 0) == 0
    started, ready = os.pipe()
    if os.fork() == 0:
        signal.alarm(30)
        code = 1
        try:
            assert fold(child, 1) == 0
            os.write(ready, b"1")
            assert all(fold(2000 + 100 * child + each, 2) == 0 for each in range(50))
            store.close()
            code = 0
        finally:
            os._exit(code)
    os.read(started, 1)
    assert all(fold(3000 + 100 * child + each, 3) == 0 for each in range(50))
    assert os.wait()[1] == 0
    assert fold(child, 1) == 1
store.close()
"""


def test_a_fork_does_not_share_a_connection(home, store, eight, noon):
    """Parent and child fold at the same time after a fork, each over a connection of its own.

    A fork while another thread is inside the driver is nobody's to survive: the locks that
    it holds are SQLite's and redis-py's.
    """
    command = [sys.executable, "-c", FORKER, home.url, home.prefix, eight.fingerprint]
    subprocess.run([*command, WINDOW, str(noon)], check=True, timeout=120)
    assert read(store, eight) == [(510, {0: 5, 1: 5, 2: 250, 3: 250})]


def test_rows_of_different_widths(store, shelf, new_id, noon):
    """Each row has its own width, reports and cells, however wide it is and where it is set."""
    scheme = shelf(3, 700, 70_000)
    store.publish({"m": [scheme]})
    tally = TallyKey("m", scheme.fingerprint, WINDOW)
    sparse = {0: 1, 255: 2, 256: 3, 600: 4, 35_000: 5, 69_999: 6}
    dense = {column: column % 7 + 1 for column in range(700)}
    parts = {
        TallyRowKey(tally, 2): Increment(70_000, 9, tuple(sparse), tuple(sparse.values())),
        TallyRowKey(tally, 1): Increment(700, 8, tuple(dense)[::-1], tuple(dense.values())[::-1]),
    }
    for _ in range(2):
        store.fold(Commit((new_id(),), parts), noon)
    assert read(store, scheme) == [
        (0, {}),
        (16, {column: 2 * count for column, count in dense.items()}),
        (18, {column: 2 * count for column, count in sparse.items()}),
    ]


def test_reports_are_counted_window_by_window(store, shelf, make, scheme, new_id, noon):
    """Each window has the reports of its tally, in the order asked, over all rows and pages;
    a window without any has 0, and so has one of another scheme."""
    assert store.reports("m", scheme.fingerprint, []) == {}
    store.fold(make([new_id()], {0: 1}, reports=3), noon)
    store.fold(make([new_id()], {0: 1}, reports=2**33, window="2026-11-19"), noon)
    store.fold(make([new_id()], {}, reports=4), noon)
    asked = ["2026-11-20", "2026-11-18", "2026-11-19"]
    found = store.reports("m", scheme.fingerprint, asked)
    assert list(found.items()) == list(zip(asked, (7, 0, 2**33), strict=True))
    many = shelf(*[3] * 1500)
    store.publish({"m": [many]})
    for row, reports in ((0, 5), (999, 6), (1000, 7), (1499, 8)):
        key = {"row": row, "width": 3, "scheme": many.fingerprint}
        store.fold(commit([new_id()], {2: 1}, reports=reports, **key), noon)
    assert store.reports("m", many.fingerprint, asked) == dict(zip(asked, (26, 0, 0), strict=True))
    with pytest.raises(StoreError):
        store.reports("m", "nothing", asked)


def test_reports_without_columns_count(store, scheme, make, new_id, noon):
    """An empty set of columns is a report like any other."""
    store.fold(make([new_id()], {}, reports=3), noon)
    assert read(store, scheme) == [(3, {})]


def test_windows_and_schemes_are_apart(store, shelf, scheme, make, new_id, noon):
    """Tallies of other windows, schemes and metrics never mix; asked-for windows are added."""
    other = shelf(9)
    store.publish({"m": [other], "n": [scheme]})
    store.fold(make([new_id()], {0: 1}, window="2026-11-20"), noon)
    store.fold(make([new_id()], {0: 2}, window="2026-11-19"), noon)
    store.fold(make([new_id()], {0: 4}, window="2026-11-18"), noon)
    store.fold(commit([new_id()], {8: 8}, width=9, scheme=other.fingerprint), noon)
    assert store.windows("m", scheme.fingerprint) == ["2026-11-18", "2026-11-19", "2026-11-20"]
    assert store.windows("m", other.fingerprint) == ["2026-11-20"]
    assert store.windows("n", scheme.fingerprint) == []
    asked = ["2026-11-20", "2026-11-19", "2026-11-20", "2026-11-01"]
    assert read(store, scheme, asked) == [(2, {0: 3})]
    assert read(store, other) == [(1, {8: 8})]
    tally = store.tally("m", scheme.fingerprint, asked)
    assert tally.windows == ("2026-11-20", "2026-11-19", "2026-11-01")
    assert (tally.metric, tally.scheme, tally.reports) == ("m", scheme.fingerprint, 2)
    assert store.tally("n", scheme.fingerprint, [WINDOW]).reports == 0


def test_published_schemes_are_read_back(store, registry):
    """Schemes come back with their fingerprint, once each, whoever publishes them again."""
    published = {metric.name: [metric.scheme] for metric in registry}
    store.publish(published)
    store.publish(published)
    schemes = store.schemes()
    assert set(schemes) == {"dark_mode", "browser", "country"}
    for metric in registry:
        fingerprint = metric.scheme.fingerprint
        assert list(schemes[metric.name]) == [fingerprint]
        assert schemes[metric.name][fingerprint].canonical() == metric.scheme.canonical()
        assert store.scheme(metric.name, fingerprint).fingerprint == fingerprint


def test_a_scheme_that_was_never_published(store, scheme):
    """A tally without its scheme cannot be read, and the error says what to do."""
    for ask in (lambda: store.scheme("m", "0" * 12), lambda: store.tally("m", "0" * 12, [])):
        with pytest.raises(StoreError, match="start the collector"):
            ask()


def test_drop_forgets_what_ended(store, scheme, make, new_id, noon):
    """Windows that had ended are gone with their cells; later ones stay; ids stay too."""
    batch = new_id()
    windows = ["2026-11-17", "2026-11-18", "2026-11-19", "2026-W46", "2026-11"]
    for window in windows:
        store.fold(make([new_id()], {1: 1}, window=window), noon)
    store.fold(make([batch], {1: 1}, window="2026-11-17"), noon)
    # 2026-11-19 00:00 UTC: the 18th has just ended, the week on the 15th, the month has not.
    assert store.drop(1_795_046_400.0) == 3
    assert set(store.windows("m", scheme.fingerprint)) == {"2026-11-19", "2026-11"}
    assert read(store, scheme, windows) == [(2, {1: 2})]
    assert store.drop(1_795_046_400.0) == 0
    assert store.fold(make([batch], {1: 1}, window="2026-11-17"), noon) == {batch}
    store.fold(make([new_id()], {2: 1}, window="2026-11-18"), noon)
    assert read(store, scheme, ["2026-11-18"]) == [(1, {2: 1})]


@pytest.mark.parametrize("step", [2**32 - 1, 2**31, 2**40, 2**52])
def test_cells_beyond_32_bits(store, scheme, make, new_id, noon, step):
    """A counter never wraps: beyond 2**32 it goes on, and its neighbours keep their counts."""
    store.fold(make([new_id()], {0: 1, 3: 1, 7: 5}), noon)
    for _ in range(2 if step < 2**52 else 1):
        store.fold(make([new_id()], {3: step, 4: 1}, reports=step), noon)
    store.fold(make([new_id()], {2: 7}), noon)
    times = 2 if step < 2**52 else 1
    assert read(store, scheme) == [
        (times * step + 2, {0: 1, 2: 7, 3: times * step + 1, 4: times, 7: 5})
    ]


def test_a_wide_row_outgrows_32_bits(store, shelf, new_id, noon):
    """A row of thousands of columns is kept exactly when one of them outgrows 32 bits."""
    scheme = shelf(3_000)
    store.publish({"m": [scheme]})
    more = {"width": 3_000, "scheme": scheme.fingerprint}
    before = {column: column + 1 for column in range(0, 3_000, 2)}
    store.fold(commit([new_id()], before, **more), noon)
    store.fold(commit([new_id()], {1_500: 2**33, 2_999: 1}, **more), noon)
    assert read(store, scheme) == [(2, {**before, 1_500: 1_501 + 2**33, 2_999: 1})]


@pytest.mark.parametrize(
    ("cells", "reports"),
    [
        ({0: 1, 3: MAX_CELL}, 1),
        ({0: 1, 3: 1, 5: MAX_CELL + 1}, 1),
        ({0: 1}, MAX_CELL),
        ({0: 1, 3: 2**64}, 1),
    ],
)
def test_refusal_at_the_top_adds_nothing(store, shelf, new_id, noon, cells, reports):
    """When one cell cannot take its count, no cell of any row is touched and no id is kept."""
    scheme = shelf(8, 8)
    store.publish({"m": [scheme]})
    tally, batch = TallyKey("m", scheme.fingerprint, WINDOW), new_id()
    good = Increment(8, 1, (1, 3), (1, 2))
    store.fold(Commit((new_id(),), {TallyRowKey(tally, row): good for row in (0, 1)}), noon)
    bad = Increment(8, reports, tuple(cells), tuple(cells.values()))
    parts = {TallyRowKey(tally, 0): good, TallyRowKey(tally, 1): bad}
    with pytest.raises(StoreError, match="nothing was added"):
        store.fold(Commit((batch,), parts), noon)
    assert read(store, scheme) == [(1, {1: 1, 3: 2})] * 2
    assert store.fold(Commit((batch,), {TallyRowKey(tally, 0): good}), noon) == frozenset()


def test_the_highest_cell_is_reached(store, scheme, make, new_id, noon):
    """A counter takes every count up to its top, and only the next one is refused."""
    store.fold(make([new_id()], {0: MAX_CELL - 1}), noon)
    store.fold(make([new_id()], {0: 1}), noon)
    with pytest.raises(StoreError):
        store.fold(make([new_id()], {0: 1}), noon)
    assert read(store, scheme) == [(2, {0: MAX_CELL})]


def test_another_store_object_sees_everything(home, store, scheme, make, new_id, noon):
    """What one process has committed is all there for the next one."""
    batch = new_id()
    store.fold(make([batch], {5: 2}), noon)
    store.close()
    again = home.open()
    assert read(again, scheme) == [(1, {5: 2})]
    assert again.windows("m", scheme.fingerprint) == [WINDOW]
    assert again.fold(make([batch], {5: 2}), noon) == {batch}


def test_ping_says_nothing_of_a_healthy_store(store, scheme):
    """A store that can take a commit answers a ping."""
    store.ping()


def test_shards_are_even_and_stable():
    """Random ids fill the shards evenly: chi-square, 15 degrees, 16,000 ids made by counting,
    far below the 99.9% point 37.7 of the distribution."""
    ids = [
        f"{number * 0x9E3779B97F4A7C15F39CC0605CEDC835 % 2**128:032x}" for number in range(16_000)
    ]
    counts = Counter(shard_of(each, 16) for each in ids)
    assert sum((counts[shard] - 1_000) ** 2 / 1_000 for shard in range(16)) < 37.7
    assert {shard_of(each, 1) for each in ids} == {0}


SCHEDULES = st.lists(
    st.tuples(
        st.lists(st.integers(0, 11), min_size=1, max_size=3, unique=True),
        st.dictionaries(
            st.tuples(st.integers(0, 2), st.sampled_from(["2026-11-19", "2026-11-20"])),
            st.tuples(
                st.integers(1, 2**33),
                st.dictionaries(st.integers(0, 899), st.integers(1, 2**33), max_size=12),
            ),
            max_size=4,
        ),
    ),
    max_size=12,
)


@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(schedule=SCHEDULES)
def test_any_schedule_equals_a_dictionary(home, shelf, new_id, noon, schedule):
    """Whatever is folded, in whatever order, with whatever ids again: a dict of counters agrees."""
    store = home.open()
    scheme = shelf(900, 900, 900)
    metric = f"m{new_id()}"
    store.publish({metric: [scheme]})
    names = [new_id() for _ in range(12)]
    model, reports, known = Counter(), Counter(), set()
    for ids, parts in schedule:
        batch = [names[each] for each in ids]
        increments = {
            TallyRowKey(TallyKey(metric, scheme.fingerprint, window), row): Increment(
                900, count, tuple(cells), tuple(cells.values())
            )
            for (row, window), (count, cells) in parts.items()
        }
        assert store.fold(Commit(tuple(batch), increments), noon) == known & set(batch)
        if not known & set(batch):
            known |= set(batch)
            for (row, window), (count, cells) in parts.items():
                reports[row, window] += count
                model.update({(row, window, column): each for column, each in cells.items()})
    for window in ("2026-11-19", "2026-11-20"):
        tally = store.tally(metric, scheme.fingerprint, [window])
        for number, row in enumerate(tally.rows):
            assert row.reports == reports[number, window]
            wanted = [model[number, window, column] for column in range(900)]
            assert row.cells.tolist() == wanted
    store.close()


def test_a_version_changes_with_its_tallies(home, store, shelf, make, scheme, new_id, noon):
    """A fold into a window, sparse or dense, changes the versions of what is asked over it and of
    nothing else; a batch that was seen, or a refused one, changes none."""
    wide = shelf(20_000)
    store.publish({"m": [wide]})
    other = home.open()
    asked = {
        "day": (scheme, ["2026-11-20"]),
        "both": (scheme, ["2026-11-19", "2026-11-20", "2026-11-01"]),
        "before": (scheme, ["2026-11-19"]),
        "none": (scheme, []),
        "wide": (wide, ["2026-11-20"]),
    }

    def versions():
        told = {
            name: store.version("m", one.fingerprint, windows)
            for name, (one, windows) in asked.items()
        }
        again = {
            name: other.version("m", one.fingerprint, reversed(windows))
            for name, (one, windows) in asked.items()
        }
        assert told == again
        return told

    def changed(act):
        before = versions()
        act()
        after = versions()
        return {name for name in asked if before[name] != after[name]}

    batch = new_id()
    dense = dict.fromkeys(range(20_000), 1)
    more = {"width": 20_000, "scheme": wide.fingerprint}
    assert changed(lambda: store.fold(make([batch], {0: 1}), noon)) == {"day", "both"}
    assert changed(lambda: other.fold(make([new_id()], {0: 1}), noon)) == {"day", "both"}
    assert changed(lambda: store.fold(make([batch], {0: 1}), noon)) == set()
    early = make([new_id()], {0: 1}, window="2026-11-19")
    assert changed(lambda: store.fold(early, noon)) == {"both", "before"}
    for cells in (dense, {3: 1}, dense):
        assert changed(lambda c=cells: store.fold(commit([new_id()], c, **more), noon)) == {"wide"}

    def refused():
        with pytest.raises(StoreError, match="maximum"):
            store.fold(make([new_id()], {0: MAX_CELL}), noon)

    assert changed(refused) == set()
    assert changed(lambda: store.publish({"m": [scheme]})) == set()
    assert store.version("n", scheme.fingerprint, ["2026-11-20"]) not in versions().values()


def test_each_version_is_that_of_its_window(store, make, scheme, new_id, noon):
    """The versions of many windows at once are those that each has alone, also without reports."""
    store.publish({"m": [scheme]})
    for window in ("2026-11-20", "2026-11-21"):
        store.fold(make([new_id()], {0: 1}, window=window), noon)
    windows = ["2026-11-20", "2026-11-21", "2026-11-22"]
    found = store.each_version("m", scheme.fingerprint, windows)
    assert found == {each: store.version("m", scheme.fingerprint, [each]) for each in windows}
    assert store.each_version("m", scheme.fingerprint, []) == {}


def test_a_version_never_comes_back(home, store, scheme, make, new_id, noon):
    """A tally that was dropped and begun again with as many commits has another version, also
    where it holds the same; nobody is asked for cells or a scheme."""
    windows = ["2026-11-17", "2026-11-20"]
    known = {store.version("m", scheme.fingerprint, windows)}
    for times in range(1, 5):
        for _ in range(2):
            store.fold(make([new_id()], {0: 1}, window="2026-11-17"), noon)
            known.add(store.version("m", scheme.fingerprint, windows))
        assert home.open().version("m", scheme.fingerprint, windows) in known
        assert store.drop(1_795_046_400.0) == 1
        known.add(store.version("m", scheme.fingerprint, windows))
        # Of nothing there is one version.
        assert len(known) == 1 + 2 * times


def test_versions_of_many_metrics_at_once(store, scheme, make, new_id, noon):
    """A fold into a window changes the version of its metric, if the window was asked for, and of
    no other metric; metrics and windows without reports have none."""
    other = "n"
    store.publish({"m": [scheme], other: [scheme]})
    asked = {"m": ["2026-11-19", "2026-11-20"], other: ["2026-11-20"], "nobody": ["2026-11-20"]}
    assert store.versions(asked) == {}
    assert store.versions({}) == {}
    store.fold(make([new_id()], {0: 1}), noon)
    first = store.versions(asked)
    assert list(first) == ["m"]
    assert len(first["m"]) == 20
    assert Store.versions(store, asked).keys() == first.keys()
    store.fold(make([new_id()], {0: 1}, window="2026-11-18"), noon)
    assert store.versions(asked) == first
    assert store.versions({"m": ["2026-11-18"]}) != first
    store.fold(make([new_id()], {0: 1}, window="2026-11-19"), noon)
    second = store.versions(asked)
    assert second != first
    assert store.versions({"m": asked["m"][::-1]}) == second

"""What every store must keep, asked of each kind: SQLite, Redis, and a Redis Cluster.

A store is compared with a plain dictionary through any course of commits, sealing, sums, drops,
exports and restarts; what a course does not reach (races, clocks, limits) has tests of its own.
"""
# ruff: noqa: F811  (fixtures are imported, and are arguments)

import dataclasses
import hashlib
import itertools
import subprocess
import sys
import tempfile
import threading
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)
from tests.collector.conftest import METRICS
from tests.collector.filling import WINDOW, added, commit
from tests.ports import until
from tests.stores import (  # noqa: F401  (fixtures)
    NOON,
    home,
    new_cluster,
    new_id,
    new_redis,
    noon,
    redis_cluster,
    redis_server,
    shelf,
    store,
    window_reports,
)
from tests.stores import parametrize_home as pytest_generate_tests  # noqa: F401  (a hook)

from deniable import Registry
from deniable.protocol import windows
from deniable_collector.settings import Settings
from deniable_collector.stores import Store, StoreError, open_store
from deniable_collector.stores.commits import (
    ID_RETENTION,
    MAX_CELL,
    Addition,
    Commit,
    TallyKey,
    shard_of,
)
from deniable_collector.stores.errors import NotKept
from deniable_collector.stores.ids import KEPT, PERIODS, TERMS
from deniable_collector.upkeep.archive import TallySelection, export
from deniable_collector.upkeep.importing import load

STORES = ["sqlite", "redis", "cluster"]
SHARDS = {"sqlite": 1, "redis": 2, "cluster": 4}
DAY = 86_400.0

WIDTHS = (3, 900)
"""Columns of the two rows of the course's tallies."""

DAYS = ["2026-01-29", "2026-01-30", "2026-01-31", "2026-02-01", "2026-02-02"]
MONTHS = ["2026-01", "2026-02"]

days = st.sampled_from(DAYS)
counts = st.one_of(st.integers(1, 9), st.just(2**32))
cells = st.dictionaries(st.integers(0, 899), counts, max_size=6)


def vector_of(tally):
    """The reports of the rows, and then all cells."""
    return np.concatenate([[row.reports for row in tally.rows], *(row.cells for row in tally.rows)])


class Course(RuleBasedStateMachine):
    """Anything that may happen to one metric of a store, beside a dictionary of its counts.

    A subclass has `home` and `shelf`.
    """

    number = 0

    @initialize()
    def begin(self):
        type(self).number += 1
        self.metric = f"m{self.number}"
        self.shards = SHARDS[self.home.kind]
        self.store = self.home.open(self.shards)
        scheme = self.shelf(*WIDTHS)
        self.scheme = scheme.fingerprint
        self.schemes = [(self.metric, scheme)]
        self.store.publish(self.schemes)
        self.known = set()
        self.own, self.kept = {}, {}
        # The shards that have a part of a day: of its tally, of what is not sealed, of kept sums.
        self.parts, self.open = defaultdict(set), defaultdict(set)
        self.summed = defaultdict(set)
        self.changed = False
        self.seen_version = self.version()

    def version(self):
        return self.store.each_version(self.metric, self.scheme, DAYS)

    def batch(self, number):
        """An id that is new in each course, and in the same shard each time."""
        texts = (f"{self.metric} {number} {attempt}" for attempt in itertools.count())
        ids = (hashlib.sha256(text.encode()).hexdigest()[:32] for text in texts)
        return next(each for each in ids if shard_of(each, self.shards) == number % self.shards)

    def fold(self, numbers, rows_of):
        """One commit: day -> row -> its reports and {column: count}."""
        ids = [self.batch(number) for number in numbers]
        shard = shard_of(ids[0], self.shards)
        ids = tuple(each for each in ids if shard_of(each, self.shards) == shard)
        additions = {
            TallyKey(self.metric, self.scheme, day): added(self.schemes[0][1], rows)
            for day, rows in rows_of.items()
        }
        seen = self.store.fold(Commit(ids, additions, shard), NOON)
        assert seen == self.known & set(ids)
        if seen:
            return
        self.known |= set(ids)
        for day, rows in rows_of.items():
            vector = self.own.setdefault(day, np.zeros(2 + sum(WIDTHS), np.int64))
            for row, (reports, cells) in rows.items():
                vector[row] += reports
                for column, count in cells.items():
                    vector[2 + sum(WIDTHS[:row]) + column] += count
            self.parts[day].add(shard)
            self.open[day].add(shard)
            self.changed = True

    @rule(
        numbers=st.lists(st.integers(0, 15), min_size=1, max_size=3, unique=True),
        parts=st.dictionaries(days, st.tuples(st.integers(1, 5), cells), max_size=3),
    )
    def fold_few(self, numbers, parts):
        self.fold(
            numbers,
            {
                day: {1: (max([reports, *some.values()]), some)}
                for day, (reports, some) in parts.items()
            },
        )

    @rule(number=st.integers(0, 15), some=st.lists(days, min_size=1, unique=True))
    def fold_many(self, number, some):
        wide = 2, {column: column % 3 for column in range(900)}
        self.fold([number], {day: {0: (1, {2: 1}), 1: wide} for day in some})

    @rule(day=days)
    def seal(self, day):
        done = self.store.seal(TallyKey(self.metric, self.scheme, day))
        assert (done is not None) == bool(self.open[day])
        self.open[day].clear()

    @rule()
    def merge(self):
        self.store.merge()

    @rule(month=st.sampled_from(MONTHS))
    def add_up(self, month):
        self.store.sums.add_up((self.metric, self.scheme), "day", month)
        # What is up to date is not made again.
        assert self.store.sums.add_up((self.metric, self.scheme), "day", month) == 0

    @rule(day=days)
    def drop_into_sums(self, day):
        gone = [each for each in self.own if each <= day]
        moment = windows.end(day)
        done = self.store.sums.drop_windows((self.metric, self.scheme), moment, ("month",))
        assert [*done.values()] == [""] * len(gone)
        for each in gone:
            self.kept[each] = self.own.pop(each) + self.kept.get(each, 0)
            self.summed[each] |= self.parts[each]
            self.forget(each)

    @rule(day=days)
    def drop(self, day):
        moment = windows.end(day)
        gone = [each for each in self.own if each <= day]
        ended = [each for each in self.kept if windows.end(each[:7]) <= moment]
        assert self.store.drop(moment, ["another"]) == 0
        dropped = self.store.drop(moment, [self.metric])
        assert dropped == len(gone) + len({each[:7] for each in ended})
        for each in gone:
            del self.own[each]
            self.forget(each)
        for each in ended:
            del self.kept[each], self.summed[each]
            self.changed = True

    def forget(self, day):
        self.parts.pop(day, None)
        self.open.pop(day, None)
        self.changed = True

    @rule()
    def reopen(self):
        self.store.close()
        self.store = self.home.open(self.shards)
        self.store.publish(self.schemes)

    @rule()
    def export_and_import(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "tallies.gz"
            chosen = TallySelection(frozenset({self.metric}))
            contents = export(self.store, file, chosen)
            assert contents.tallies == len(self.own)
            assert contents.reports == sum(int(each[:2].sum()) for each in self.own.values())
            if not contents.schemes:
                return
            with closing(open_store(Settings(store=f"sqlite:///{folder}/other.db"))) as other:
                assert load(file, other, NOON).added.reports == contents.reports
                together = {key: {0} for key in self.kept}
                self.check(other, together)
                again = load(file, other, NOON)
                assert (again.added.rows, again.added.sums) == (0, 0)
                self.check(other, together)

    @invariant()
    def the_sum_is_that_of_the_dictionary(self):
        total = sum([*self.own.values(), *self.kept.values()], np.zeros(2 + sum(WIDTHS), np.int64))
        found = vector_of(self.store.tally(self.metric, self.scheme, DAYS))
        assert np.array_equal(found, total)
        version = self.version()
        assert (version != self.seen_version) == self.changed
        self.seen_version, self.changed = version, False

    @rule()
    def look(self):
        self.check(self.store, self.summed)
        found = self.store.sealed(self.metric, self.scheme, DAYS)
        assert found == {day for day in DAYS if self.parts.get(day) and not self.open[day]}
        for day, version in self.version().items():
            assert self.store.each_version(self.metric, self.scheme, [day]) == {day: version}

    def check(self, store, summed):
        """Whether a store has exactly these counts, however it is asked; `summed` is the shards
        whose kept sums have a part of each day."""
        of = self.metric, self.scheme
        assert store.windows(*of) == sorted(self.own)
        assert store.dropped(*of) == sorted(self.kept)
        assert store.all_windows(*of) == sorted({*self.own, *self.kept})
        nothing = np.zeros(2 + sum(WIDTHS), np.int64)
        right = {day: self.own.get(day, nothing) + self.kept.get(day, nothing) for day in DAYS}
        reports = {day: int(each[:2].sum()) for day, each in right.items()}
        assert window_reports(store, of, DAYS) == reports
        for asked in (DAYS[:3], DAYS[3:], DAYS[1:2], DAYS[4:2:-1]):
            total = sum(right[day] for day in asked)
            # The sum of a month has all days of its shard.
            of_sums = {
                wanted: {
                    (day[:7], shard)
                    for day in self.kept
                    if (day in asked) == wanted
                    for shard in summed[day]
                }
                for wanted in (True, False)
            }
            if of_sums[True] & of_sums[False]:
                with pytest.raises(NotKept):
                    store.tally(*of, asked)
                continue
            assert np.array_equal(vector_of(store.tally(*of, asked)), total)
        alone = [day for day in DAYS if day not in self.kept]
        each = store.each_tally(*of, alone)
        assert list(each) == alone
        assert all(np.array_equal(vector_of(each[day]), right[day]) for day in alone)

    def teardown(self):
        if hasattr(self, "store"):
            self.look()
            self.store.drop(NOON, [self.metric])
            self.store.close()


def run_courses(home, shelf, examples, steps, *phases):
    course = type("CourseOf", (Course,), {"home": home, "shelf": staticmethod(shelf)})
    run_state_machine_as_test(
        course,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            derandomize=True,
            database=None,
            phases=(Phase.generate, *phases),
        ),
    )


def test_any_course_equals_a_dictionary(home, shelf):
    """Whatever happens to a store, in whatever order and with whatever batches again, a dictionary
    of counters agrees; the same courses each time. It stays, as no other test says so much."""
    run_courses(home, shelf, 10, 25)


@pytest.mark.campaign
def test_many_courses_equal_a_dictionary(home, shelf):
    """The same for ten times as many and longer courses."""
    run_courses(home, shelf, 80, 40, Phase.shrink)


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
    store.publish([("m", scheme)])
    return scheme


@pytest.fixture
def make(scheme):
    """Makes commits to that scheme."""
    return lambda ids, cells, **more: commit(scheme, *ids, cells=cells, **more)


def test_a_commit_of_nothing(store, scheme, make, new_id, noon):
    """A commit without batches changes nothing; a report without columns is one like any other;
    what is read are whole numbers."""
    assert store.fold(Commit((), {}), noon) == frozenset()
    assert read(store, scheme) == [(0, {})]
    store.fold(make([new_id()], {}, reports=3), noon)
    assert read(store, scheme) == [(3, {})]
    (row,) = store.tally("m", scheme.fingerprint, [WINDOW]).rows
    assert row.cells.dtype == np.int64
    assert type(row.reports) is int
    store.ping()


def test_many_ids_in_one_commit(store, scheme, make, new_id, noon):
    """A commit of thousands of ids remembers every one of them; one seen id keeps all out."""
    ids = [new_id() for _ in range(2_500)]
    assert store.fold(make(ids, {0: 2_500}, reports=2_500), noon) == frozenset()
    assert store.fold(make([new_id(), *ids], {0: 1}), noon) == set(ids)
    assert store.fold(make([new_id(), ids[700]], {0: 1}), noon) == {ids[700]}
    assert read(store, scheme) == [(2_500, {0: 2_500})]


@pytest.mark.parametrize("apart", [-2, -1, 1, 2])
def test_generations_are_asked_and_kept_apart(store, make, new_id, noon, apart):
    """Hundreds of ids of each term in one commit fall into the same slots, in two generations that
    are asked from each other: each is seen, and none takes the place of another."""
    for term in range(len(TERMS)):
        batches = [[new_id() for _ in range(600)] for _ in range(3)]
        moments = (noon + apart * PERIODS[term], noon, noon)
        for some, moment in zip(batches, moments, strict=True):
            remember = {each: TERMS[number % 3] for number, each in enumerate(some)}
            fresh = dataclasses.replace(make(some, {0: 1}), remember=remember)
            assert not store.fold(fresh, moment)
        for some in batches:
            mine = some[term::3]
            for moment in (noon, noon + apart * PERIODS[term]):
                assert store.fold(make(mine, {0: 1}), moment) == set(mine)


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
    for later in (*moments, TERMS[term] - 1, TERMS[term], TERMS[term] + 3_600):
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
    assert not store.fold(make([batch], {0: 1}), came + (KEPT + 1) * PERIODS[term])


def test_a_clock_that_jumped_back(store, scheme, make, new_id, noon):
    """Two collectors whose clocks differ over midnight know each other's ids; one that is two
    generations ahead, in which many commits come, drops none that a retry may still bring."""
    batch, late = new_id(), noon + 2 * PERIODS[0]
    store.fold(make([batch], {0: 1}), noon)
    assert store.fold(make([batch], {0: 1}), noon - 0.9 * DAY) == {batch}
    for number in range(30):
        store.fold(make([new_id()], {0: 1}), late + 2 * PERIODS[0] + number)
    assert store.fold(make([batch], {0: 1}), late) == {batch}
    assert store.fold(make([batch], {0: 1}), noon) == {batch}
    assert store.fold(make([batch], {0: 1}), noon + 2 * ID_RETENTION) == frozenset()


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


PROCESS = """
import os, signal, sys
from deniable_collector.settings import Settings
from deniable_collector.stores import open_store
import numpy as np
from deniable_collector.stores.commits import Addition, Commit, TallyKey

url, prefix, scheme, window, now = sys.argv[1:]
store = open_store(Settings(store=url, redis_prefix=prefix))
key = TallyKey("m", scheme, window)

def fold(number, column):
    addition = Addition(np.array([0, 1 + column]), np.array([1, 1]), 1)
    return len(store.fold(Commit((f"{number:032x}",), {key: addition}), float(now)))
"""

RACER = PROCESS + "print(sum(not fold(number, number % 5) for number in range(200)))"

FORKER = (
    PROCESS
    + """
for child in range(5):
    assert fold(1000 + child, 0) == 0
    started, ready = os.pipe()
    if os.fork() == 0:
        signal.alarm(60)
        code = 1
        try:
            assert fold(child, 1) == 0
            os.write(ready, b"1")
            assert all(fold(2000 + 100 * child + each, 2) == 0 for each in range(50))
            store.close()
            code = 0
        finally:
            os._exit(code)
    os.close(ready)  # so that a child that dies is noticed
    os.read(started, 1)
    assert all(fold(3000 + 100 * child + each, 3) == 0 for each in range(50))
    assert os.wait()[1] == 0
    assert fold(child, 1) == 1
store.close()
"""
)


@pytest.fixture
def known(store):
    """A published scheme of one row of 5 columns that every process can read."""
    scheme = Registry.parse(METRICS)["browser"].scheme
    store.publish([("m", scheme)])
    return scheme


def processes(home, scheme, code, number, noon):
    """What so many processes print that run this code on the store at once."""
    command = [sys.executable, "-c", code, home.url, home.prefix, scheme.fingerprint, WINDOW]
    started = [
        subprocess.Popen([*command, str(noon)], stdout=subprocess.PIPE, text=True)
        for _ in range(number)
    ]
    said = [each.communicate(timeout=120)[0] for each in started]
    assert [each.returncode for each in started] == [0] * number
    return said


@pytest.mark.campaign
def test_processes_that_race_with_the_same_batches(home, store, known, noon):
    """Of four processes that fold the same 200 batches, all together add each exactly once."""
    assert sum(map(int, processes(home, known, RACER, 4, noon))) == 200
    assert read(store, known) == [(200, dict.fromkeys(range(5), 40))]


@pytest.mark.stores("sqlite", "redis", "cluster")
@pytest.mark.campaign
def test_a_fork_does_not_share_a_connection(home, store, known, noon):
    """Parent and child fold at the same time after a fork, each over a connection of its own.

    A fork while another thread is inside the driver is nobody's to survive: the locks that
    it holds are SQLite's and redis-py's.
    """
    processes(home, known, FORKER, 1, noon)
    assert read(store, known) == [(510, {0: 5, 1: 5, 2: 250, 3: 250})]


def test_rows_of_different_widths(store, shelf, new_id, noon):
    """Each row has its own width, reports and cells, however wide it is and where it is set."""
    scheme = shelf(3, 700, 70_000, *[3] * 1_200)
    store.publish([("m", scheme)])
    tally = TallyKey("m", scheme.fingerprint, WINDOW)
    sparse = {0: 1, 255: 2, 256: 3, 600: 4, 35_000: 5, 69_999: 6}
    dense = {column: column % 7 + 1 for column in range(700)}
    parts = {tally: added(scheme, {2: (9, sparse), 1: (8, dense), 1_202: (4, {2: 1})})}
    store.fold(Commit((new_id(),), parts), noon)
    found = read(store, scheme)
    assert found[:3] == [(0, {}), (8, dense), (9, sparse)]
    assert found[1_202] == (4, {2: 1})
    assert window_reports(store, ("m", scheme.fingerprint), [WINDOW]) == {WINDOW: 21}
    beyond = Addition(np.array([75_506]), np.array([1]), 0)
    with pytest.raises(StoreError, match="fewer counters in its scheme"):
        store.fold(Commit((new_id(),), {tally: beyond}), noon)


def test_windows_schemes_and_metrics_are_apart(store, shelf, scheme, make, new_id, noon):
    """Tallies of other windows, schemes and metrics never mix; asked-for windows are added once
    each, and named in the order asked. Windows of each kind end by their own calendar."""
    other = shelf(9)
    store.publish([("m", other), ("n", scheme)])
    ended = ["2026-11-17", "2026-11-18", "2026-W46"]
    for number, window in enumerate((*ended, "2026-11-19", "2026-11")):
        store.fold(make([new_id()], {0: 2**number}, window=window), noon)
    store.fold(commit(other, new_id(), cells={8: 8}), noon)
    assert store.windows("m", other.fingerprint) == [WINDOW]
    assert store.windows("n", scheme.fingerprint) == []
    assert read(store, other) == [(1, {8: 8})]
    asked = ["2026-11-19", "2026-W46", "2026-11-19", "2026-11-01"]
    tally = store.tally("m", scheme.fingerprint, asked)
    assert tally.windows == ("2026-11-19", "2026-W46", "2026-11-01")
    assert (tally.metric, tally.scheme, tally.reports) == ("m", scheme.fingerprint, 2)
    assert read(store, scheme, asked) == [(2, {0: 12})]
    # 2026-11-19 00:00 UTC: the 18th has just ended, the week on the 15th, the month has not.
    assert store.drop(1_795_046_400.0 - 1) == 2
    assert store.drop(1_795_046_400.0) == 1
    assert set(store.windows("m", scheme.fingerprint)) == {"2026-11-19", "2026-11"}


def test_published_schemes_are_read_back(store, shelf):
    """Schemes come back with their fingerprint, once each, whoever publishes them again; one that
    was never published cannot be read, and the error says what to do."""
    published = [("a", shelf(3)), ("a", shelf(4)), ("b", shelf(3))]
    for _ in range(2):
        store.publish(published)
    schemes = store.schemes()
    assert schemes.keys() == {(metric, scheme.fingerprint) for metric, scheme in published}
    for metric, scheme in published:
        assert schemes[metric, scheme.fingerprint].canonical() == scheme.canonical()
        assert store.scheme(metric, scheme.fingerprint).fingerprint == scheme.fingerprint
    for ask in (
        store.scheme,
        lambda *of: store.tally(*of, []),
        lambda *of: store.segment_reports(*of, []),
    ):
        with pytest.raises(StoreError, match="start the collector"):
            ask("a", "0" * 12)
    with pytest.raises(StoreError, match="start the collector"):
        store.seal(TallyKey("a", "0" * 12, WINDOW))


def test_merging_changes_no_sum(home, store, scheme, make, new_id, noon):
    """While some threads commit, others have increments merged: each commit counts once, and what
    is merged afterwards keeps its version and its place among windows that are open."""
    work = [make((new_id(),), {number % 8: 1}) for number in range(200)]
    other = home.open()
    with ThreadPoolExecutor(6) as pool:
        merging = [pool.submit(other.merge) for _ in range(40)]
        assert not any(pool.map(lambda each: store.fold(each, noon), work))
        assert not any(each.result() for each in merging)
    version = store.each_version("m", scheme.fingerprint, [WINDOW])
    for _ in range(2):
        assert read(store, scheme) == [(200, dict.fromkeys(range(8), 25))]
        store.merge()
    assert store.each_version("m", scheme.fingerprint, [WINDOW]) == version
    assert store.sealed("m", scheme.fingerprint, [WINDOW]) == frozenset()


def test_a_cleared_journal_leaves_no_increments(home, store, scheme, make, new_id, noon):
    """What a commit adds stays beside a tally until some process clears the journal."""
    for window in ("2026-11-20", "2026-11-19"):
        assert not store.fold(make((new_id(),), {1: 1}, window=window), noon)

    def added():
        found, of = [], ("m", scheme.fingerprint)
        store.read(0, of, store.names(0, of), lambda _, held: found.append(len(held.added)))
        return found

    other = home.open()
    assert added() == [16, 16]
    until(lambda: other.clear_journal(0.0) is None, "it is never cleared")
    assert added() == [0, 0]
    assert read(store, scheme, ("2026-11-20", "2026-11-19")) == [(2, {1: 2})]


def test_increments_do_not_pile_up(store, shelf, new_id, noon):
    """A tally takes no more room than its counters and as many increments, without a merge from
    outside."""
    scheme = shelf(20_000)
    store.publish([("m", scheme)])
    for number in range(60):
        cells = dict.fromkeys(range(number % 10, 20_000, 10), 1)
        assert not store.fold(commit(scheme, new_id(), cells=cells), noon)
        totals = {WINDOW: np.zeros(20_001, np.int64)}
        assert (
            store.add(0, ("m", scheme.fingerprint), totals)[WINDOW].size < 20_100 + 2**15 + 17_000
        )
    assert totals[WINDOW].tolist() == [60, *[6] * 20_000]


@pytest.mark.parametrize("step", [2**32 - 1, 2**31, 2**40, 2**52])
def test_cells_beyond_32_bits(store, shelf, new_id, noon, step):
    """A counter never wraps: beyond 2**32 it goes on, and its neighbours keep their counts, in a
    narrow tally and in a wide one."""
    times = 2 if step < 2**52 else 1
    for width in (8, 3_000):
        scheme = shelf(width)
        store.publish([("m", scheme)])
        store.fold(commit(scheme, new_id(), cells={0: 1, 3: 1, 7: 5}), noon)
        for _ in range(times):
            store.fold(commit(scheme, new_id(), cells={3: step, 4: 1}, reports=step), noon)
        store.fold(commit(scheme, new_id(), cells={2: 7}), noon)
        assert read(store, scheme) == [
            (times * step + 2, {0: 1, 2: 7, 3: times * step + 1, 4: times, 7: 5})
        ]


@pytest.mark.parametrize(
    ("cells", "reports"),
    [
        ({0: 1, 3: MAX_CELL - 1}, 1),
        ({0: 1, 3: 1, 5: MAX_CELL + 1}, 1),
        ({0: 1}, MAX_CELL),
    ],
)
@pytest.mark.parametrize("sealed", [False, True])
def test_refusal_at_the_top_adds_nothing(store, shelf, new_id, noon, cells, reports, sealed):
    """When one cell cannot take its count, no cell of any row is touched, no id is kept and no
    window is opened; up to its top a cell takes every count."""
    scheme = shelf(8, 8)
    store.publish([("m", scheme)])
    tally, batch = TallyKey("m", scheme.fingerprint, WINDOW), new_id()
    good = 1, {1: 1, 3: 2}
    store.fold(Commit((new_id(),), {tally: added(scheme, {0: good, 1: good})}), noon)
    if sealed:
        store.seal(tally)
    version = store.each_version("m", scheme.fingerprint, [WINDOW])
    parts = {tally: added(scheme, {0: good, 1: (reports, cells)})}
    with pytest.raises(StoreError, match=f"metric m, window {WINDOW} .*nothing was added"):
        store.fold(Commit((batch,), parts), noon)
    assert read(store, scheme) == [(1, {1: 1, 3: 2})] * 2
    assert store.each_version("m", scheme.fingerprint, [WINDOW]) == version
    assert store.sealed("m", scheme.fingerprint, [WINDOW]) == ({WINDOW} if sealed else set())
    top = added(scheme, {0: (1, {3: MAX_CELL - 2})})
    assert store.fold(Commit((batch,), {tally: top}), noon) == frozenset()
    assert read(store, scheme)[0] == (2, {1: 1, 3: MAX_CELL})


def test_a_version_changes_with_its_tallies(home, store, shelf, make, scheme, new_id, noon):
    """A fold into a window, sparse or dense, changes the versions of what is asked over it and of
    nothing else, as every process sees; a batch that was seen changes none, nor does publishing."""
    wide = shelf(20_000)
    store.publish([("m", wide), ("n", scheme)])
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
            name: store.each_version("m", one.fingerprint, some)
            for name, (one, some) in asked.items()
        }
        assert told == {
            name: other.each_version("m", one.fingerprint, reversed(some))
            for name, (one, some) in asked.items()
        }
        return told

    def changed(act):
        before = versions()
        act()
        after = versions()
        return {name for name in asked if before[name] != after[name]}

    batch = new_id()
    dense = dict.fromkeys(range(20_000), 1)
    assert changed(lambda: store.fold(make([batch], {0: 1}), noon)) == {"day", "both"}
    assert changed(lambda: other.fold(make([new_id()], {0: 1}), noon)) == {"day", "both"}
    assert changed(lambda: store.fold(make([batch], {0: 1}), noon)) == set()
    early = make([new_id()], {0: 1}, window="2026-11-19")
    assert changed(lambda: store.fold(early, noon)) == {"both", "before"}
    for cells in (dense, {3: 1}, dense):
        one = commit(wide, new_id(), cells=cells)
        assert changed(lambda one=one: store.fold(one, noon)) == {"wide"}
    assert changed(lambda: store.publish([("m", scheme)])) == set()
    (mine,) = store.each_version("n", scheme.fingerprint, ["2026-11-20"]).values()
    assert mine not in itertools.chain.from_iterable(each.values() for each in versions().values())


def test_a_version_never_comes_back(home, store, scheme, make, new_id, noon):
    """A tally that was dropped and begun again with as many commits has another version, also
    where it holds the same."""
    some = ["2026-11-17", "2026-11-20"]

    def version():
        return tuple(store.each_version("m", scheme.fingerprint, some).values())

    known = {version()}
    for times in range(1, 4):
        for _ in range(2):
            store.fold(make([new_id()], {0: 1}, window="2026-11-17"), noon)
            known.add(version())
        assert store.drop(1_795_046_400.0) == 1
        known.add(version())
        # Of nothing there is one version.
        assert len(known) == 1 + 2 * times


def test_versions_of_many_metrics_at_once(store, scheme, make, new_id, noon):
    """A fold into a window changes the version of its metric, if the window was asked for, and of
    no other metric; metrics and windows without reports have none."""
    store.publish([("m", scheme), ("n", scheme)])
    asked = {"m": ["2026-11-19", "2026-11-20"], "n": ["2026-11-20"], "nobody": ["2026-11-20"]}
    assert store.versions(asked) == store.versions({}) == {}
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


def test_each_tally_of_a_commit_has_a_stamp_of_its_own(home, store, shelf, new_id, noon):
    """Two tallies that one commit added to are not marked as such: their versions, but for what
    they are asked of, have nothing in common, and neither is that of another store's."""
    schemes = [shelf(8), shelf(20_000)]
    store.publish(("m", each) for each in schemes)
    found = set()
    for columns in (range(8), (1,)):
        additions = {
            TallyKey("m", each.fingerprint, window): added(
                each, {0: (1, dict.fromkeys(columns, 1))}
            )
            for each in schemes
            for window in ("2026-11-19", "2026-11-20")
        }
        store.fold(Commit((new_id(),), additions), noon)
        found |= stamps_of(home, store, [*additions])
    assert len(found) == 8


def stamps_of(home, store, tallies):
    """The stamps of tallies, as they lie in the store."""
    if home.kind == "sqlite":
        with store._file.transaction("DEFERRED") as connection:
            return {stamp for (stamp,) in connection.execute("SELECT stamp FROM tallies")}
    keys = [store._tally_key(0, each) for each in tallies]
    return {store._client.getrange(key, 0, 7) for key in keys}


def test_a_store_has_a_name_of_its_own(home, store, scheme, make, new_id, noon):
    """A store has one name from its first publish on, in every process."""
    assert len(store.identity()) == 16
    store.fold(make([new_id()], {0: 1}), noon)
    assert home.open().identity() == store.identity()


def test_shards_are_even_and_stable():
    """Random ids fill the shards evenly: chi-square, 15 degrees, 16,000 ids made by counting,
    far below the 99.9% point 37.7 of the distribution."""
    ids = [
        f"{number * 0x9E3779B97F4A7C15F39CC0605CEDC835 % 2**128:032x}" for number in range(16_000)
    ]
    counts = Counter(shard_of(each, 16) for each in ids)
    assert sum((counts[shard] - 1_000) ** 2 / 1_000 for shard in range(16)) < 37.7
    assert {shard_of(each, 1) for each in ids} == {0}

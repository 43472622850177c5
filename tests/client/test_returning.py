"""Who comes back: what a device remembers of its windows, and what it reports of them."""

import itertools
import json
import random
import sqlite3
from contextlib import contextmanager
from pathlib import Path

import pytest

from deniable import MetricError, Registry
from deniable.device import ledger
from deniable.device.device import Device
from deniable.device.recording import ACTIVE, Recorder
from deniable.device.sent import OWNER_TEXTS, describe_entries
from deniable.device.state import State
from deniable.protocol import windows
from deniable.protocol.mechanisms.memoized_retention import MemoizedRetention
from deniable.testing import MemoryClient

from .conftest import metrics_toml

RETENTION = {"type": "retention", "epsilon": 2.0, "lifetime_epsilon": 4.0}
REGISTRY = metrics_toml(back={**RETENTION, "ages": 2}, dark_mode={})
VECTORS = Path(__file__).parents[2] / "client" / "vectors"
COMPILED = json.loads((VECTORS / "memoized_retention.json").read_text())["compiled"]


@pytest.fixture
def registry():
    """A retention of weeks, and a boolean."""
    return Registry.parse(REGISTRY)


@pytest.fixture
def told(monkeypatch):
    """What is randomized, as its two texts, in the order of the reports."""
    found = []
    recall = ledger.recall

    def listen(connection, metric, mechanism, item, bits):
        assert isinstance(mechanism, MemoizedRetention)
        lifecycle, cohort = divmod(item, mechanism.ages + 2)
        cohorts = (*map(str, range(mechanism.ages + 1)), "older")
        found.append((("new", "stayed", "returned")[lifecycle], cohorts[cohort]))
        return recall(connection, metric, mechanism, item, bits)

    monkeypatch.setattr("deniable.device.open_windows.recall", listen)
    return found


class Life:
    """One device in memory, whose clock the test sets to the middle of a week."""

    def __init__(self, registry, bits, state=None):
        self.now, self.state = 0.0, state or State(None)
        self.recorder = Recorder(registry)
        self.device = Device(
            registry, self.state, None, clock=lambda: self.now, bits=bits, spread=0.0
        )

    def use(self, week):
        """Say in a week that the app was used."""
        self.now = (7 * week + 1) * 86_400.0  # week 0 began on Monday, 1969-12-29
        record = self.recorder.admit("back", ACTIVE, self.now)
        assert record is not None
        assert windows.number(record.window) == week
        self.device.write([record])

    def rows(self, query):
        with self.state.transaction() as connection:
            return connection.execute(query).fetchall()

    def reported(self):
        """The weeks that have a report, in the order of the reports."""
        found = self.rows("SELECT window FROM reports WHERE metric = 'back' ORDER BY rowid")
        return [windows.number(window) for (window,) in found]


@pytest.fixture
def live(bits):
    """Makes lives, whose states are closed in the end."""
    made = []

    def make(registry, state=None, draw=bits):
        made.append(Life(registry, draw, state))
        return made[-1]

    yield make
    for each in made:
        each.state.close()


def expected(weeks, ages):
    """What a device reports that is active in these weeks."""
    found = []
    for week in weeks:
        state = "new" if week == weeks[0] else "stayed" if week - 1 in weeks else "returned"
        age = week - weeks[0]
        found.append((state, "older" if age > ages else str(weeks[0] % (ages + 1))))
    return found


def test_every_pattern_of_use(registry, live, told):
    """Over all sets of six weeks, through the real device: each week of use has one report, however
    often the app was used in it, of the state and the cohort that follow from the set."""
    for used in itertools.product((False, True), repeat=6):
        weeks = [2_975 + week for week, each in enumerate(used) if each]
        life = live(registry)
        told.clear()
        for week in weeks:
            life.use(week)
            life.use(week)
        assert life.reported() == weeks
        assert told == expected(weeks, 2)


def test_a_question_is_drawn_once_and_evenly(registry, live):
    """A device answers one question for life; of 1,000 devices about half answer each. A two-sided
    test of a fair coin at 3.9 standard errors, alpha 1e-4; seed 4."""
    for _ in range(12):
        life = live(registry)
        for week in (2_975, 2_976, 2_980):
            life.use(week)
        assert life.rows("SELECT count(DISTINCT row) FROM reports") == [(1,)]
    scheme = registry["back"].scheme
    draws = random.Random(4)
    rows = [
        ledger.draw(draws.randbytes(32), scheme.fingerprint, scheme.mechanism, 0)[0]
        for _ in range(1_000)
    ]
    assert set(rows) == {0, 1}
    assert abs(sum(rows) - 500) < 62


def _scripted(number, *, groups):
    """Bits whose draws of 53 are scripted: the group, or coins of a tenth to nine tenths."""
    coins = itertools.cycle(range(number % 9 + 1, 10, 4))
    others = random.Random(number)

    def draw(count):
        if count != 53:
            return others.getrandbits(count)
        return number if groups else next(coins) * (1 << 53) // 10

    return draw


@pytest.mark.parametrize(
    "keys", [{"one_in": 2}, {"one_in": 3}, {"sample_rate": 0.3}, {"sample_rate": 0.7}]
)
def test_taking_turns_changes_no_value(keys, live, told):
    """A device that does not take part in a week remembers it all the same: what it reports in the
    others is what a device reports that takes part in all. With `one_in`, over all draws of the
    group, each week has one device that reports."""
    registry = Registry.parse(metrics_toml(back={**RETENTION, "ages": 2, **keys}))
    weeks = [2_975, 2_976, 2_978, 2_979, 2_980]
    whole = dict(zip(weeks, expected(weeks, 2), strict=True))
    reports = []
    groups = keys.get("one_in", 10)
    for group in range(groups):
        life = live(registry, draw=_scripted(group, groups="one_in" in keys))
        told.clear()
        for week in weeks:
            life.use(week)
        assert told == [whole[week] for week in life.reported()]
        reports += life.reported()
    if "one_in" in keys:
        assert sorted(reports) == weeks
    else:
        assert 0 < len(reports) < 10 * len(weeks)


def test_opting_out_and_in_again_makes_no_new_device(make_client, clock, collector, told):
    """Neither the first week nor the memo is another one afterwards. Weeks without consent are not
    remembered."""
    client = make_client()
    client.active("back")
    assert client.flush()
    client.opt_out()
    clock.days(7)
    client.active("back")
    client.flush()
    clock.days(7)
    client.opt_in()
    client.active("back")
    assert client.flush()
    first = told[0][1]
    assert told == [("new", first), ("returned", first)]
    assert len(collector.reports) == 2
    assert len({report.get("row", 0) for report in collector.reports}) == 1


def test_erasing_forgets_and_ends(make_client, clock, told):
    """After a report, an erasure deletes the first week, and nothing is ever reported or
    remembered again. Before any, the device begins as a new one."""
    client = make_client(state_dir=":memory:")
    client.erase()
    client.active("back")
    assert client.flush()
    assert told[0][0] == "new"
    client.erase()
    for _ in range(3):
        clock.days(7)
        client.active("back")
        assert client.flush()
    assert len(told) == 1
    assert client.sent() == []
    with client._state.transaction() as connection:
        assert connection.execute("SELECT * FROM firsts").fetchall() == []
        assert connection.execute("SELECT * FROM memo_keys WHERE metric = 'back'").fetchall() == []


def test_a_clock_that_goes_back(registry, live, told):
    """The first week never changes, a week before it has no report, and no week has two. A week
    that was skipped is answered by what is known then."""
    life = live(registry)
    for week in (2_980, 2_978, 2_982, 2_981, 2_980, 2_982, 2_979, 2_983):
        life.use(week)
    assert life.reported() == [2_980, 2_982, 2_981, 2_983]
    assert [state for state, _ in told] == ["new", "returned", "stayed", "stayed"]
    assert {cohort for _, cohort in told} == {str(2_980 % 3), "older"}
    assert life.rows("SELECT window FROM firsts") == [("2027-W06",)]


def test_another_kind_of_windows(live, registry, told):
    """After an edit from days to weeks the device is not new again: its first week is that of its
    first day, and the week before is one in which it was active on a day."""
    days = Registry.parse(
        metrics_toml(
            back={
                **RETENTION,
                "ages": 2,
                "window": "day",
                "lifetime_epsilon": 8.0,
                "memo_epsilon": 4.0,
            }
        )
    )
    weeks = Registry.parse(
        metrics_toml(back={**RETENTION, "ages": 2, "lifetime_epsilon": 8.0, "memo_epsilon": 4.0})
    )
    assert days["back"].scheme.fingerprint != weeks["back"].scheme.fingerprint
    before = live(days)
    before.now = (7 * 2_975 + 3) * 86_400.0
    record = before.recorder.admit("back", ACTIVE, before.now)
    assert record is not None
    before.device.write([record])
    after = live(weeks, before.state)
    after.use(2_976)
    after.use(2_978)
    cohort = str(2_975 % 3)
    assert told[1:] == [("stayed", cohort), ("returned", "older")]


def test_a_value_that_waits_from_another_type(registry, live, told):
    """A boolean that became a retention inside a window: its value is dropped without a report, and
    the next window is reported."""
    earlier = Registry.parse(metrics_toml(back={"window": "week"}))
    old = live(earlier)
    old.now = 2_975 * 7 * 86_400.0 + 1
    record = old.recorder.admit("back", True, old.now)
    assert record is not None
    old.device.write([record])
    life = live(registry, old.state)
    life.use(2_975)
    life.use(2_976)
    assert life.reported() == [2_976]
    assert [cohort for _, cohort in told] == [str(2_976 % 3)]


def test_the_wrong_call_is_a_mistake_that_says_so(make_client, registry):
    """A retention takes no value, and other metrics are not active; nothing is kept."""
    with MemoryClient(registry) as client:
        with pytest.raises(MetricError, match=r"is a retention, which takes no values: call act"):
            client.record("back", True)
        with pytest.raises(MetricError, match=r"is a boolean, which takes values: call record"):
            client.active("dark_mode")
        with pytest.raises(MetricError, match="is not declared"):
            client.active("typo")
        client.assert_nothing_recorded()
        with pytest.raises(AssertionError, match="was not called"):
            client.assert_active("back")
        client.active("back")
        client.assert_active("back")
    quiet = make_client(on_trouble=None)
    quiet.record("back", True)
    quiet.active("dark_mode")
    assert quiet.counters == {"mistake": 2}
    assert quiet.flush()
    assert quiet.sent() == []


def test_no_call_after_the_last_day(make_client, clock, registry):
    """An expired retention is counted and not reported."""
    clock.now = windows.end("2040-06-30")
    client = make_client()
    client.active("back")
    assert client.flush()
    assert (client.counters, client.sent()) == ({"expired": 1}, [])


def test_reports_in_words(make_client, clock, tmp_path):
    """The owner reads which window a cohort stands for, or what the device said of itself, with
    the exact chances of the row that it has drawn; in both languages."""
    found = set()
    for number in range(8):
        client = make_client(state_dir=tmp_path / str(number))
        client.active("back")
        assert client.flush()
        (report,) = client.sent()
        entries = client._owned().entries
        (chinese,) = describe_entries(entries, client.registry, OWNER_TEXTS["zh-Hans"])
        cohorts = "first used in" in report.words
        found.add(cohorts)
        if cohorts:
            *labels, before = [each.value for each in report.likelihoods]
            known = ["2026-W52", "2026-W53", "2027-W01"]
            assert labels == [
                f"first used in {each}"
                for each in sorted(known, key=lambda each: windows.number(each) % 3)
            ]
            assert before == "first used before 2026-W52"
            assert "首次使用" in chinese.words
        else:
            assert [each.value for each in report.likelihoods] == [
                "used for the first time",
                "used in the last window too",
                "used again after a gap",
            ]
        assert sum(each.probability for each in report.likelihoods) <= len(report.likelihoods)
        assert "54.6 times as likely" in report.words
        assert str(report.likelihoods[0].value) in str(report.to_dict())
    assert found == {True, False}


def test_what_a_registry_may_say():
    """Defaults: weeks, 12 ages, both questions, memos, and reports at once. [defaults] that other
    metrics follow do not touch it, but for its windows."""
    metric = Registry.parse(metrics_toml(back=RETENTION))["back"]
    assert (metric.window, metric.answer, metric.longitudinal) == ("week", "at_once", "memoize")
    mechanism = metric.scheme.mechanism
    assert isinstance(mechanism, MemoizedRetention)
    assert (mechanism.asks, mechanism.ages) == (("lifecycle", "cohorts"), 12)
    assert metric.scheme.values == mechanism.texts
    top = '[defaults]\nanswer = "at_close"\naggregate = "last"\nwindow = "month"\n'
    other = Registry.parse(
        metrics_toml(top, back={**RETENTION, "asks": "lifecycle", "longitudinal": "memoize"})
    )["back"]
    assert (other.window, other.answer, other.aggregate) == ("month", "at_once", "first")
    assert other.scheme.values == ("new", "stayed", "returned")


class _Failing(State):
    """A state whose disk ends at one statement of the next transactions."""

    left: int | None = None

    @contextmanager
    def transaction(self):
        with super().transaction() as connection:
            yield _Counting(self, connection)


class _Counting:
    def __init__(self, state, connection):
        self._state, self._connection = state, connection

    def execute(self, *arguments):
        self._count()
        return self._connection.execute(*arguments)

    def executemany(self, *arguments):
        self._count()
        return self._connection.executemany(*arguments)

    def _count(self):
        if self._state.left is not None:
            self._state.left -= 1
            if self._state.left < 0:
                raise sqlite3.OperationalError("disk I/O error")


def test_a_device_that_is_stopped_at_any_statement(registry, live, told):
    """Whichever statement of a week's write is the last one, nothing of it stays, and the next
    write makes the one report that was due: none is lost, doubled, or of another cohort."""
    for stopped in itertools.count():
        state = _Failing(None)
        life = live(registry, state)
        life.use(2_975)
        told.clear()
        state.left = stopped
        try:
            life.use(2_976)
        except sqlite3.OperationalError:
            ended = False
        else:
            ended = True
        state.left = None
        if not ended:
            assert life.reported() == [2_975]
            life.use(2_976)
        assert life.reported() == [2_975, 2_976]
        assert told[-1] == expected([2_975, 2_976], 2)[1]
        assert life.rows("SELECT sum(answers) FROM ledger") == [(2,)]
        if ended:
            break
    assert stopped > 10

"""Who comes back: what a device remembers of its windows, and what it reports of them."""

import itertools
import math
import random
import sqlite3
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from deniable import MetricError, Registry
from deniable.device import ledger
from deniable.device.device import ACTIVE
from deniable.device.sent import OWNER_TEXTS, describe_entries
from deniable.device.state import State
from deniable.protocol import windows
from deniable.protocol.mechanisms.memoized_retention import MemoizedRetention
from deniable.testing import MemoryClient

from .conftest import metrics_toml

RETENTION = {"type": "retention", "epsilon": 2.0, "lifetime_epsilon": 4.0}
REGISTRY = metrics_toml(back={**RETENTION, "ages": 2}, dark_mode={})


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


def use(life, week):
    """Say in a week that the app was used."""
    life.use((7 * week + 1) * 86_400.0, ACTIVE, "back")  # week 0 began on Monday, 1969-12-29


def reported(life):
    """The weeks that have a report, in the order of the reports."""
    return [windows.number(window) for window in life.reported("back")]


def expected(weeks, ages):
    """What a device reports that is active in these weeks."""
    found = []
    for week in weeks:
        state = "new" if week == weeks[0] else "stayed" if week - 1 in weeks else "returned"
        age = week - weeks[0]
        found.append((state, "older" if age > ages else str(weeks[0] % (ages + 1))))
    return found


def test_every_pattern_of_use(registry, live, bits, told):
    """Over all sets of six weeks, through the real device: each week of use has one report, however
    often the app was used in it, of the state and the cohort that follow from the set."""
    for used in itertools.product((False, True), repeat=6):
        weeks = [2_975 + week for week, each in enumerate(used) if each]
        life = live(registry, bits)
        told.clear()
        for week in weeks:
            use(life, week)
            use(life, week)
        assert reported(life) == weeks
        assert told == expected(weeks, 2)


def test_a_question_is_drawn_once_and_evenly(registry, live, bits):
    """A device answers one question for life; of 1,000 devices about half answer each. A two-sided
    test of a fair coin at 3.9 standard errors, alpha 1e-4; seed 4."""
    for _ in range(12):
        life = live(registry, bits)
        for week in (2_975, 2_976, 2_980):
            use(life, week)
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
        life = live(registry, _scripted(group, groups="one_in" in keys))
        told.clear()
        for week in weeks:
            use(life, week)
        assert told == [whole[week] for week in reported(life)]
        reports += reported(life)
    if "one_in" in keys:
        assert sorted(reports) == weeks
    else:
        assert 0 < len(reports) < 10 * len(weeks)


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


def test_a_clock_that_goes_back(registry, live, bits, told):
    """The first week never changes, a week before it has no report, and no week has two. A week
    that was skipped is answered by what is known then."""
    life = live(registry, bits)
    for week in (2_980, 2_978, 2_982, 2_981, 2_980, 2_982, 2_979, 2_983):
        use(life, week)
    assert reported(life) == [2_980, 2_982, 2_981, 2_983]
    assert [state for state, _ in told] == ["new", "returned", "stayed", "stayed"]
    assert {cohort for _, cohort in told} == {str(2_980 % 3), "older"}
    assert life.rows("SELECT window FROM firsts") == [("2027-W06",)]


def test_another_kind_of_windows(live, bits, told):
    """After an edit from days to weeks the device is not new again: its first week is that of its
    first day, and the week before is one in which it was active on a day."""
    keys = {**RETENTION, "ages": 2, "lifetime_epsilon": 8.0, "memo_epsilon": 4.0}
    days = Registry.parse(metrics_toml(back={**keys, "window": "day"}))
    weeks = Registry.parse(metrics_toml(back=keys))
    assert days["back"].scheme.fingerprint != weeks["back"].scheme.fingerprint
    before = live(days, bits)
    use(before, 2_975)
    after = live(weeks, bits, before.state)
    use(after, 2_976)
    use(after, 2_978)
    cohort = str(2_975 % 3)
    assert told[1:] == [("stayed", cohort), ("returned", "older")]


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
            *labels, before = report.likelihoods
            known = ["2026-W52", "2026-W53", "2027-W01"]
            assert labels == [
                f"first used in {each}"
                for each in sorted(known, key=lambda each: windows.number(each) % 3)
            ]
            assert before == "first used before 2026-W52"
            assert "首次使用" in chinese.words
        else:
            assert [*report.likelihoods] == [
                "used for the first time",
                "used in the last window too",
                "used again after a gap",
            ]
        assert sum(report.likelihoods.values()) <= len(report.likelihoods)
        assert "54.6 times as likely" in report.words
        assert next(iter(report.likelihoods)) in str(report.to_dict())
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

    left = math.inf

    @contextmanager
    def transaction(self):
        with super().transaction() as connection:
            names = ("execute", "executemany")
            yield SimpleNamespace(**{each: self._counted(connection, each) for each in names})

    def _counted(self, connection, name):
        def run(*arguments):
            self.left -= 1
            if self.left < 0:
                raise sqlite3.OperationalError("disk I/O error")
            return getattr(connection, name)(*arguments)

        return run


def test_a_device_that_is_stopped_at_any_statement(registry, live, bits, told):
    """Whichever statement of a week's write is the last one, nothing of it stays, and the next
    write makes the one report that was due: none is lost, doubled, or of another cohort."""
    for stopped in itertools.count():
        state = _Failing(None)
        life = live(registry, bits, state)
        use(life, 2_975)
        told.clear()
        state.left = stopped
        try:
            use(life, 2_976)
        except sqlite3.OperationalError:
            ended = False
        else:
            ended = True
        state.left = math.inf
        if not ended:
            assert reported(life) == [2_975]
            use(life, 2_976)
        assert reported(life) == [2_975, 2_976]
        assert told[-1] == expected([2_975, 2_976], 2)[1]
        assert life.rows("SELECT sum(answers) FROM ledger") == [(2,)]
        if ended:
            break
    assert stopped > 10

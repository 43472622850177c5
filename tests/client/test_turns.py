"""Metrics with `one_in`: devices draw a group once, and the groups take turns."""

import random
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from itertools import pairwise

import pytest

from deniable import Registry
from deniable.device.device import Device
from deniable.device.ledger import Ledger
from deniable.device.recording import Recorder
from deniable.device.state import State
from deniable.protocol import windows

from .conftest import metrics_toml

DAY = 86_400.0
START = datetime(2027, 1, 1, tzinfo=UTC).timestamp()
YEAR = {"expires": "2027-12-31", "lifetime_epsilon": 4.0}


class Life:
    """One device in memory, whose clock the test sets."""

    def __init__(self, registry, group=None, seed=0):
        self.registry, self.now, self.group = registry, START, group
        self.random = random.Random(seed)
        self.state = State(None)
        self.recorder = Recorder(registry)
        self.device = Device(
            registry, self.state, None, clock=lambda: self.now, bits=self.bits, spread=0.0
        )

    def bits(self, count):
        if self.group is not None and count == 53:
            drawn, self.group = self.group, None  # the first number that the device draws
            return drawn
        return self.random.getrandbits(count)

    def use(self, now, value=True):
        """Record a value of each metric at that time."""
        self.now = now
        records = [self.recorder.admit(metric.name, value, now) for metric in self.registry]
        self.device.write([each for each in records if each is not None])

    def wait(self, now):
        """Let time pass without a use."""
        self.now = now
        self.device.write([])

    def reported(self, metric="m"):
        """The windows that have a report."""
        with self.state.transaction() as connection:
            rows = connection.execute("SELECT metric, window FROM reports").fetchall()
        return sorted(window for name, window in rows if name == metric)

    def spent(self):
        with self.state.transaction() as connection:
            return Ledger(connection).spent("m")


@pytest.fixture
def lives():
    """Lives whose states are closed in the end."""
    found = []
    yield found
    for each in found:
        each.state.close()


def one_in(count, **keys):
    return Registry.parse(metrics_toml(m={**YEAR, "one_in": count, **keys}))


def groups_of(registry, lives, times):
    """How many devices report in each window, if there is one device of each group."""
    count = registry["m"].one_in
    assert count is not None
    found = Counter()
    for group in range(count):
        life = Life(registry, group)
        lives.append(life)
        for now in times:
            life.use(now)
        life.wait(times[-1] + 40 * DAY)
        found.update(life.reported())
        assert life.spent() <= Fraction(registry["m"].lifetime_epsilon)
    return found


@pytest.mark.parametrize(
    ("kind", "count", "keys"),
    [
        ("day", 13, {"lifetime_epsilon": 5.0}),
        ("day", 13, {"lifetime_epsilon": 5.0, "answer": "at_once", "aggregate": "first"}),
        ("week", 3, {"lifetime_epsilon": 4.0}),
        ("month", 4, {"lifetime_epsilon": 3.0}),
    ],
)
def test_each_window_has_each_device_equally_often(kind, count, keys, lives):
    """Exact enumeration of the draw: of one device in each group, all of which use the app in each
    window, exactly one reports in every window, through the real device."""
    last = {"day": 61, "week": 80, "month": 364}[kind]
    registry = one_in(count, window=kind, **keys)
    times = [START + day * DAY for day in range(last)]
    if kind == "month":
        times = times[::5]
    found = groups_of(registry, lives, times)
    first_day = date(2027, 1, 1)
    labels = windows.span(kind, first_day, first_day + timedelta(days=last - 1))
    assert found == Counter(labels)


def test_a_year_spends_the_budget_evenly(lives):
    """Over a simulated year of daily use, a device with four reports and one_in 92 sends 3 or 4,
    exactly 92 days apart, whatever group it draws; two such devices differ by their draw alone."""
    registry = one_in(92)
    for group in (0, 10**15):
        life = Life(registry, group)
        lives.append(life)
        for day in range(365):
            life.use(START + day * DAY)
        life.wait(START + 366 * DAY)
        numbers = [windows.number(each) for each in life.reported()]
        assert len(numbers) in (3, 4)
        assert {number % 92 for number in numbers} == {group % 92}
        assert [b - a for a, b in pairwise(numbers)] == [92] * (len(numbers) - 1)
        assert life.spent() <= 4


def test_clocks_that_lie_give_no_other_group(lives):
    """A clock that goes back and forward at random, by up to two years (seed 3), opens no window of
    another group, none twice, and spends no more than the lifetime."""
    life = Life(one_in(5, lifetime_epsilon=6.0), group=3)
    lives.append(life)
    clock = random.Random(3)
    for _ in range(400):
        life.use(START + clock.randrange(-365, 365) * DAY)
    life.wait(START + 400 * DAY)
    found = life.reported()
    assert len(found) == len(set(found)) == 6
    assert {windows.number(each) % 5 for each in found} == {3}
    assert life.spent() <= 6


@pytest.mark.parametrize("value", [True, False])
def test_the_value_does_not_decide(value, lives):
    """From the same bits the same windows take part, whatever the values are."""
    life = Life(one_in(7, lifetime_epsilon=50.0), seed=11)
    lives.append(life)
    for day in range(60):
        life.use(START + day * DAY, value)
    with life.state.transaction() as connection:
        rows = connection.execute("SELECT window, state FROM windows").fetchall()
        stored = [window for (window,) in connection.execute("SELECT window FROM open_values")]
    taking = sorted(window for window, state in rows if state != "passed")
    other = Life(one_in(7, lifetime_epsilon=50.0), seed=11)
    lives.append(other)
    for day in range(60):
        other.use(START + day * DAY, not value)
    with other.state.transaction() as connection:
        rows = connection.execute("SELECT window FROM windows WHERE state != 'passed'").fetchall()
    assert taking == sorted(window for (window,) in rows)
    assert set(stored) <= set(taking), "no value is kept of a window in which it takes no part"


def test_an_erasure_keeps_the_group(lives):
    """Opting out and erasing give no second group: the next turn is that of the first."""
    life = Life(one_in(5, lifetime_epsilon=50.0), group=2)
    lives.append(life)
    life.use(START)
    life.device.state.withdraw()
    life.device.state.erase(life.device.clock())
    for day in range(1, 20):
        life.use(START + day * DAY)
    assert {windows.number(each) % 5 for each in life.reported()} == {2}


def test_a_pair_takes_turns_by_itself(lives):
    """A pair draws a group of its own; its metrics need not take part."""
    text = metrics_toml(
        a={"expires": "2027-12-31", "sample_rate": 1e-9},
        b={"expires": "2027-12-31", "sample_rate": 1e-9},
        both={"type": "pair", "of": ["a", "b"], "expires": "2027-12-31", "one_in": 4},
    )
    registry = Registry.parse(text)
    life = Life(registry, seed=5)
    lives.append(life)
    for day in range(41):
        life.now = START + day * DAY
        life.device.write(
            [r for name in "ab" if (r := life.recorder.admit(name, True, life.now)) is not None]
        )
    found = life.reported("both")
    assert len(found) == 10
    assert len({windows.number(each) % 4 for each in found}) == 1
    assert life.reported("a") == []

"""Metrics with `one_in`: devices draw a group once, and the groups take turns."""

import random
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction

import pytest

from deniable import Registry
from deniable.device.ledger import Ledger
from deniable.protocol import windows

from .conftest import metrics_toml

DAY = 86_400.0
START = datetime(2027, 1, 1, tzinfo=UTC).timestamp()
YEAR = {"expires": "2027-12-31", "lifetime_epsilon": 4.0}


def drawing(group=None, seed=0):
    """Bits: the first number that a device draws is its group."""
    left = [] if group is None else [group]
    others = random.Random(seed)
    return lambda count: left.pop() if left and count == 53 else others.getrandbits(count)


def spent(life):
    with life.state.transaction() as connection:
        return Ledger(connection).spent("m")


def one_in(count, **keys):
    return Registry.parse(metrics_toml(m={**YEAR, "one_in": count, **keys}))


def groups_of(registry, live, times):
    """How many devices report in each window, if there is one device of each group."""
    count = registry["m"].one_in
    assert count is not None
    found = Counter()
    for group in range(count):
        life = live(registry, drawing(group))
        for now in times:
            life.use(now)
        life.wait(windows.end(windows.window_at(registry["m"].window, times[-1])))
        found.update(life.reported())
        assert spent(life) <= Fraction(registry["m"].lifetime_epsilon)
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
def test_each_window_has_each_device_equally_often(kind, count, keys, live):
    """Exact enumeration of the draw: of one device in each group, all of which use the app in each
    window, exactly one reports in every window, through the real device."""
    last = {"day": 61, "week": 80, "month": 364}[kind]
    registry = one_in(count, window=kind, **keys)
    times = [START + day * DAY for day in range(last)]
    if kind == "month":
        times = times[::5]
    found = groups_of(registry, live, times)
    first_day = date(2027, 1, 1)
    labels = windows.span(kind, first_day, first_day + timedelta(days=last - 1))
    assert found == Counter(labels)


def test_clocks_that_lie_give_no_other_group(live):
    """A clock that goes back and forward at random, by up to two years (seed 3), opens no window of
    another group, none twice, and spends no more than the lifetime."""
    life = live(one_in(5, lifetime_epsilon=6.0), drawing(group=3))
    clock = random.Random(3)
    for _ in range(400):
        now = START + clock.randrange(-365, 365) * DAY
        life.use(now)
        life.wait(now + DAY)
    found = life.reported()
    assert len(found) == len(set(found)) == 6
    assert {windows.number(each) % 5 for each in found} == {3}
    assert spent(life) <= 6


def test_the_value_does_not_decide(live):
    """From the same bits the same windows take part, whatever the values are, and no value is kept
    of a window in which the device takes no part."""
    found = []
    for value in (True, False):
        life = live(one_in(7, lifetime_epsilon=50.0), drawing(seed=11))
        for day in range(60):
            life.use(START + day * DAY, value)
        found.append({*life.rows("SELECT window FROM windows WHERE state != 'passed'")})
        assert found[-1].issuperset(life.rows("SELECT window FROM open_values"))
    assert found[0] == found[1]


def test_a_pair_takes_turns_by_itself(live):
    """A pair draws a group of its own; its metrics need not take part."""
    text = metrics_toml(
        a={"expires": "2027-12-31", "sample_rate": 1e-9},
        b={"expires": "2027-12-31", "sample_rate": 1e-9},
        both={"type": "pair", "of": ["a", "b"], "expires": "2027-12-31", "one_in": 4},
    )
    registry = Registry.parse(text)
    life = live(registry, drawing(seed=5))
    for day in range(41):
        life.use(START + day * DAY, True, "a", "b")
    found = life.reported("both")
    assert len(found) == 10
    assert len({windows.number(each) % 4 for each in found}) == 1
    assert life.reported("a") == []

"""The ledger: exact sums, both limits, and no trust in damage."""

import dataclasses
import math
from fractions import Fraction

import pytest

from deniable import Registry
from deniable.device.ledger import Ledger
from deniable.device.state import State
from deniable.protocol.mechanisms import Memoizing

from .conftest import metrics_toml

MEMOIZED = {"longitudinal": "memoize", "lifetime_epsilon": 2.0}


@pytest.mark.parametrize("epsilon", [0.1, 0.3, 1.0, 2.0, 1 / 3])
@pytest.mark.parametrize("reports", [1, 3, 7, 10])
def test_the_sum_is_exact(tmp_path, epsilon, reports):
    """What is allowed is exactly what the fractions of the rounded-up epsilons allow."""
    keys = {"epsilon": epsilon, "lifetime_epsilon": epsilon * reports}
    registry = Registry.parse(metrics_toml(m=keys))
    metric = registry["m"]
    cost = Fraction(metric.scheme.mechanism.epsilon)
    expected = Fraction(metric.lifetime_epsilon) // cost
    given = 0
    while True:
        state = State(tmp_path)  # a restart before each report
        with state.transaction() as connection:
            ledger = Ledger(connection)
            assert ledger.spent("m") == ledger.spent() == given * cost
            if not ledger.allows(metric, registry):
                break
            ledger.charge(metric)
        state.close()
        given += 1
    state.close()
    assert given == expected
    assert given * cost <= Fraction(metric.lifetime_epsilon) < (given + 1) * cost


def test_the_last_bit_of_a_cap_may_be_spent(tmp_path, registry):
    """Both limits are inclusive: what is left counts down to the report that spends them exactly,
    and a cap that is smaller by the least there is allows one report fewer."""
    browser = registry["browser"]
    cost = browser.scheme.mechanism.epsilon
    exact = dataclasses.replace(registry, lifetime_epsilon=2 * cost)
    less = dataclasses.replace(registry, lifetime_epsilon=math.nextafter(2 * cost, 0))
    own = dataclasses.replace(browser, lifetime_epsilon=4 * cost)
    state = State(tmp_path)
    with state.transaction() as connection:
        ledger = Ledger(connection)
        found = []
        for _ in range(4):
            limits = ((browser, exact), (browser, less), (own, registry))
            found.append([(ledger.left(*each), ledger.allows(*each)) for each in limits])
            ledger.charge(browser)
        assert not ledger.allows(own, registry)
    state.close()
    assert found == [
        [(2, True), (1, True), (4, True)],
        [(1, True), (0, False), (3, True)],
        [(0, False), (0, False), (2, True)],
        [(0, False), (0, False), (1, True)],
    ]


def test_memos_are_charged_once_in_a_transaction(tmp_path):
    """A second report in the transaction of the first finds its memos charged; with memory no
    number ends the reports, unless a cap does, which counts the fresh noise."""
    registry = Registry.parse(metrics_toml(a=MEMOIZED))
    metric = registry["a"]
    mechanism = metric.scheme.mechanism
    assert isinstance(mechanism, Memoizing)
    capped = dataclasses.replace(registry, lifetime_epsilon=8 * mechanism.fresh_epsilon)
    state = State(tmp_path)
    with state.transaction() as connection:
        ledger = Ledger(connection)
        assert ledger.left(metric, registry) is None
        assert ledger.left(metric, capped) == 8
        connection.execute("INSERT INTO memo_keys VALUES ('a', x'00')")
        for _ in range(3):
            ledger.charge(metric)
        assert ledger.memos("a") == Fraction(mechanism.lifetime_epsilon)
        assert ledger.reports() == {"a": 3}
        assert ledger.spent("a") == 3 * Fraction(mechanism.fresh_epsilon)
        assert ledger.allows(metric, registry)
        assert ledger.left(metric, capped) == 5
    with state.transaction() as connection:
        connection.execute("DELETE FROM memo_keys")
        ledger = Ledger(connection)
        assert not ledger.allows(metric, registry)
        assert ledger.left(metric, registry) == 0
    state.close()


def test_reports_of_before_the_memos_still_count(tmp_path):
    """A metric that begins to memoize has the epsilons of its memos and of all reports before."""
    plain = Registry.parse(metrics_toml(a={"lifetime_epsilon": 2.0}))["a"]
    registry = Registry.parse(metrics_toml(a={**MEMOIZED, "memo_epsilon": 1.5}))
    metric = registry["a"]
    state = State(tmp_path)
    with state.transaction() as connection:
        ledger = Ledger(connection)
        connection.execute("INSERT INTO memo_keys VALUES ('a', x'00')")
        ledger.charge(metric)
        assert ledger.allows(metric, registry)
        ledger.charge(plain)
        assert not ledger.allows(metric, registry)
    state.close()

"""How a lifetime epsilon is divided, and what lint advises."""

import dataclasses
import itertools
import math
from datetime import date
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.estimator.schemes import every_report

from deniable import Metric
from deniable.protocol.mechanisms import design
from deniable.protocol.mechanisms.hierarchical_histogram import HierarchicalHistogram
from deniable.protocol.mechanisms.number_range import NumberRange
from deniable.protocol.mechanisms.sliding_window import SlidingWindow
from deniable.protocol.mechanisms.subset_selection import SubsetSelection
from deniable.protocol.types.number import Number
from deniable.protocol.types.texts import Boolean, Category, String
from deniable_estimator.planning.lifetime_split import (
    MOST_EPSILON,
    WORTH_A_NOTE,
    Splits,
    better_split,
    declared,
    report_counts,
    report_variance,
    sent_reports,
)
from deniable_estimator.statistics.detection import std_error

RANGE = NumberRange("0", "1")
DESIGNS = {
    "boolean": lambda epsilon: design("auto", 2, epsilon),
    "list": lambda epsilon: design("auto", 20, epsilon),
    "mean": lambda epsilon: SlidingWindow.design(RANGE, epsilon),
    "distribution": lambda epsilon: HierarchicalHistogram.design(RANGE, epsilon, 64),
}


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_the_variance_of_a_report_is_that_of_all_its_outcomes(epsilon):
    """Enumerated over the values of all devices and all their reports, the variance of an estimate
    is noise plus spread, divided by the number of devices (four values, one device's share .25)."""
    mechanism = SubsetSelection.design(4, epsilon)
    p, q = mechanism.p, mechanism.q
    first = second = Fraction(0)
    for value, (report, ones) in itertools.product(range(4), every_report(mechanism)):
        chance = mechanism.likelihood(report, value) / 4
        score = ((0 in ones) - q) / (p - q)
        first, second = first + chance * score, second + chance * score**2
    assert first == Fraction(1, 4)
    found = report_variance(mechanism, 0.25)
    assert found.total == pytest.approx(float(second - first**2), rel=1e-12)
    assert found.total == pytest.approx(std_error(mechanism, 0.25, 1) ** 2, rel=1e-12)
    assert found.spread == 0.25 * 0.75


def test_what_has_no_variance_is_refused():
    """Any other object raises TypeError, and is named."""

    class Nothing:
        name = "nothing"

    with pytest.raises(TypeError, match="nothing"):
        report_variance(Nothing(), 0.5)


@pytest.mark.parametrize(
    ("reports", "rate", "windows"),
    [(1, 0.01, 100), (3, 0.3, 10), (8, 1.0, 8), (8, 0.02, 400), (5, 0.5, 4), (9, 0.01, 30)],
)
def test_the_reports_that_are_sent_are_enumerated(reports, rate, windows):
    """E[min(X, k)] is the sum over all binomial outcomes, in exact fractions."""
    part = Fraction(rate)
    expected = sum(
        min(count, reports)
        * math.comb(windows, count)
        * part**count
        * (1 - part) ** (windows - count)
        for count in range(windows + 1)
    )
    assert sent_reports(reports, rate, windows) == pytest.approx(float(expected), rel=1e-12)


@given(st.floats(0.001, 10_000))
def test_a_declared_epsilon_is_never_above(epsilon):
    """The epsilon to write is at most the given one, above 99% of it, and short."""
    found = declared(epsilon)
    assert 0.99 * epsilon - 0.01 * (epsilon > 1) < found <= epsilon
    assert len(repr(found).replace("e-05", "")) <= 8
    assert declared(Fraction(8, 3)) == 2.66
    assert declared(0.0123456) == 0.0123


@given(st.integers(1, 10**6), st.integers(0, 10**6))
def test_counts_rise_from_limit_to_limit(fewest, more):
    """Both limits are among the numbers of reports, which rise by at most a half, or by one."""
    counts = list(report_counts(fewest, fewest + more))
    assert counts[0] == fewest
    assert counts[-1] == fewest + more
    assert all(a < b <= max(a + 1, 1.5 * a) for a, b in itertools.pairwise(counts))


@pytest.mark.parametrize("name", DESIGNS)
@pytest.mark.parametrize(("epsilon", "reports"), [(1.0, 8), (0.5, 12), (2.0, 3)])
def test_no_smaller_lifetime_tells_as_much(name, epsilon, reports):
    """The least lifetime tells what was asked for; with a hundredth of epsilon less for each of its
    reports it would not. It never takes more than the plan that it replaces."""

    def made(each):
        return DESIGNS[name](each)

    def sent(count):
        return sent_reports(count, count / 400, 400)

    splits = Splits(made, sent)
    target = splits.of(epsilon, reports)
    least = splits.smallest(target.information, reports)
    assert least is not None
    assert least.information >= target.information
    assert least.epsilon <= MOST_EPSILON
    assert least.lifetime_epsilon <= target.lifetime_epsilon
    below = splits.of(round(least.epsilon - 0.01, 2), least.reports)
    assert below.information < target.information
    assert splits.smallest(1e9, reports) is None


TYPES = {
    "boolean": Boolean(),
    "category": Category(tuple("abcdefgh")),
    "string": String(),
    "mean": Number(NumberRange("0", "9"), ("mean",)),
    "distribution": Number(NumberRange("0", "9"), ("distribution",), cells=64),
}


def metric(kind="boolean", **changes):
    """A metric with epsilon 1 and lifetime 8, reported on about 8 days of 400."""
    declared = Metric("m", TYPES[kind], "d", "o", date.max, 1.0, 8.0, sample_rate=0.02)
    return dataclasses.replace(declared, **changes)


def told(found):
    """The proposal alone, without what less would do."""
    return found if found.code == "better_split" else found.arguments["told"]


@pytest.mark.parametrize("kind", TYPES)
@given(st.floats(0.05, 5), st.floats(1, 60), st.sampled_from([0.001, 0.02, 0.5, 1.0]))
@settings(max_examples=15, deadline=None)
def test_a_proposal_keeps_its_promises(kind, epsilon, times, rate):
    """What is proposed fits the same lifetime and time, stays within the largest advised epsilon,
    and tells as much more as it says; no share is known less well."""
    declared = metric(kind, epsilon=epsilon, lifetime_epsilon=epsilon * times, sample_rate=rate)
    found = better_split(declared)
    if found is None:
        return
    advice = told(found).arguments
    other = dataclasses.replace(
        declared, epsilon=advice["epsilon"], sample_rate=float(advice["rate"])
    )
    exact = other.scheme.mechanism.epsilon
    assert advice["reports"] * exact <= declared.lifetime_epsilon
    assert exact <= MOST_EPSILON
    assert advice["times"] >= WORTH_A_NOTE
    windows = max(advice["now"], round(advice["now"] / rate))
    assert float(advice["rate"]) * windows == pytest.approx(advice["reports"], rel=0.006)

    def tells(each, reports, share):
        variance = report_variance(each.scheme.mechanism, share)
        return sent_reports(reports, min(1.0, reports / windows), windows) / variance.total

    gains = [
        tells(other, advice["reports"], share) / tells(declared, advice["now"], share)
        for share in (0.01, 0.1, 0.5)
    ]
    assert gains[0] == pytest.approx(advice["times"], rel=1e-9)
    assert min(gains) >= 1 - 1e-9
    assert advice["belief"] >= 100 / (1 + math.exp(-exact))
    if found is not told(found):
        less = found.arguments
        assert less["lifetime"] < declared.lifetime_epsilon
        assert less["epsilon"] <= min(MOST_EPSILON, less["lifetime"])


@pytest.mark.parametrize(
    "changes",
    [
        {"epsilon": 2.66, "sample_rate": 0.0075},
        {"epsilon": 8.0},
        {"epsilon": 3.0, "lifetime_epsilon": 30.0},
        {"longitudinal": "memoize"},
        {"answer": "at_once", "aggregate": "first"},
        {"epsilon": 1.0, "lifetime_epsilon": 1.9},
    ],
)
def test_nothing_is_advised_where_nothing_is_better(changes):
    """A split that is good, a single report, memos, and visitors who report at once get none."""
    assert better_split(metric(**changes)) is None


def test_a_cap_of_the_registry_limits_the_proposal():
    """With a cap below the metric's lifetime, the proposal fits the cap."""
    found = better_split(metric(), 2.0)
    assert found is not None
    assert told(found).arguments["epsilon"] * told(found).arguments["reports"] <= 2.0
    assert better_split(metric(), 1.5) is None


def test_a_mechanism_with_one_epsilon_gets_no_advice(monkeypatch):
    """Where the named mechanism cannot be designed at another epsilon, there is no proposal."""
    from deniable import SchemeError

    declared = metric()
    before = Boolean.design

    def only(self, mechanism, name, epsilon, memo_epsilon=None):
        if epsilon != 1.0:
            raise SchemeError("no")
        return before(self, mechanism, name, epsilon, memo_epsilon)

    monkeypatch.setattr(Boolean, "design", only)
    assert better_split(declared) is None

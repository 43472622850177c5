"""How a lifetime epsilon is divided: variances, reports that are sent, and the least lifetime."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.mechanisms import (
    HierarchicalHistogram,
    Mechanism,
    NumberRange,
    Report,
    SlidingWindow,
    SubsetSelection,
    design,
)
from deniable_estimator.forecasting.detection import std_error
from deniable_estimator.forecasting.lifetime_split import (
    MOST_EPSILON,
    declared,
    report_counts,
    report_variance,
    sent_reports,
    smallest_lifetime,
    split_of,
    spread_over,
)

RANGE = NumberRange("0", "1")
DESIGNS = {
    "boolean": lambda epsilon: design("auto", 2, epsilon),
    "list": lambda epsilon: design("auto", 20, epsilon),
    "mean": lambda epsilon: SlidingWindow.design(RANGE, epsilon),
    "distribution": lambda epsilon: HierarchicalHistogram.design(RANGE, epsilon, 64),
}


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_the_variance_of_a_report_is_that_of_all_its_outcomes(epsilon: float) -> None:
    """Enumerated over the values of all devices and all their reports, the variance of an estimate
    is noise plus spread, divided by the number of devices (four values, one device's share .25)."""
    mechanism = SubsetSelection.design(4, epsilon)
    p, q = mechanism.p, mechanism.q
    first = second = Fraction(0)
    for value, ones in itertools.product(range(4), itertools.combinations(range(4), mechanism.k)):
        columns = sum(1 << each for each in ones) if mechanism.k > 1 else ones[0]
        chance = mechanism.likelihood(Report(0, columns), value) / 4
        score = ((0 in ones) - q) / (p - q)
        first, second = first + chance * score, second + chance * score**2
    assert first == Fraction(1, 4)
    found = report_variance(mechanism, 0.25)
    assert found.total == pytest.approx(float(second - first**2), rel=1e-12)
    assert found.total == pytest.approx(std_error(mechanism, 0.25, 1) ** 2, rel=1e-12)
    assert found.spread == 0.25 * 0.75


def test_what_has_no_variance_is_refused() -> None:
    """Any other object raises TypeError, and is named."""

    class Nothing:
        name = "nothing"

    with pytest.raises(TypeError, match="nothing"):
        report_variance(Nothing(), 0.5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("reports", "rate", "windows"),
    [(1, 0.01, 100), (3, 0.3, 10), (8, 1.0, 8), (8, 0.02, 400), (5, 0.5, 4), (9, 0.01, 30)],
)
def test_the_reports_that_are_sent_are_enumerated(reports: int, rate: float, windows: int) -> None:
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
def test_a_declared_epsilon_is_never_above(epsilon: float) -> None:
    """The epsilon to write is at most the given one, above 99% of it, and short."""
    found = declared(epsilon)
    assert 0.99 * epsilon - 0.01 * (epsilon > 1) < found <= epsilon
    assert len(repr(found).replace("e-05", "")) <= 8
    assert declared(Fraction(8, 3)) == 2.66
    assert declared(0.0123456) == 0.0123


@given(st.integers(1, 10**6), st.integers(0, 10**6))
def test_counts_rise_from_limit_to_limit(fewest: int, more: int) -> None:
    """Both limits are among the numbers of reports, which rise by at most a half, or by one."""
    counts = list(report_counts(fewest, fewest + more))
    assert counts[0] == fewest
    assert counts[-1] == fewest + more
    assert all(a < b <= max(a + 1, 1.5 * a) for a, b in itertools.pairwise(counts))


@pytest.mark.parametrize("name", DESIGNS)
@pytest.mark.parametrize(("epsilon", "reports"), [(1.0, 8), (0.5, 12), (2.0, 3)])
def test_no_smaller_lifetime_tells_as_much(name: str, epsilon: float, reports: int) -> None:
    """The least lifetime tells what was asked for; with a hundredth of epsilon less for each of its
    reports it would not. It never takes more than the plan that it replaces."""

    def made(each: float) -> Mechanism[object]:
        return DESIGNS[name](each)

    sent = spread_over(400)
    target = split_of(made, epsilon, reports, sent, share=0.01)
    least = smallest_lifetime(made, target.information, sent, most_reports=reports)
    assert least is not None
    assert least.information >= target.information
    assert least.epsilon <= MOST_EPSILON
    assert least.lifetime_epsilon <= target.lifetime_epsilon
    below = split_of(made, round(least.epsilon - 0.01, 2), least.reports, sent, share=0.01)
    assert below.information < target.information
    impossible = smallest_lifetime(made, 1e9, sent, most_reports=reports)
    assert impossible is None

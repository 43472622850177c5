"""Exactly, over all memos and reports of one device: the noise of counts in one window, and what
the noise of a device in two windows has in common."""

from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest

from deniable.protocol.mechanisms.subset_selection import MemoizedSubsetSelection
from deniable_estimator.analyses.retention import CohortCounts

CHANNELS = {
    "one of four": MemoizedSubsetSelection.design(4, 2.0, 4.0, k=1),
    "two of five": MemoizedSubsetSelection.design(5, 1.0, 3.0, k=2),
}


@pytest.mark.parametrize("name", CHANNELS)
def test_counts_in_one_window_have_the_variance_and_covariance_of_all_reports(name):
    """Three devices of age 0, two of age 1 and four older ones: over all reports of each."""
    channel = CHANNELS[name]
    size, older = channel.size, channel.size - 1
    crowd = {0: 3, 1: 2, older: 4}
    gap = channel.p - channel.q
    reports = [sum(1 << place for place in each) for each in combinations(range(size), channel.k)]

    def covariance(one, two):
        total = Fraction(0)
        for value, devices in crowd.items():
            chance = {each: _likelihood(channel, each, value) for each in reports}
            first, second, both = (
                sum(p for each, p in chance.items() if all(each >> cell & 1 for cell in cells))
                for cells in ((one,), (two,), (one, two))
            )
            total += devices * (both - first * second)
        return total / gap**2

    # DrawnWindow number 0: a device of age 0 has cell 0, one of age 1 the last cell but one.
    cells = np.zeros((1, size), np.int64)
    moved = {0: 3, older - 1: 2, older: 4}
    found = CohortCounts.of(channel, [0], np.array([9]), cells)
    crowd = moved
    assert found.alone[0] + 3 * found.own[0] == pytest.approx(float(covariance(0, 0)))
    last = older - 1
    assert found.alone[0] + 2 * found.own[0] == pytest.approx(float(covariance(last, last)))
    assert found.between[0] + 5 * found.owned[0] == pytest.approx(float(covariance(0, last)))


@pytest.mark.parametrize("name", CHANNELS)
def test_the_same_memo_never_makes_a_quotient_less_certain(name):
    """Over all memos and pairs of reports of a device in two windows, whatever its cohort: the
    two reports support the same cell together more often than if each had a memo of its own."""
    channel = CHANNELS[name]
    size = channel.size
    reports = [sum(1 << place for place in each) for each in combinations(range(size), channel.k)]
    for value, cell in product(range(size), repeat=2):
        both = Fraction(0)
        for memo in range(size):
            hit = sum(_fresh(channel, report, memo) for report in reports if report >> cell & 1)
            both += _memo(channel, value, memo) * hit**2
        alone = channel.p if value == cell else channel.q
        assert both - alone**2 > 0


def _lives(rates, windows):
    """Every set of windows after the first in which a device is active, with its chance, where the
    devices of each rate are active in each window by themselves."""
    for active in product((False, True), repeat=windows):
        yield (
            active,
            sum(
                part * np.prod([rate if each else 1 - rate for each in active])
                for rate, part in rates.items()
            ),
        )


@pytest.mark.parametrize("name", CHANNELS)
@pytest.mark.parametrize(
    "rates",
    [
        {Fraction(1, 2): Fraction(1)},
        {Fraction(1, 5): Fraction(2, 3), Fraction(9, 10): Fraction(1, 3)},
    ],
    ids=["alike", "loyal-and-fickle"],
)
def test_leaving_out_what_windows_have_in_common_makes_no_average_too_certain(name, rates):
    """The numerator less R times the denominator, of every age and over all cohorts of six windows:
    the covariances of a device's noise in different windows add up to at most 0, for devices of
    each cohort and older ones, over all their lives and memos."""
    channel = CHANNELS[name]
    ages = channel.size - 2
    windows = range(6)
    back = sum(rate * part for rate, part in rates.items())
    for age in range(1, ages + 1):
        for cohort in (-20, *windows):
            total = Fraction(0)
            for active, chance in _lives(rates, len(windows)):
                there = [
                    at for at in windows if (active[at] if at != cohort else True) and at >= cohort
                ]
                total += chance * _common(channel, there, cohort, age, back, windows)
            assert total <= 0, (age, cohort)


def _common(channel, there, cohort, age, back, windows):
    """Twice the sum of the covariances of what one device adds in different windows, over
    (p2 - q2)**2."""
    older = channel.size - 1
    cells = older

    def weights(at):
        found = [Fraction(0)] * channel.size
        if at - age in windows:
            found[(at - age) % cells] += 1
        if at + age in windows:
            found[at % cells] -= back
        return found

    total = Fraction(0)
    # Windows with different memos, of the cohort and of the older ones, have nothing in common.
    for value, places in (
        (cohort % cells, [at for at in there if at - cohort < cells]),
        (older, [at for at in there if at - cohort >= cells]),
    ):
        memo = [_memo(channel, value, each) for each in range(channel.size)]
        for one, two in combinations([weights(at) for at in places], 2):
            joint = sum(p * x * y for p, x, y in zip(memo, one, two, strict=True))
            means = [sum(p * x for p, x in zip(memo, each, strict=True)) for each in (one, two)]
            total += 2 * (joint - means[0] * means[1])
    return total


def _memo(channel, value, memo):
    return channel.permanent.p if memo == value else channel.permanent.q


def _fresh(channel, report, memo):
    columns = report.bit_length() - 1 if channel.k == 1 else report
    return channel.fresh.likelihood(type(channel.fresh.randomize(0))(0, columns), memo)


def _likelihood(channel, report, value):
    return sum(
        _memo(channel, value, memo) * _fresh(channel, report, memo) for memo in range(channel.size)
    )


def test_counts_of_several_schemes_add_up_window_by_window():
    """In a window of two schemes counts and noise are sums, what a device adds is the average of
    their reports, and fakes report under the one that they move more; others stay as they are."""
    rng = np.random.default_rng(3)
    one, two = (
        CohortCounts.of(
            MemoizedSubsetSelection.design(4, epsilon, 4.0, k=1),
            numbers,
            reports,
            rng.integers(0, 50, (2, 4)),
        )
        for epsilon, numbers, reports in ((2.0, (5, 7), [90, 60]), (1.0, (4, 5), [80, 30]))
    )
    found = CohortCounts.added([one, two])
    assert found.numbers == (4, 5, 7)
    assert found.reports.tolist() == [80, 120, 60]
    np.testing.assert_allclose(
        found.counts, [two.counts[0], one.counts[0] + two.counts[1], one.counts[1]]
    )
    for name, both in (
        ("alone", one.alone[0] + two.alone[1]),
        ("own", (90 * one.own[0] + 30 * two.own[1]) / 120),
        ("between", one.between[0] + two.between[1]),
        ("owned", (90 * one.owned[0] + 30 * two.owned[1]) / 120),
        ("pull", two.pull[1]),
        ("push", two.push[1]),
    ):
        first, second = getattr(one, name), getattr(two, name)
        np.testing.assert_allclose(getattr(found, name), [second[0], both, first[1]])

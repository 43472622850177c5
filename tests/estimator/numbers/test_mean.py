"""Means: scores without bias, honest intervals, and planned widths."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats
from tests.estimator.numbers.crowds import estimate_tree, window_rates

from deniable.protocol.mechanisms import Report
from deniable.protocol.mechanisms.number_range import TOP, NumberRange
from deniable_collector.tally import TallyRow
from deniable_estimator.analyses.numbers import MeanEstimate
from deniable_estimator.analyses.numbers.hierarchical_histogram import (
    HierarchicalHistogramAnalysis,
)
from deniable_estimator.analyses.numbers.scores import scores
from deniable_estimator.analyses.numbers.sliding_window import SlidingWindowAnalysis
from deniable_estimator.statistics.expected import mean_variance

CROWD = np.array([0, TOP // 3, TOP])
"""Positions of half, three tenths and a fifth of the devices in some tests."""
PARTS = np.array([0.5, 0.3, 0.2])


def test_the_smallest_window(make_window):
    """With 4 columns, 2 of which a level owns, the scores have a closed form, with
    A = (e + 1) / (e - 1), and so has the noise: the same at every level, and most between them."""
    window = make_window(1.0, 4)
    a = (math.e + 1) / (math.e - 1)
    assert window.scores() == pytest.approx([-a - 0.5, -a + 0.5, a - 0.5, a + 0.5], abs=1e-9)
    levels, squares = SlidingWindowAnalysis(window).level_noise()
    assert levels.tolist() == [-1, 0, 1]
    assert squares - levels**2 == pytest.approx([a**2 - 3 / 4] * 3, abs=1e-8)
    assert mean_variance(window) == pytest.approx(4.18269, abs=1e-5)


@pytest.mark.parametrize("epsilon", [0.25, 1.0, 5.0])
def test_expected_scores_are_the_numbers(make_window, epsilon):
    """The expected mean is the number, to 2**-28, at any position; below `low` counts as low."""
    window = make_window(epsilon)
    scores = np.array(window.scores())
    for position in (-1, 0, 1, 123_456_789, TOP // 2, TOP - 1, TOP):
        rates = window_rates(window, np.array([position]), np.ones(1))
        place = max(position, 0) / TOP * 2 - 1
        assert scores @ rates == pytest.approx(place, abs=2**-28)


def test_one_report_is_not_certain(make_window):
    """However few the reports, the variance is that of the noise at least."""
    window = make_window(1.0)
    cells = np.zeros(64, np.int64)
    cells[5] = 1
    mean = SlidingWindowAnalysis(window).mean
    assert mean([TallyRow(1, cells)]).variance > 4
    nothing = mean([TallyRow(0, np.zeros(64, np.int64))], repeats=2.0)
    assert (nothing.mean, nothing.variance) == (0.0, math.inf)


def test_bound_of_what_devices_keep(make_window):
    """From many reports the bound is near the variance of the numbers, and never below it: rounding
    to levels adds a little."""
    window = make_window(2.0)
    rates = window_rates(window, CROWD, PARTS)
    row = TallyRow(10**8, np.round(rates * 10**8).astype(np.int64))
    found = SlidingWindowAnalysis(window).mean([row], 2.0)
    places = CROWD / TOP * 2 - 1
    spread = float(PARTS @ places**2 - (PARTS @ places) ** 2)
    assert spread <= found.kept <= spread + 0.01
    assert found.variance == pytest.approx(found.noise + found.kept / 10**8)


@pytest.mark.parametrize(("high", "exact"), [("9", True), ("99", False)])
def test_middles_of_whole_numbers(make_tree, high, exact):
    """A cell of whole numbers counts as their mean: itself, if each has a cell of its own."""
    numbers = NumberRange("0", high, integer=True)
    tree = make_tree(1.0, 16, numbers=numbers)
    analysis = HierarchicalHistogramAnalysis(tree)
    (points,), distance = analysis.points, analysis.rounding
    members = {}
    for number in range(int(high) + 1):
        members.setdefault(tree.cell(numbers.position(number)), []).append(number)
    for cell, each in members.items():
        place = np.mean(each) / (int(high) + 1) * 2 - 1
        assert points[cell] == pytest.approx(place, abs=1e-7)
    assert distance == pytest.approx(0.0 if exact else 7 / 100, abs=1e-7)


def test_either_row_is_enough(make_tree):
    """Without reports in the mean's row the tree tells the mean, and the other way round."""
    tree = make_tree(1.0, 16, mean=True)
    full = [TallyRow(10 * row.width, np.full(row.width, 10)) for row in tree.rows]
    none = [TallyRow(0, np.zeros(row.width, np.int64)) for row in tree.rows]
    without = [*full[:-1], none[-1]]
    analysis = HierarchicalHistogramAnalysis(tree)
    assert analysis.mean(without) == analysis.mean_of(estimate_tree(tree, without))
    assert analysis.mean([*none[:-1], full[-1]]) == analysis.window.mean(full[-1:])
    assert math.isinf(analysis.mean(none).variance)
    assert 0 < analysis.mean(full).rounding == analysis.rounding < analysis.farthest


@pytest.mark.parametrize("bias", [0.0, 0.3, 2.0])
def test_intervals_allow_for_rounding(bias):
    """Even if the middles of cells move the mean as far as they can, the interval has its level,
    exactly; if they do not, more."""
    low, high = MeanEstimate(0.0, 0.01, 100, rounding=0.1 * bias).interval(0.9)
    errors = stats.norm(0, 0.1)
    held = errors.cdf(high - 0.1 * bias) - errors.cdf(low - 0.1 * bias)
    assert held == pytest.approx(0.9, abs=1e-9)
    assert errors.cdf(high) - errors.cdf(low) >= 0.9 - 1e-9


@pytest.mark.parametrize("epsilon", [0.5, 3.0])
def test_noise_of_a_number(make_window, epsilon):
    """At any position it is the variance of the score under the exact likelihoods, and nowhere more
    than the worst one."""
    window = make_window(epsilon)
    levels, squares = SlidingWindowAnalysis(window).level_noise()
    values = [Fraction(score) for score in window.scores()]
    worst = mean_variance(window)
    for position in (0, 1, 7_654_321, TOP // 3, TOP // 2, window.levels[3] + 5, TOP):
        rates = [window.likelihood(Report(0, column), position) for column in range(64)]
        mean = sum(a * rate for a, rate in zip(values, rates, strict=True))
        square = sum(a * a * rate for a, rate in zip(values, rates, strict=True))
        place = np.array(position / TOP * 2 - 1)
        noise = np.interp(place, levels, squares) - place**2
        assert float(square - mean**2) == pytest.approx(float(noise))
    grid = np.interp(x := np.linspace(-1, 1, 20_001), levels, squares) - x**2
    assert grid.max() <= worst == pytest.approx(grid.max(), rel=1e-5)


@pytest.mark.parametrize("mean", [False, True])
def test_devices_and_servers_plan_alike(make_tree, mean):
    """The variance that plans compute without numpy is that of the analysis, over all edges."""
    tree = make_tree(2.0, 64, mean=mean)
    part = 3 / 4 if mean else 1
    assert tree.edge_variance == pytest.approx(
        scores(tree).planned(np.tri(tree.cells + 1, tree.cells, -1))[1:-1].mean() / part
    )


def test_an_interval_at_its_limits():
    """Without noise it is as wide as the cells leave open; where nothing is known it has no end."""
    exact = MeanEstimate(0.5, 0.0, 10, rounding=0.01)
    assert exact.interval(0.95) == (0.49, 0.51)
    assert MeanEstimate(0.0, math.inf, 0).interval(0.95) == (-math.inf, math.inf)

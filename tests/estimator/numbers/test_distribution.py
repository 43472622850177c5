"""Curves, quantiles and shares of ranges; their changes, and averages over schemes."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import isotonic_regression
from tests.estimator.numbers.crowds import distribution, estimate_tree, sample_crowd, sample_rows

from deniable.protocol.mechanisms.hierarchical_histogram import HierarchicalHistogram
from deniable.protocol.mechanisms.number_range import TOP, NumberRange
from deniable_collector.tally import TallyRow
from deniable_estimator.analyses.numbers.cell_sums import combine_sums, sum_weights
from deniable_estimator.analyses.numbers.distribution import monotone
from deniable_estimator.analyses.numbers.hierarchical_histogram import (
    HierarchicalHistogramAnalysis,
)
from deniable_estimator.statistics.counts import share_interval


def _all_at(tree, number, reports=1_000_000):
    """The estimate for a crowd with one number."""
    position = np.array([tree.range.position(number)])
    rows = sample_rows(tree, position, np.array([reports]), np.random.default_rng(5))
    return distribution(tree, rows)


def test_monotone_is_the_nearest_curve():
    """Pooling neighbours gives the isotonic regression, as scipy computes it."""
    rng = np.random.default_rng(1)
    for _ in range(20):
        values, weights = rng.normal(size=50) + np.linspace(0, 2, 50), rng.uniform(0.1, 5, 50)
        expected = isotonic_regression(values, weights=weights).x
        np.testing.assert_allclose(monotone(values, weights), expected, atol=1e-12)


def test_bands_are_tightest(make_tree, striped):
    """Both bands are monotone and hold the curve, and no point of either could be tighter: each
    is an end of the interval of the curve at some edge."""
    found = distribution(make_tree(2.0, 64), striped(make_tree(2.0, 64)))
    low, high = found.bands
    assert (np.diff(low) >= 0).all()
    assert (np.diff(high) >= 0).all()
    assert (low <= found.curve).all()
    assert (found.curve <= high).all()
    least, most = share_interval(found.curve, found.noise, 0.95)
    for t in range(63):
        assert low[t] == pytest.approx(max(least[: t + 1]), abs=1e-6)
        assert high[t] == pytest.approx(min(most[t:]), abs=1e-6)


@pytest.mark.parametrize(
    ("number", "outside"), [(-1.0, "below"), (0.4, None), (1.0, "above"), (7.0, "above")]
)
def test_quantiles_outside(make_tree, number, outside):
    """A quantile below `low` has no lower limit, and one at `high` or above no upper limit."""
    tree = make_tree(4.0)
    quantile = _all_at(tree, number).quantile(0.5)
    if outside == "below":
        assert (quantile.low, quantile.high, quantile.point) == (None, 0, 0)
    elif outside == "above":
        assert (quantile.low, quantile.high, quantile.point) == (TOP, None, TOP)
    else:
        assert quantile.low is not None
        assert quantile.high is not None
        low, high = tree.range.value(quantile.low), tree.range.value(quantile.high)
        assert low <= number < high <= low + 2 / 254


def test_quantiles_that_the_crowd_is_too_small_for(make_tree):
    """From 1,000 reports at epsilon 1, p99 is "at least" something, and p1 "at most"."""
    tree = make_tree(1.0)
    found = _all_at(tree, 0.5, 1000)
    assert found.quantile(0.99).high is None
    assert found.quantile(0.99).low is not None
    assert found.quantile(0.01).low is None


def test_whole_numbers(make_tree):
    """With a cell for each whole number, limits are numbers that may occur, the ends included, and
    cells that are left over do not matter."""
    numbers = NumberRange("1", "100", integer=True)
    tree = make_tree(4.0, numbers=numbers)
    assert tree.edges[-2:] == (TOP, TOP)
    for number in (1, 37, 100):
        quantile = _all_at(tree, number).quantile(0.5)
        assert quantile.in_units(numbers) == (number, number, number)
    above = _all_at(tree, 101)
    assert above.quantile(0.5)[1:] == (TOP, TOP, None)
    assert above.above.share == pytest.approx(1, abs=0.02)
    everything = _all_at(tree, 37)
    inside = everything.share(numbers.position(37), numbers.position(38))
    assert (inside.interpolated, round(inside.share, 1)) == (False, 1.0)


def test_shares_of_ranges(make_tree):
    """A range between edges has the unbiased share. One that ends inside of cells is interpolated,
    its interval holds the truth wherever in the cells the numbers are, and says so."""
    tree = make_tree(4.0)
    found = _all_at(tree, 0.5)
    start, end = tree.edges[100], tree.edges[150]
    exact = found.share(start, end)
    assert not exact.interpolated
    assert exact.share == pytest.approx(found.cdf[150] - found.cdf[100])
    at = tree.range.position(0.5)
    cut = found.share(0, at + 1_000_000)
    assert cut.interpolated
    assert 0.1 < cut.share < 0.9
    assert cut.low <= 0 < 1 <= cut.high
    within = found.share(at + 10, at + 20)
    assert (within.low, within.high > 0.9) == (0.0, True)
    assert found.share(None, None).share == pytest.approx(1)
    assert found.below.share + found.share(0, TOP).share + found.above.share == pytest.approx(1)


def test_nothing_known(make_tree):
    """Without reports there are no limits, no NaN and no error."""
    tree = make_tree(1.0, 64)
    rows = [TallyRow(0, np.zeros(row.width, np.int64)) for row in tree.rows]
    found = distribution(tree, rows)
    quantile = found.quantile(0.5)
    assert (quantile.low, quantile.high) == (None, None)
    assert math.isinf(found.below.variance)
    assert found.share(10, 20).low == -math.inf
    assert found.histogram() == pytest.approx(np.full(64, 1 / 64))


def test_curve_without_the_last_row(make_tree, striped):
    """Edges that no row sees lie between those that one sees, and quantiles have limits there."""
    tree = make_tree(4.0, 64)
    rows = sample_crowd(tree, np.full(64, 1 / 64), 1_000_000, np.random.default_rng(7))
    found = distribution(tree, (*rows[:2], TallyRow(0, np.zeros(tree.rows[2].width, np.int64))))
    quantile = found.quantile(0.5)
    edges = [int(np.searchsorted(found.edges, each)) + 1 for each in (quantile.low, quantile.high)]
    assert [edge % 4 for edge in edges] == [0, 0]
    assert edges[0] < 32 < edges[1]
    assert found.curve == pytest.approx(np.arange(1, 64) / 64, abs=0.02)


def test_drawn_histogram(make_tree, striped):
    """It is possible, and at the root the nearest to the estimate among all that are: the best of
    all choices of nodes that are cut to zero."""
    tree = make_tree(1.0, 64)
    found = distribution(tree, striped(tree))
    drawn = found.histogram()
    assert drawn.min() >= 0
    assert drawn.sum() == pytest.approx(1)
    shares = np.diff(found.sums.below[::16])
    best, least = None, math.inf
    for used in itertools.product((False, True), repeat=4):
        mask = np.array(used)
        if not mask.any():
            continue
        each = np.where(mask, shares + (1 - shares[mask].sum()) / mask.sum(), 0.0)
        if each.min() >= 0 and ((each - shares) ** 2).sum() < least:
            best, least = each, float(((each - shares) ** 2).sum())
    assert drawn.reshape(4, 16).sum(axis=1) == pytest.approx(best)


def _empty(tree):
    return tuple(TallyRow(0, np.zeros(row.width, np.int64)) for row in tree.rows)


def test_one_average_for_all_questions(make_tree):
    """Curve, ranges, sums and means are averaged with the same weights, so that they agree."""
    trees = make_tree(1.0, 64), make_tree(4.0, 64)
    rng = np.random.default_rng(2)
    parts = [
        estimate_tree(tree, sample_crowd(tree, np.full(64, 1 / 64), 20_000, rng)) for tree in trees
    ]
    found, weights = combine_sums(parts), sum_weights(parts)
    assert sum(weights) == pytest.approx(1)
    assert found.reports == 40_000
    below = sum(weight * part.below for weight, part in zip(weights, parts, strict=True))
    np.testing.assert_allclose(found.below, below, atol=1e-12)
    question = (np.arange(64) < 20)[None].astype(float)
    value, covariance = found.fresh(question)
    assert value[0] == pytest.approx(found.below[20])
    assert covariance[0, 0] == pytest.approx(found.variance[20])
    assert found.share(0, 20) == pytest.approx((found.below[20], found.variance[20]))
    assert found.variance[20] == pytest.approx(sum(part.variance[20] for part in parts) / 4)
    mean = HierarchicalHistogramAnalysis(trees[0]).mean_of
    assert mean(found).mean == pytest.approx(
        sum(w * mean(part).mean for w, part in zip(weights, parts, strict=True))
    )


def test_a_scheme_without_reports_counts_for_nothing(make_tree):
    """The average with it is the other one; of nothing at all, nothing is known."""
    trees = make_tree(1.0, 64), make_tree(2.0, 64)
    rows = sample_crowd(trees[0], np.full(64, 1 / 64), 20_000, np.random.default_rng(3))
    one, none = estimate_tree(trees[0], rows), estimate_tree(trees[1], _empty(trees[1]))
    both = combine_sums([none, one])
    np.testing.assert_allclose(both.below, one.below, atol=1e-12)
    np.testing.assert_allclose(both.variance, one.variance, rtol=1e-9)
    assert np.isinf(combine_sums([none, none]).variance[1:-1]).all()


def test_devices_that_used_several_schemes(make_tree):
    """What they keep is added for all questions."""
    tree = make_tree(2.0, 64)
    rows = sample_crowd(tree, np.full(64, 1 / 64), 200_000, np.random.default_rng(4))
    parts = [estimate_tree(tree, rows), estimate_tree(tree, rows)]
    more = combine_sums(parts, 1e-3).variance[32] - combine_sums(parts).variance[32]
    assert more == pytest.approx(1e-3 / 4, rel=1e-3)


def _covered(epsilon, n, below, runs):
    """How often the intervals of the shares below `low` and at `high` or above hold them, of crowds
    with so many below, none above, and the others at six numbers; and how often an interval lies
    wholly below 0."""
    tree = HierarchicalHistogram.design(NumberRange("0", "1"), epsilon)
    rng, cells = np.random.default_rng(1), np.zeros(256)
    cells[[20, 60, 100, 130, 131, 200]] = (1 - below) / 6
    cells[0] = below
    covered = impossible = 0
    for _ in range(runs):
        found = distribution(tree, sample_crowd(tree, cells, n, rng))
        covered += found.below.low <= below <= found.below.high
        covered += found.above.low <= 0 <= found.above.high
        impossible += found.below.high < 0
    return covered, impossible


@pytest.mark.parametrize("below", [0.0, 0.05])
def test_shares_of_few_reports_are_covered(below):
    """At epsilon 8 and 200 reports, 95% intervals of the shares outside of the range hold them in
    93.5% of the cases or more, above a binomial tail of 1e-4 for 60 crowds, seed 1; those from the
    counters' own variance, which is 0 where no report counts, did so in 64 to 89%."""
    covered, impossible = _covered(8.0, 200, below, 30)
    assert covered >= stats.binom.ppf(1e-4, 60, 0.935)
    assert impossible <= stats.binom.isf(1e-4, 30, 0.05)


@pytest.mark.campaign
@pytest.mark.parametrize("n", [100, 200, 1_000, 10_000])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0, 8.0])
def test_shares_outside_of_the_range_are_covered(epsilon, n):
    """The same for every epsilon and crowd: above a binomial tail of 1e-5 of 300 intervals."""
    for below in (0.0, 0.003, 0.05, 0.3):
        covered, _ = _covered(epsilon, n, below, 150)
        assert covered >= stats.binom.ppf(1e-5, 300, 0.935), below


@pytest.mark.parametrize("epsilon", [2.0, 4.0])
def test_a_mean_of_few_reports_is_covered(epsilon):
    """Of 110 devices with low numbers, often only the finest row has enough reports, and its
    counters hardly tell how much they vary: their variance alone covered the mean in 39 to 84% of
    such crowds. Above a binomial tail of 1e-4 at 90%; 400 crowds, seed 1."""
    tree = HierarchicalHistogram.design(NumberRange("0", "100"), epsilon)
    analysis, rng = HierarchicalHistogramAnalysis(tree), np.random.default_rng(1)
    positions = np.array([0, 0.1, 0.2, 0.3, 0.9]) * TOP
    shares = np.array([0.3, 0.3, 0.2, 0.15, 0.05])
    truth, known, held = float(shares @ (2 * positions / TOP - 1)), 0, 0
    for _ in range(400):
        rows = analysis.sample_rows(positions.astype(np.int64), rng.multinomial(110, shares), rng)
        if [row.reports >= 30 for row in rows] != [False, False, False, True]:
            continue
        low, high = analysis.mean(rows).interval(0.95)
        known, held = known + 1, held + (low <= truth <= high)
    assert known > 50
    assert held >= stats.binom.ppf(1e-4, known, 0.9)
    rows = analysis.sample_rows(np.array([TOP // 2]), np.array([20_000]), rng)
    _, noise = analysis.sums(rows, 1.0).fresh(analysis.points)
    assert analysis.mean(rows).noise == noise[0, 0]  # of many, what their counters say

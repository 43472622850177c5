"""The tree: its estimate, the scores that answer any question, and drawn tallies."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats
from tests.estimator.numbers.crowds import (
    estimate_tree,
    sample_crowd,
    sample_rows,
    sample_window,
    window_rates,
)
from tests.supports import support

from deniable.protocol.mechanisms import Report
from deniable.protocol.mechanisms.hierarchical_histogram import space_of
from deniable.protocol.mechanisms.number_range import TOP
from deniable_collector.tally import TallyRow
from deniable_estimator.analyses.numbers.hierarchical_histogram import (
    HierarchicalHistogramAnalysis,
)
from deniable_estimator.analyses.numbers.scores import ownership, scores


@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_it_is_weighted_least_squares(make_tree, epsilon):
    """The closed form is the solution of the normal equations for shares that sum to one, each
    row's nodes weighted by its reports over their noise."""
    tree = make_tree(epsilon, 64)
    rng = np.random.default_rng(2)
    rows = sample_crowd(tree, rng.dirichlet(np.ones(64)), 20_000, rng)
    normal, right = np.zeros((65, 65)), np.zeros(65)
    normal[64, :64] = normal[:64, 64] = 1
    right[64] = 1
    for level, weight, row in zip(tree.levels, tree.weights, rows, strict=True):
        p, q, m = float(level.p), float(level.q), level.size
        counts = np.array(
            [sum(row.cells[column] for _, column in support(level, x)) for x in range(m)]
        )
        shares = (counts / row.reports - q) / (p - q)
        noise = (p * (1 - p) + (m - 1) * q * (1 - q)) / ((p - q) ** 2 * (m - 1))
        member = np.kron(np.eye(m), np.ones(64 // m))
        normal[:64, :64] += weight / noise * member.T @ member
        right[:64] += weight / noise * member.T @ shares
    cells = np.linalg.solve(normal, right)[:64]
    found = estimate_tree(tree, rows)
    np.testing.assert_allclose(np.diff(found.below), cells, atol=1e-10)


def _outcomes(columns, reports):
    """All counters of so many reports, with the number of orders in which they come."""
    found = []
    for sent in itertools.combinations_with_replacement(range(columns), reports):
        cells = np.bincount(sent, minlength=columns)
        orders = math.factorial(reports)
        for count in cells:
            orders //= math.factorial(int(count))
        found.append((cells, orders))
    return found


def _chance(cells, orders, rates):
    return float(orders * np.prod(rates**cells))


def test_bias_and_variance_by_enumeration(make_tree, monkeypatch):
    """Over all tallies of 2 and 2 reports of a population, the estimate of every edge has no bias,
    and the variance from the counters is (n - 1) / n times the true one on average."""
    monkeypatch.setattr("deniable_estimator.analyses.numbers.hierarchical_histogram.LEAST_ROW", 1)
    tree = make_tree(4.0, 16)
    shares = np.array([0.3, 0.0, 0.05, 0.15] + [0.0] * 10 + [0.1, 0.4])
    rates = [
        shares.reshape(level.size, -1).sum(axis=1) @ scores(tree).chances[row]
        for row, level in enumerate(tree.levels)
    ]
    first, second, variance, total = np.zeros(17), np.zeros(17), np.zeros(17), 0.0
    halves = [_outcomes(level.rows[0].width, 2) for level in tree.levels]
    for one, two in itertools.product(*halves):
        chance = _chance(*one, rates[0]) * _chance(*two, rates[1])
        found = estimate_tree(tree, (TallyRow(2, one[0]), TallyRow(2, two[0])))
        total += chance
        first += chance * found.below
        second += chance * found.below**2
        variance += chance * found.variance
    assert total == pytest.approx(1, abs=1e-12)
    np.testing.assert_allclose(first, np.concatenate([[0], np.cumsum(shares)]), atol=1e-11)
    np.testing.assert_allclose(2 * variance, second - first**2, atol=1e-10)


def test_all_questions_agree(make_tree, striped, monkeypatch):
    """The curve, shares of ranges and any sums of shares are one estimate, with one covariance."""
    monkeypatch.setattr("deniable_estimator.analyses.numbers.hierarchical_histogram.LEAST_ROW", 1)
    tree = make_tree(2.0, 64)
    found = estimate_tree(tree, striped(tree))
    questions = np.zeros((3, 64))
    questions[0, :20] = questions[1, 5:20] = questions[2, 20:] = 1
    value, covariance = found.fresh(questions)
    assert value == pytest.approx([found.below[20], found.share(5, 20)[0], 1 - found.below[20]])
    variances = [found.variance[20], found.share(5, 20)[1], found.variance[20]]
    assert np.diag(covariance) == pytest.approx(variances)
    assert covariance[0, 2] == pytest.approx(-found.variance[20])


@pytest.mark.parametrize("empty", [0, 29])
def test_without_the_last_row(make_tree, striped, empty):
    """What only a missing row could tell has an infinite variance, and a finite value; the rest
    is estimated from the other rows. A row of 29 reports counts as missing."""
    tree = make_tree(1.0, 64)
    cells = np.zeros(tree.rows[2].width, np.int64)
    cells[3] = empty
    rows = (*(TallyRow(100 * row.reports, 100 * row.cells) for row in striped(tree)[:2]),)
    found = estimate_tree(tree, (*rows, TallyRow(empty, cells)))
    assert np.isfinite(found.below).all()
    assert np.isfinite(found.variance).tolist() == [edge % 4 == 0 for edge in range(65)]
    assert found.share(4, 12)[1] < math.inf
    assert found.share(4, 11)[1] == math.inf
    value, covariance = found.fresh(np.eye(64)[:1])
    assert np.isfinite(value).all()
    assert covariance[0, 0] == math.inf


def test_devices_that_report_again_in_any_row(make_tree):
    """What devices keep counts by all reports: a quarter of them in the mean's row is noise that
    the tree does not have, and no more devices that it shares."""
    tree = make_tree(1.0, 16, mean=True)
    rows = [TallyRow(900 * row.width, np.full(row.width, 900)) for row in tree.rows]
    total = sum(row.reports for row in rows)
    once, twice = (estimate_tree(tree, rows, repeats) for repeats in (1.0, 2.0))
    assert twice.variance[8] - once.variance[8] == pytest.approx(0.25 / total)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_nodes_own_the_columns_that_support_them(make_tree, epsilon):
    """Ownership is the support of each level's own mechanism, node by node."""
    for level in make_tree(epsilon).levels:
        own = ownership(*space_of(level), level.rows[0].width, level.size)
        for node in range(level.size):
            columns = [column for _, column in support(level, node)]
            assert np.flatnonzero(own[node]).tolist() == columns


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 4.0])
@pytest.mark.parametrize("live", [None, (True, False, True, True), (False, False, False, True)])
def test_expected_scores_are_the_question(make_tree, epsilon, live):
    """For a device in any cell, the expected scores of all rows sum to W there, to 1e-12 of W's
    span, for random questions and every edge, whatever rows are left out."""
    tree = make_tree(epsilon)
    table = scores(tree, live)
    rng = np.random.default_rng(1)
    questions = np.concatenate([rng.normal(size=(5, 256)), np.tril(np.ones((256, 256)))])
    expected = np.repeat(questions.mean(axis=1)[:, None], 256, axis=1)
    for row, each in enumerate(table.of(questions)):
        by_node = each @ scores(tree).chances[row].T
        expected += np.repeat(by_node, 256 // tree.levels[row].size, axis=1)
    assert np.abs(expected - questions).max() < 1e-11


def test_edges_are_questions_like_others(make_tree):
    """The scores of "below this edge" are those of the question."""
    table = scores(make_tree(1.0, 64))
    for row, each in enumerate(table.of(np.tri(63, 64))):
        np.testing.assert_allclose(table.at_edges(row), each, atol=1e-12)


@pytest.mark.parametrize("mean", [False, True])
def test_row_shares_are_the_devices_own(make_tree, mean):
    """The shares of rows are the chances with which a device draws them, exactly."""
    tree = make_tree(1.0, 16, mean)
    for row, share in enumerate(np.array(tree.shares, np.float64)):
        drawn = sum(
            (tree.likelihood(Report(row, column), 5) for column in range(tree.rows[row].width)),
            Fraction(0),
        )
        assert Fraction(float(share)) == drawn


POSITIONS = np.array([-1, 0, 300_000_001, TOP])
COUNTS = np.array([20_000, 0, 50_000, 30_000])


def test_columns_of_a_window(make_window):
    """Columns come as often as the likelihoods say (chi-square, alpha 1e-4; seed 1), and every
    device reports once."""
    window = make_window(2.0)
    row = sample_window(window, POSITIONS, COUNTS, np.random.default_rng(1))
    assert row.reports == row.cells.sum() == COUNTS.sum()
    rates = [
        sum(
            count * float(window.likelihood(Report(0, column), int(position)))
            for position, count in zip(POSITIONS, COUNTS, strict=True)
        )
        for column in range(64)
    ]
    # Counts of a given crowd vary a little less than those of one multinomial.
    assert stats.chisquare(row.cells, rates).pvalue > 1e-4
    of_parts = window_rates(window, POSITIONS, COUNTS / COUNTS.sum()) * COUNTS.sum()
    np.testing.assert_allclose(of_parts, rates, rtol=1e-12)


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_columns_of_a_tree(make_tree, epsilon):
    """Cells of all rows come as often as the likelihoods say, the mean's row included (chi-square
    over all cells, alpha 1e-4; seed 3)."""
    tree = make_tree(epsilon, 16, mean=True)
    rows = sample_rows(tree, POSITIONS, COUNTS, np.random.default_rng(3))
    assert sum(row.reports for row in rows) == COUNTS.sum()
    rates, seen = [], []
    for number, row in enumerate(rows):
        assert row.reports == row.cells.sum()
        seen += row.cells.tolist()
        rates += [
            sum(
                count * float(tree.likelihood(Report(number, column), int(position)))
                for position, count in zip(POSITIONS, COUNTS, strict=True)
            )
            for column in range(tree.rows[number].width)
        ]
    assert stats.chisquare(seen, rates).pvalue > 1e-4


def test_cells_are_the_devices_own(make_tree):
    """A position falls into the cell that a device would report."""
    tree = make_tree(1.0, 64)
    positions = [-1, *(edge + step for edge in tree.edges[:-1] for step in (0, 1)), TOP - 1, TOP]
    found = HierarchicalHistogramAnalysis(tree).cells(np.array(positions))
    assert found.tolist() == [tree.cell(position) for position in positions]

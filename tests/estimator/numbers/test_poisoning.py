"""Fakes move an estimate exactly as far as the budget says, and no crowd of fakes moves it more."""

import numpy as np
import pytest
from tests.estimator.numbers.crowds import distribution, estimate_tree, sample_crowd, sample_window

from deniable.protocol.mechanisms.number_range import TOP
from deniable_collector.tally import TallyRow
from deniable_estimator.analyses.numbers import (
    flooded,
    row_pulls,
)
from deniable_estimator.analyses.numbers.hierarchical_histogram import (
    HierarchicalHistogramAnalysis,
)
from deniable_estimator.analyses.numbers.scores import scores
from deniable_estimator.analyses.numbers.sliding_window import SlidingWindowAnalysis


@pytest.mark.parametrize("side", [0, -1])
def test_attack_on_a_mean(make_window, side):
    """1% of fakes who all send the last (or first) column move the mean exactly that far."""
    window = make_window(1.0)
    rng = np.random.default_rng(1)
    row = sample_window(window, np.array([TOP // 3]), np.array([99_000]), rng)
    cells = row.cells.copy()
    cells[side] += 1000
    analysis = SlidingWindowAnalysis(window)
    honest = analysis.mean([row]).mean
    moved = analysis.mean([TallyRow(100_000, cells)]).mean - honest
    attack = analysis.attack(honest, 0.01)
    assert moved == pytest.approx(attack.gain if side else -attack.loss)
    assert analysis.top_score == max(window.scores())


def _flooded(tree, rows, weights, fakes, sign):
    """How far the answer to W moves if so many fakes in each row send the column that moves it
    most up (sign 1) or down (-1)."""
    found = scores(tree).of(weights[None])
    attacked = []
    for row, count, each in zip(rows, fakes, found, strict=True):
        cells = row.cells.copy()
        cells[int((sign * each[0]).argmax())] += count
        attacked.append(TallyRow(row.reports + count, cells))
    before = estimate_tree(tree, rows).fresh(weights[None])[0][0]
    after = estimate_tree(tree, attacked).fresh(weights[None])[0][0]
    return float(after - before)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("edge", [1, 100, 192])
@pytest.mark.parametrize("total", [500, 30_000])
def test_attack_on_a_share(make_tree, edge, sign, total):
    """No split of the fakes over rows moves the share below an edge further than the budget, and
    the best of 231 splits comes within 1% of it."""
    tree = make_tree(2.0, 64)
    rng = np.random.default_rng(edge)
    rows = sample_crowd(tree, rng.dirichlet(np.ones(64)), 50_000, rng)
    weights = (np.arange(64) < min(edge, 63)).astype(float)
    counts = np.array([row.reports for row in rows]) / 50_000
    found = [sign * each[0] for each in scores(tree).of(weights[None])]
    means = [each @ row.cells / row.reports for each, row in zip(found, rows, strict=True)]
    pulls = np.array([each.max() for each in found]) - means
    budget = flooded(pulls, counts, total / (50_000 + total))
    parts = [(a, b, 20 - a - b) for a in range(21) for b in range(21 - a)]
    gains = [
        sign * _flooded(tree, rows, weights, tuple(total * each // 20 for each in split), sign)
        for split in parts
    ]
    assert max(gains) <= budget + 1e-9
    assert max(gains) >= 0.99 * budget


def test_no_edge_moves_more(make_tree):
    """The budget of the curve is the largest of all edges, for an even crowd."""
    tree = make_tree(1.0, 64)
    sides = row_pulls(scores(tree).of(np.tri(63, 64)))
    shares = np.array(tree.shares, np.float64)
    for side, told in enumerate(HierarchicalHistogramAnalysis(tree).curve_attack(0.01)):
        assert told == pytest.approx(max(flooded(each, shares, 0.01) for each in sides[side]))


def test_attack_on_a_quantile(make_tree):
    """Fakes who lift the curve at the median by the budget move it no further than it says."""
    tree = make_tree(4.0, 64)
    rng = np.random.default_rng(3)
    rows = sample_crowd(tree, np.full(64, 1 / 64), 400_000, rng)
    found = distribution(tree, rows)
    low, high = found.reach(0.5, 0.05, 0.05)
    assert low == pytest.approx(tree.range.position(0.45), abs=TOP / 60)
    assert high == pytest.approx(tree.range.position(0.55), abs=TOP / 60)
    assert found.reach(0.02, 0.05, 0.05)[0] is None
    assert found.reach(0.98, 0.05, 0.05)[1] is None
    assert found.reach(0.5, 0.0, 0.0)[0] is not None


def test_attack_on_both_means(make_tree):
    """1% of fakes in the best row move the mean of all rows exactly as far as the budget says,
    where one row is enough for them."""
    tree = make_tree(1.0, 16, mean=True)
    assert tree.mean is not None
    widths = np.array([row.width for row in tree.rows])
    sizes = np.round(960_000 * np.array(tree.shares, np.float64) / widths).astype(int)
    rows = [
        TallyRow(int(size * width), np.full(width, size))
        for size, width in zip(sizes, widths, strict=True)
    ]
    total = sum(row.reports for row in rows)
    fakes = round(total * 0.001)
    analysis = HierarchicalHistogramAnalysis(tree)
    honest, moved = analysis.mean(rows, 1.0).mean, []
    found = scores(tree).of(analysis.points)
    columns = [int(each[0].argmax()) for each in found] + [tree.mean.columns - 1]
    for number, column in enumerate(columns):
        cells = rows[number].cells.copy()
        cells[column] += fakes
        attacked = [*rows]
        attacked[number] = TallyRow(rows[number].reports + fakes, cells)
        moved.append(analysis.mean(attacked, 1.0).mean - honest)
    attack = analysis.attack(honest, fakes / (total + fakes))
    assert max(moved) == pytest.approx(attack.gain, rel=1e-4)

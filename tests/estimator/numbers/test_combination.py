"""Estimates under several schemes are averaged without bias, and are better than each alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import pytest

from deniable.mechanisms.hierarchical_histogram import HierarchicalHistogram
from deniable_collector.tally import TallyRow
from deniable_estimator.analyses.numbers.distribution import combine_distributions, distribution
from deniable_estimator.analyses.numbers.mean import cells_mean
from deniable_estimator.analyses.numbers.sampling import sample_crowd
from deniable_estimator.analyses.numbers.sums import combine_sums, sum_weights
from deniable_estimator.analyses.numbers.tree import estimate_tree

MakeTree: TypeAlias = Callable[..., HierarchicalHistogram]


def _empty(tree: HierarchicalHistogram) -> tuple[TallyRow, ...]:
    return tuple(TallyRow(0, np.zeros(row.width, np.int64)) for row in tree.rows)


def test_one_average_for_all_questions(make_tree: MakeTree) -> None:
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
    value, covariance = found.linear(question)
    assert value[0] == pytest.approx(found.below[20])
    assert covariance[0, 0] == pytest.approx(found.variance[20])
    assert found.share(0, 20) == pytest.approx((found.below[20], found.variance[20]))
    assert found.variance[20] <= min(part.variance[20] for part in parts) * 1.01
    assert cells_mean(trees[0], found).mean == pytest.approx(
        sum(w * cells_mean(trees[0], part).mean for w, part in zip(weights, parts, strict=True))
    )


def test_a_scheme_without_reports_counts_for_nothing(make_tree: MakeTree) -> None:
    """The average with it is the other one; of nothing at all, nothing is known."""
    trees = make_tree(1.0, 64), make_tree(2.0, 64)
    rows = sample_crowd(trees[0], np.full(64, 1 / 64), 20_000, np.random.default_rng(3))
    one, none = distribution(trees[0], rows), distribution(trees[1], _empty(trees[1]))
    both = combine_distributions([none, one])
    np.testing.assert_allclose(both.cdf, one.cdf, atol=1e-12)
    np.testing.assert_allclose(both.variance, one.variance, rtol=1e-9)
    nothing = combine_distributions([none, none])
    assert np.isinf(nothing.variance).all()
    assert (nothing.quantile(0.5).low, nothing.quantile(0.5).high) == (None, None)


def test_devices_that_used_several_schemes(make_tree: MakeTree) -> None:
    """What they keep is added for all questions."""
    tree = make_tree(2.0, 64)
    rows = sample_crowd(tree, np.full(64, 1 / 64), 200_000, np.random.default_rng(4))
    parts = [estimate_tree(tree, rows), estimate_tree(tree, rows)]
    more = combine_sums(parts, 1e-3).variance[32] - combine_sums(parts).variance[32]
    assert more == pytest.approx(1e-3 / 4, rel=1e-3)


def test_other_cells_are_refused(make_tree: MakeTree) -> None:
    """Schemes of other cells have no common questions here."""
    trees = make_tree(1.0, 64), make_tree(1.0, 16)
    found = [distribution(tree, _empty(tree)) for tree in trees]
    with pytest.raises(ValueError, match="same edges"):
        combine_distributions(found)
    with pytest.raises(ValueError, match="same cells"):
        combine_sums([each.sums for each in found])
    with pytest.raises(ValueError, match="same edges"):
        combine_distributions([])

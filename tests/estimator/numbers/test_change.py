"""Changes: none are told where there are none, and real ones have the right sign and size."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import pytest
from scipy import stats

from deniable.mechanisms.hierarchical_histogram import HierarchicalHistogram
from deniable.mechanisms.number_range import TOP
from deniable_estimator.analyses.numbers.change import quantile_shift
from deniable_estimator.analyses.numbers.distribution import (
    DistributionEstimate,
    distribution,
)
from deniable_estimator.analyses.numbers.sampling import sample_crowd

MakeTree: TypeAlias = Callable[..., HierarchicalHistogram]


def _bump(place: float) -> np.ndarray:
    cells = np.zeros(256)
    cells[1:255] = stats.norm(place, 20).pdf(np.arange(254))
    return np.asarray(cells / cells.sum())


def _drawn(
    tree: HierarchicalHistogram, cells: np.ndarray, rng: np.random.Generator
) -> DistributionEstimate:
    return distribution(tree, sample_crowd(tree, cells, 50_000, rng))


def test_a_quantile_that_rose(make_tree: MakeTree) -> None:
    """A crowd that moved up by 30 cells has a larger median: positive score, and an interval about
    30 cells."""
    tree = make_tree(2.0)
    rng = np.random.default_rng(2)
    shift = quantile_shift(_drawn(tree, _bump(100), rng), _drawn(tree, _bump(130), rng), 0.5)
    assert shift.z > 5
    assert 0 < shift.low < 30 / 254 * TOP < shift.high
    assert shift.p_value < 1e-6
    back = quantile_shift(_drawn(tree, _bump(130), rng), _drawn(tree, _bump(100), rng), 0.5)
    assert back.z < -5
    assert back.high < 0


def test_a_quantile_without_a_limit(make_tree: MakeTree) -> None:
    """Where p99 of the later window has no upper limit, nor has its shift."""
    tree = make_tree(1.0)
    rng = np.random.default_rng(3)
    before, after = _drawn(tree, _bump(100), rng), _drawn(tree, _bump(100), rng)
    assert after.quantile(0.99).high is None
    assert quantile_shift(before, after, 0.99).high == math.inf


def test_other_edges_are_refused(make_tree: MakeTree) -> None:
    """Quantiles of different cells are not compared edge by edge."""
    rng = np.random.default_rng(4)
    one = _drawn(make_tree(1.0), _bump(100), rng)
    tree = make_tree(1.0, 64)
    two = distribution(tree, sample_crowd(tree, np.full(64, 1 / 64), 1000, rng))
    with pytest.raises(ValueError, match="same edges"):
        quantile_shift(one, two, 0.5)

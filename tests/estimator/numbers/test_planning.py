"""Planned variances are those of the channel, exactly, and promises are kept."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import TypeAlias

import numpy as np
import pytest

from deniable.mechanisms import Report
from deniable.mechanisms.hierarchical_histogram import HierarchicalHistogram
from deniable.mechanisms.number_range import TOP
from deniable.mechanisms.sliding_window import SlidingWindow
from deniable_estimator.analyses.numbers.mean import level_noise
from deniable_estimator.analyses.numbers.planning import (
    mean_half_width,
    quantile_reach,
    reports_for_mean,
    reports_for_quantile,
    tree_variances,
)
from deniable_estimator.forecasting.number_forecast import mean_variance

MakeTree: TypeAlias = Callable[..., HierarchicalHistogram]
MakeWindow: TypeAlias = Callable[..., SlidingWindow]


@pytest.mark.parametrize("epsilon", [0.5, 3.0])
def test_noise_of_a_number(make_window: MakeWindow, epsilon: float) -> None:
    """At any position it is the variance of the score under the exact likelihoods, and nowhere more
    than the worst one."""
    window = make_window(epsilon)
    levels, squares = level_noise(window)
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
def test_devices_and_servers_plan_alike(make_tree: MakeTree, mean: bool) -> None:
    """The variances that the registry's check computes without numpy are the same ones."""
    tree = make_tree(2.0, 64, mean=mean)
    edges = tree.edge_variances()
    found = tree_variances(tree)
    clamped = max(edges[0], edges[-1])
    assert (found.cdf, found.clamped) == pytest.approx((np.mean(edges), clamped))


def test_widths_of_a_mean() -> None:
    """The number of reports for a width is the one that has it."""
    reports = reports_for_mean(4.0122, 0.02)
    assert mean_half_width(4.0122, reports) == pytest.approx(0.02, rel=1e-4)
    assert mean_half_width(4.0122, reports) <= 0.02 < mean_half_width(4.0122, reports - 1)


@pytest.mark.parametrize(("p", "known"), [(0.5, 1.5e3), (0.9, 3.7e4), (0.95, 1.5e5), (0.99, 3.7e6)])
def test_reports_for_a_quantile(make_tree: MakeTree, p: float, known: float) -> None:
    """At epsilon 1, as computed once without the sampling of devices; alike on the other side."""
    variances = tree_variances(make_tree(1.0))
    assert reports_for_quantile(variances, p) == pytest.approx(known, rel=0.03)
    other = reports_for_quantile(variances, 1 - p)
    assert other == pytest.approx(reports_for_quantile(variances, p), abs=1)


def test_reach_of_a_quantile(make_tree: MakeTree) -> None:
    """It has no upper limit with a quarter of the reports that it needs, and half of the distance
    with all of them."""
    variances = tree_variances(make_tree(1.0))
    reports = reports_for_quantile(variances, 0.95)
    assert quantile_reach(variances, 0.95, reports).high == pytest.approx(0.975, abs=1e-4)
    assert quantile_reach(variances, 0.95, reports // 4 - 1).high is None
    assert quantile_reach(variances, 0.05, reports // 4 - 1).low is None

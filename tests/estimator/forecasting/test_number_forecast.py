"""What a crowd can tell of a number: constants known from elsewhere, and the notes of lint."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from deniable import Metric, Registry
from deniable.mechanisms import HierarchicalHistogram, NumberRange, SlidingWindow
from deniable_estimator.forecasting.forecast import forecast, is_blind
from deniable_estimator.forecasting.number_forecast import (
    mean_std_error,
    mean_variance,
    wasteful_range,
)

UNIT = NumberRange("0", "1")


def test_a_row_for_the_mean_costs_a_quarter_of_the_devices() -> None:
    """With it, all variances of the distribution are 4/3 of what they are without."""
    plain, both = (HierarchicalHistogram.design(UNIT, 2.0, mean=mean) for mean in (False, True))
    for one, other in zip(plain.edge_variances(), both.edge_variances(), strict=True):
        assert other == pytest.approx(one * 4 / 3)


def least_squares(histogram: HierarchicalHistogram, edge: int) -> float:
    """The variance of the best linear estimate of the share below an edge, the long way.

    Each level tells the shares of its nodes with the covariance of its mechanism for shares that
    are all equal: v_l/share_l on what sums to zero. Generalized least squares over all levels,
    with the shares' sum known.
    """
    cells = histogram.cells
    # Unknowns: the shares of all cells but the last, which is 1 minus their sum.
    free = np.vstack([np.eye(cells - 1), -np.ones(cells - 1)])
    normal = np.zeros((cells - 1, cells - 1))
    for level, weight in zip(histogram.levels, histogram.weights, strict=True):
        p, q = float(level.oracle.p), float(level.oracle.q)
        m = level.nodes
        spread = (p * (1 - p) + (m - 1) * q * (1 - q)) / ((p - q) ** 2 * (m - 1))
        # Node shares have information weight/16/spread in every direction that sums to zero.
        nodes = np.kron(np.eye(m), np.ones(cells // m)) @ free
        normal += weight / 16 / spread * nodes.T @ nodes
    below = (np.arange(cells - 1) < edge).astype(float)
    return float(below @ np.linalg.solve(normal, below))


@pytest.mark.parametrize("edge", [1, 5, 16, 37, 63])
def test_variances_are_those_of_least_squares(edge: int) -> None:
    """The closed form is the inverse of the normal equations."""
    histogram = HierarchicalHistogram.design(UNIT, 1.0, 64)
    expected = least_squares(histogram, edge)
    assert histogram.edge_variances()[edge - 1] == pytest.approx(expected, rel=1e-9)


def test_a_mean_has_a_standard_error() -> None:
    """In the unit of the metric; on a logarithmic scale that of the mean logarithm."""
    linear = SlidingWindow.design(NumberRange("-5", "15"), 1.0)
    assert mean_variance(linear) == pytest.approx(4.0122, abs=1e-4)
    assert mean_std_error(linear, 10_000) == pytest.approx(10 * math.sqrt(4.0122 / 10_000), 1e-4)
    log = SlidingWindow.design(NumberRange("1", "100", "log"), 1.0)
    expected = math.log(100) / 2 * math.sqrt(4.0122 / 400)
    assert mean_std_error(log, 400) == pytest.approx(expected, rel=1e-4)


def metric(**keys: Any) -> Metric:
    settings = {"low": "1", "high": "50", "ask": '"distribution"', "epsilon": "1.0"} | keys
    lines = "".join(f"{key} = {value}\n" for key, value in settings.items())
    return Registry.parse(
        'schema = 1\napp = "example"\n[metrics.m]\ntype = "number"\ndescription = "d"\n'
        f'owner = "o"\nexpires = 2099-01-01\nlifetime_epsilon = 9.0\n{lines}'
    )["m"]


@pytest.mark.parametrize(
    ("keys", "told", "blind"),
    [
        ({}, None, False),
        ({"devices": 300}, "p50, p90, p95, p99 will have no upper limit in a day", True),
        ({"devices": 1_000}, "p90, p95, p99 will have no upper limit in a day", False),
        ({"devices": 20_000}, "p95, p99 will have no upper limit in a day", False),
        ({"devices": 900_000}, "p99 will have no upper limit in a day: p99 takes", False),
        ({"devices": 2_000_000, "sample_rate": 0.02}, "p99 takes more than 46,712,450", False),
        ({"devices": 2_000_000}, None, False),
        ({"devices": 20, "ask": '"mean"'}, "the mean is known to +-0.44 of the range", False),
        ({"devices": 8, "ask": '"mean"'}, "the mean is known to no better than", True),
        ({"devices": 10_000, "ask": '"mean"'}, None, False),
        ({"devices": 5_000, "ask": '["mean", "distribution"]'}, "the mean is known to", False),
    ],
)
def test_a_crowd_that_is_too_small_is_told(
    keys: dict[str, Any], told: str | None, blind: bool
) -> None:
    """Which quantiles never get an upper limit, and how little of a mean is known."""
    found = forecast(metric(**keys))
    if told is None:
        assert found is None
    else:
        assert found is not None
        assert told in found
        assert found.startswith(f"with {keys['devices']:,} devices at sample_rate ")
    assert is_blind(metric(**keys)) == blind


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"low": "0.05", "high": "20"}, True),
        ({"low": "0.05", "high": "20", "scale": '"log"'}, False),
        ({"low": "0.05", "high": "20", "ask": '"mean"'}, False),
        ({"low": "0", "high": "20"}, False),
        ({"low": "0.2", "high": "20"}, False),
        ({"low": "1", "high": "2000", "integer": "true"}, False),
    ],
)
def test_a_range_that_wastes_cells_is_told(keys: dict[str, Any], told: bool) -> None:
    """A linear distribution whose high is more than 100 times its low."""
    found = wasteful_range(metric(**keys))
    assert (found is not None) == told
    if told:
        assert 'try scale = "log"' in str(found)

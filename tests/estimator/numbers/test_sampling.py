"""Simulated tallies of numbers have the distribution of real ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import pytest
from scipy import stats

from deniable.mechanisms import Report
from deniable.mechanisms.hierarchical_histogram import HierarchicalHistogram
from deniable.mechanisms.number_range import TOP
from deniable.mechanisms.sliding_window import SlidingWindow
from deniable_estimator.analyses.numbers.sampling import (
    cell_crowd,
    sample_rows,
    sample_window,
    window_rates,
)

MakeTree: TypeAlias = Callable[..., HierarchicalHistogram]
MakeWindow: TypeAlias = Callable[..., SlidingWindow]

POSITIONS = np.array([-1, 0, 300_000_001, TOP])
COUNTS = np.array([20_000, 0, 50_000, 30_000])


def test_columns_of_a_window(make_window: MakeWindow) -> None:
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
def test_columns_of_a_tree(make_tree: MakeTree, epsilon: float) -> None:
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


def test_cells_are_the_devices_own(make_tree: MakeTree) -> None:
    """A position falls into the cell that a device would report."""
    tree = make_tree(1.0, 64)
    positions = [-1, *(edge + step for edge in tree.edges[:-1] for step in (0, 1)), TOP - 1, TOP]
    found = cell_crowd(tree, np.array(positions))
    assert found.tolist() == [tree.cell(position) for position in positions]

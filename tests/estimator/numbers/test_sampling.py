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
    sample_crowd,
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


def test_pairs_of_devices_in_a_window(make_window: MakeWindow) -> None:
    """Tallies of two devices at different positions appear as often as the product of their
    likelihoods says (chi-square over 9 tallies or fewer in 4,000 draws, alpha 1e-4; seed 2)."""
    window = make_window(2.0, 4)
    rng = np.random.default_rng(2)
    pair = np.array([200_000_000, TOP])
    seen: dict[tuple[int, ...], int] = {}
    for _ in range(4000):
        row = sample_window(window, pair, np.array([1, 1]), rng)
        key = tuple(row.cells.tolist())
        seen[key] = seen.get(key, 0) + 1
    expected: dict[tuple[int, ...], float] = {}
    for one in range(4):
        for two in range(4):
            chance = window.likelihood(Report(0, one), int(pair[0])) * window.likelihood(
                Report(0, two), int(pair[1])
            )
            key = tuple(np.bincount([one, two], minlength=4).tolist())
            expected[key] = expected.get(key, 0.0) + 4000 * float(chance)
    assert len(expected) == 10
    keys = sorted(expected)
    found = stats.chisquare([seen.get(key, 0) for key in keys], [expected[key] for key in keys])
    assert found.pvalue > 1e-4


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


def test_population(make_tree: MakeTree) -> None:
    """Devices that are drawn from a population have the same rates as a crowd of its shares
    (chi-square over all cells, alpha 1e-4; seed 4)."""
    tree = make_tree(1.0, 16)
    shares = np.bincount(cell_crowd(tree, POSITIONS), weights=COUNTS, minlength=16) / COUNTS.sum()
    rows = sample_crowd(tree, shares, 100_000, np.random.default_rng(4))
    rates, seen = [], []
    for number, row in enumerate(rows):
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

"""Mechanisms for numbers from 0 to 1, and tallies that are given cell by cell."""

from __future__ import annotations

import numpy as np
import pytest

from deniable.protocol.mechanisms.hierarchical_histogram import HierarchicalHistogram
from deniable.protocol.mechanisms.number_range import NumberRange
from deniable.protocol.mechanisms.sliding_window import SlidingWindow
from deniable_collector.tally import TallyRow


@pytest.fixture
def unit():
    """From 0 to 1, linear."""
    return NumberRange("0", "1")


@pytest.fixture
def make_tree(unit):
    """make_tree(epsilon, cells=256, mean=False, numbers=unit)."""

    def make(epsilon, cells=256, mean=False, numbers=unit):
        return HierarchicalHistogram.design(numbers, epsilon, cells, mean)

    return make


@pytest.fixture
def make_window(unit):
    """make_window(epsilon, columns=64, numbers=unit)."""

    def make(epsilon, columns=64, numbers=unit):
        return SlidingWindow.design(numbers, epsilon, columns)

    return make


@pytest.fixture
def striped():
    """Column y of every row was sent y % 7 + 1 times."""

    def make(tree):
        rows = [np.arange(row.width) % 7 + 1 for row in tree.rows]
        return tuple(TallyRow(int(cells.sum()), cells) for cells in rows)

    return make

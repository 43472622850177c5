"""A range is called bad only if the tally is certain of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import pytest

from deniable.mechanisms.hierarchical_histogram import HierarchicalHistogram
from deniable.mechanisms.number_range import TOP, NumberRange
from deniable_estimator.analyses.numbers.distribution import distribution
from deniable_estimator.analyses.numbers.range_fit import range_findings
from deniable_estimator.analyses.numbers.sampling import sample_crowd, sample_rows

MakeTree: TypeAlias = Callable[..., HierarchicalHistogram]


@pytest.mark.parametrize(
    ("cells", "codes"),
    [
        ({0: 0.05, 255: 0.0}, ["low_too_high"]),
        ({0: 0.0, 255: 0.2}, ["high_too_low"]),
        ({0: 0.002, 255: 0.002}, []),
        ({100: 0.3, 101: 0.1, 103: 0.3}, ["too_wide"]),
        ({100: 0.4, 120: 0.4}, []),
    ],
)
def test_findings(make_tree: MakeTree, cells: dict[int, float], codes: list[str]) -> None:
    """Of a million reports, with these shares of some cells and the rest spread evenly."""
    tree = make_tree(2.0)
    shares = np.full(256, (1 - sum(cells.values())) / (256 - len(cells)))
    for cell, share in cells.items():
        shares[cell] = share
    found = distribution(tree, sample_crowd(tree, shares, 1_000_000, np.random.default_rng(1)))
    findings = range_findings(found)
    assert [each.code for each in findings] == codes
    for each in findings:
        assert each.cells == (4 if each.code == "too_wide" else 0)
        truth = {"low_too_high": shares[0], "high_too_low": shares[-1], "too_wide": 0.7}[each.code]
        assert 0.9 * truth < each.share < truth + 0.01


def test_small_crowds_know_no_better(make_tree: MakeTree) -> None:
    """From 1,000 reports nothing of this is certain."""
    tree = make_tree(1.0)
    shares = np.full(256, 0.9 / 255)
    shares[0] = 0.1
    found = distribution(tree, sample_crowd(tree, shares, 1000, np.random.default_rng(2)))
    assert range_findings(found) == ()


def test_few_whole_numbers_are_no_waste(make_tree: MakeTree) -> None:
    """Where there are few numbers, each with a cell, most of them being one is no finding; nor are
    the cells that are left over."""
    for high, cells in (("9", 16), ("100", 256)):
        numbers = NumberRange("0", high, integer=True)
        tree = make_tree(4.0, numbers=numbers)
        assert tree.cells == cells
        positions = np.array([*tree.edges[:-1], TOP])
        inside = np.unique(positions[positions < TOP])
        rows = sample_rows(tree, inside, np.full(len(inside), 20_000), np.random.default_rng(3))
        assert range_findings(distribution(tree, rows)) == ()

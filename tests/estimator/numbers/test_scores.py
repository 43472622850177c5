"""The scores of columns answer any question about the cells without bias."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import TypeAlias

import numpy as np
import pytest

from deniable.mechanisms import Report
from deniable.mechanisms.hierarchical_histogram import HierarchicalHistogram
from deniable_estimator.analyses.numbers.sampling import node_channel
from deniable_estimator.analyses.numbers.scores import ownership, row_shares, scores

MakeTree: TypeAlias = Callable[..., HierarchicalHistogram]


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_nodes_own_the_columns_that_support_them(make_tree: MakeTree, epsilon: float) -> None:
    """Ownership is the support of each level's own mechanism, node by node."""
    for level in make_tree(epsilon).levels:
        own = ownership(level.order, level.dimension, level.columns, level.nodes)
        for node in range(level.nodes):
            columns = sorted(cell.column for cell in level.oracle.support(node))
            assert np.flatnonzero(own[node]).tolist() == columns


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 4.0])
@pytest.mark.parametrize("live", [None, (True, False, True, True), (False, False, False, True)])
def test_expected_scores_are_the_question(
    make_tree: MakeTree, epsilon: float, live: tuple[bool, ...] | None
) -> None:
    """For a device in any cell, the expected scores of all rows sum to W there, to 1e-12 of W's
    span, for random questions and every edge, whatever rows are left out."""
    tree = make_tree(epsilon)
    table = scores(tree, live)
    rng = np.random.default_rng(1)
    questions = np.concatenate([rng.normal(size=(5, 256)), np.tril(np.ones((256, 256)))])
    expected = np.repeat(questions.mean(axis=1)[:, None], 256, axis=1)
    for row, each in enumerate(table.of(questions)):
        by_node = each @ node_channel(tree, row).T
        expected += np.repeat(by_node, 256 // tree.levels[row].nodes, axis=1)
    assert np.abs(expected - questions).max() < 1e-11


def test_edges_are_questions_like_others(make_tree: MakeTree) -> None:
    """The scores of "below this edge" are those of the question, also inside of cells."""
    tree = make_tree(1.0, 64)
    table = scores(tree)
    for edge in (0.0, 1.0, 16.0, 17.5, 21.25, 63.0, 64.0):
        question = np.clip(edge - np.arange(64), 0, 1)[None]
        for row, each in enumerate(table.of(question)):
            np.testing.assert_allclose(table.below(row, edge), each[0], atol=1e-12)


def test_planned_variances_of_edges(make_tree: MakeTree) -> None:
    """The closed form for all edges agrees with the formula for any question."""
    for cells in (4, 16, 256):
        table = scores(make_tree(1.0, cells))
        questions = np.tril(np.ones((cells + 1, cells)), -1)
        np.testing.assert_allclose(table.planned_edges(), table.planned(questions), atol=1e-9)


@pytest.mark.parametrize("mean", [False, True])
def test_row_shares_are_the_devices_own(make_tree: MakeTree, mean: bool) -> None:
    """The shares of rows are the chances with which a device draws them, exactly."""
    tree = make_tree(1.0, 16, mean)
    for row, share in enumerate(row_shares(tree)):
        drawn = sum(
            (tree.likelihood(Report(row, column), 5) for column in range(tree.rows[row].width)),
            Fraction(0),
        )
        assert Fraction(float(share)) == drawn

"""Crowds of numbers: tallies of devices that are drawn from a population, and what they say."""

from __future__ import annotations

import numpy as np

from deniable.protocol.mechanisms import Report
from deniable_collector.tally import TallyRow
from deniable_estimator.analyses.numbers.hierarchical_histogram import (
    HierarchicalHistogramAnalysis,
)
from deniable_estimator.analyses.numbers.scores import scores
from deniable_estimator.analyses.numbers.sliding_window import SlidingWindowAnalysis


def sample_crowd(tree, shares, reports, rng):
    """The rows of the tree, for devices drawn from a population with these shares of the cells:
    each row's columns are one multinomial, which takes no longer for more devices."""
    weights = np.array(tree.weights, np.float64)
    rows = []
    for row, count in enumerate(rng.multinomial(reports, weights / weights.sum())):
        nodes = shares.reshape(4 ** (row + 1), -1).sum(axis=1)
        rate = nodes @ scores(tree).chances[row]
        rows.append(TallyRow(int(count), rng.multinomial(count, rate / rate.sum())))
    return tuple(rows)


def sample_rows(tree, positions, counts, rng):
    """The rows of the tree, for so many devices at each of these positions."""
    return HierarchicalHistogramAnalysis(tree).sample_rows(positions, counts, rng)


def sample_window(window, positions, counts, rng):
    """The row of a sliding window, for so many devices at each of these positions."""
    (row,) = SlidingWindowAnalysis(window).sample_rows(positions, counts, rng)
    return row


def window_rates(window, positions, shares):
    """How often each column is sent if these shares of devices are at these positions."""
    chances = [
        [float(window.likelihood(Report(0, column), position)) for column in range(window.columns)]
        for position in positions.tolist()
    ]
    return shares @ np.array(chances)


def estimate_tree(tree, rows, repeats=1.0):
    """What the rows of a tree say of sums of shares."""
    return HierarchicalHistogramAnalysis(tree).sums(rows, repeats)


def distribution(tree, rows):
    """What the rows of a tree say of the distribution, with intervals of 95%."""
    return HierarchicalHistogramAnalysis(tree).distribution(rows, 0.95, 1.0)

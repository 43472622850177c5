"""Simulated tallies of numbers, drawn from their exact distribution without simulating a device.

`sample_rows` is for a crowd whose numbers are given. In a sliding window the devices between two
levels go to either by a binomial, those of a level into their window or not by another, and then
columns are drawn evenly: a multinomial each. In a tree the devices of a cell go to rows by a
multinomial, and those of a node to columns likewise.

`sample_crowd` is for devices that are drawn from a population: each row's columns are then one
multinomial with the mean probabilities, which takes no longer for more devices.
"""

from __future__ import annotations

import numpy as np

from deniable.protocol.mechanisms.dbitflip import DBitFlip
from deniable.protocol.mechanisms.hierarchical_histogram import HierarchicalHistogram, space_of
from deniable.protocol.mechanisms.number_range import TOP, Histogram
from deniable.protocol.mechanisms.sliding_window import SlidingWindow
from deniable_collector.tally import TallyRow
from deniable_estimator.analyses.base import Counts
from deniable_estimator.analyses.numbers.mean import window_channel
from deniable_estimator.analyses.numbers.scores import ARITY, ownership, row_shares
from deniable_estimator.statistics.intervals import FloatArray


def sample_rows(
    mechanism: HierarchicalHistogram,
    positions: Counts,
    counts: Counts,
    rng: np.random.Generator,
) -> tuple[TallyRow, ...]:
    """The rows of a tally of `counts[i]` devices at `positions[i]`, shape (k,) each.

    Positions are those that devices randomize: -1 below `low`, 2**30 for `high` and above.
    """
    shares = row_shares(mechanism)
    drawn = rng.multinomial(counts, shares)
    cells = cell_crowd(mechanism, positions)
    rows = []
    for row, level in enumerate(mechanism.levels):
        nodes = ARITY ** (row + 1)
        each = np.bincount(
            cells // (mechanism.cells // nodes), weights=drawn[:, row], minlength=nodes
        ).astype(np.int64)
        some = np.flatnonzero(each)
        sent = np.zeros(level.rows[0].width, np.int64)
        for batch in np.array_split(some, max(1, len(some) // 64)):
            sent += rng.multinomial(each[batch], node_channel(mechanism, row)[batch]).sum(axis=0)
        rows.append(TallyRow(int(each.sum()), sent))
    if mechanism.mean is not None:
        rows.append(sample_window(mechanism.mean, positions, drawn[:, -1], rng))
    return tuple(rows)


def sample_bits(
    mechanism: DBitFlip, positions: Counts, counts: Counts, rng: np.random.Generator
) -> tuple[TallyRow, ...]:
    """The rows of dBitFlip, for `counts[i]` devices at `positions[i]` that report once each.

    Devices go to rows by a multinomial. Given those of each cell, the counter of a bit is the sum
    of two binomials, independent of all others.
    """
    count, s = len(mechanism.rows), float(mechanism.flipped)
    drawn = rng.multinomial(counts, np.full(count, 1 / count))
    cells = cell_crowd(mechanism, positions)
    rows = []
    for row in range(count):
        devices = int(drawn[:, row].sum())
        crowd = np.bincount(cells, weights=drawn[:, row], minlength=mechanism.cells)
        true = crowd.astype(np.int64)[row::count]
        rows.append(TallyRow(devices, rng.binomial(true, 1 - s) + rng.binomial(devices - true, s)))
    return tuple(rows)


def sample_window(
    window: SlidingWindow, positions: Counts, counts: Counts, rng: np.random.Generator
) -> TallyRow:
    """The row of a sliding window, for `counts[i]` devices at `positions[i]`."""
    lower, part = _between_levels(window, positions)
    up = rng.binomial(counts, part)
    size = len(window.levels)
    at = np.bincount(lower, weights=counts - up, minlength=size)
    at += np.bincount(lower + 1, weights=up, minlength=size)
    each = at.astype(np.int64)
    sent = rng.multinomial(each, _level_channel(window)).sum(axis=0)
    return TallyRow(int(each.sum()), sent.astype(np.int64))


def sample_crowd(
    mechanism: HierarchicalHistogram, shares: FloatArray, reports: int, rng: np.random.Generator
) -> tuple[TallyRow, ...]:
    """The rows of the tree, for devices drawn from a population with these shares of the cells.

    Args:
        shares: shape (d,), with a sum of 1.
        reports: in all rows of the tree.
    """
    weights = np.array(mechanism.weights, np.float64)
    rows = []
    for row, count in enumerate(rng.multinomial(reports, weights / weights.sum())):
        nodes = shares.reshape(ARITY ** (row + 1), -1).sum(axis=1)
        rate = nodes @ node_channel(mechanism, row)
        rows.append(TallyRow(int(count), rng.multinomial(count, rate / rate.sum())))
    return tuple(rows)


def window_rates(window: SlidingWindow, positions: Counts, shares: FloatArray) -> FloatArray:
    """How often each column is sent if these shares of devices are at these positions."""
    lower, part = _between_levels(window, positions)
    size = len(window.levels)
    at = np.bincount(lower, weights=shares * (1 - part), minlength=size)
    at += np.bincount(lower + 1, weights=shares * part, minlength=size)
    return np.asarray(at @ _level_channel(window))


def cell_crowd(mechanism: Histogram, positions: Counts) -> Counts:
    """The cell of each position."""
    return np.searchsorted(np.array(mechanism.edges), positions, side="right")


def node_channel(mechanism: HierarchicalHistogram, row: int) -> FloatArray:
    """The probability of each column of a row for each node, shape (m_l, K)."""
    level = mechanism.levels[row]
    own = ownership(*space_of(level), level.rows[0].width, level.size)
    truth, owned = float(level.p), float(own[0].sum())
    return np.where(own > 0, truth / owned, (1 - truth) / (own.shape[1] - owned))


def _level_channel(window: SlidingWindow) -> FloatArray:
    """The probability of each column for each level, shape (D - w + 1, D)."""
    inside, outside = window_channel(window)
    level = np.arange(len(window.levels))[:, None]
    column = np.arange(window.columns)[None]
    return np.where((column >= level) & (column < level + window.width), inside, outside)


def _between_levels(window: SlidingWindow, positions: Counts) -> tuple[Counts, FloatArray]:
    """The level at or below each position, and the probability of rounding up to the next."""
    clamped = np.clip(positions, 0, TOP)
    levels = np.array(window.levels, np.int64)
    lower = np.minimum(np.searchsorted(levels, clamped, side="right") - 1, len(levels) - 2)
    part = (clamped - levels[lower]) / (levels[lower + 1] - levels[lower])
    return lower, part

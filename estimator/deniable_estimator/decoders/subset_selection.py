"""Tallies of subset selection, drawn from their exact joint distribution, for any crowd.

A device with value x reports a uniform k-set that contains x with probability p, else one that
does not. Equivalently: with probability a = (1-p) d / (d-k) it reports a uniform k-set of all d
columns, whatever its value, and otherwise x with a uniform (k-1)-set of the other columns. For
k = 1 this gives one multinomial and the values themselves.

For k > 1 the columns are processed one after another. The state is how many devices still have
r columns to place, for each r. Each of them places one in the current column with probability
r / (columns left for it), independently. So a tally costs d vectors of at most k binomials,
however many devices report. The own column of a device does not count among its columns left
until it is reached; at column x, the devices with value x change their group. Before that, all
devices had the same distribution, whatever their value. So given the states, the devices with
value x are a uniform sample: multivariate hypergeometric. Only probabilities are rounded, to
float64.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.mechanisms import MemoizedSubsetSelection, SubsetSelection
from deniable_collector.tally import TallyRow
from deniable_estimator.decoders.support import Items

__all__ = ["sample_rows"]

_Counts = NDArray[np.int64]

_CROWD = 500_000_000
"""numpy can draw hypergeometric numbers only for fewer than 10**9 devices at a time."""


def sample_rows(
    mechanism: SubsetSelection | MemoizedSubsetSelection,
    items: Items,
    counts: _Counts,
    rng: np.random.Generator,
) -> tuple[TallyRow, ...]:
    """The tally of a crowd in which `counts[x]` devices have value x, shape (size,).

    `items` is every value, in order, and is ignored. One report from a memo has the
    same distribution as one without.
    """
    size, k = mechanism.size, mechanism.k
    blind = (1 - mechanism.p) * size / (size - k)
    owned = rng.binomial(counts, float(1 - blind))
    devices = int(counts.sum())
    cells = _uniform_sets(size, k, devices - int(owned.sum()), rng)
    cells += owned
    if k > 1:
        crowds = int(owned.sum()) // _CROWD + 1
        for crowd in range(crowds):
            cells += _others(k - 1, (owned + crowd) // crowds, rng)
    return (TallyRow(devices, cells),)


def _uniform_sets(size: int, k: int, devices: int, rng: np.random.Generator) -> _Counts:
    """How often each column is in one of `devices` uniform k-sets of `size` columns."""
    if k == 1:
        return rng.multinomial(devices, np.full(size, 1 / size))
    cells = np.zeros(size, np.int64)
    open_sets = np.zeros(k + 1, np.int64)
    open_sets[k] = devices
    for column in range(size):
        cells[column] = _place(open_sets, size - column, rng)
    return cells


def _others(k: int, counts: _Counts, rng: np.random.Generator) -> _Counts:
    """How often each column is in a uniform k-set of all but the device's own column."""
    size = len(counts)
    cells = np.zeros(size, np.int64)
    ahead, passed = np.zeros(k + 1, np.int64), np.zeros(k + 1, np.int64)
    ahead[k] = counts.sum()
    for column in range(size):
        owners = rng.multivariate_hypergeometric(ahead, counts[column], method="marginals")
        ahead -= owners
        placed = _place(passed, size - column, rng)
        if column + 1 < size:
            placed += _place(ahead, size - column - 1, rng)
        passed += owners
        cells[column] = placed
    return cells


def _place(open_sets: _Counts, left: int, rng: np.random.Generator) -> int:
    """Let each set take this column or not, with `left` columns left. Returns how many do.

    `open_sets[r]` sets have r columns still to place; it is updated in place.
    """
    states = np.flatnonzero(open_sets[1:]) + 1
    taken: Any = rng.binomial(open_sets[states], states / left)
    open_sets[states] -= taken
    open_sets[states - 1] += taken
    return int(taken.sum())

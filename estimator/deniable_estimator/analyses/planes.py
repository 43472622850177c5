"""Mechanisms that report one point: how their tallies are drawn from their exact distribution, and
one of them, Hadamard response.

Such a mechanism reports a uniform point of the plane (the support) of the true value with
probability p, otherwise a uniform point outside of it. Equivalently: with probability a it
reports a uniform point of all K, whatever the value, and otherwise one of the plane's s points,
where a / K = (1 - p) / (K - s).

The first part is one multinomial. For a value that many devices have, the points are one
multinomial over its plane. For all other devices they are drawn one by one, which is slower per
device but needs no list of the plane's points.

**Hadamard response** finds the support of every value by one fast Walsh-Hadamard transform. A
report supports x if the row of x has +1 in its column. So with n reports and the transform of
the counts T = H C, the support of x is (n + T[row of x]) / 2, in integers.
"""

from __future__ import annotations

import math
from abc import abstractmethod

import numpy as np
from numpy.typing import NDArray

from deniable.protocol.mechanisms.compatible import HadamardResponse
from deniable_collector.tally import TallyRow
from deniable_estimator.analyses.base import AnyOracle, Counts, Items, OneRowAnalysis

_MANY = 0.125
"""Above so many devices per point of a plane, listing its points is cheaper than single draws."""

_CHUNK = 1 << 18
"""Points that are drawn at a time, to bound memory."""


class PlanesAnalysis(OneRowAnalysis[AnyOracle]):
    """A report is one point, which supports the values in whose planes it is."""

    @property
    @abstractmethod
    def near(self) -> int:
        """How many of the points are in each plane (s)."""

    @abstractmethod
    def plane(self, item: int) -> Counts:
        """The points of one value's plane, shape (s,)."""

    @abstractmethod
    def draw(self, items: Counts, counts: Counts, rng: np.random.Generator) -> Counts:
        """Independent uniform points, `counts[i]` of them of the plane of `items[i]`."""

    def commonest(self) -> float:
        return float(self.mechanism.p) / self.near

    def sample_rows(
        self, items: Items, counts: Counts, rng: np.random.Generator
    ) -> tuple[TallyRow, ...]:
        """`items` is every value, in order, and is ignored."""
        points, near = self.mechanism.rows[0].width, self.near
        anywhere = points * (1 - self.mechanism.p) / (points - near)
        owned = rng.binomial(counts, float(1 - anywhere))
        devices = int(counts.sum())
        cells = _spread(devices - int(owned.sum()), points, rng)
        many = owned > _MANY * near
        for item in np.flatnonzero(many):
            cells[self.plane(int(item))] += _spread(int(owned[item]), near, rng)
        few = np.flatnonzero(~many & (owned > 0))
        # Values one after another, in groups of about a chunk of devices.
        groups = np.cumsum(owned[few]) // _CHUNK
        for group in np.split(few, np.flatnonzero(np.diff(groups)) + 1):
            np.add.at(cells, self.draw(group, owned[group], rng), 1)
        return (TallyRow(devices, cells),)


def _spread(devices: int, size: int, rng: np.random.Generator) -> Counts:
    """A multinomial over `size` equal cells.

    Of many devices, first over blocks, then within them: numpy subtracts the cells'
    probabilities from one another, and over millions of cells the rounding would show in the
    last of them.
    """
    if devices < 4 * size:
        return np.bincount(rng.integers(size, size=devices), minlength=size)
    width = math.isqrt(size)
    blocks, rest = divmod(size, width)
    shares = np.array([width] * blocks + [rest]) / size
    crowds = rng.multinomial(devices, shares)
    cells: Counts = rng.multinomial(crowds[:-1], np.full(width, 1 / width)).ravel()
    if rest:
        last = rng.multinomial(crowds[-1], np.full(rest, 1 / rest))
        cells = np.concatenate([cells, last])
    return cells


class HadamardResponseAnalysis(PlanesAnalysis[HadamardResponse]):
    """A plane is a row of the Hadamard matrix: the columns in which it has +1."""

    @property
    def near(self) -> int:
        return self.mechanism.order // 2

    def places(self, cells: Counts) -> Counts:
        transformed = cells.copy()
        half = 1
        while half < len(cells):
            pairs = transformed.reshape(-1, 2, half)
            even, odd = pairs[:, 0].copy(), pairs[:, 1].copy()
            np.add(even, odd, out=pairs[:, 0])
            np.subtract(even, odd, out=pairs[:, 1])
            half *= 2
        support: Counts = (transformed[0] + transformed[::-1][: self.mechanism.size]) // 2
        return support

    def supported(self, targets: int) -> tuple[int, int]:
        # Column 0 supports every value. Any other one has -1 in half of the rows, and one has
        # it in all rows from order / 2 on, which all belong to values.
        return max(0, targets - self.near), targets

    def together(self) -> float:
        """Any two rows of a Hadamard matrix have a third that two values have in common."""
        return 2 * float(self.mechanism.p)

    def plane(self, item: int) -> Counts:
        last = self.mechanism.order - 1
        columns = np.arange(last + 1)
        return columns[~_odd(columns & (last - item))]

    def draw(self, items: Counts, counts: Counts, rng: np.random.Generator) -> Counts:
        order = self.mechanism.order
        rows = np.repeat(order - 1 - items, counts)
        columns = rng.integers(order, size=len(rows))
        # Toggling a bit of the row pairs the columns of either sign one to one.
        return np.where(_odd(columns & rows), columns ^ (rows & -rows), columns)


def _odd(numbers: Counts) -> NDArray[np.bool_]:
    """Whether the numbers have an odd number of ones in binary."""
    return np.asarray(np.bitwise_count(numbers) & 1, np.bool_)

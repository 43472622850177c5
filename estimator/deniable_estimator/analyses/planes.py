"""Tallies of mechanisms that report one point, drawn from their exact distribution.

Such a mechanism reports a uniform point of the plane (the support) of the true value with
probability p, otherwise a uniform point outside of it. Equivalently: with probability a it
reports a uniform point of all K, whatever the value, and otherwise one of the plane's s points,
where a / K = (1 - p) / (K - s).

The first part is one multinomial. For a value that many devices have, the points are one
multinomial over its plane. For all other devices they are drawn one by one, which is slower per
device but needs no list of the plane's points.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from deniable_collector.tally import TallyRow

_Counts = NDArray[np.int64]

_MANY = 0.125
"""Above so many devices per point of a plane, listing its points is cheaper than single draws."""

_CHUNK = 1 << 18
"""Points that are drawn at a time, to bound memory."""


class Planes(ABC):
    """The planes of a mechanism, over numpy arrays.

    Attributes:
        points: how many points there are (K).
        size: how many of them are in each plane (s).
        p: the probability that a report is in the plane of the true value.
    """

    points: int
    size: int
    p: Fraction

    @abstractmethod
    def plane(self, item: int) -> _Counts:
        """The points of one value's plane, shape (size,)."""

    @abstractmethod
    def draw(self, items: _Counts, counts: _Counts, rng: np.random.Generator) -> _Counts:
        """Independent uniform points, `counts[i]` of them of the plane of `items[i]`."""


def sample_points(planes: Planes, counts: _Counts, rng: np.random.Generator) -> TallyRow:
    """The only row of the tally of a crowd in which `counts[x]` devices have value x."""
    anywhere = planes.points * (1 - planes.p) / (planes.points - planes.size)
    owned = rng.binomial(counts, float(1 - anywhere))
    devices = int(counts.sum())
    cells = _spread(devices - int(owned.sum()), planes.points, rng)
    many = owned > _MANY * planes.size
    for item in np.flatnonzero(many):
        cells[planes.plane(int(item))] += _spread(int(owned[item]), planes.size, rng)
    few = np.flatnonzero(~many & (owned > 0))
    # Values one after another, in groups of about a chunk of devices.
    groups = np.cumsum(owned[few]) // _CHUNK
    for items in np.split(few, np.flatnonzero(np.diff(groups)) + 1):
        np.add.at(cells, planes.draw(items, owned[items], rng), 1)
    return TallyRow(devices, cells)


def _spread(devices: int, size: int, rng: np.random.Generator) -> _Counts:
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
    cells: _Counts = rng.multinomial(crowds[:-1], np.full(width, 1 / width)).ravel()
    if rest:
        last = rng.multinomial(crowds[-1], np.full(rest, 1 / rest))
        cells = np.concatenate([cells, last])
    return cells

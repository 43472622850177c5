"""Projective geometry response: the support of every value at once, by Fourier slices, and
tallies drawn from their exact distribution.

The support of x is the sum of the counts of all points u with <u, x> = 0. Split the
points of PG(t-1, q) into those with leading 1, u = (1, a) with a in F_q**m, m = t - 1,
and the rest, (0, u'), which are PG(m-1, q) again. For a direction b (a point of
PG(m-1, q)) let R[b, v] be the sum of the counts of all (1, a) with <a, b> = v, and L[b]
the support of b among the rest, found the same way. Then ::

    support of (0, b)    = R[b, 0] + L[b]
    support of (1, l b)  = R[b, -1/l] + L[b]          for l = 1, ..., q - 1
    support of (1, 0)    = sum of the rest

R[b, .] is the inverse discrete Fourier transform, of length q, of the slice F[0], F[b],
F[2b], ... through the transform F of the counts of all (1, a) (the projection-slice theorem
over a finite field). All of it takes O(K log K) steps for K points.

Transforms are in float64 and the results are rounded to integers, which are exact: the
error of a sum is a small multiple of 2**-53 log2(K) times the number of reports, far
below one half up to MAX_REPORTS.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from deniable.mechanisms import ProjectiveGeometry
from deniable.mechanisms.projective_geometry import points
from deniable_collector.tally import TallyRow
from deniable_estimator.analyses.base import OneRowAnalysis
from deniable_estimator.analyses.planes import Planes, sample_points
from deniable_estimator.analyses.support import Counts, Items
from deniable_estimator.errors import EstimateError
from deniable_estimator.messages import message

__all__ = ["MAX_REPORTS", "ProjectiveGeometryAnalysis", "space_support"]

MAX_REPORTS = 1 << 40
"""The most reports of one row that can be decoded; above it, rounding might be wrong."""

_BLOCK = 1 << 18
"""Cells that are gathered at a time, to bound the memory in addition to the tables."""

_TABLE = 1 << 18
"""The largest table of multiples, by which vectors are multiplied several digits at a time."""


_KEPT = 1 << 20
"""Counters of a tally up to which its steps are kept: 20 bytes for each, at most 20 MB."""


class ProjectiveGeometryAnalysis(OneRowAnalysis[ProjectiveGeometry]):
    """A report is one point, which supports the values of a hyperplane."""

    def places(self, cells: Counts) -> Counts:
        return space_support(cells, self.mechanism.order, self.mechanism.dimension)

    def supported(self, targets: int) -> tuple[int, int]:
        mechanism = self.mechanism
        fewest, most = _in_planes(mechanism.order, mechanism.dimension, mechanism.size)
        return max(0, targets - (mechanism.size - fewest)), min(targets, most)

    def together(self) -> float:
        """A report of x supports two values on a line through x together; with q - 1 others each
        value is on such a line."""
        mechanism = self.mechanism
        near = points(mechanism.order, mechanism.dimension - 1)
        both = float(mechanism.p) * points(mechanism.order, mechanism.dimension - 2) / near
        q = float(mechanism.q)
        return 1 + (mechanism.order - 1) * max(0.0, (both - q**2) / (q * (1 - q)))

    def commonest(self) -> float:
        mechanism = self.mechanism
        return float(mechanism.p) / points(mechanism.order, mechanism.dimension - 1)

    def sample_rows(
        self, items: Items, counts: Counts, rng: np.random.Generator
    ) -> tuple[TallyRow, ...]:
        """`items` is every value, in order, and is ignored."""
        return (sample_points(_Space(self.mechanism), counts, rng),)


def _in_planes(order: int, dimension: int, size: int) -> tuple[int, int]:
    """The fewest and the most of the first `size` points that one hyperplane holds.

    The first order**(dimension - 1) points have a leading 1. One hyperplane holds none of them,
    and all points after them; any other one holds order**(dimension - 2) of them, and of the
    points after them what a hyperplane of their space holds.
    """
    if dimension == 1:
        return 0, 0  # a hyperplane of a single point is empty
    leading, each = order ** (dimension - 1), order ** (dimension - 2)
    if size <= leading:
        return 0, min(size, each)
    fewest, most = _in_planes(order, dimension - 1, size - leading)
    return min(size - leading, each + fewest), each + most


def space_support(cells: Counts, order: int, dimension: int) -> Counts:
    """The support of each of the K points of PG(dimension - 1, order), shape (K,).

    Args:
        cells: how often each point was reported, shape (K,).

    Raises:
        EstimateError: there are more than MAX_REPORTS reports.
    """
    if int(cells.sum()) > MAX_REPORTS:
        raise EstimateError(
            message(
                "a tally of more than {most:,} reports cannot be decoded exactly: estimate fewer "
                "windows at a time",
                most=MAX_REPORTS,
            )
        )
    return _support(cells, order, dimension)


def _support(cells: Counts, order: int, dimension: int) -> Counts:
    if dimension == 1:
        return np.zeros(1, np.int64)  # the only point is not orthogonal to itself
    leading = order ** (dimension - 1)
    rest = cells[leading:]
    spectrum = np.fft.rfftn(cells[:leading].reshape((order,) * (dimension - 1))).ravel()
    support = np.empty_like(cells)
    support[0] = rest.sum()
    support[leading:] = _support(rest, order, dimension - 1)
    inverses = np.array([pow(number, -1, order) for number in range(1, order)])
    for first, multiples, slices in _steps(order, dimension - 1):
        sums = slices.sums(spectrum)
        lower = support[leading + first : leading + first + len(multiples)]
        support[multiples[:, 1:]] = sums[:, order - inverses] + lower[:, None]
        lower += sums[:, 0]
    return support


@dataclass(frozen=True, eq=False)
class _Slices:
    """Where the slices of some directions are in the transform, both of shape (directions, half).

    The transform is that half in which the last coordinate is at most order // 2. The counts
    being real, the other half is its mirror image, F[-v] = conj(F[v]), and the mirror image of l b
    is (order - l) b.
    """

    order: int
    places: Counts
    mirrored: NDArray[np.bool_]

    @classmethod
    def of(cls, multiples: Counts, order: int) -> _Slices:
        """Those of directions with these multiples."""
        half = order // 2 + 1
        places = multiples[:, :half]
        mirrored = places % order >= half
        mirror = multiples[:, -np.arange(half) % order]
        rows, last = np.divmod(np.where(mirrored, mirror, places), order)
        return cls(order, rows * half + last, mirrored)

    def sums(self, spectrum: NDArray[np.complex128]) -> Counts:
        """R[b, v] for each direction b, shape (directions, order)."""
        slices = spectrum[self.places]
        np.conjugate(slices, out=slices, where=self.mirrored)
        return np.rint(np.fft.irfft(slices, self.order, axis=1)).astype(np.int64)


_Step: TypeAlias = tuple[int, Counts, _Slices]


def _steps(order: int, dimension: int) -> Iterable[_Step]:
    """All directions, some at a time: the index of the first, their multiples and slices.

    Those of small spaces are kept: a trend decodes one tally after the other of the same space.
    """
    if order ** (dimension + 1) <= _KEPT:
        return _kept_steps(order, dimension)
    return _new_steps(order, dimension)


def _new_steps(order: int, dimension: int) -> Iterator[_Step]:
    for first, multiples in _directions(order, dimension):
        yield first, multiples, _Slices.of(multiples, order)


@lru_cache(maxsize=16)
def _kept_steps(order: int, dimension: int) -> tuple[_Step, ...]:
    return tuple(_new_steps(order, dimension))


def _directions(order: int, dimension: int) -> Iterator[tuple[int, Counts]]:
    """All points of PG(dimension - 1, order), some at a time, in the order of their index.

    Yields the index of the first of them, and the numbers of the vectors 0, b, 2b, ...,
    (order - 1) b for each of them, shape (directions, order).
    """
    step = max(1, _BLOCK // order)
    stride = max((j for j in range(dimension) if order ** (j + 1) <= _TABLE), default=0)
    table = _multiples(np.arange(order**stride), order, stride)
    for lead in range(dimension):
        begin = points(order, dimension) - points(order, dimension - lead)
        tail = dimension - 1 - lead
        for first in range(0, order**tail, step):
            numbers = np.arange(first, min(first + step, order**tail))
            if stride:
                multiples = table[numbers % order**stride]
                for power in (order**place for place in range(stride, tail, stride)):
                    multiples += table[numbers // power % order**stride] * power
            else:
                multiples = _multiples(numbers, order, tail)
            multiples += np.arange(order) * order**tail
            yield begin + first, multiples


def _multiples(numbers: Counts, order: int, digits: int) -> Counts:
    """The numbers of 0, v, 2v, ... for vectors v given by theirs, shape (vectors, order)."""
    multiples = np.zeros((len(numbers), order), np.int64)
    for power in (order**place for place in range(digits)):
        multiples += (numbers // power % order)[:, None] * np.arange(order) % order * power
    return multiples


class _Space(Planes):
    """The hyperplanes of a projective space."""

    def __init__(self, mechanism: ProjectiveGeometry) -> None:
        order, dimension = mechanism.order, mechanism.dimension
        self.order, self.dimension, self.p = order, dimension, mechanism.p
        self.points, self.size = mechanism.messages, points(order, dimension - 1)
        self._coordinates = mechanism.coordinates
        # Where the points with so many zeros in front begin, and with how many of them.
        self._begins = np.array(
            [points(order, dimension) - points(order, dimension - j) for j in range(dimension)]
        )
        self._powers = order ** np.arange(dimension - 1, -1, -1)
        # Narrow numbers, as long as a sum of products cannot overflow, are twice as fast.
        self._dtype = np.int32 if dimension * order**2 < 1 << 31 else np.int64
        self._inverses = np.array(
            [0, *(pow(number, -1, order) for number in range(1, order))], self._dtype
        )

    def plane(self, item: int) -> Counts:
        # As ProjectiveGeometry.support, with arrays in place of loops.
        order, vector = self.order, self._coordinates(item)
        last = max(place for place, number in enumerate(vector) if number)
        inverse = pow(vector[last], -1, order)
        blocks: list[Counts] = []
        for lead, begin in enumerate(self._begins):
            if last < lead:
                blocks.append(begin + np.arange(self._powers[lead]))
            if last <= lead:
                continue
            partial = np.array([vector[lead]])
            for place in range(lead + 1, last):
                terms = np.arange(order) * vector[place]
                partial = (partial[:, None] + terms).ravel() % order
            solved = np.arange(len(partial)) * order - partial * inverse % order
            solved[partial > 0] += order
            step = self._powers[last]
            blocks.append((begin + solved[:, None] * step + np.arange(step)).ravel())
        return np.concatenate(blocks)

    def draw(self, items: Counts, counts: Counts, rng: np.random.Generator) -> Counts:
        order = self.order
        lead = np.searchsorted(self._begins, items, side="right") - 1
        numbers = items - self._begins[lead] + self._powers[lead]
        digits = (numbers[:, None] // self._powers % order).astype(self._dtype)
        # Coordinates come first: each is one long, contiguous row.
        values = np.repeat(digits, counts, axis=0).T
        pivots = np.repeat(lead, counts)
        drawn = np.zeros(len(pivots), np.int64)
        missing = np.arange(len(pivots))
        while len(missing):
            vectors = rng.integers(order, size=(self.dimension, len(missing)), dtype=self._dtype)
            each = np.arange(len(missing))
            # All coordinates but one are free; the one where the value has its leading 1 follows.
            vectors[pivots[missing], each] = 0
            inner = np.einsum("ij,ij->j", vectors, values[:, missing])
            vectors[pivots[missing], each] = -inner % order
            drawn[missing] = self._index(vectors)
            missing = missing[~vectors.any(axis=0)]  # the zero vector is no point
        return drawn

    def _index(self, vectors: NDArray[Any]) -> Counts:
        """The indices of the points of vectors, (dimension, n) -> (n,)."""
        first = (vectors != 0).argmax(axis=0)
        scale = self._inverses[vectors[first, np.arange(vectors.shape[1])]]
        numbers = np.zeros(vectors.shape[1], np.int64)
        for coordinate in vectors:
            numbers *= self.order
            numbers += coordinate * scale % self.order
        indices: Counts = numbers + self._begins[first] - self._powers[first]
        return indices

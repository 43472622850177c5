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
over a finite field). The counts being real, F[0], ..., F[(q // 2) b] suffice, and as the first
coordinate of b that is not 0 is 1, they lie in that half of F whose first coordinate is at most
q // 2. Transforms of short axes are products with the matrix of the transform, which for these
lengths, all of them prime, is several times as fast as a fast transform.

Transforms are in float64 and the results are rounded to integers, which are exact: a sum is a
chain of products with at most five matrices whose entries have modulus 1, so that its error is a
small multiple of 2**-53 times 64 * 5 times the number of reports at most, far below one half up
to MAX_REPORTS.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property, lru_cache
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from deniable.protocol.mechanisms.projective_geometry import ProjectiveGeometry, points
from deniable_estimator.analyses.base import Counts
from deniable_estimator.analyses.planes import PlanesAnalysis
from deniable_estimator.errors import EstimateError
from deniable_estimator.messages import message

_Number = TypeVar("_Number", np.float64, np.complex128)

MAX_REPORTS = 1 << 40
"""The most reports of one row that can be decoded; above it, rounding might be wrong."""

_BLOCK = 1 << 18
"""Cells that are gathered at a time, to bound the memory in addition to the tables."""

_TABLE = 1 << 18
"""The largest table of multiples, by which vectors are multiplied several digits at a time."""


_KEPT = 1 << 20
"""Counters of a tally up to which its directions are kept: 8 bytes for each, at most 8 MB."""

_MATRIX = 64
"""The longest axis that is transformed by a matrix; several shorter ones are taken together."""

_SINGLE = 1 << 16
"""A product of at most so many multiplications is calculated in one thread by OpenBLAS, the library
in numpy's wheels. The threads of a larger one take several times the CPU time, most of it for
waiting."""


class ProjectiveGeometryAnalysis(PlanesAnalysis[ProjectiveGeometry]):
    """A plane is a hyperplane of a projective space."""

    @property
    def near(self) -> int:
        return points(self.mechanism.order, self.mechanism.dimension - 1)

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
        both = float(mechanism.p) * points(mechanism.order, mechanism.dimension - 2) / self.near
        q = float(mechanism.q)
        return 1 + (mechanism.order - 1) * max(0.0, (both - q**2) / (q * (1 - q)))

    @cached_property
    def _begins(self) -> Counts:
        """Where the points with so many zeros in front begin, and with how many of them."""
        order, dimension = self.mechanism.order, self.mechanism.dimension
        return np.array(
            [points(order, dimension) - points(order, dimension - j) for j in range(dimension)]
        )

    @cached_property
    def _powers(self) -> Counts:
        return self.mechanism.order ** np.arange(self.mechanism.dimension - 1, -1, -1)

    def plane(self, item: int) -> Counts:
        order, vector = self.mechanism.order, self.mechanism.coordinates(item)
        planes: list[Counts] = []
        for lead, begin in enumerate(self._begins):
            # The products with all points (0, ..., 1, ...), digit by digit.
            products = np.array([vector[lead]])
            for number in vector[lead + 1 :]:
                products = np.add.outer(products, np.arange(order) * number % order).ravel()
            planes.append(begin + np.flatnonzero(products % order == 0))
        return np.concatenate(planes)

    def draw(self, items: Counts, counts: Counts, rng: np.random.Generator) -> Counts:
        order, dimension = self.mechanism.order, self.mechanism.dimension
        # Narrow numbers, as long as a sum of products cannot overflow, are twice as fast.
        dtype = np.int32 if dimension * order**2 < 1 << 31 else np.int64
        inverses = np.array([0, *(pow(number, -1, order) for number in range(1, order))], dtype)
        lead = np.searchsorted(self._begins, items, side="right") - 1
        numbers = items - self._begins[lead] + self._powers[lead]
        digits = (numbers[:, None] // self._powers % order).astype(dtype)
        # Coordinates come first: each is one long, contiguous row.
        values = np.repeat(digits, counts, axis=0).T
        pivots = np.repeat(lead, counts)
        drawn = np.zeros(len(pivots), np.int64)
        missing = np.arange(len(pivots))
        while len(missing):
            vectors = rng.integers(order, size=(dimension, len(missing)), dtype=dtype)
            each = np.arange(len(missing))
            # All coordinates but one are free; the one where the value has its leading 1 follows.
            vectors[pivots[missing], each] = 0
            inner = np.einsum("ij,ij->j", vectors, values[:, missing])
            vectors[pivots[missing], each] = -inner % order
            first = (vectors != 0).argmax(axis=0)
            scale = inverses[vectors[first, each]]
            found = np.zeros(len(missing), np.int64)
            for coordinate in vectors:
                found *= order
                found += coordinate * scale % order
            drawn[missing] = found + self._begins[first] - self._powers[first]
            missing = missing[~vectors.any(axis=0)]  # the zero vector is no point
        return drawn


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
    if dimension == 1:
        return np.zeros(1, np.int64)  # the only point is not orthogonal to itself
    leading = order ** (dimension - 1)
    rest = cells[leading:]
    half = order // 2 + 1
    spectrum = _half_transform(cells[:leading], order, dimension - 1)
    support = np.empty_like(cells)
    support[0] = rest.sum()
    support[leading:] = space_support(rest, order, dimension - 1)
    for first, multiples in _steps(order, dimension - 1):
        sums = _sums(spectrum[multiples[:, :half]], order)
        lower = support[leading + first : leading + first + len(multiples)]
        support[multiples[:, 1:]] = sums[:, 1:] + lower[:, None]
        lower += sums[:, 0]
    return support


def _half_transform(counts: Counts, order: int, dimension: int) -> NDArray[np.complex128]:
    """The transform of order**dimension counts, where the first coordinate is at most order // 2;
    shape ((order // 2 + 1) * order**(dimension - 1),)."""
    if order > _MATRIX:
        whole = counts.reshape((order,) * dimension)
        spectrum: NDArray[np.complex128] = np.fft.rfftn(whole, axes=(*range(1, dimension), 0))
        return spectrum.ravel()
    together = next(each for each in range(dimension, 0, -1) if order**each <= _MATRIX)
    first = dimension % together or together
    matrix = _matrix(order, first)[: (order // 2 + 1) * order ** (first - 1)]
    # Two real columns for each complex one.
    parts = np.ascontiguousarray(matrix.T).view(np.float64)
    # Each product takes the first axes, and puts their transform behind the others.
    axes = counts.astype(np.float64).reshape(order**first, -1)
    spectrum = _product(axes.T, parts).view(np.complex128)
    matrix = _matrix(order, together)
    for _ in range((dimension - first) // together):
        spectrum = _product(spectrum.reshape(order**together, -1).T, matrix)
    return spectrum.ravel()


@lru_cache(maxsize=16)
def _matrix(order: int, axes: int) -> NDArray[np.complex128]:
    """The transform of so many axes, which is symmetric; shape (order**axes, order**axes)."""
    numbers = np.arange(order)
    one = np.exp(-2j * np.pi * (np.outer(numbers, numbers) % order) / order)
    matrix: NDArray[np.complex128] = one
    for _ in range(axes - 1):
        matrix = np.kron(matrix, one)
    return matrix


def _product(left: NDArray[_Number], right: NDArray[_Number]) -> NDArray[_Number]:
    """The product of a long matrix with a small one, in one thread."""
    rows = max(1, _SINGLE // right.size)
    whole = len(left) // rows * rows
    product = np.empty((len(left), right.shape[1]), right.dtype)
    if whole:
        pieces = left[:whole].reshape(-1, rows, left.shape[1])
        np.matmul(pieces, right, out=product[:whole].reshape(-1, rows, right.shape[1]))
    np.matmul(left[whole:], right, out=product[whole:])
    return product


@lru_cache(maxsize=16)
def _targets(order: int) -> Counts:
    """<a, b> at 0, b, 2b, ...: 0, then -1, -1/2, -1/3, ..."""
    return np.array([0, *(-pow(number, -1, order) % order for number in range(1, order))])


@lru_cache(maxsize=16)
def _inverse(order: int) -> NDArray[np.float64]:
    """The inverse transform of slices, of which the first half is given, to these places."""
    half = np.arange(order // 2 + 1)
    # The half that is not given is the mirror image of the other.
    twice = np.where((half == 0) | (2 * half == order), 1.0, 2.0) / order
    angles = 2 * np.pi * (np.outer(half, _targets(order)) % order) / order
    parts = np.stack((np.cos(angles), -np.sin(angles)), axis=1) * twice[:, None, None]
    return parts.reshape(-1, order)


def _sums(slices: NDArray[np.complex128], order: int) -> Counts:
    """R[b, v] for each direction b, with v = 0, -1, -1/2, ..., shape (directions, order)."""
    if order > _MATRIX:
        sums = np.fft.irfft(slices, order, axis=1)[:, _targets(order)]
    else:
        sums = _product(slices.view(np.float64), _inverse(order))
    return np.rint(sums, out=sums).astype(np.int64)


_Step: TypeAlias = tuple[int, Counts]


def _steps(order: int, dimension: int) -> Iterable[_Step]:
    """All directions, some at a time: the index of the first, and their multiples.

    Those of small spaces are kept: a trend decodes one tally after the other of the same space.
    """
    if order ** (dimension + 1) <= _KEPT:
        return _kept_steps(order, dimension)
    return _directions(order, dimension)


@lru_cache(maxsize=16)
def _kept_steps(order: int, dimension: int) -> tuple[_Step, ...]:
    return tuple(_directions(order, dimension))


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

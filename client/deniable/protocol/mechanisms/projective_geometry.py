"""Projective geometry response: one short number, for closed domains of any size.

Values and messages are the K points of the projective space PG(t-1, q) over the field
of q elements, q prime. With probability P / 2**53 a report is a uniform point of the
hyperplane of the true value x, {u : <u, x> = 0 mod q}, otherwise a uniform point
outside of it. A hyperplane has s points, and two of them meet in lambda::

    K = (q**t - 1) / (q - 1),  s = (q**(t-1) - 1) / (q - 1),  lambda = (q**(t-2) - 1) / (q - 1)
    p = P / 2**53                              (ideally e*s / (e*s + K - s), e = exp(epsilon))
    q_ = [lambda p + (s - lambda) (1-p) s / (K-s)] / s         the support of any other value
    e**epsilon = P (K-s) / [(2**53 - P) s]
    n * Var(share f) = r (1-r) / (p-q_)**2,  r = q_ + f (p-q_)

With q near e + 1 the variance is within 2.5% of the optimum for large domains, and a
report is one number below K (Feldman, Nelson, Nguyen and Talwar, ICML 2022).

A point stands for itself as the vector whose first non-zero coordinate is 1, and has the
index of that vector in the order (1, a), (0, 1, a'), (0, 0, 1, a''), ..., the a's being
numbers in base q with the most significant digit first.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator
from fractions import Fraction
from operator import mul
from typing import ClassVar, Self

from deniable.protocol.errors import SchemeError
from deniable.protocol.exact import exp_below
from deniable.protocol.mechanisms.base import ONE, FrequencyOracle, Packing, Report, Row
from deniable.protocol.mechanisms.limits import MAX_CELLS, Parameters
from deniable.protocol.randomness import Bits, below, coin, system_bits


def points(order: int, dimension: int) -> int:
    """How many points PG(dimension - 1, order) has."""
    count: int = (order**dimension - 1) // (order - 1)
    return count


class ProjectiveGeometry(FrequencyOracle[int]):
    """The first `size` points of the space over `order` elements (q) in `dimension` (t)
    coordinates, with threshold P out of 2**53.

    Raises:
        SchemeError: `order` is no prime, the space has fewer points than there are values
            or more than MAX_CELLS, or the threshold does not favour or cannot hide the truth.
    """

    name: ClassVar[str] = "projective_geometry"
    bounds: ClassVar = {
        "size": (2, MAX_CELLS),
        "q": (2, MAX_CELLS),
        "t": (2, MAX_CELLS.bit_length()),
        "threshold": (1, ONE - 1),
    }
    size: int

    def __init__(self, size: int, order: int, dimension: int, threshold: int) -> None:
        if not _is_prime(order):
            raise SchemeError(f"{self.name}: q must be a prime, not {order}")
        messages, near = points(order, dimension), points(order, dimension - 1)
        self.check_size(messages)
        self.check_size(size, messages)
        self.check_threshold(threshold, near, messages)
        self.size, self.order, self.dimension, self.threshold = size, order, dimension, threshold
        self.messages = messages
        shared = points(order, dimension - 2)
        self.p = Fraction(threshold, ONE)
        self._inside = self.p / near
        self._outside = (1 - self.p) / (messages - near)
        self.q = shared * self._inside + (near - shared) * self._outside
        self.odds = self._inside / self._outside
        self.rows = (Row(messages, Packing.INDEX),)
        # Where the points with `lead` zeros in front begin, and how many there are.
        self._blocks = [
            (points(order, dimension) - points(order, dimension - lead), order**tail)
            for lead, tail in enumerate(range(dimension - 1, -1, -1))
        ]

    @classmethod
    def design(cls, size: int, epsilon: float) -> Self:
        """The space of least total variance at `epsilon`, out of those with at most MAX_CELLS
        points and not a dimension more than the domain needs.
        """
        cls.check_size(size)
        return cls.best(epsilon, size, MAX_CELLS, size)

    @classmethod
    def best(cls, epsilon: float, least: int, most: int, size: int | None = None) -> Self:
        """The space with `least` to `most` points that has the least total variance over `size`
        values; None: over all of its points, the one with the least variance of a rare value.

        Raises:
            SchemeError: no space has a number of points in that range.
        """
        odds = exp_below(epsilon)
        found = [
            cls.calibrated(size, order, dimension, odds)
            for order, dimension in _spaces(least, most, odds)
        ]
        if not found:
            raise SchemeError(f"{cls.name}: no space has from {least:,} to {most:,} points")

        def cost(space: Self) -> tuple[Fraction, int]:
            rare = space.q * (1 - space.q) / (space.p - space.q) ** 2
            variance = rare if size is None else space.total_variance(size)
            return variance, space.messages

        return min(found, key=cost)

    @classmethod
    def calibrated(cls, size: int | None, order: int, dimension: int, odds: Fraction) -> Self:
        """The space with its threshold rounded down, so that `odds` are never exceeded."""
        messages, near = points(order, dimension), points(order, dimension - 1)
        threshold = math.floor(ONE * odds * near / (odds * near + messages - near))
        return cls(size or messages, order, dimension, threshold)

    def parameters(self) -> Parameters:
        return {
            "size": self.size,
            "q": self.order,
            "t": self.dimension,
            "threshold": self.threshold,
        }

    def randomize(self, item: int, bits: Bits = system_bits) -> Report:
        self.require_item(item)
        order = self.order
        value = self.coordinates(item)
        lead = value.index(1)
        del value[lead]
        target = 0 if coin(self.threshold, bits) else 1 + below(order - 1, bits)
        # Every vector with this inner product is drawn equally often, and every point has
        # order - 1 vectors: all coordinates but one are free, the one where `value` has
        # its leading 1 follows from them. The zero vector is no point.
        free = order ** (self.dimension - 1)
        while True:
            vector = self._digits(below(free, bits), self.dimension - 1)
            vector.insert(lead, (target - sum(map(mul, vector, value))) % order)
            if any(vector):
                return Report(0, self._index(vector))

    def likelihood(self, report: Report, item: int) -> Fraction:
        inner = sum(map(mul, self.coordinates(report.columns), self.coordinates(item)))
        return self._outside if inner % self.order else self._inside

    def _digits(self, number: int, count: int) -> list[int]:
        """The `count` digits of a number in base `order`, most significant first."""
        digits = [0] * count
        for place in reversed(range(count)):
            number, digits[place] = divmod(number, self.order)
        return digits

    def coordinates(self, index: int) -> list[int]:
        """The vector of a point: `dimension` numbers, the first that is not zero being 1."""
        for lead, (first, count) in enumerate(self._blocks):
            if index < first + count:
                tail = self._digits(index - first, self.dimension - 1 - lead)
                return [0] * lead + [1, *tail]
        raise ValueError(f"there is no point {index} among {self.messages}")

    def _index(self, vector: list[int]) -> int:
        """The index of the point that a vector, not zero, belongs to."""
        order = self.order
        lead = 0
        while not vector[lead]:
            lead += 1
        scale = pow(vector[lead], -1, order)
        index = 0
        for number in vector[lead + 1 :]:
            index = index * order + number * scale % order
        return self._blocks[lead][0] + index


def _spaces(least: int, most: int, odds: Fraction) -> Iterator[tuple[int, int]]:
    """(order, dimension) of the spaces worth comparing.

    For each dimension, orders are in question for which no lower dimension would do.
    Variance is lowest for order - 1 = e**epsilon and rises to both sides, so the primes
    next to it are enough, or those at the ends of the range. All arithmetic is exact:
    every device and server must find the same space.
    """
    ideal = math.floor(odds) + 1
    for dimension in range(2, most.bit_length() + 1):
        lowest = _least_order(least, dimension)
        highest = _least_order(most + 1, dimension) - 1
        if dimension > 2:
            highest = min(highest, _least_order(least, dimension - 1) - 1)
        if lowest > highest:
            continue
        centre = min(max(ideal, lowest), highest)
        ranges = (
            range(lowest, highest + 1),
            range(centre, lowest - 1, -1),
            range(centre + 1, highest + 1),
            range(highest, lowest - 1, -1),
        )
        orders = {next(filter(_is_prime, each), 0) for each in ranges}
        yield from ((order, dimension) for order in sorted(orders) if order)


def _least_order(least: int, dimension: int) -> int:
    """The smallest order from 2 on whose space of that dimension has at least so many points."""
    return 2 + bisect_left(range(2, least), least, key=lambda order: points(order, dimension))


def _is_prime(number: int) -> bool:
    return number > 1 and all(number % each for each in range(2, math.isqrt(number) + 1))

"""Projective geometry response: the space itself, and which space `design` takes."""

import math

import pytest

from deniable.protocol.mechanisms import MAX_CELLS
from deniable.protocol.mechanisms.projective_geometry import ProjectiveGeometry, points
from deniable.protocol.randomness import PRECISION

HALF = 1 << PRECISION - 1
SPACES = [(2, 2), (2, 4), (3, 2), (3, 3), (5, 3), (7, 2), (17, 2), (2, 9)]


def whole(order, dimension):
    """All points of a space, with a threshold that suits each of the spaces above."""
    return ProjectiveGeometry(points(order, dimension), order, dimension, HALF + HALF // 2)


@pytest.mark.parametrize(("order", "dimension"), [(2, 18), (3, 13), (5, 8), (17, 4), (257, 3)])
def test_points_of_large_spaces_have_their_digits(order, dimension):
    """Index and vector belong together as the docstring says, by digits taken one at a time, for
    the ends of every block and points in between."""
    space = whole(order, dimension)
    first = 0
    for lead in range(dimension):
        tail = dimension - 1 - lead
        for rest in {0, 1 % order**tail, order**tail // 3, order**tail * 5 // 7, order**tail - 1}:
            digits = [rest // order**place % order for place in range(tail - 1, -1, -1)]
            vector = [0] * lead + [1, *digits]
            assert space.coordinates(first + rest) == vector
            scaled = [(order - 1) * number % order for number in vector]
            assert space._index(vector) == space._index(scaled) == first + rest
        first += order**tail
    assert first == space.messages
    with pytest.raises(ValueError, match="no point"):
        space.coordinates(space.messages)


@pytest.mark.parametrize("size", [2, 5, 40, 3000, 500_000])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.3, 7.0])
def test_design_has_the_least_variance(size, epsilon):
    """No prime up to 500 gives less total variance, in the lowest dimension that holds the domain.

    By the formula in floating point, apart from the code.
    """

    def variance(order):
        dimension = 2
        while points(order, dimension) < size:
            dimension += 1
        messages, near, shared = (points(order, dimension - j) for j in range(3))
        if messages > MAX_CELLS:
            return math.inf
        outside = 1 / (near * math.exp(epsilon) + messages - near)
        inside = math.exp(epsilon) * outside
        p, q = near * inside, shared * inside + (near - shared) * outside
        return (p * (1 - p) + (size - 1) * q * (1 - q)) / (p - q) ** 2

    primes = [number for number in range(2, 500) if all(number % k for k in range(2, number))]
    space = ProjectiveGeometry.design(size, epsilon)
    chosen = float(space.total_variance(size))
    assert chosen <= min(map(variance, primes)) * (1 + 1e-9)

"""One level of a hierarchical histogram: how its nodes share the columns of a row.

Of K columns each node owns s, and any two nodes own lam of them both. Plain randomized response
has a column for each node. Otherwise the columns are the points of a projective geometry, of which
the first stand for the nodes.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from itertools import count
from typing import Self

from deniable.protocol.errors import SchemeError
from deniable.protocol.exact import exp_below
from deniable.protocol.frozen import frozen
from deniable.protocol.mechanisms.base import FrequencyOracle, total_variance
from deniable.protocol.mechanisms.projective_geometry import ProjectiveGeometry, points
from deniable.protocol.mechanisms.subset_selection import SubsetSelection

MAX_COLUMNS = 4096
"""The most columns of one level."""

_ORDERS = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61)
"""The spaces that are compared. The best one has about e**epsilon + 1; where that is more than
61, randomized response is better."""

_NEAR = Fraction(101, 100)
"""Fewer columns are taken if they cost no more than this times the least variance."""


@frozen
class Level:
    """One resolution: `nodes` nodes, of which each owns `owned` of `columns` columns.

    Attributes:
        order, dimension: the space PG(dimension - 1, order) whose points are the columns, and
            whose first points are the nodes; 0 and 1 for plain randomized response.
        threshold: P, the chance of an owned column, out of 2**53.
    """

    nodes: int
    order: int
    dimension: int
    threshold: int

    @property
    def columns(self) -> int:
        """K: how many columns there are."""
        return points(self.order, self.dimension) if self.order else self.nodes

    @property
    def owned(self) -> int:
        """s: how many columns a node owns."""
        return points(self.order, self.dimension - 1) if self.order else 1

    @property
    def shared(self) -> int:
        """lam: how many columns any two nodes both own."""
        return points(self.order, self.dimension - 2) if self.order else 0

    @cached_property
    def oracle(self) -> FrequencyOracle[int]:
        """The mechanism for the nodes; its cells are the columns that a node owns.

        Raises:
            SchemeError: the parameters make none.
        """
        if self.order:
            return ProjectiveGeometry(self.nodes, self.order, self.dimension, self.threshold)
        if self.dimension != 1:
            raise SchemeError(f"randomized response has dimension 1, not {self.dimension}")
        return SubsetSelection(self.nodes, 1, self.threshold)

    def __lt__(self, other: Level) -> bool:
        return self._parameters < other._parameters

    @property
    def _parameters(self) -> tuple[int, int, int, int]:
        return self.nodes, self.order, self.dimension, self.threshold

    @classmethod
    def design(cls, nodes: int, epsilon: float) -> Self:
        """Few columns among those of least total variance at `epsilon`."""
        odds = exp_below(epsilon)
        plain = SubsetSelection.design(nodes, epsilon, k=1)
        level = cls(nodes, 0, 1, plain.threshold)
        found = [(total_variance(plain.p, plain.q, nodes), nodes, level)]
        for order in _ORDERS:
            dimension = next(each for each in count(2) if points(order, each) >= nodes)
            if points(order, dimension) > MAX_COLUMNS:
                continue
            space = ProjectiveGeometry.calibrated(nodes, order, dimension, odds)
            cost = total_variance(space.p, space.q, nodes)
            found.append((cost, space.messages, cls(nodes, order, dimension, space.threshold)))
        limit = min(found)[0] * _NEAR
        return min((columns, level) for cost, columns, level in found if cost <= limit)[1]

"""Hierarchical histogram: the cell of a number, told at one of several resolutions.

The range is cut into d = 4**h cells, of which the first holds what is below `low` and the last what
is at or above `high`. Level l = 1 to h joins them to m = 4**l nodes of equal numbers of cells. The
device draws a level, whatever its value is, and reports the node that its value falls into, with
the whole epsilon (Cormode, Kulkarni and Srivastava, VLDB 2019, with four children a node). Each
level is one row, and has a mechanism of its own for its nodes: plain randomized response, or
projective geometry, whichever has less variance. Both give a node s of the K columns, and any two
nodes share lam of them::

    p = P / 2**53                       the chance of a column that the node owns
    q = p lam / s + (1-p) (s-lam) / (K-s)   the chance of one that a given other node owns
    e**epsilon = P (K-s) / [(2**53 - P) s]          of one level; the largest of all counts

The chance of a level is its weight, in sixteenths; the last levels have more as they have more
nodes. If the mean is asked for as well, a last row is a sliding window: 1 of 4 devices reports it,
and the weights hold for the others.

Shares of cells, sums of them and quantiles follow by least squares over the levels, without bias.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import count
from typing import Any, ClassVar, Self, TypeAlias

from deniable.protocol.errors import SchemeError
from deniable.protocol.exact import exp_below
from deniable.protocol.mechanisms.base import ONE, Channels, Packing, Report, Row
from deniable.protocol.mechanisms.limits import Each, Parameters, check_epsilon, check_parameters
from deniable.protocol.mechanisms.number_range import Histogram, NumberRange, Span
from deniable.protocol.mechanisms.projective_geometry import ProjectiveGeometry, points
from deniable.protocol.mechanisms.sliding_window import SlidingWindow
from deniable.protocol.mechanisms.subset_selection import SubsetSelection
from deniable.protocol.randomness import Bits

MAX_COLUMNS = 4096
"""The most columns of one level."""

_ORDERS = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61)
"""The spaces that are compared. The best one has about e**epsilon + 1; where that is more than
61, randomized response is better."""

_NEAR = Fraction(101, 100)
"""Fewer columns are taken if they cost no more than this times the least variance."""


Level: TypeAlias = SubsetSelection | ProjectiveGeometry
"""The mechanism for the nodes of one level. Plain randomized response has a column for each node.
Otherwise the columns are the points of a projective geometry, of which the first are the nodes."""


def space_of(level: Level) -> tuple[int, int]:
    """The order q and the dimension t of the space PG(t - 1, q) whose points are the columns of a
    level; 0 and 1 for plain randomized response."""
    return (level.order, level.dimension) if isinstance(level, ProjectiveGeometry) else (0, 1)


def _level(nodes: int, order: int, dimension: int, threshold: int) -> Level:
    """The level over such a space, with truth threshold P out of 2**53.

    Raises:
        SchemeError: the parameters make none.
    """
    if order:
        return ProjectiveGeometry(nodes, order, dimension, threshold)
    if dimension != 1:
        raise SchemeError(f"randomized response has dimension 1, not {dimension}")
    return SubsetSelection(nodes, 1, threshold)


@lru_cache(maxsize=64)
def _designed(nodes: int, epsilon: float) -> Level:
    """The level of few columns among those of least total variance at `epsilon`; kept, because
    what metrics and their remedies differ in is seldom a level."""
    odds = exp_below(epsilon)
    found: list[Level] = [SubsetSelection.design(nodes, epsilon, k=1)]
    for order in _ORDERS:
        dimension = next(each for each in count(2) if points(order, each) >= nodes)
        if points(order, dimension) <= MAX_COLUMNS:
            found.append(ProjectiveGeometry.calibrated(nodes, order, dimension, odds))
    costs = [each.total_variance(nodes) for each in found]
    near = [each for each, cost in zip(found, costs, strict=True) if cost <= min(costs) * _NEAR]
    return min(near, key=lambda each: (each.rows[0].width, space_of(each)))


CELLS = 256
"""The cells of a design that does not say another number."""

_WEIGHTS: dict[int, tuple[int, ...]] = {
    1: (16,),
    2: (7, 9),
    3: (4, 5, 7),
    4: (3, 4, 4, 5),
    5: (2, 3, 3, 3, 5),
}
"""The sixteenths of the devices at each level, by the number of levels."""

MEAN_SHARE = 4
"""One of so many devices reports for the mean, if that is asked for as well."""

_MEAN = tuple(name for name in SlidingWindow.bounds if name != "range")
_MEAN_BOUNDS = {f"mean_{name}": SlidingWindow.bounds[name] for name in _MEAN}
"""The parameters of the last row's mechanism, if the mean is asked for."""


class HierarchicalHistogram(Channels[int], Histogram):
    """The levels of a hierarchy over `cells` = 4**height cells, one row each.

    Attributes:
        height: the number of levels.
        levels: from 4 nodes to as many as there are cells.
        weights: the sixteenths of the devices at each level.
        mean: the sliding window of the last row, or None.

    Raises:
        SchemeError: weights that are not 16 in all, or a level of too many columns.
    """

    name: ClassVar[str] = "hierarchical_histogram"
    bounds: ClassVar = {
        "range": NumberRange,
        "weights": Each(1, 16),
        "orders": Each(0, MAX_COLUMNS),
        "dimensions": Each(1, MAX_COLUMNS.bit_length()),
        "thresholds": Each(1, ONE - 1),
    }

    def __init__(
        self,
        range: NumberRange,
        weights: tuple[int, ...],
        orders: tuple[int, ...],
        dimensions: tuple[int, ...],
        thresholds: tuple[int, ...],
        *mean: Any,
    ) -> None:
        height = len(orders)
        if height not in _WEIGHTS:
            raise SchemeError(f"{self.name}: there must be from 1 to {len(_WEIGHTS)} levels")
        if not height == len(dimensions) == len(thresholds) == len(weights):
            raise SchemeError(f"{self.name}: orders, dimensions, thresholds and weights differ")
        if sum(weights) != 16:
            raise SchemeError(f"{self.name}: weights must be {height} sixteenths, 16 in all")
        self.range, self.weights = range, weights
        self.orders, self.dimensions, self.thresholds = orders, dimensions, thresholds
        self.mean = SlidingWindow(range, *mean) if mean else None
        parts = zip(_nodes(height), orders, dimensions, thresholds, strict=True)
        self.levels = tuple(_level(*each) for each in parts)
        self.height, self.cells = height, 4**height
        self.edges = range.edges(self.cells)
        if max(level.rows[0].width for level in self.levels) > MAX_COLUMNS:
            raise SchemeError(f"{self.name}: a level may have {MAX_COLUMNS} columns at most")
        self.channels = (*self.levels, *(() if self.mean is None else (self.mean,)))
        self.rows = tuple(Row(each.rows[0].width, Packing.INDEX) for each in self.channels)
        self.odds = max(each.odds for each in self.channels)
        # A row for each number of 4 or 6 random bits.
        self._draws = [row for row, weight in enumerate(weights) for row in [row] * weight]
        if mean:
            self._draws = self._draws * (MEAN_SHARE - 1) + [height] * 16

    @classmethod
    def design(
        cls, range: NumberRange, epsilon: float, cells: int = CELLS, mean: bool = False
    ) -> Self:
        """The hierarchy over `cells` cells (a power of 4), each level within `epsilon`.

        Whole numbers take fewer cells, if these are enough for one each.

        Raises:
            SchemeError: there is no hierarchy over so many cells.
        """
        check_epsilon(epsilon)
        choices = _nodes(len(_WEIGHTS))
        if cells not in choices:
            told = ", ".join(map(str, choices))
            raise SchemeError(f"{cls.name}: cells must be one of {told}, not {cells}")
        height = choices.index(range.enough(cells, choices)) + 1
        levels = [_designed(nodes, epsilon) for nodes in _nodes(height)]
        orders, dimensions = zip(*map(space_of, levels), strict=True)
        thresholds = tuple(level.threshold for level in levels)
        window = SlidingWindow.design(range, epsilon) if mean else None
        rest = [] if window is None else [getattr(window, name) for name in _MEAN]
        return cls(range, _WEIGHTS[height], orders, dimensions, thresholds, *rest)

    @classmethod
    def from_parameters(cls, parameters: Mapping[str, Any]) -> Self:
        mean = _MEAN_BOUNDS if any(name in _MEAN_BOUNDS for name in parameters) else {}
        return cls(*check_parameters(cls.name, parameters, {**cls.bounds, **mean}))

    def parameters(self) -> Parameters:
        mean = {} if self.mean is None else self.mean.parameters()
        return {**super().parameters(), **{f"mean_{name}": mean[name] for name in _MEAN if mean}}

    def place(self, row: int, item: int) -> int:
        # The last row is that of the mean, which takes the position itself.
        return item if row == self.height else self.cell(item) >> 2 * (self.height - 1 - row)

    def draw(self, bits: Bits) -> int:
        return self._draws[bits(len(self._draws).bit_length() - 1)]

    @cached_property
    def shares(self) -> tuple[Fraction, ...]:
        total = len(self._draws)
        return tuple(Fraction(self._draws.count(row), total) for row, _ in enumerate(self.rows))

    def cell(self, position: int) -> int:
        """The cell that a position falls into, from 0."""
        return bisect_right(self.edges, position)

    def favoured(self, report: Report) -> tuple[Span, ...]:
        if report.row == self.height and self.mean is not None:
            return self.mean.favoured(Report(0, report.columns))
        return super().favoured(report)

    @property
    def edge_variance(self) -> float:
        """In closed form, by least squares over the levels. W is 1 for the cells below the edge and
        0 for the others, A_j its averages over the m_j nodes of level j, A_0 over all d cells ::

            V = sum over levels j of |A_j - A_(j-1)|**2 (d / m_j) / (u_j + u_(j+1) + ... + u_h)
            u_l = (share of the devices at level l) / v_l * d / m_l
            v_l = [p (1-p) + (m-1) q (1-q)] / [(p-q)**2 (m-1)]

        A_j differs from A_(j-1) only in the four children of the node that holds the edge. Summed
        over all edges, |A_j - A_(j-1)|**2 (d / m_j) is d**2 / (2 m_j) + m_j / 8.
        """
        known, total = 0.0, 0.0
        for level, chance in reversed([*zip(self.levels, self.shares, strict=False)]):
            nodes = level.size
            noise = level.total_variance(nodes) / (nodes - 1)
            known += float(chance / noise * self.cells / nodes)
            total += (self.cells**2 / (2 * nodes) + nodes / 8) / known
        return total / (self.cells - 1)


def _nodes(height: int) -> list[int]:
    """How many nodes each level has."""
    return [4**level for level in range(1, height + 1)]

"""What each report says about the distribution: the column scores of a hierarchical histogram.

The d = 4**h cells are the leaves of a tree. Row l (1 to h) has the m_l = 4**l nodes of depth l,
node x owns s of the row's K columns, and two nodes share lam of them, so that a report sets a
column of node x with probability p = P / 2**53 if its number lies there, otherwise with q::

    q = p lam / s + (1 - p) (s - lam) / (K - s)

What is asked for is a sum of shares: W . f, for the shares f of the d cells. Let A_j be the
averages of W over the nodes of depth j and D_j = A_j - (A_(j-1) of the parent) its detail. Each
row l >= j estimates that detail without bias. Least squares weighs the rows by their reports and
noise (Hay, Rastogi, Miklau and Suciu, VLDB 2010, in closed form)::

    v_l = [p(1-p) + (m_l - 1) q(1-q)] / [(p-q)**2 (m_l - 1)],   u_l = share_l / v_l * d / m_l
    Lam_j = sum of u_l over l >= j,                              w_jl = u_l / Lam_j

A report of column y in row l then scores Z_l(y), where B_l has the weights of the nodes of row l::

    Z_l(y) = sum over the nodes x that own y of B_l(x) / (p - q),   B_l = sum_{j <= l} w_jl D_j
    estimate = A_0 + sum over rows of the mean of Z_l
    variance = sum over rows of [mean of Z_l**2 - (mean of Z_l)**2] / n_l
    n * planned variance = sum over depths of |D_j|**2 (d / m_j) / Lam_j        without sampling

The weights are the shares of devices that the mechanism sends to each row, not those that came:
else fakes could raise the weight of a row. Rows with too few reports have weight 0; how many
reports a row has does not depend on the numbers, so this keeps the estimate unbiased.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from deniable.protocol.mechanisms import hierarchical_histogram
from deniable.protocol.mechanisms.hierarchical_histogram import HierarchicalHistogram, space_of
from deniable_estimator.statistics.intervals import FloatArray

ARITY = 4
"""The children of a node."""

MEAN_SHARE = 1 / hierarchical_histogram.MEAN_SHARE
"""The share of devices that reports in the mean's row."""

_Level = tuple[int, int, int, float, float]
"""order, dimension, columns, p, q."""


@dataclass(frozen=True, eq=False)
class Scores:
    """The scores of every column, for every question, under one choice of rows."""

    height: int
    live: tuple[bool, ...]
    """Rows that are used."""
    edges: tuple[FloatArray, ...]
    """For each row, shape (m_l + 1, K): the scores for "below the first edge of node x" for each
    node and for the end. Within a node scores change evenly, because the row does not see it."""
    chances: tuple[FloatArray, ...]
    """For each row, shape (m_l, K): how often a device of each node reports each column."""
    information: FloatArray
    """Lam_j of depths 1 to h, shape (h,); 0 where no row sees the depth."""

    @property
    def cells(self) -> int:
        """d."""
        return int(ARITY**self.height)

    @property
    def seen(self) -> int:
        """How many cells a node of the finest row that is used has: 1 if every cell can be told
        apart, all if no row is used."""
        depth = max((row + 1 for row, live in enumerate(self.live) if live), default=0)
        return int(ARITY ** (self.height - depth))

    def of(self, weights: FloatArray) -> list[FloatArray]:
        """The column scores of each row, shape (f, K), for f questions, shape (f, d)."""
        found = []
        for row, edges in enumerate(self.edges):
            average = weights.reshape(len(weights), ARITY ** (row + 1), -1).mean(axis=2)
            # Summed by parts: the first and the last edge have no scores. A range has few steps.
            steps = -np.diff(average, axis=1)
            some = np.flatnonzero(steps.any(axis=0))
            found.append(steps[:, some] @ edges[some + 1])
        return found

    def at_edges(self, row: int) -> FloatArray:
        """The column scores of "below this edge" for the edges 1 to d - 1, shape (d - 1, K)."""
        scores, each = self.edges[row], self.cells // ARITY ** (row + 1)
        node, rest = np.divmod(np.arange(1, self.cells), each)
        part = (rest / each)[:, None]
        return np.asarray((1 - part) * scores[node] + part * scores[node + 1])

    def moments(self, row: int, scored: FloatArray | None) -> tuple[FloatArray, FloatArray]:
        """The mean score, and the mean square, of a device of each node, shape (f, m_l) each, for
        column scores of shape (f, K); None: `at_edges`."""
        if scored is None:
            return self._edge_moments[row]
        return scored @ self.chances[row].T, np.square(scored) @ self.chances[row].T

    @cached_property
    def _edge_moments(self) -> list[tuple[FloatArray, FloatArray]]:
        return [self.moments(row, self.at_edges(row)) for row in range(self.height)]

    def planned(self, weights: FloatArray) -> FloatArray:
        """n times the variance of f questions, shape (f, d), without sampling; inf if unseen."""
        variance = np.zeros(len(weights))
        parents = weights.mean(axis=1, keepdims=True)
        for depth in range(1, self.height + 1):
            nodes = ARITY**depth
            average = weights.reshape(len(weights), nodes, -1).mean(axis=2)
            detail = average - np.repeat(parents, ARITY, axis=1)
            size = np.square(detail).sum(axis=1) * (self.cells / nodes)
            # A detail that no row sees is unknown, unless there is none.
            seen = self.information[depth - 1]
            variance += size / seen if seen > 0 else np.where(size > 1e-20, np.inf, 0.0)
            parents = average
        return variance


def scores(mechanism: HierarchicalHistogram, live: tuple[bool, ...] | None = None) -> Scores:
    """The scores of a mechanism; `live` says which rows have reports enough (None: all).

    The first time takes up to half a second for 1,024 cells.
    """
    levels = tuple(
        (*space_of(each), each.rows[0].width, float(each.p), float(each.q))
        for each in mechanism.levels
    )
    if live is None:
        live = (True,) * mechanism.height
    return _scores(levels, tuple(mechanism.weights), live)


@lru_cache(maxsize=4)
def ownership(order: int, dimension: int, columns: int, nodes: int) -> FloatArray:
    """1 where a node owns a column, shape (nodes, columns): its own column alone for order 0,
    otherwise the points of its hyperplane (`deniable.protocol.mechanisms.projective_geometry`)."""
    if order == 0:
        return np.eye(nodes, columns)
    blocks = []
    for lead in range(dimension):
        tail = dimension - 1 - lead
        numbers = np.arange(order**tail)
        block = np.zeros((len(numbers), dimension), np.float64)
        block[:, lead] = 1
        for place in range(tail):
            block[:, dimension - 1 - place] = numbers // order**place % order
        blocks.append(block)
    points = np.concatenate(blocks)
    return np.asarray((points[:nodes] @ points.T) % order == 0, np.float64)


@lru_cache(maxsize=8)
def _scores(levels: tuple[_Level, ...], weights: tuple[int, ...], live: tuple[bool, ...]) -> Scores:
    height = len(levels)
    nodes = [ARITY ** (row + 1) for row in range(height)]
    cells = nodes[-1]
    told = np.zeros(height)
    for row, level in enumerate(levels):
        *_, p, q = level
        m = nodes[row]
        noise = (p * (1 - p) + (m - 1) * q * (1 - q)) / ((p - q) ** 2 * (m - 1))
        told[row] = live[row] * weights[row] / sum(weights) / noise * cells / m
    information = np.cumsum(told[::-1])[::-1]
    edges, chances = [], []
    for row, level in enumerate(levels):
        order, dimension, columns, p, q = level
        owned = ownership(order, dimension, columns, nodes[row])
        size = owned.sum(axis=1, keepdims=True)
        chances.append(p * owned / size + (1 - p) * (1 - owned) / (columns - size))
        own = owned / (p - q)
        each = np.zeros_like(own)
        for depth in range(1, row + 2) if live[row] else ():
            below = ARITY ** (row + 1 - depth)
            total = own.reshape(nodes[depth - 1], below, -1).sum(axis=1)
            family = total.reshape(-1, ARITY, total.shape[1])
            detail = (family - family.mean(axis=1, keepdims=True)).reshape(total.shape)
            weight = told[row] / information[depth - 1] / below
            each += np.repeat(weight * detail, below, axis=0)
        start = np.zeros((1, own.shape[1]))
        edges.append(np.concatenate([start, np.cumsum(each, axis=0)]))
        # Every report counts once in all, so the last edge has no score, but for rounding.
        edges[-1][-1] = 0.0
    return Scores(height, live, tuple(edges), tuple(chances), information)

"""Whether two lists depend on each other, and which cells show it.

Under independence F = A B'. Let QA and QB be orthonormal rows orthogonal to A^ and B^. The
*interaction contrasts* QA F^ QB' have mean zero, and their covariance is that of the cells with
everything gone that depends on f but the diagonal, so that it has a closed form in the eigenbases
of QA diag(A) QA' and QB diag(B) QB' (eigenvalues l and m)::

    M_ij = own + own_share l_i m_j,   h = what the contrasts do to a table of ones
    T = sum Y**2/M - c (sum h Y/M)**2 / (1 + c sum h**2/M),   c = all      (Sherman and Morrison)

T has a chi-square distribution with (k1-1)(k2-1) degrees of freedom. Simulated, its size at 5% is
3 to 6% from 2 x 2 to 30 x 30 (`benchmarks/pairs.py`).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from deniable_estimator.analyses.pairs.covariance import Covariance
from deniable_estimator.statistics.counts import change_p_values
from deniable_estimator.statistics.intervals import FloatArray, Noise
from deniable_estimator.statistics.tails import chi_square_tail

_LEAST_PART = 1e-6
"""A count of which each report is a smaller part has a Poisson distribution."""

_KNOWN = 1e-4
"""So much smaller is the error of a crowd whose shares are as good as known."""


class Independence(NamedTuple):
    """The test that the two lists do not depend on each other."""

    statistic: float
    freedom: int
    p_value: float


class Residuals(NamedTuple):
    """By how much each cell is larger than the product of its margins; arrays have shape
    (k1, k2)."""

    value: FloatArray
    std_error: FloatArray
    p_value: FloatArray
    """Two-sided."""


def independence(table: FloatArray, covariance: Covariance) -> Independence:
    """The test, from the estimated cells, shape (k1, k2)."""
    rows, columns = table.sum(axis=1), table.sum(axis=0)
    one, two, h, m, common = _contrasts(rows, columns, covariance)
    y = one @ table @ two.T
    statistic = float((y**2 / m).sum()) - common * float((h * y / m).sum()) ** 2
    freedom = (len(rows) - 1) * (len(columns) - 1)
    return Independence(max(0.0, statistic), freedom, chi_square_tail(statistic, freedom))


def kernel(rows: FloatArray, columns: FloatArray, covariance: Covariance) -> FloatArray:
    """The matrix K of the test's statistic x'Kx of a table x, row by row, for lists with these
    margins; shape (d, d)."""
    one, two, h, m, common = _contrasts(rows, columns, covariance)
    every = np.kron(one, two)
    weighted = (h / m).ravel() @ every
    found: FloatArray = every.T @ (every / m.reshape(-1, 1))
    return found - common * np.outer(weighted, weighted)


def _contrasts(
    rows: FloatArray, columns: FloatArray, covariance: Covariance
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, float]:
    """The directions of the rows and of the columns, h, M and what the common part counts."""
    qa, qb = _complement(rows), _complement(columns)
    la, ua = np.linalg.eigh(qa @ np.diag(np.maximum(rows, 0.0)) @ qa.T)
    lb, ub = np.linalg.eigh(qb @ np.diag(np.maximum(columns, 0.0)) @ qb.T)
    h = np.outer(ua.T @ qa.sum(axis=1), ub.T @ qb.sum(axis=1))
    m = covariance.own + (covariance.own_share + covariance.kept) * np.outer(la, lb)
    c = covariance.all
    return ua.T @ qa, ub.T @ qb, h, m, c / (1 + c * float((h * h / m).sum()))


def residuals(table: FloatArray, covariance: Covariance) -> Residuals:
    """F^ - A^ B^' with its standard errors, at the estimated cells. Each is about a weighted sum
    of all cells, with the weights (1[i] - A_i)(1[j] - B_j)."""
    c = covariance
    rows, columns = table.sum(axis=1), table.sum(axis=0)
    value = table - np.outer(rows, columns)
    first, second = np.eye(len(rows)) - rows[:, None], np.eye(len(columns)) - columns[:, None]
    weights = np.outer((first**2).sum(axis=1), (second**2).sum(axis=1))
    at_cells = first**2 @ table @ (second**2).T
    total = np.outer(first.sum(axis=1), second.sum(axis=1))
    meeting = first @ table @ second.T
    variance = (
        c.own * weights
        + (c.own_share + c.kept) * at_cells
        + c.all * total**2
        + 2 * c.all_share * total * meeting
        - (c.square + c.kept) * meeting**2
    )
    # Without a dependence the cell itself would have the product of its margins.
    own = np.outer(1 - rows, 1 - columns)
    null = (
        variance
        - (c.own_share + c.kept) * own**2 * value
        - 2 * c.all_share * total * own * value
        + (c.square + c.kept) * (meeting**2 - (meeting - own * value) ** 2)
    )
    return Residuals(value, np.sqrt(np.maximum(variance, 1e-300)), _p_values(value, null, table, c))


def _p_values(
    value: FloatArray, variance: FloatArray, table: FloatArray, covariance: Covariance
) -> FloatArray:
    """Those of residuals that have mean 0 and this variance: the cell counts reports, of which it
    expects so many as the product of its margins says."""
    c = covariance
    expected = np.maximum(table - value, 0.0)
    # Reports that support the cell, in units of its share: their number is expected / step.
    mean = (c.own + c.all + (c.own_share + 2 * c.all_share) * expected) / c.step
    variance = np.clip(variance, 1e-3 * mean * c.step, None)
    part = np.clip(1 - variance / (mean * c.step), _LEAST_PART, 1.0)
    # A binomial count with that mean and variance.
    noise = Noise(
        variance.ravel(),
        (c.step * (1 - 2 * part)).ravel(),
        (c.step * part / mean).ravel(),
        np.full(value.size, c.step),
    )
    known = noise.weighted(np.full(value.size, _KNOWN))
    found = change_p_values(np.zeros(value.size), known, value.ravel(), noise)
    return found.reshape(value.shape)


def _complement(margin: FloatArray) -> FloatArray:
    """Orthonormal rows orthogonal to a margin."""
    length = math.sqrt(float(margin @ margin)) or 1.0
    found: FloatArray = np.linalg.svd(margin[None, :] / length)[2][1:]
    return found

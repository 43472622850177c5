"""How strongly two lists depend on each other: Cramer's V, without the bias that noise brings.

phi**2 = sum of R**2 / (A B) with R = F - A B'. Its plug-in estimate adds the noise of every cell,
so the trace of the covariance W of R / sqrt(A B) is taken off. Its variance grows with the true
phi**2, so the interval holds all y >= 0 with ::

    (phi^**2 - y)**2 <= z**2 (2 tr W**2 + s y),   s = grad' C grad / (plug-in phi**2)
    grad_ij = 2 F_ij/(A_i B_j) - sum_j' F_ij'**2/(A_i**2 B_j') - sum_i' F_i'j**2/(A_i' B_j**2)
    V = sqrt(phi**2 / (min(k1, k2) - 1))

(With the variance at the estimate, intervals of a middling effect cover 87% in place of 95%.)
Without the bias an estimate can be below 0, and is then 0; the interval reaches out to it.

A 2 x 2 table has one contrast, R = F_00 F_11 - F_01 F_10, and phi with its sign is normal where
phi**2 is not. There the interval is that of |phi|, from phi +- z sd(phi) ::

    phi = R / c,   grad_ij = dR_ij / c - phi/2 (1/A_i + 1/B_j),   c = sqrt(A_0 A_1 B_0 B_1)

1/(A B) explodes at values that hardly occur, so those whose share is below 5 standard errors are
lumped into one. The effect is then of the lumped table, and says so.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from deniable_estimator.analyses.pairs.covariance import Covariance
from deniable_estimator.statistics.intervals import FloatArray

_STANDS_OUT = 5.0
"""Values whose share is fewer standard errors than this are lumped. Fewer would bias the test."""


@dataclass(frozen=True, slots=True)
class Effect:
    """Cramer's V with its interval; NaN, and 0 to 1, if too few values stand out."""

    v: float
    low: float
    high: float
    phi2: float
    lumped: tuple[tuple[int, ...], tuple[int, ...]]
    """The places of the values that were lumped, of rows and columns."""


def effect(table: FloatArray, covariance: Covariance, level: float) -> Effect:
    """Cramer's V from the estimated cells, shape (k1, k2)."""
    by_row, rest_rows = _groups(table, covariance)
    by_column, rest_columns = _groups(table.T, covariance)
    lumped = rest_rows, rest_columns
    small = by_row @ table @ by_column.T
    rows, columns = small.sum(axis=1), small.sum(axis=0)
    least = min(len(rows), len(columns)) - 1
    if least < 1:
        return Effect(math.nan, 0.0, 1.0, math.nan, lumped)
    sizes = np.outer(by_row.sum(axis=1), by_column.sum(axis=1)).ravel()
    cells = covariance.matrix(small.ravel(), sizes)
    z = NormalDist().inv_cdf((1 + level) / 2)
    a, b = np.maximum(rows, 1e-9), np.maximum(columns, 1e-9)
    if small.shape == (2, 2):
        phi, error = _signed(small, cells, a, b)
        ends = abs(phi) - z * error, abs(phi) + z * error
        low, high = (min(1.0, max(0.0, each)) for each in ends)
        phi2 = phi**2 - error**2
        v = min(1.0, math.sqrt(max(phi2, 0.0)))
        return Effect(v, min(low, v), max(high, v), phi2, lumped)
    product = np.outer(a, b)
    scale = 1 / np.sqrt(product).ravel()
    first, second = np.eye(len(rows)) - rows[:, None], np.eye(len(columns)) - columns[:, None]
    contrast = np.kron(first, second) * scale[:, None]
    w = contrast @ cells @ contrast.T
    squares = float((w * w).sum())
    apart = (small - np.outer(rows, columns)).ravel() * scale
    phi2 = float(apart @ apart) - float(np.trace(w))
    gradient = (
        2 * small / product
        - (small**2 / np.outer(a**2, b)).sum(axis=1)[:, None]
        - (small**2 / np.outer(a, b**2)).sum(axis=0)[None, :]
    ).ravel()
    # Below 1e-30 the dependence is rounding error, and so is the gradient.
    slope = float(gradient @ cells @ gradient) / max(float(apart @ apart), 1e-30)
    middle = phi2 + z**2 * slope / 2
    half = z * math.sqrt(max(2 * squares + slope * phi2 + z**2 * slope**2 / 4, 0.0))
    low, v, high = (
        min(1.0, math.sqrt(max(each, 0.0) / least)) for each in (middle - half, phi2, middle + half)
    )
    return Effect(v, min(low, v), max(high, v), phi2, lumped)


def _signed(
    table: FloatArray, cells: FloatArray, rows: FloatArray, columns: FloatArray
) -> tuple[float, float]:
    """phi of a 2 x 2 table with its sign, and its standard error."""
    scale = math.sqrt(float(rows.prod() * columns.prod()))
    turned = np.array([[table[1, 1], -table[1, 0]], [-table[0, 1], table[0, 0]]])
    phi = float(table[0, 0] * table[1, 1] - table[0, 1] * table[1, 0]) / scale
    gradient = (turned / scale - phi / 2 * (1 / rows[:, None] + 1 / columns)).ravel()
    return phi, math.sqrt(max(float(gradient @ cells @ gradient), 0.0))


def _groups(table: FloatArray, covariance: Covariance) -> tuple[FloatArray, tuple[int, ...]]:
    """The 0/1 matrix that keeps the rows that stand out and adds up the others, and those."""
    share = table.sum(axis=1)
    error = np.sqrt(covariance.noise(table.shape[1], len(share)).at(share))
    stands = share > _STANDS_OUT * error
    kept, rest = np.flatnonzero(stands), np.flatnonzero(~stands)
    found = np.zeros((len(kept) + (len(rest) > 0), len(share)))
    found[np.arange(len(kept)), kept] = 1
    found[-1, rest] = 1
    return found, tuple(rest.tolist())

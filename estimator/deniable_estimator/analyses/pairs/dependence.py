"""Whether two lists depend on each other, which cells show it, and how strongly.

**Test.** Under independence F = A B'. Let QA and QB be orthonormal rows orthogonal to A^ and B^.
The *interaction contrasts* QA F^ QB' have mean zero, and their covariance is that of the cells with
everything gone that depends on f but the diagonal, so that it has a closed form in the eigenbases
of QA diag(A) QA' and QB diag(B) QB' (eigenvalues l and m)::

    M_ij = own + own_share l_i m_j,   h = what the contrasts do to a table of ones
    T = sum Y**2/M - c (sum h Y/M)**2 / (1 + c sum h**2/M),   c = all      (Sherman and Morrison)

T has a chi-square distribution with (k1-1)(k2-1) degrees of freedom. Simulated, its size at 5% is
3 to 6% from 2 x 2 to 30 x 30 (`benchmarks/pairs.py`).

**Effect**: Cramer's V, without the bias that noise brings. phi**2 = sum of R**2 / (A B) with R = F
- A B'. Its plug-in estimate adds the noise of every cell, so the trace of the covariance W of R /
sqrt(A B) is taken off. Its variance grows with the true phi**2, so the interval holds all y >= 0
with ::

    (phi^**2 - y)**2 <= z**2 (2 tr W**2 + s y),   s = grad' C grad / (plug-in phi**2)
    grad_ij = 2 F_ij/(A_i B_j) - sum_j' F_ij'**2/(A_i**2 B_j') - sum_i' F_i'j**2/(A_i' B_j**2)
    V = sqrt(phi**2 / (min(k1, k2) - 1))

(With the variance at the estimate, intervals of a middling effect cover 87% in place of 95%.)
Without the bias an estimate can be below 0, and is then 0; the interval reaches out to it.

A 2 x 2 table has one contrast, R = F_00 F_11 - F_01 F_10, and phi with its sign is normal where
phi**2 is not. There the interval is that of |phi|, from phi +- z sd(phi) ::

    phi = R / c,   grad_ij = dR_ij / c - phi/2 (1/A_i + 1/B_j),   c = sqrt(A_0 A_1 B_0 B_1)

1/(A B) explodes at values that hardly occur, so those whose share is below 5 standard errors are
lumped into one, with the least of the others if they hardly occur together either. The effect is
then of the lumped table, and says so.

**Shrinkage**: a joint table that is nearer to the truth than the unbiased one, but biased towards
independence. Both margins are known much better than a cell. So the table is taken as the product
of its margins, and of each residual R = F - A B' only a part is added (the nonnegative garrote of
Breiman, Technometrics 1995) ::

    R (1 - c s**2 / R**2) if R**2 > c s**2, else 0;   s: the standard error of R

c is the one of `_CUTS` with the smallest estimate of the expected squared error, Stein's unbiased
one (Annals of Statistics 1981). In each cell, with z = R / s, it is ::

    s**2 (1 + (c**2 + 2 c) / z**2) if z**2 > c, else s**2 (z**2 - 1)

At c = 0 the table stays as it is. The shares that result are made nonnegative and sum to 1. They
have no intervals: those of the unbiased cells hold. `benchmarks/pairs.py` says how much it helps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from deniable_estimator.analyses.pairs import Covariance
from deniable_estimator.statistics.counts import change_p_values
from deniable_estimator.statistics.detection import deviations
from deniable_estimator.statistics.intervals import FloatArray, Noise
from deniable_estimator.statistics.normalization import on_simplex
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
    return np.linalg.svd(margin[None, :] / length)[2][1:]


_STANDS_OUT = 5.0
"""Values whose share is fewer standard errors than this are lumped. Fewer would bias the test."""


@dataclass(frozen=True, slots=True)
class Effect:
    """Cramer's V with its interval; NaN, and 0 to 1, if too few values stand out."""

    v: float
    low: float
    high: float
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
        return Effect(math.nan, 0.0, 1.0, lumped)
    sizes = np.outer(by_row.sum(axis=1), by_column.sum(axis=1)).ravel()
    cells = covariance.matrix(small.ravel(), sizes)
    z = deviations(level)
    a, b = np.maximum(rows, 1e-9), np.maximum(columns, 1e-9)
    if small.shape == (2, 2):
        phi, error = _signed(small, cells, a, b)
        ends = abs(phi) - z * error, abs(phi) + z * error
        low, high = (min(1.0, max(0.0, each)) for each in ends)
        v = min(1.0, math.sqrt(max(phi**2 - error**2, 0.0)))
        return Effect(v, min(low, v), max(high, v), lumped)
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
    return Effect(v, min(low, v), max(high, v), lumped)


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
    """The 0/1 matrix that keeps the rows that stand out and adds up the others, and those. If the
    others hardly occur even together, the least of the rows that stand out is one of them."""
    share = table.sum(axis=1)
    error = np.sqrt(covariance.noise(table.shape[1], len(share)).at(share))
    stands = share > _STANDS_OUT * error
    together = share[~stands].sum(keepdims=True)
    error = np.sqrt(covariance.noise(table.shape[1] * np.count_nonzero(~stands), 1).at(together))
    if stands.any() and not stands.all() and together[0] <= _STANDS_OUT * error[0]:
        stands[np.where(stands, share, np.inf).argmin()] = False
    kept, rest = np.flatnonzero(stands), np.flatnonzero(~stands)
    found = np.zeros((len(kept) + (len(rest) > 0), len(share)))
    found[np.arange(len(kept)), kept] = 1
    found[-1, rest] = 1
    return found, tuple(rest.tolist())


_CUTS = (0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, math.inf)


def shrunken(table: FloatArray, apart: Residuals) -> FloatArray:
    """The shrunken table of the estimated cells, shape (k1, k2), from its residuals: not negative,
    and its sum is 1."""
    product = np.outer(on_simplex(table.sum(axis=1), 1.0), on_simplex(table.sum(axis=0), 1.0))
    noise = apart.std_error**2
    z2 = np.maximum((table - product) ** 2 / noise, 1e-12)
    cut = min(_CUTS, key=lambda each: _risk(each, z2, noise))
    kept = np.maximum(1 - cut / z2, 0.0)
    found: FloatArray = on_simplex((product + kept * (table - product)).ravel(), 1.0)
    return found.reshape(table.shape)


def _risk(cut: float, z2: FloatArray, noise: FloatArray) -> float:
    """Stein's estimate of the expected squared error, summed over the cells."""
    added = cut**2 + 2 * cut if math.isfinite(cut) else 0.0
    return float((noise * np.where(z2 > cut, 1 + added / z2, z2 - 1)).sum())

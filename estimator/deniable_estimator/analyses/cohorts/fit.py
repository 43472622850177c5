"""Generalized least squares on a cohort table: selected candidates jointly, others one by one."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deniable_estimator.analyses.cohorts.table import CohortTable, Design
from deniable_estimator.statistics.intervals import FloatArray

_STEPS = 20
_SETTLED = 1e-3
"""In standard errors: smaller steps of the winsorized fit do not matter."""
_BLIND = 1e-6
_MOST_PRODUCTS = 1 << 24
"""Above so many products the overlap of the candidates with the fit is averaged. In so large a
table it is small, and similar for all candidates."""


@dataclass(frozen=True, eq=False)
class Fit:
    """The joint fit of `selected` candidates, shape (s,).

    `share` and `variance` have shape (s,). The variance excludes the sampling of devices, and is
    infinite for a share that the others determine. `inverse` is the inverse
    of the information, shape (s, s). `expected` is the model's y and `weights` the inverse
    variance of a cell about it, shape (cells,).
    """

    selected: NDArray[np.intp]
    share: FloatArray
    variance: FloatArray
    inverse: FloatArray
    expected: FloatArray
    weights: FloatArray


def joint_fit(
    table: CohortTable, design: Design, selected: NDArray[np.intp], expected: FloatArray
) -> Fit:
    """Fit the selected candidates; `expected` is the fit so far, to take weights from."""
    filters = design.take(selected).filters()
    background = table.background
    for _ in range(2):
        # The spread without the newly selected is smaller: the second time it is measured.
        weights = table.weights(expected, len(selected))
        centred = _centred(filters, weights)
        share, inverse = _solve(centred, weights, table.y)
        expected = background + (filters - background) @ share
    identified = 1 - np.einsum("ij,ji->i", inverse, _information(centred, weights)) < _BLIND
    variance = np.where(identified, np.diag(inverse) * table.loss, np.inf)
    for _ in range(_STEPS):
        step = inverse @ (centred.T @ (weights * table.residual(expected, weights)))
        share = share + step
        expected = background + (filters - background) @ share
        if np.all(np.abs(step) <= _SETTLED * np.sqrt(variance)):
            break
    return Fit(selected, share, variance, inverse, expected, weights)


def _centred(filters: FloatArray, weights: FloatArray) -> FloatArray:
    """Filters about their weighted means: as if a constant were fitted as well.

    What winsorizing takes from all cells alike then moves no share.
    """
    centred: FloatArray = filters - weights @ filters / weights.sum()
    return centred


def _information(centred: FloatArray, weights: FloatArray) -> FloatArray:
    scaled = centred * np.sqrt(weights)[:, None]
    return scaled.T @ scaled


def _solve(
    centred: FloatArray, weights: FloatArray, target: FloatArray
) -> tuple[FloatArray, FloatArray]:
    information = _information(centred, weights)
    inverse = np.asarray(np.linalg.pinv(information, hermitian=True), np.float64)
    return inverse @ (centred.T @ (weights * target)), inverse


def covariance(table: CohortTable, design: Design, fit: Fit, left: float = 1.0) -> FloatArray:
    """Covariance of the fitted shares, shape (s, s), including the sampling of devices.

    A device's filter sets several cells at once, and those of one cohort sum to h or less,
    so cells of a cohort are not independent where the noise is small. For cells j and l::

        N Cov(y_j, y_l) = sum_x share_x X_xj X_xl + u c**2 - E[y_j] E[y_l]

    where u is the share that the fit leaves to random filters. If a report sets exactly one
    column, the rates t/N of a cohort are those of a multinomial distribution, of which the
    weights include the diagonal: N Cov is that less the product of two rates. `left` is the
    fraction of the degrees of freedom that the selection of candidates has left.
    """
    filters = design.take(fit.selected).filters()
    background, gap = table.background, table.p11 - table.p01
    linear = fit.inverse @ (_centred(filters, fit.weights) * fit.weights[:, None]).T
    rest = max(0.0, 1 - float(fit.share.sum()))
    total = fit.inverse * table.loss / left**2
    for cohort in range(design.cohorts):
        cells = slice(cohort * design.columns, (cohort + 1) * design.columns)
        n = table.reports[cells.start]
        if n == 0:
            continue
        part, sets, expected = linear[:, cells], filters[cells], fit.expected[cells]
        ones = part.sum(axis=1)
        mean = part @ expected
        if table.tied:
            mean = mean + ones * (table.p01 / gap)
            total = total - np.outer(mean, mean) / n
            continue
        joint = part @ sets
        own = sets @ fit.share + rest * background**2 - expected**2
        between = (joint * fit.share) @ joint.T + rest * background**2 * np.outer(ones, ones)
        total = total + (between - np.outer(mean, mean) - (part * own) @ part.T) / n
    return total


def scores(
    table: CohortTable, design: Design, expected: FloatArray, weights: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The score of each candidate from the residual, shape (M,), and its information.

    Their quotient is the share of the candidate alone, with variance loss / information.
    """
    pull = weights * table.residual(expected, weights)
    own = design.sums(weights)
    mean = own / weights.sum()
    return design.sums(pull) - mean * pull.sum(), own * (1 - mean)


def singly(table: CohortTable, design: Design, fit: Fit) -> tuple[FloatArray, FloatArray]:
    """Each candidate's share if only it joined the fit, and its variance, shape (M,).

    NaN and infinite if the fitted candidates determine it (so also for themselves).
    """
    score, information = scores(table, design, fit.expected, fit.weights)
    left = information - _overlap(table, design, fit, information)
    known = left > _BLIND * information
    share = np.divide(score, left, out=np.full(len(design), np.nan), where=known)
    variance = np.divide(table.loss, left, out=np.full(len(design), np.inf), where=known)
    return share, variance


def left_out(table: CohortTable, design: Design, fit: Fit) -> FloatArray:
    """The z of each fitted candidate by `scores` if only it left the fit, shape (s,).

    A candidate in the fit gets the same test as one outside. The fit's own z of a candidate that
    no device has are higher, because the winsorized residuals follow it.
    """
    centred = _centred(design.take(fit.selected).filters(), fit.weights)
    spread = np.diag(fit.inverse)
    alone = centred @ (fit.inverse / spread)
    z = np.empty(len(fit.selected))
    for at, (own, share) in enumerate(zip(alone.T, fit.share, strict=True)):
        residual = table.residual(fit.expected - share * own, fit.weights)
        z[at] = own @ (fit.weights * residual)
    return z * np.sqrt(spread / table.loss)


def skewness(table: CohortTable, design: Design, fit: Fit) -> float:
    """The skewness of the score of a candidate that no device has, given the table.

    The cells of such a candidate are uniform in each cohort and independent of the table, so the
    cumulants of its score are sums of those of the cells. Common strings outside the fit raise
    few cells by much, which gives all candidates a long upper tail.
    """
    cohorts = (design.cohorts, design.columns)
    pull = (fit.weights * table.residual(fit.expected, fit.weights)).reshape(cohorts)
    pull -= pull.mean(axis=1, keepdims=True)
    third = float((pull**3).mean(axis=1).sum())
    second = float(fit.weights.reshape(cohorts).mean(axis=1).sum()) * (1 - table.background)
    hashes = design.cells.shape[1] // design.cohorts
    return third / (math.pow(second, 1.5) * math.sqrt(hashes))


def _overlap(table: CohortTable, design: Design, fit: Fit, information: FloatArray) -> FloatArray:
    """The fraction of each candidate's information that the fitted ones have used up."""
    size = len(fit.selected)
    if size == 0:
        return np.zeros(len(design))
    if design.cells.size * size > _MOST_PRODUCTS:
        return information * (size / table.live)
    # Their weighted sums over all cells are 0, so that the candidates need not be centred.
    cross = design.sums(
        _centred(design.take(fit.selected).filters(), fit.weights) * fit.weights[:, None]
    )
    overlap: FloatArray = np.einsum("ij,ij->i", cross @ fit.inverse, cross)
    return overlap

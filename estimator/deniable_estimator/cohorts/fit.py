"""Generalized least squares on a cohort table: some candidates jointly, the others singly."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deniable_estimator.cohorts.design import Design
from deniable_estimator.cohorts.table import CohortTable
from deniable_estimator.intervals import FloatArray

__all__ = ["Fit", "covariance", "joint_fit", "left_out", "scores", "singly", "skewness"]

_STEPS = 20
_SETTLED = 1e-3
"""Of a standard error: smaller steps of the winsorized fit change nothing."""
_BLIND = 1e-6
_MOST_PRODUCTS = 1 << 24
"""Beyond so many products the overlap of the candidates with the fit is averaged: it is
small, and much alike, for all candidates of a table as large as that takes."""


@dataclass(frozen=True, eq=False)
class Fit:
    """The joint fit of `selected` candidates, shape (s,).

    `share` and `variance` have shape (s,), the variance without that of who happened to be
    asked; it is infinite for a share that the others determine. `inverse` is the inverse
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
    centred = design.take(selected).filters() - table.background
    target = table.y - table.background
    weights = table.weights(expected, len(selected))
    share, inverse = _solve(centred, weights, target)
    # The spread without the newly selected is smaller: measure it, and fit again.
    weights = table.weights(table.background + centred @ share, len(selected))
    share, inverse = _solve(centred, weights, target)
    identified = 1 - np.einsum("ij,ji->i", inverse, _information(centred, weights)) < _BLIND
    variance = np.where(identified, np.diag(inverse) * table.winsor.loss, np.inf)
    expected = table.background + centred @ share
    for _ in range(_STEPS):
        step = inverse @ (centred.T @ (weights * table.residual(expected, weights)))
        share = share + step
        expected = table.background + centred @ share
        if np.all(np.abs(step) <= _SETTLED * np.sqrt(variance)):
            break
    return Fit(selected, share, variance, inverse, expected, weights)


def _information(centred: FloatArray, weights: FloatArray) -> FloatArray:
    scaled = centred * np.sqrt(weights)[:, None]
    information: FloatArray = scaled.T @ scaled
    return information


def _solve(
    centred: FloatArray, weights: FloatArray, target: FloatArray
) -> tuple[FloatArray, FloatArray]:
    information = _information(centred, weights)
    inverse = np.asarray(np.linalg.pinv(information, hermitian=True), np.float64)
    return inverse @ (centred.T @ (weights * target)), inverse


def covariance(table: CohortTable, design: Design, fit: Fit, left: float = 1.0) -> FloatArray:
    """Covariance of the fitted shares, shape (s, s), with that of who happened to be asked.

    A device's filter sets several cells at once, and those of one cohort sum to h or less,
    so cells of a cohort are not independent where the noise is small. For cells j and l::

        N Cov(y_j, y_l) = sum_x share_x X_xj X_xl + u c**2 - E[y_j] E[y_l]

    with u the share that the fit leaves to random filters. Where a report sets exactly one
    column, the weights hold all of that already. `left` is the part of the degrees of freedom
    that choosing the candidates has left.
    """
    noise = fit.inverse * table.winsor.loss / left**2
    if table.tied:
        return noise
    filters = design.take(fit.selected).filters()
    background = table.background
    linear = fit.inverse @ ((filters - background) * fit.weights[:, None]).T
    rest = max(0.0, 1 - float(fit.share.sum()))
    total = noise
    for cohort in range(design.cohorts):
        cells = slice(cohort * design.columns, (cohort + 1) * design.columns)
        n = table.reports[cells.start]
        if n == 0:
            continue
        part, sets, expected = linear[:, cells], filters[cells], fit.expected[cells]
        joint = part @ sets
        ones = part.sum(axis=1)
        mean = part @ expected
        own = sets @ fit.share + rest * background**2 - expected**2
        between = (joint * fit.share) @ joint.T + rest * background**2 * np.outer(ones, ones)
        total = total + (between - np.outer(mean, mean) - (part * own) @ part.T) / n
    return total


def scores(
    table: CohortTable, design: Design, expected: FloatArray, weights: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """What the residual says of each candidate, shape (M,), and the information behind it.

    Their quotient is the share of a candidate alone, with variance loss / information.
    """
    background = table.background
    pull = weights * table.residual(expected, weights)
    score = design.sums(pull) - background * pull.sum()
    information = (1 - 2 * background) * design.sums(weights) + background**2 * weights.sum()
    return score, information


def singly(table: CohortTable, design: Design, fit: Fit) -> tuple[FloatArray, FloatArray]:
    """Each candidate's share if it alone joined the fit, and its variance, shape (M,).

    NaN and infinite where the fitted candidates determine it (so also for themselves).
    """
    score, information = scores(table, design, fit.expected, fit.weights)
    left = information - _overlap(table, design, fit, information)
    known = left > _BLIND * information
    share = np.divide(score, left, out=np.full(len(design), np.nan), where=known)
    variance = np.divide(table.winsor.loss, left, out=np.full(len(design), np.inf), where=known)
    return share, variance


def left_out(table: CohortTable, design: Design, fit: Fit) -> FloatArray:
    """The z that each fitted candidate would have by `scores` if it alone left the fit, shape (s,).

    What has entered is judged as it was from outside: the fit's own z of a candidate that nobody
    has are higher, as the residuals that are cut off follow it.
    """
    centred = design.take(fit.selected).filters() - table.background
    spread = np.diag(fit.inverse)
    alone = centred @ (fit.inverse / spread)
    z = np.empty(len(fit.selected))
    for at, (own, share) in enumerate(zip(alone.T, fit.share, strict=True)):
        residual = table.residual(fit.expected - share * own, fit.weights)
        z[at] = own @ (fit.weights * residual)
    return z * np.sqrt(spread / table.winsor.loss)


def skewness(table: CohortTable, design: Design, fit: Fit) -> float:
    """The skewness of the score of a candidate that nobody has, given the table.

    Such a candidate falls on cells that are uniform in each cohort and independent of the table,
    so cumulants of its score are sums of those of the cells. Common strings that are in no fit
    lift few cells by much, and so give all candidates a long upper tail.
    """
    cohorts = (design.cohorts, design.columns)
    pull = (fit.weights * table.residual(fit.expected, fit.weights)).reshape(cohorts)
    pull -= pull.mean(axis=1, keepdims=True)
    third = float((pull**3).mean(axis=1).sum())
    second = float(fit.weights.reshape(cohorts).mean(axis=1).sum()) * (1 - table.background)
    hashes = design.cells.shape[1] // design.cohorts
    return third / (math.pow(second, 1.5) * math.sqrt(hashes))


def _overlap(table: CohortTable, design: Design, fit: Fit, information: FloatArray) -> FloatArray:
    """The part of each candidate's information that the fitted ones have used up."""
    size = len(fit.selected)
    if size == 0:
        return np.zeros(len(design))
    if design.cells.size * size > _MOST_PRODUCTS:
        return information * (size / table.live)
    centred = design.take(fit.selected).filters() - table.background
    pull = centred * fit.weights[:, None]
    cross = design.sums(pull) - table.background * pull.sum(axis=0)
    overlap: FloatArray = np.einsum("ij,ij->i", cross @ fit.inverse, cross)
    return overlap

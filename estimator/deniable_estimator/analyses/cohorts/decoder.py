"""Shares of candidate strings from a cohort table: stage-wise generalized least squares.

It decodes RAPPOR (Erlingsson, Pihur and Korolova, CCS 2014), cohort local hashing and
cohort LOLOHA, from counts alone::

    E[y] = c + sum_x share_x (X_x - c)

where y is the debiased table, X_x is 1 on the cells of candidate x, and c is the density of a
random filter: strings that are not among the candidates are assumed to be spread like random
filters.

Candidates are added while the residual detects them at a false discovery rate (Benjamini and
Hochberg, J. R. Stat. Soc. B 1995) over all candidates. Then all are fitted jointly, and those
that the joint fit does not confirm are removed. The reported share is the joint estimate for
selected candidates, and the unbiased estimate of adding it alone for any other. Which candidates
are detected is decided at the end, by the same test as for every other list
(`deniable_estimator.statistics.significance`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from deniable_estimator.analyses.cohorts.fit import (
    Fit,
    covariance,
    joint_fit,
    left_out,
    scores,
    singly,
    skewness,
)
from deniable_estimator.analyses.cohorts.table import CohortTable, Design
from deniable_estimator.statistics.detection import deviations
from deniable_estimator.statistics.intervals import FloatArray
from deniable_estimator.statistics.significance import adjust_p, normal_score, step_up
from deniable_estimator.statistics.tails import upper_tails

_MOST_SELECTED = 600
_MOST_ENTRIES = 1 << 25
"""The limit for the dense design of the selected candidates: 256 MB."""
_BATCH = 24
_NEAR_BEST = 0.7
"""A round adds candidates this close to its best one. Weaker ones may be its ghosts, which share
some of its cells by chance and disappear once it is in the fit."""
_STRICTNESS = 0.8
"""Selecting and estimating on the same counts lets slightly more noise through than the level
says, so the search uses this fraction of it (found by simulation)."""
_SMALL_TABLE = 1024
"""In a table with so few cells, strong strings are most of the residual's variance and hide each
other. So the search starts from all candidates, if there are enough cells."""
_ENOUGH = 0.8
_MOST_ROUNDS = 60


@dataclass(frozen=True, eq=False)
class Decoding:
    """The estimates of M candidates, in their order; arrays have shape (M,).

    Shares are unclipped fractions of all devices. A share is NaN, with an infinite standard error
    and no p-value, if the counts do not determine it. `p_value` is one-sided for the hypothesis
    that no device has the string, and not adjusted; `detected` keeps a false discovery rate over
    all candidates. `explained_share` is the sum over those detected, with its standard error. The
    other devices have strings that are not candidates, or that are too rare to be distinguished
    from noise. Candidates with the same hashes in every cohort share one estimate, for all of
    them together: `same_as` is the index of the first of them (its own, for a single one).
    """

    n: int
    level: float
    share: FloatArray
    std_error: FloatArray
    p_value: FloatArray
    detected: NDArray[np.bool_]
    same_as: NDArray[np.intp]
    explained_share: float
    explained_error: float

    @property
    def low(self) -> FloatArray:
        """Lower ends of the intervals."""
        return self.share - self._z * self.std_error

    @property
    def high(self) -> FloatArray:
        """Upper ends of the intervals."""
        return self.share + self._z * self.std_error

    @property
    def unexplained(self) -> tuple[float, float, float]:
        """The share of devices that no detected candidate explains: low, estimate, high."""
        rest, half = 1 - self.explained_share, self._z * self.explained_error
        return rest - half, rest, rest + half

    @property
    def _z(self) -> float:
        return deviations(self.level)


def decode(
    counts: NDArray[Any],
    reports: NDArray[Any],
    design: Design,
    p01: float,
    p11: float,
    *,
    background: float,
    exclusive: bool = False,
    fdr: float = 0.05,
    level: float = 0.95,
) -> Decoding:
    """Estimate every candidate's share from a cohort table.

    Args:
        counts: shape (m, k), how often each column was set in each cohort.
        reports: shape (m,), the reports of each cohort; a cohort without reports has no weight.
            Both may be scaled by the same factor if reports are not independent.
        design: the cells of the M candidates.
        p01, p11: probability that a report sets a cell which the true filter leaves, or sets;
            they differ.
        background: density c of a random filter: 1 - (1 - 1/k)**h. It is 0 if only the
            candidates can be encoded and no two of them share a cell (basic RAPPOR). Each is
            then estimated from its own cells.
        exclusive: whether each report sets exactly one column, as in local hashing.
        fdr: false discovery rate of `detected`, over all candidates.
        level: of the intervals.

    The same arguments give the same result. A round of selection reads m * h numbers for each
    candidate; a dozen rounds are usual.
    """
    same_as = design.same_as
    first = np.flatnonzero(same_as == np.arange(len(design)))
    distinct = design if len(first) == len(design) else design.take(first)
    # If all cells of a candidate are at the limit, its z is still 20.
    limit = max(2.5, 20 / math.sqrt(design.cells.shape[1]))
    table = CohortTable.of(counts, reports, p01, p11, background, limit, exclusive=exclusive)
    if not table.live:
        found = _nothing(len(distinct))
    elif background == 0:
        found = _apart(table, distinct, fdr)
    else:
        found = _together(table, distinct, fdr)
    share, variance, p_value, detected, explained = found
    place = np.searchsorted(first, same_as)
    return Decoding(
        n=int(reports.sum()),
        level=level,
        share=share[place],
        std_error=np.sqrt(variance)[place],
        p_value=p_value[place],
        detected=detected[place],
        same_as=same_as,
        explained_share=float(share[detected].sum()),
        explained_error=math.sqrt(explained),
    )


_Decoded: TypeAlias = tuple[FloatArray, FloatArray, FloatArray, NDArray[np.bool_], float]
"""Of candidates with different hashes: their shares, variances, p-values and which are detected,
arrays of shape (M,), and the variance of the share that these explain."""


def _nothing(size: int) -> _Decoded:
    """The result without any report."""
    unknown = np.full(size, np.nan)
    return unknown, np.full(size, np.inf), unknown, np.zeros(size, bool), 0.0


def _apart(table: CohortTable, design: Design, fdr: float) -> _Decoded:
    """For candidates that share no cell: each from its own cells."""
    null = 1 / design.sums(1 / table.variance(np.zeros(design.size)))
    share, variance = np.zeros(len(design)), null
    for _ in range(2):
        # The second time with weights from the pooled shares.
        expected = np.zeros(design.size + 1)
        expected[design.cells] = share[:, None]
        weights = 1 / table.variance(expected[:-1])
        variance = 1 / design.sums(weights)
        share = variance * design.sums(weights * table.y)
    p = upper_tails(share / np.sqrt(null))
    detected = adjust_p(p, "storey") <= fdr
    held = share[detected]
    # Each device has one string, so the shares of two strings are negatively correlated.
    together = (held.sum() ** 2 - (held**2).sum()) * design.columns / table.reports.sum()
    explained = max(0.0, float(variance[detected].sum() - together))
    return share, variance, p, detected, explained


def _together(table: CohortTable, design: Design, fdr: float) -> _Decoded:
    """Select, fit jointly, and estimate every other candidate on top of that fit."""
    fit = _search(table, design, fdr * _STRICTNESS)
    share, variance = singly(table, design, fit)
    z = share / np.sqrt(variance)
    z[fit.selected] = left_out(table, design, fit)
    p = upper_tails(normal_score(z, np.full(len(z), skewness(table, design, fit))))
    detected = adjust_p(p, "storey") <= fdr
    left = _left_by_search(table, z, fit, fdr * _STRICTNESS)
    spread = covariance(table, design, fit, left)
    share /= left
    variance /= left**2
    share[fit.selected] = fit.share
    variance[fit.selected] = np.maximum(np.diag(spread), 0.0)
    fitted = detected[fit.selected]
    alone = detected.copy()
    alone[fit.selected] = False
    explained = float(spread[np.ix_(fitted, fitted)].sum() + variance[alone].sum())
    return share, variance, p, detected, max(0.0, explained)


def _left_by_search(table: CohortTable, z: FloatArray, fit: Fit, fdr: float) -> float:
    """The fraction of the table's degrees of freedom that the search has not used up.

    A string is in the fit if its z exceeds some t, so the search has fitted the noise of the
    strings near t. This counts like t phi(t - m) more parameters for a string whose expected z is
    m (Tibshirani, "Degrees of freedom and model search", Stat. Sinica 2015), in total t times the
    density at t of the z, shape (M,). If a fraction L of the degrees of freedom is left, then

    - the residuals contain a fraction L of the share of each string outside the fit, because
      strings that share its cells were more likely to enter.
    - a fitted share has 1 / L**2 times the variance that the fit computes: 1 / L because the
      residuals that measure the noise are too small, and 1 / L again because the shares of other
      strings are too large if they are in the fit, and 0 if they are not.
    """
    size = len(fit.selected)
    if not size:
        return 1.0
    limit = max(0.0, NormalDist().inv_cdf(1 - fdr * size / len(z)))
    below = np.count_nonzero((limit - 1 < z) & (z < limit))
    above = np.count_nonzero((limit <= z) & (z < limit + 1))
    # The density of the z falls about exponentially, so it is their geometric mean.
    used = limit * math.sqrt(below * above)
    return max(1 - used / max(table.live - table.tied - size, 1), 0.5)


def _search(table: CohortTable, design: Design, fdr: float) -> Fit:
    """Select candidates: add those that the residual detects, then drop those not confirmed."""
    most = min(_MOST_SELECTED, _MOST_ENTRIES // design.size)
    dropped = np.zeros(len(design), np.int64)
    selected = np.empty(0, np.intp)
    if design.size <= _SMALL_TABLE and len(design) <= min(_ENOUGH * table.live, most):
        selected = np.arange(len(design))
    flat = np.full(design.size, table.background)
    fit = _prune(table, design, joint_fit(table, design, selected, flat), fdr, dropped)
    for _ in range(_MOST_ROUNDS):
        score, information = scores(table, design, fit.expected, fit.weights)
        z = score / np.sqrt(information * table.loss)
        z[fit.selected] = -np.inf
        z[dropped > 1] = -np.inf
        p = np.concatenate([upper_tails(z), np.zeros(len(fit.selected))])
        entering = np.flatnonzero(step_up(p, len(design))[: len(design)] <= fdr)
        entering = entering[np.argsort(-z[entering], kind="stable")]
        room = min(_BATCH, most - len(fit.selected))
        entering = entering[z[entering] >= _NEAR_BEST * z[entering].max(initial=0)][:room]
        if not len(entering):
            break
        selected = np.concatenate([fit.selected, entering])
        fit = joint_fit(table, design, selected, fit.expected)
        fit = _prune(table, design, fit, fdr, dropped)
    return fit


def _prune(
    table: CohortTable, design: Design, fit: Fit, fdr: float, dropped: NDArray[np.int64]
) -> Fit:
    """Drop candidates that the joint fit does not confirm, the weaker half of them at a time.

    It counts in `dropped`, so that a candidate that was dropped twice stays out.
    """
    while len(fit.selected):
        z = fit.share / np.sqrt(fit.variance)
        failing = np.flatnonzero(step_up(upper_tails(z), len(design)) > fdr)
        if not len(failing):
            break
        weakest = failing[np.argsort(z[failing], kind="stable")][: (len(failing) + 1) // 2]
        dropped[fit.selected[weakest]] += 1
        fit = joint_fit(table, design, np.delete(fit.selected, weakest), fit.expected)
    return fit

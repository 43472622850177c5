"""Combines the estimates of several schemes of one metric, weighted by inverse variance.

Tallies of different schemes are never added. For each value the unbiased shares are averaged
with weights proportional to 1 / (Var_i(f) - C(f)). Here f is the same for all schemes: the
share pooled with the weights of f = 0, which depend on no data. Weights from each scheme's own
share would favour the schemes whose shares happened to be low.

The noise of the schemes is independent, and so are their memos, but the devices may be the
same. The covariance of the estimates is bounded, by `overlap` of
`deniable_estimator.statistics.participation`, and added to the variance. C is the part that all
of them share, which no weights can reduce.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from deniable_estimator.analyses.base import Finding
from deniable_estimator.analyses.poisoning import Exposure
from deniable_estimator.answers.basis import Basis
from deniable_estimator.answers.shares import Shares, infer
from deniable_estimator.errors import EstimateError
from deniable_estimator.messages import message
from deniable_estimator.statistics.intervals import FloatArray, Noise
from deniable_estimator.statistics.participation import overlap, together

_LEAST_NOISE = 1e-6


def combine(estimates: Sequence[Shares]) -> Shares:
    """One estimate from several of the same metric, level and adjustment.

    Each is of another scheme, or of a scheme without memos. (Memos of one scheme are the same in
    all of its tallies, so these are added up first.)

    Values are in the order in which they first appear. A value that only some schemes have is
    estimated from these, and a warning says so.

    Raises:
        EstimateError: there are none, or they are of different metrics, levels or adjustments.
    """
    questions = {(each.metric, each.level, each.adjustment) for each in estimates}
    if len(questions) != 1:
        raise EstimateError(
            "only estimates of one metric, level and adjustment can be combined: "
            "estimate them again alike"
        )
    informed = [each for each in estimates if each.n]
    if len(informed) < 2:
        return informed[0] if informed else estimates[0]
    values = tuple(dict.fromkeys(value for each in informed for value in each.values))
    parts = [_aligned(each, values) for each in informed]
    participations = [each.participation for each in informed]
    matrix = overlap(participations)
    pooled, _, _ = _average(parts, np.zeros(len(values)), matrix)
    share, noise, weights = _average(parts, np.clip(pooled, 0.0, 1.0), matrix)
    same = together(participations, weights, matrix)
    if same.any():
        none = np.zeros(len(values))
        noise += replace(Noise.none(len(values)), kept=Noise(none, same, same, none))
    alike = all(set(each.values) == set(values) for each in informed)
    basis, complete = Basis.merged(informed), alike and all(each.complete for each in informed)
    # Each scheme has its own hash functions, so an accidental collision is in one of them only.
    shown = _marked((each, each.detected & ~each.ghosts) for each in informed)
    haunted = _marked((each, each.ghosts) for each in informed) - shown
    ghosts = np.array([value in haunted for value in values]) if haunted else None
    found = Finding.of(share, noise, ghosts)
    seen = [figure for each in informed for figure in each.verdict.figures]
    combined = infer(
        basis,
        complete,
        values,
        found,
        _exposure(informed, values, weights),
        seen,
        informed[0].level,
        informed[0].adjustment,
    )
    return combined if alike else _warned(combined, informed)


def _marked(marks: Iterable[tuple[Shares, NDArray[np.bool_]]]) -> set[str]:
    """The values that are marked in any of the estimates."""
    named = (
        [each.values[place] for place in np.flatnonzero(mark).tolist()] for each, mark in marks
    )
    return set().union(*named)


def _aligned(estimate: Shares, values: tuple[str, ...]) -> tuple[FloatArray, Noise]:
    """Its shares and noise over `values`, with infinite noise for values it does not have."""
    share = _spread(estimate, values, estimate.share, np.nan)
    return share, _spread_noise(estimate, values, estimate.noise, np.inf)


def _spread_noise(estimate: Shares, values: tuple[str, ...], noise: Noise, rest: float) -> Noise:
    """The noise of an estimate over `values`, with the variance `rest` for those it does not
    have."""
    if estimate.values == values:
        return noise
    others = (noise.b, noise.c, noise.step)
    b, c, step = (_spread(estimate, values, column, 0.0) for column in others)
    kept = noise.kept and _spread_noise(estimate, values, noise.kept, 0.0)
    return Noise(_spread(estimate, values, noise.a, rest), b, c, step, kept)


def _spread(
    estimate: Shares, values: tuple[str, ...], column: FloatArray, rest: float
) -> FloatArray:
    """The column of an estimate over `values`, with `rest` for those it does not have."""
    if estimate.values == values:
        return column
    index = {value: place for place, value in enumerate(values)}
    wide = np.full(len(values), rest)
    wide[[index[value] for value in estimate.values]] = column
    return wide


def _exposure(parts: Sequence[Shares], values: tuple[str, ...], weights: FloatArray) -> Exposure:
    """The exposure of the average: fakes report under the scheme that moves it most."""
    n = sum(each.n for each in parts)
    sides = []
    for side in ("gain", "loss"):
        rates = [
            weight * n / each.n * _spread(each, values, getattr(each.exposure, side), 0.0)
            for each, weight in zip(parts, weights, strict=True)
        ]
        sides.append(np.max(rates, axis=0))
    return Exposure(*sides)


def _average(
    parts: Sequence[tuple[FloatArray, Noise]], at: FloatArray, matrix: FloatArray
) -> tuple[FloatArray, Noise, FloatArray]:
    """The average with the weights that are best if the true shares are `at`, its noise as if
    no device had used two schemes, and these weights, shape (parts, d).

    `matrix` is the schemes' `overlap`.
    """
    variance = np.array([noise.at(at) for _, noise in parts])
    common = at * (1 - at) * matrix.min()
    # Except for rounding, a variance is at least the common part.
    precision = 1 / np.maximum(variance - common, _LEAST_NOISE * variance)
    weights = precision / precision.sum(axis=0)
    share = np.zeros(len(at))
    total = Noise.none(len(at))
    for weight, (each, noise) in zip(weights, parts, strict=True):
        known = weight > 0
        share[known] += (weight * each)[known]
        total += noise.weighted(weight)
    return share, total, weights


def _warned(combined: Shares, parts: Sequence[Shares]) -> Shares:
    everywhere = set.intersection(*(set(part.values) for part in parts))
    some = [value for value in combined.values if value not in everywhere]
    named = ", ".join(some[:5]) + (", ..." if len(some) > 5 else "")
    warning = message(
        "the schemes ask for different values; {count} of them rest on some schemes only: {named}",
        count=len(some),
        named=named,
    )
    return replace(combined, warnings=(*combined.warnings, warning))

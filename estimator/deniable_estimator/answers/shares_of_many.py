"""The shares of many tallies: of one scheme each by itself, and of several schemes as one.

A trend has hundreds of tallies. A call of numpy on twelve shares takes about as long as one on
thousands, so the shares of all tallies are one long array here; the formulas are those of
`shares.estimate`.

Tallies of different schemes are never added. For each value the unbiased shares are averaged
with weights proportional to 1 / (Var_i(f) - C(f)), weighted by inverse variance. Here f is the same
for all schemes: the share pooled with the weights of f = 0, which depend on no data. Weights from
each scheme's own share would favour the schemes whose shares happened to be low.

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

from deniable import Scheme
from deniable_collector.tally import Tally
from deniable_estimator.analyses import oracle_analysis
from deniable_estimator.analyses.anomalies import figures_of_each
from deniable_estimator.analyses.base import Finding, OneRowAnalysis
from deniable_estimator.analyses.candidates import asked_values, check_tally
from deniable_estimator.analyses.poisoning import Exposure
from deniable_estimator.answers.basis import Basis, caveats_of
from deniable_estimator.answers.shares import Numbers, Shares, assembled, errors_of, estimate, infer
from deniable_estimator.errors import EstimateError
from deniable_estimator.forecasting.detection import critical_value
from deniable_estimator.messages import message
from deniable_estimator.statistics.intervals import FloatArray, Noise
from deniable_estimator.statistics.participation import Participation, overlap, together
from deniable_estimator.statistics.significance import Adjustment, adjust_rows


def estimate_each(
    tallies: Sequence[Tally],
    scheme: Scheme,
    candidates: Sequence[str] | None,
    participations: Sequence[Participation],
    *,
    level: float = 0.95,
    adjust: Adjustment = "storey",
) -> list[Shares]:
    """What `shares.estimate` says of each of these tallies of one scheme.

    Raises:
        EstimateError, ValueError: as `shares.estimate` does.
    """
    found: list[Shares | None] = [None] * len(tallies)
    # What is alike can be calculated together: whether devices may have reported twice.
    alike: dict[bool, list[int]] = {True: [], False: []}
    one_row = isinstance(oracle_analysis(scheme.mechanism), OneRowAnalysis)
    for place, (tally, participation) in enumerate(zip(tallies, participations, strict=True)):
        if one_row and tally.reports and adjust == "storey":
            alike[participation.repeats == 1].append(place)
        else:
            found[place] = estimate(
                *(tally, scheme, candidates),
                level=level,
                adjust=adjust,
                participation=participation,
            )
    for places in filter(None, alike.values()):
        answers = _together(
            [tallies[place] for place in places],
            *(scheme, candidates, [participations[place] for place in places], level, adjust),
        )
        for place, answer in zip(places, answers, strict=True):
            found[place] = answer
    return [each for each in found if each is not None]


def _together(
    tallies: Sequence[Tally],
    scheme: Scheme,
    candidates: Sequence[str] | None,
    participations: Sequence[Participation],
    level: float,
    adjust: Adjustment,
) -> list[Shares]:
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, not {level}")
    mechanism = scheme.oracle
    analysis = oracle_analysis(mechanism)
    assert isinstance(analysis, OneRowAnalysis)
    values, items = asked_values(tallies[0], scheme, candidates)
    for tally in tallies:
        check_tally(tally, scheme)
    count, size = len(tallies), len(values)
    share, own = analysis.shares_of_each(tallies, items)
    reports = np.array([tally.reports for tally in tallies])
    repeats = [each.repeats for each in participations]
    own = replace(own, kept=analysis.kept_noise(reports.tolist(), repeats))
    # Value by value in one long array.
    wide = own.taken(np.repeat(np.arange(count), size))
    long = Finding.of(share.reshape(-1), wide)
    std_error, low, high, p_value = (
        each.reshape(count, size)
        for each in (*errors_of(long.share, long.noise, level), long.p_value)
    )
    p_adjusted = adjust_rows(p_value)
    exposure = Exposure.of(mechanism, share, reports[:, np.newaxis], reports[:, np.newaxis])
    # Without memos devices keep neither bits nor rows, so their reports look independent.
    kept = repeats if analysis.memory else [1.0] * count
    figures = figures_of_each(tallies, analysis, share, own.shaped((-1, 1)), kept)
    smallest = (critical_value(1 - level, size) * own.null_error).tolist()
    skewness = np.abs(own.skewness).tolist()
    ghosts = np.zeros(size, np.bool_)
    noise_columns = (each.reshape(count, size) for each in (wide.a, wide.b, wide.c, wide.step))
    columns = np.stack(
        [share, std_error, low, high, p_value, p_adjusted, *exposure, *noise_columns], axis=1
    )
    answers = []
    for place, (tally, participation) in enumerate(zip(tallies, participations, strict=True)):
        # A copy, because a view would keep all others in memory.
        row = columns[place].copy()
        shares, errors, lows, highs, p, adjusted, gain, loss, a, b, c, step = row
        basis = Basis.of(tally, scheme, participation)
        kept_noise = None if own.kept is None else _of_one(own.kept, place)
        found = Finding(shares, Noise(a, b, c, step, kept_noise), p, ghosts)
        numbers = Numbers(errors, lows, highs, p, adjusted)
        caveats = caveats_of(
            *(tally.reports, tally.windows, smallest[place], skewness[place]),
            devices=participation.devices,
            complete=candidates is None,
        )
        moved = Exposure(gain, loss)
        answers.append(
            assembled(
                *(basis, candidates is None, values, found, moved, figures[place]),
                *(level, adjust, numbers, caveats),
            )
        )
    return answers


def _of_one(noise: Noise, place: int) -> Noise:
    """That of one tally, in arrays of one."""
    a, b, c, step = (
        each[place : place + 1].copy() for each in (noise.a, noise.b, noise.c, noise.step)
    )
    return Noise(a, b, c, step, None if noise.kept is None else _of_one(noise.kept, place))


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

"""The shares of many tallies of one scheme, calculated together.

A trend has hundreds of them. A call of numpy on twelve shares takes about as long as one on
thousands, so the shares of all tallies are one long array here; the formulas, and every bit of
what they say, are those of `shares.estimate`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from deniable import Scheme
from deniable_collector.tally import Tally
from deniable_estimator.analyses import oracle_analysis
from deniable_estimator.analyses.anomalies import figures_of_each
from deniable_estimator.analyses.base import OneRowAnalysis
from deniable_estimator.analyses.candidates import asked_values, check_tally
from deniable_estimator.analyses.finding import Finding
from deniable_estimator.analyses.poisoning import Exposure
from deniable_estimator.answers.base import Comparison
from deniable_estimator.answers.basis import Basis
from deniable_estimator.answers.caveats import caveats_of
from deniable_estimator.answers.differences import interval_of_difference
from deniable_estimator.answers.shares import Numbers, Shares, assembled, errors_of, estimate
from deniable_estimator.forecasting.detection import FEW_SUPPORTERS, critical_value
from deniable_estimator.statistics.intervals import FloatArray, Noise
from deniable_estimator.statistics.participation import Participation
from deniable_estimator.statistics.significance import Adjustment, adjust_rows

__all__ = ["changes_of_shares", "estimate_each"]


_FEW_VALUES = 256
"""Of more values, the changes of many pairs take as long together as one after the other."""


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
    many = _many(tallies, scheme, adjust)
    for place, (tally, participation) in enumerate(zip(tallies, participations, strict=True)):
        if many[place]:
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


def changes_of_shares(pairs: Sequence[tuple[Shares, Shares]]) -> list[Comparison]:
    """What `change_from` says, not `together`, of each of these pairs of before and after, which
    are of one level."""
    values = pairs[0][0].values if pairs else ()
    many = len(values) > _FEW_VALUES
    if many or any(each.values != values for pair in pairs for each in pair):
        return [after.change_from(before, together=False) for before, after in pairs]
    old, new = (_columns([pair[side] for pair in pairs]) for side in (0, 1))
    low, high = interval_of_difference(old[:3], new[:3])
    std_error = np.sqrt(old[3] ** 2 + new[3] ** 2)
    columns = np.stack([old[0], new[0], new[0] - old[0], std_error, low, high], axis=1)
    changed = (low > 0) | (high < 0)
    changes = []
    for place, (before, after) in enumerate(pairs):
        # A copy, because a view would keep all others in memory.
        was, now, difference, error, least, most = columns[place].copy()
        changes.append(
            Comparison(
                *(before, after, after.level, False, values),
                *(was, now, difference, error, least, most, changed[place].copy()),
            )
        )
    return changes


def _columns(answers: Sequence[Shares]) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Share, low, high and standard error of each answer; shape (answers, values) each."""
    rows = [(each.share, each.low, each.high, each.std_error) for each in answers]
    share, low, high, std_error = np.array(rows).swapaxes(0, 1)
    return share, low, high, std_error


def _many(tallies: Sequence[Tally], scheme: Scheme, adjust: Adjustment) -> list[bool]:
    """Which tallies have one row, and so many reports that their p-values need no sums of
    probabilities: such sums end where all of them have settled."""
    analysis = oracle_analysis(scheme.mechanism)
    if not isinstance(analysis, OneRowAnalysis) or adjust != "storey":
        return [False] * len(tallies)
    reports = np.array([max(1, tally.reports) for tally in tallies])
    noise = Noise.of(scheme.oracle.p, scheme.oracle.q, reports, len(tallies))
    enough: list[bool] = (noise.a / noise.step**2 >= FEW_SUPPORTERS).tolist()
    return [each and tally.reports > 0 for each, tally in zip(enough, tallies, strict=True)]


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
    own = replace(own, kept=analysis.kept_noise_of_each(reports.tolist(), repeats))
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
    epsilon, ghosts = mechanism.epsilon, np.zeros(size, np.bool_)
    noise_columns = (each.reshape(count, size) for each in (wide.a, wide.b, wide.c, wide.step))
    columns = np.stack(
        [share, std_error, low, high, p_value, p_adjusted, *exposure, *noise_columns], axis=1
    )
    answers = []
    for place, (tally, participation) in enumerate(zip(tallies, participations, strict=True)):
        # A copy, because a view would keep all others in memory.
        row = columns[place].copy()
        shares, errors, lows, highs, p, adjusted, gain, loss, a, b, c, step = row
        basis = Basis(
            *(tally.metric, (scheme.fingerprint,), tally.windows),
            *(tally.reports, participation, epsilon),
        )
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

"""The shares of many tallies of one scheme, calculated together.

A trend has hundreds of them. A call of numpy on twelve shares takes about as long as one on
thousands, so the shares of all tallies are one long array here; the formulas are those of
`shares.estimate`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from deniable import Scheme
from deniable_collector.tally import Tally
from deniable_estimator.analyses import oracle_analysis
from deniable_estimator.analyses.anomalies import figures_of_each
from deniable_estimator.analyses.base import Finding, OneRowAnalysis
from deniable_estimator.analyses.candidates import asked_values, check_tally
from deniable_estimator.analyses.poisoning import Exposure
from deniable_estimator.answers.basis import Basis
from deniable_estimator.answers.caveats import caveats_of
from deniable_estimator.answers.shares import Numbers, Shares, assembled, errors_of, estimate
from deniable_estimator.forecasting.detection import critical_value
from deniable_estimator.statistics.intervals import Noise
from deniable_estimator.statistics.participation import Participation
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

"""A retention from the tallies of one scheme, and from those of several."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from deniable import Scheme
from deniable.protocol import windows
from deniable.protocol.mechanisms.memoized_retention import LIFECYCLE, MemoizedRetention, cells_of
from deniable_collector.tally import Tally
from deniable_estimator.analyses import oracle_analysis
from deniable_estimator.analyses.anomalies import Verdict
from deniable_estimator.analyses.retention import CohortCounts, WindowedTally
from deniable_estimator.errors import EstimateError
from deniable_estimator.kinds.basis import Basis, Part, few_notes, vars_of
from deniable_estimator.kinds.retention.retention import LifeWindow, RetentionAnswer
from deniable_estimator.kinds.shares.making import combine as combine_shares
from deniable_estimator.kinds.shares.making import estimate_shares
from deniable_estimator.kinds.shares.shares import Shares
from deniable_estimator.messages import counted, message
from deniable_estimator.statistics.participation import Participation
from deniable_estimator.statistics.significance import Adjustment

_LONG = 12
"""Devices that report in so many windows are enough for the lifecycle, which looks back one."""


def estimate_retention(part: Part, level: float, adjust: Adjustment) -> RetentionAnswer:
    """What tallies of one scheme say of who comes back. Of a sum of windows without the tally of
    each there is the lifecycle alone.

    Raises:
        EstimateError: candidates were given.
    """
    if part.candidates is not None:
        raise EstimateError(message("a retention has no candidates: leave them out"))
    tally, scheme, participation, basis = part.tally, part.scheme, part.participation, part.basis
    mechanism = scheme.mechanism
    assert isinstance(mechanism, MemoizedRetention)
    single = tally.each if isinstance(tally, WindowedTally) else ()
    if not single and len(tally.windows) == 1:
        single = (tally,)
    single = tuple(sorted((each for each in single if each.reports), key=_number))
    lifecycle: Shares | None = None
    lives: tuple[LifeWindow, ...] = ()
    cohorts, figures = None, []
    for row, (name, channel) in enumerate(zip(mechanism.asks, mechanism.channels, strict=True)):
        of_row = Scheme("category", channel, cells_of(name, mechanism.ages))
        told = tally.rows[row].reports / tally.reports if tally.reports else 0.0
        known = {each.windows[0]: float(each.rows[row].reports) for each in single}
        counts = {
            label: known.get(label, reports * told)
            for label, reports in participation.reports.items()
        }
        one = Tally(tally.metric, of_row.fingerprint, tally.windows, (tally.rows[row],))
        answered = Part(one, of_row, None, replace(participation, reports=counts))
        (found,) = estimate_shares([answered], level, adjust)
        figures += [each._replace(scheme=scheme.fingerprint) for each in found.verdict.figures]
        if name == "lifecycle":
            lifecycle = replace(found, schemes=basis.schemes)
            lives = _lives(mechanism, single, row)
            continue
        began = [each.rows[row] for each in single]
        cells = np.array([each.cells for each in began], np.int64)
        cohorts = CohortCounts.of(
            channel,
            [windows.number(each.windows[0]) for each in single],
            np.array([each.reports for each in began], np.int64),
            cells.reshape(len(single), mechanism.ages + 2),
        )
    missing = len(set(tally.windows).difference(each.windows[0] for each in single))
    return RetentionAnswer(
        **vars_of(basis),
        level=level,
        verdict=Verdict.of(figures),
        warnings=(
            *_caveats(basis, lifecycle),
            *_untold(missing if tally.reports else 0, participation, mechanism.ages),
        ),
        window=mechanism.window,
        asked=participation,
        lifecycle=lifecycle,
        lives=lives,
        cohorts=cohorts,
    )


def combine_retentions(alike: Sequence[RetentionAnswer]) -> RetentionAnswer:
    """A single answer from those of several schemes that ask the same questions."""
    basis, most = Basis.merged(alike), max(alike, key=lambda each: each.n)
    lifecycle = cohorts = None
    if most.lifecycle is not None:
        lifecycle = combine_shares([each.lifecycle for each in alike if each.lifecycle])
    if most.cohorts is not None:
        cohorts = CohortCounts.added([each.cohorts for each in alike if each.cohorts])
    warnings = _caveats(basis, lifecycle)
    for each in alike:
        warnings += tuple(
            text for text in each.warnings if text not in (*warnings, *each.footnotes)
        )
    return replace(
        most,
        **vars_of(basis),
        verdict=Verdict.of([figure for each in alike for figure in each.verdict.figures]),
        warnings=warnings,
        lifecycle=lifecycle,
        lives=_merged([life for each in alike for life in each.lives]),
        cohorts=cohorts,
    )


def _lives(
    mechanism: MemoizedRetention, single: Sequence[Tally], row: int
) -> tuple[LifeWindow, ...]:
    answered = [each for each in single if each.rows[row].reports]
    if not answered:
        return ()
    tallies = [replace(each, rows=(each.rows[row],)) for each in answered]
    _, share, noise = oracle_analysis(mechanism.channels[row]).shares(
        tallies, np.arange(len(LIFECYCLE))
    )
    return tuple(
        LifeWindow(
            each.windows[0],
            each.reports,
            tally.reports,
            share[place],
            noise.row(place),
        )
        for place, (each, tally) in enumerate(zip(answered, tallies, strict=True))
    )


def _merged(lives: Sequence[LifeWindow]) -> tuple[LifeWindow, ...]:
    """Each window once: the average over the devices of all schemes."""
    found: dict[str, LifeWindow] = {}
    for each in lives:
        other = found.get(each.label)
        if other is None:
            found[each.label] = each
            continue
        answered = other.answered + each.answered
        one, two = other.answered / answered, each.answered / answered
        found[each.label] = LifeWindow(
            each.label,
            other.reports + each.reports,
            answered,
            one * other.share + two * each.share,
            other.noise.weighted(np.full(len(LIFECYCLE), one))
            + each.noise.weighted(np.full(len(LIFECYCLE), two)),
        )
    return tuple(found[label] for label in sorted(found, key=windows.number))


def _caveats(basis: Basis, lifecycle: Shares | None) -> tuple[str, ...]:
    return lifecycle.warnings if lifecycle is not None and lifecycle.n else few_notes(basis.n)


def _untold(missing: int, participation: Participation, ages: int) -> Iterator[str]:
    """That windows are missing, and that the ledger silences devices so early that they look as if
    they had gone."""
    if missing:
        yield counted(
            "{count} window is kept only as a part of a longer sum, which says nothing of cohorts "
            "and growth",
            "{count} windows are kept only as parts of longer sums, which say nothing of cohorts "
            "and growth",
            missing,
        )
    most = participation.most
    if participation.n and most is not None and most <= max(ages, _LONG):
        yield message(
            "the registry's lifetime_epsilon ends the reports of a device after {most} windows, "
            "and from then on it looks as if it did not come back: raise it, or remove it",
            most=most,
        )


def _number(tally: Tally) -> int:
    return windows.number(tally.windows[0])

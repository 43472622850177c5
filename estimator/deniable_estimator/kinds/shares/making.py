"""Makes the shares of tallies: of one scheme each by itself, and of several schemes as one.

A trend has hundreds of tallies. A call of numpy on twelve shares takes about as long as one on
thousands, so all tallies of a scheme are estimated together, as the rows of arrays of shape (T, d).

Tallies of different schemes are never added. The unbiased shares are averaged, and each scheme
counts by its reports: so the average is the share among all devices that reported, as within one
scheme, also where it moved while the scheme changed. (Weights of least variance would call an edit
of epsilon a change of the share.)

The noise of the schemes is independent, and so are their memos, but the devices may be the
same. The covariance of the estimates is bounded, by `overlap` of
`deniable_estimator.statistics.participation`, and added to the variance.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from deniable_estimator.analyses import asked_values, oracle_analysis
from deniable_estimator.analyses.anomalies import Figure, Verdict
from deniable_estimator.analyses.base import Exposure, Finding
from deniable_estimator.kinds.basis import Basis, Part, caveats, vars_of
from deniable_estimator.kinds.shares.shares import Shares
from deniable_estimator.messages import message
from deniable_estimator.statistics.counts import share_interval
from deniable_estimator.statistics.detection import critical_value
from deniable_estimator.statistics.intervals import FloatArray, Noise
from deniable_estimator.statistics.normalization import Normalization
from deniable_estimator.statistics.participation import overlap, together
from deniable_estimator.statistics.significance import Adjustment, adjust_p


def estimate_shares(
    parts: Sequence[Part], level: float = 0.95, adjust: Adjustment = "storey"
) -> list[Shares]:
    """The share of each value, or of each candidate, in each of these tallies of one scheme.

    Raises:
        EstimateError: a candidate cannot be a value, is listed twice, or is not in the domain.
    """
    first, tallies = parts[0], [part.tally for part in parts]
    values, items = asked_values(first.scheme, first.candidates)
    repeats = [part.repeats for part in parts]
    analysis = oracle_analysis(first.scheme.oracle)
    found, reports = analysis.find(tallies, items, level, repeats)
    n = np.array([[tally.reports] for tally in tallies])
    # Without memos devices keep neither bits nor rows, so their reports look independent.
    kept = repeats if analysis.remembers else [1.0] * len(parts)
    return infer(
        [part.basis for part in parts],
        values,
        found,
        analysis.exposure(found.share, n / np.maximum(reports, 1)),
        analysis.figures(tallies, kept, analysis.share_tests(found.share, found.noise)),
        level,
        adjust,
        complete=first.candidates is None,
    )


def infer(
    bases: Sequence[Basis],
    values: tuple[str, ...],
    found: Finding,
    exposure: Exposure,
    seen: Sequence[Sequence[Figure]],
    level: float,
    adjust: Adjustment = "storey",
    *,
    complete: bool,
) -> list[Shares]:
    """The estimates from T unbiased shares of each value, their noise, and the figures of their
    tallies. `exposure` of one may have shape (d,)."""
    noise = found.noise
    with np.errstate(invalid="ignore"):
        std_error = np.sqrt(noise.at(found.share))
        smallest = critical_value(1 - level, len(values)) * noise.null_error.min(axis=1)
        skewness = np.abs(noise.skewness).max(axis=1)
    std_error[~np.isfinite(found.share)] = np.nan
    p_value = np.where(found.ghosts, 1.0, found.p_value)
    # The rows are views: whoever asks for many keeps them together.
    rows = zip(
        *(bases, seen, found.warnings or [()] * len(bases), smallest.tolist(), skewness.tolist()),
        *(found.share, found.ghosts, std_error, *share_interval(found.share, noise, level)),
        *(p_value, adjust_p(p_value, adjust), *map(np.atleast_2d, exposure)),
        strict=True,
    )
    answers = []
    for place, (basis, shown, warnings, least, skew, share, ghosts, *numbers) in enumerate(rows):
        error, low, high, p, p_adjusted, gain, loss = numbers
        told = (*warnings, *caveats(basis, least, skew, complete=complete))
        if count := np.count_nonzero(ghosts):
            accidents = message(
                "{count:,} of the candidates look like accidents of hashing: they do not count as "
                "detected",
                count=count,
            )
            told = (*told, accidents)
        answers.append(
            Shares(
                **vars_of(basis),
                level=level,
                complete=complete,
                adjustment=adjust,
                values=values,
                share=share,
                std_error=error,
                low=low,
                high=high,
                p_value=p,
                p_adjusted=p_adjusted,
                normalization=Normalization(share, p_adjusted <= 1 - level, ghosts, complete),
                noise=noise.row(place),
                ghosts=ghosts,
                exposure=Exposure(gain, loss),
                verdict=Verdict.of(shown),
                warnings=told,
            )
        )
    return answers


def combine(estimates: Sequence[Shares]) -> Shares:
    """One estimate from several of the same metric, level and adjustment.

    Each is of another scheme, or of a scheme without memos. (Memos of one scheme are the same in
    all of its tallies, so these are added up first.)

    Values are in the order in which they first appear. A value that only some schemes have is
    estimated from these, and a warning says so.
    """
    informed = [each for each in estimates if each.n]
    if len(informed) < 2:
        return informed[0] if informed else estimates[0]
    values = tuple(dict.fromkeys(value for each in informed for value in each.values))
    parts = [_aligned(each, values) for each in informed]
    participations = [each.participation for each in informed]
    share, noise, weights = _average(parts, [each.n for each in informed])
    same = together(participations, weights, overlap(participations))
    if same.any():
        none = np.zeros(len(values))
        noise += replace(Noise.none(len(values)), kept=Noise(none, same, same, none))
    alike = all(set(each.values) == set(values) for each in informed)
    complete = alike and all(each.complete for each in informed)
    # Each scheme has its own hash functions, so an accidental collision is in one of them only.
    shown = _marked((each, each.detected & ~each.ghosts) for each in informed)
    haunted = _marked((each, each.ghosts) for each in informed) - shown
    ghosts = np.array([value in haunted for value in values]) if haunted else None
    found = Finding.of(share, noise, ghosts)
    basis = Basis.merged(informed)
    seen = [figure for each in informed for figure in each.verdict.figures]
    (combined,) = infer(
        [basis],
        values,
        found,
        Exposure.worst(
            [
                # A report counts more for values that other schemes lack.
                Exposure(
                    *(
                        weight * basis.n / each.n * _spread(each, values, side, 0.0)
                        for side in each.exposure
                    )
                )
                for weight, each in zip(weights, informed, strict=True)
            ]
        ),
        [seen],
        informed[0].level,
        informed[0].adjustment,
        complete=complete,
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
    noise = estimate.noise
    share = _spread(estimate, values, estimate.share, np.nan)
    spread = noise.turned(lambda column: _spread(estimate, values, column, 0.0))
    return share, replace(spread, a=_spread(estimate, values, noise.a, np.inf))


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


def _average(
    parts: Sequence[tuple[FloatArray, Noise]], reports: Sequence[int]
) -> tuple[FloatArray, Noise, FloatArray]:
    """The average by reports, of each value over the schemes that have it; its noise as if no
    device had used two schemes; and the weights, shape (parts, d)."""
    size = len(parts[0][0])
    heard = np.array([np.broadcast_to(np.isfinite(noise.a), size) for _, noise in parts])
    counts = np.array(reports)[:, np.newaxis] * np.where(heard.any(axis=0), heard, 1)
    weights = counts / counts.sum(axis=0)
    share = np.zeros(size)
    total = Noise.none(size)
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

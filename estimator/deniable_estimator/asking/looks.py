"""What is looked at in a single window of a metric, and whether it looks honest.

A page looks at each window of a year. So windows of which each has one tally of a closed list, as
most have, are looked at together: a call of numpy takes about as long for one window as for many.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from deniable.protocol.mechanisms import FrequencyOracle, PrefixTree
from deniable_estimator.analyses import analysis_of, oracle_analysis
from deniable_estimator.analyses.anomalies import (
    Figure,
    discovery_figures,
    figures,
    figures_of_each,
)
from deniable_estimator.analyses.base import OneRowAnalysis
from deniable_estimator.analyses.candidates import asked_values, check_tally
from deniable_estimator.answers.base import Answer
from deniable_estimator.asking.reading import Part, Question, Selection
from deniable_estimator.statistics.intervals import FloatArray, Noise


@dataclass(frozen=True, eq=False, slots=True)
class Look:
    """What is looked at in one window; arrays have shape (d,)."""

    label: str
    n: int
    """Reports."""
    scheme: str
    """The fingerprint of its scheme; of several, the first."""
    values: tuple[str, ...]
    """Empty where shares are not looked at, as of strings that nobody has named."""
    share: FloatArray
    variance: FloatArray
    """NaN where nothing is known, as of a quantile whose interval has no limit on a side."""
    figures: tuple[Figure, ...]
    """Those of its own tally."""

    @classmethod
    def of(cls, label: str, estimate: Answer) -> Self:
        """That of an answer over one window."""
        series = estimate.series
        return cls(
            label,
            estimate.n,
            estimate.schemes[0],
            series.names,
            series.value,
            series.std_error**2,
            estimate.verdict.figures,
        )


def look(label: str, question: Question) -> Look | None:
    """The same without all else that an estimate says: a quarter of the time; None without
    reports. Strings are not decoded: of their tallies alone the rows and bitmaps are looked at,
    and the rows of a discovery.
    """
    if question.margin is not None:
        return Look.of(label, question.estimate()) if question.n else None
    parts = [part for part in question.parts if part.tally.reports]
    if not parts:
        return None
    found: list[Figure] = []
    if any(isinstance(part.scheme.mechanism, PrefixTree) for part in parts):
        for part in parts:
            found += discovery_figures(part.tally, analysis_of(part.scheme.mechanism).commonest())
        none = np.zeros(0)
        scheme = parts[0].tally.scheme
        return Look(label, question.n, scheme, (), none, none, tuple(found))
    closed = all(not part.scheme.needs_candidates for part in parts)
    shares = all(isinstance(part.scheme.mechanism, FrequencyOracle) for part in parts)
    if (closed and len(parts) > 1) or not shares:
        return Look.of(label, question.estimate())
    values: tuple[str, ...] = ()
    share, noise = np.zeros(0), Noise.none(0)
    for part in parts:
        tally, analysis = part.tally, oracle_analysis(part.scheme.mechanism)
        if closed:
            values, items = asked_values(tally, part.scheme)
            _, share, noise = analysis.shares(tally, items)
        found += figures(tally, analysis, share, noise)
    scheme = parts[0].tally.scheme
    return Look(label, question.n, scheme, values, share, noise.at(share), tuple(found))


def looks_in(selection: Selection, labels: Sequence[str]) -> Iterator[tuple[str, Look | None]]:
    """Each of these windows of a selection, with what `look` finds in it. Some are read at once."""
    for first in range(0, len(labels), selection.at_once):
        some = labels[first : first + selection.at_once]
        questions = selection.read_each([[label] for label in some])
        yield from zip(some, look_at_each(some, questions), strict=True)


def look_at_each(labels: Sequence[str], questions: Sequence[Question]) -> list[Look | None]:
    """What `look` finds in each of these windows, in their order."""
    found: list[Look | None] = [None] * len(labels)
    alike: dict[str, list[tuple[int, Part]]] = {}
    for place, (label, question) in enumerate(zip(labels, questions, strict=True)):
        parts = [part for part in question.parts if part.tally.reports]
        if question.margin is None and len(parts) == 1:
            alike.setdefault(parts[0].tally.scheme, []).append((place, parts[0]))
        else:
            found[place] = look(label, question)
    for same in alike.values():
        if not _has_one_row(same[0][1]):
            for place, _ in same:
                found[place] = look(labels[place], questions[place])
            continue
        looks = _together([labels[place] for place, _ in same], [part for _, part in same])
        for (place, _), each in zip(same, looks, strict=True):
            found[place] = each
    return found


def _has_one_row(part: Part) -> bool:
    """Whether a tally has the shares of a closed list in one row."""
    mechanism = part.scheme.mechanism
    return (
        not part.scheme.needs_candidates
        and isinstance(mechanism, FrequencyOracle)
        and isinstance(oracle_analysis(mechanism), OneRowAnalysis)
    )


def _together(labels: Sequence[str], parts: Sequence[Part]) -> list[Look]:
    """The looks at tallies with reports of one scheme, which have one row each."""
    scheme, tallies = parts[0].scheme, [part.tally for part in parts]
    analysis = oracle_analysis(scheme.oracle)
    assert isinstance(analysis, OneRowAnalysis)
    values, items = asked_values(tallies[0], scheme)
    for tally in tallies:
        check_tally(tally, scheme)
    share, noise = analysis.shares_of_each(tallies, items)
    noise = noise.shaped((-1, 1))
    variance = noise.at(share)
    seen = figures_of_each(tallies, analysis, share, noise, [1.0] * len(tallies))
    return [
        Look(
            label,
            tally.reports,
            tally.scheme,
            values,
            # Copies, because a view would keep all others in memory.
            share[place].copy(),
            variance[place].copy(),
            seen[place],
        )
        for place, (label, tally) in enumerate(zip(labels, tallies, strict=True))
    ]

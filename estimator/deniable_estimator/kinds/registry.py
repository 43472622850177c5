"""The kinds of answers, and which tally is answered by which."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from deniable import Metric, Registry, Scheme
from deniable.protocol import windows
from deniable.protocol.types.pair import Pair
from deniable_collector.tally import Tally
from deniable_estimator.analyses import analysis_of
from deniable_estimator.errors import EstimateError
from deniable_estimator.kinds.base import Answer
from deniable_estimator.kinds.basis import Part
from deniable_estimator.kinds.formats import period
from deniable_estimator.kinds.kind import Kind
from deniable_estimator.kinds.numbers.words import DistributionKind, MeanKind
from deniable_estimator.kinds.pairs.words import PairKind
from deniable_estimator.kinds.retention.words import RetentionKind
from deniable_estimator.kinds.shares.words import SharesKind
from deniable_estimator.messages import counted, message
from deniable_estimator.statistics.participation import Participation
from deniable_estimator.statistics.significance import Adjustment

KINDS: list[Kind[Any]] = [
    PairKind(),
    RetentionKind(),
    SharesKind(),
    MeanKind(),
    DistributionKind(),
]
"""A kind with types of its own comes before those that ask for the analysis alone."""


def kind_of(answer: Answer) -> Kind[Any]:
    """How this answer is told."""
    return next(each for each in KINDS if each.answer is type(answer))


def answering(scheme: Scheme) -> Kind[Any] | None:
    """The kind of the answer of a scheme's tallies; None for a discovery, whose finds are none."""
    analysis = analysis_of(scheme.mechanism)
    return next((each for each in KINDS if each.answers(scheme.type, analysis)), None)


def answer_of(
    tally: Tally,
    scheme: Scheme,
    candidates: Sequence[str] | None = None,
    *,
    level: float = 0.95,
    adjust: Adjustment = "storey",
    participation: Participation | None = None,
    unit: str | None = None,
) -> Answer:
    """The answer of a tally of one scheme, with the errors of `answers_of`. Without a
    participation, all devices are assumed to have reported in every window of the tally."""
    part = Part(tally, scheme, candidates, participation or Participation.evenly(tally), unit)
    (found,) = answers_of([part], level, adjust)
    return found


def answers_of(parts: Sequence[Part], level: float, adjust: Adjustment) -> Sequence[Answer]:
    """The answer of each of these tallies, all of one scheme.

    Raises:
        EstimateError: a tally cannot be estimated.
        ValueError: `level` is not between 0 and 1.
    """
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, not {level}")
    kind = answering(parts[0].scheme)
    if kind is None:
        raise EstimateError(
            message(
                "{metric} is a discovery: `deniable estimate discover {metric}` lists the strings "
                "that were found",
                metric=parts[0].tally.metric,
            )
        )
    return kind.make(parts, level, adjust)


def combine(answers: Sequence[Answer]) -> Answer:
    """A single answer from those of several schemes of one metric, at the same level, the one in
    force first. Where they cannot all be averaged, it is of those that are alike to the newest.

    Raises:
        EstimateError: there are none, or they answer different questions.
    """
    if len({type(each) for each in answers}) > 1:
        # The metric was asked another question once: no obstacle in days without answers to it.
        answers = [each for each in answers if each.n] or answers[:1]
    kinds = {(type(each), each.metric, each.level) for each in answers}
    if len(kinds) != 1:
        raise EstimateError(message("only answers of one metric, kind and level can be combined"))
    informed = [each for each in answers if each.n]
    if len(informed) < 2:
        return informed[0] if informed else answers[0]
    newest = max(informed, key=lambda each: max(map(windows.end, each.windows)))
    alike = [each for each in informed if each.alike(newest)]
    combined = kind_of(newest).combine(alike) if len(alike) > 1 else newest
    left = [each for each in informed if each not in alike]
    if not left:
        return combined
    told = counted(
        "{changed}: the newest is shown, and {count:,} report under others is left out",
        "{changed}: the newest is shown, and {count:,} reports under others are left out",
        sum(each.n for each in left),
        changed=combined.other,
    )
    apart = {label for each in left for label in each.windows}.difference(combined.windows)
    if apart:
        days = period(sorted(apart, key=windows.start))
        told = message("{told}; choose {days} to see them", told=told, days=days)
    return replace(combined, warnings=(*combined.warnings, told))


def series_of(metric: Metric, registry: Registry) -> tuple[str, ...]:
    """The series that answers of a metric have: of a list, its values. If a pair is reported in the
    place of a number, these are the shares of the pair's ranges, and its own for the days on which
    it was reported by itself."""
    kind = answering(metric.scheme)
    own = kind.series_of(metric.type) if kind else ()
    pair = registry.unasked.get(metric.name)
    if pair is None or own == metric.values:
        return own
    assert isinstance(pair.type, Pair)
    ranges = next(part.values for part in pair.type.parts if part.metric == metric.name)
    return (*ranges, *own)

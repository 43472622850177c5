"""Answers: what people read, one file for each kind, and here which tally is answered by which."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from deniable import Metric, Registry, Scheme
from deniable.protocol.mechanisms.prefix_tree import PrefixTree
from deniable.protocol.types.number import Number
from deniable.protocol.types.pair import Pair
from deniable.protocol.types.retention import Retention
from deniable_collector.tally import Tally
from deniable_estimator.analyses import analysis_of
from deniable_estimator.analyses.base import Analysis, OracleAnalysis
from deniable_estimator.analyses.numbers import HistogramAnalysis, SlidingWindowAnalysis
from deniable_estimator.answers.base import Answer
from deniable_estimator.answers.basis import Part
from deniable_estimator.answers.distribution import (
    Distribution,
    combine_distributions,
    estimate_distribution,
    series_names,
)
from deniable_estimator.answers.mean import Mean, combine_means, estimate_mean
from deniable_estimator.answers.pair import PairAnswer, pair_series
from deniable_estimator.answers.pair_making import combine_pairs, estimate_pair
from deniable_estimator.answers.retention import RetentionAnswer, retention_series
from deniable_estimator.answers.retention_making import combine_retentions, estimate_retention
from deniable_estimator.answers.shares import Shares
from deniable_estimator.answers.shares_making import combine as combine_shares
from deniable_estimator.answers.shares_making import estimate_shares
from deniable_estimator.errors import EstimateError
from deniable_estimator.messages import message
from deniable_estimator.statistics.participation import Participation
from deniable_estimator.statistics.significance import Adjustment

Maker: TypeAlias = Callable[[Sequence[Part], float, Adjustment], Sequence[Answer]]


def _one_by_one(make: Callable[[Part, float, Adjustment], Answer]) -> Maker:
    return lambda parts, level, adjust: [make(part, level, adjust) for part in parts]


MAKERS: dict[type[Analysis[Any]], Maker] = {
    OracleAnalysis: estimate_shares,
    SlidingWindowAnalysis: _one_by_one(estimate_mean),
    HistogramAnalysis: _one_by_one(estimate_distribution),
}
"""analysis, or what analyses have in common -> what makes answers of tallies of one scheme."""

TYPES: dict[str, Maker] = {
    "pair": _one_by_one(estimate_pair),
    "retention": _one_by_one(estimate_retention),
}
"""type -> the same, where the values say more than their shares."""

COMBINERS: dict[type[Answer], Callable[[Sequence[Any]], Answer]] = {
    Shares: combine_shares,
    Mean: combine_means,
    Distribution: combine_distributions,
    PairAnswer: combine_pairs,
    RetentionAnswer: combine_retentions,
}
"""kind of answer -> what makes one of several alike with reports, each of another scheme."""


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
    scheme = parts[0].scheme
    kind = type(analysis_of(scheme.mechanism))
    make = TYPES.get(scheme.type)
    if make is None and isinstance(scheme.mechanism, PrefixTree):
        raise EstimateError(
            message(
                "{metric} is a discovery: `deniable estimate discover {metric}` lists the strings "
                "that were found",
                metric=parts[0].tally.metric,
            )
        )
    make = make or next(MAKERS[each] for each in kind.__mro__ if each in MAKERS)
    return make(parts, level, adjust)


def combine(answers: Sequence[Answer]) -> Answer:
    """A single answer from those of several schemes of one metric, at the same level. Where they
    cannot all be averaged, it is of those that are alike to the one with the most reports.

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
    most = max(informed, key=lambda each: each.n)
    alike = [each for each in informed if each.alike(most)]
    combined = COMBINERS[type(most)](alike) if len(alike) > 1 else most
    if left := sum(each.n for each in informed) - combined.n:
        combined = replace(combined, warnings=(*combined.warnings, combined.left_out(left)))
    return combined


def series_of(metric: Metric, registry: Registry) -> tuple[str, ...]:
    """The series that answers of a metric have: of a list, its values. If a pair is reported in the
    place of a number, these are the shares of the pair's ranges, and its own for the days on which
    it was reported by itself."""
    kind = metric.type
    if isinstance(kind, Pair):
        return pair_series(kind)
    if isinstance(kind, Retention):
        return tuple(retention_series(kind))
    if not isinstance(kind, Number):
        return metric.values
    pair = registry.unasked.get(metric.name)
    if pair is None:
        return series_names(kind)
    assert isinstance(pair.type, Pair)
    ranges = next(part.values for part in pair.type.parts if part.metric == metric.name)
    return (*ranges, *series_names(kind))

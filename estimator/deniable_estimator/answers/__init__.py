"""Answers: what people read, one file for each kind, and here which tally is answered by which."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from deniable import Scheme
from deniable.protocol.mechanisms.prefix_tree import PrefixTree
from deniable_collector.tally import Tally
from deniable_estimator.analyses import analysis_of
from deniable_estimator.analyses.base import Analysis, OracleAnalysis
from deniable_estimator.analyses.numbers import HistogramAnalysis, SlidingWindowAnalysis
from deniable_estimator.answers import shares
from deniable_estimator.answers.base import Answer
from deniable_estimator.answers.distribution import Distribution
from deniable_estimator.answers.distribution_making import combine_histograms, estimate_distribution
from deniable_estimator.answers.mean import Mean, combine_means, estimate_mean
from deniable_estimator.answers.pair import PairAnswer, combine_pairs, estimate_pair
from deniable_estimator.answers.retention import RetentionAnswer
from deniable_estimator.answers.retention_making import combine_retentions, estimate_retention
from deniable_estimator.answers.shares_of_many import combine as combine_shares
from deniable_estimator.answers.shares_of_many import estimate_each
from deniable_estimator.errors import EstimateError
from deniable_estimator.messages import message
from deniable_estimator.statistics.participation import Participation
from deniable_estimator.statistics.significance import Adjustment

__all__ = [
    "COMBINERS",
    "MAKERS",
    "TYPES",
    "Answer",
    "answer_of",
    "answers_of_each",
    "combine",
]

Maker: TypeAlias = Callable[..., Answer]

MAKERS: dict[type[Analysis[Any]], Maker] = {
    OracleAnalysis: shares.estimate,
    SlidingWindowAnalysis: estimate_mean,
    HistogramAnalysis: estimate_distribution,
}
"""analysis, or what analyses have in common -> what makes an answer of a tally."""

TYPES: dict[str, Maker] = {"pair": estimate_pair, "retention": estimate_retention}
"""type -> the same, where the values say more than their shares."""


COMBINERS: dict[type[Answer], Callable[[Sequence[Any]], Answer]] = {
    shares.Shares: combine_shares,
    Mean: combine_means,
    Distribution: combine_histograms,
    PairAnswer: combine_pairs,
    RetentionAnswer: combine_retentions,
}
"""kind of answer -> what makes one of several with reports, each of another scheme."""


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
    """The answer of a tally of one scheme, with the arguments of `shares.estimate`; `unit` is
    that of a number.

    Raises:
        EstimateError: the tally does not belong to the scheme, or cannot be estimated.
        ValueError: `level` is not between 0 and 1.
    """
    return _maker(tally.metric, scheme)(
        tally,
        scheme,
        candidates,
        level=level,
        adjust=adjust,
        participation=participation,
        unit=unit,
    )


def answers_of_each(
    tallies: Sequence[Tally],
    scheme: Scheme,
    candidates: Sequence[str] | None,
    participations: Sequence[Participation],
    *,
    level: float = 0.95,
    adjust: Adjustment = "storey",
    unit: str | None = None,
) -> Sequence[Answer]:
    """What `answer_of` says of each of these tallies of one scheme, with the same errors."""
    if tallies and _maker(tallies[0].metric, scheme) is shares.estimate:
        return estimate_each(
            tallies, scheme, candidates, participations, level=level, adjust=adjust
        )
    return [
        answer_of(
            *(tally, scheme, candidates),
            level=level,
            adjust=adjust,
            participation=participation,
            unit=unit,
        )
        for tally, participation in zip(tallies, participations, strict=True)
    ]


def _maker(metric: str, scheme: Scheme) -> Maker:
    """What makes an answer of the tallies of a scheme.

    Raises:
        EstimateError: nothing does.
    """
    kind = type(analysis_of(scheme.mechanism))
    make = TYPES.get(scheme.type)
    if make is None and isinstance(scheme.mechanism, PrefixTree):
        raise EstimateError(
            message(
                "{metric} is a discovery: `deniable estimate discover {metric}` lists the strings "
                "that were found",
                metric=metric,
            )
        )
    return make or next(MAKERS[each] for each in kind.__mro__ if each in MAKERS)


def combine(answers: Sequence[Answer]) -> Answer:
    """A single answer from those of several schemes of one metric, at the same level.

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
    return COMBINERS[type(answers[0])](informed)

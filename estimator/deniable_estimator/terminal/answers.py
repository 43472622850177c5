"""Answers as a terminal shows them, and what its options may ask of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from deniable_estimator.answers.base import Answer
from deniable_estimator.answers.distribution import Distribution
from deniable_estimator.answers.pair import PairAnswer
from deniable_estimator.answers.words import kind_of
from deniable_estimator.answers.words.base import Shown
from deniable_estimator.document.document import Document
from deniable_estimator.document.terminal import MOST_ROWS
from deniable_estimator.errors import EstimateError


def answer_document(
    answer: Answer, truth: Any = None, limits: Sequence[float] = (), given: str | None = None
) -> Document:
    """The answer in words and tables; `truth`, `limits` and `given` are those of `Shown`."""
    shown = Shown(drawn=False, rows=MOST_ROWS, truth=truth, limits=limits, given=given)
    return kind_of(answer).document(answer, shown)


def check_limits(answer: Answer, limits: Sequence[float]) -> None:
    """Refuse limits below which the answer has no share.

    Raises:
        EstimateError: it is no distribution, or a limit lies outside of its range.
    """
    for limit in limits:
        if not isinstance(answer, Distribution):
            raise EstimateError(
                f"{answer.metric} is not asked for the distribution of a number, so no share below "
                "a limit can be told: leave --below out"
            )
        start, end = answer.range.start, answer.range.end
        if not start <= limit <= end:
            raise EstimateError(
                f"the limit {limit:g} is outside of the range of {answer.metric}: choose one from "
                f"{start:g} to {end:g}"
            )


def check_given(answer: Answer, given: str | None) -> None:
    """Refuse a list that conditionals cannot be given.

    Raises:
        EstimateError: the answer is no pair, or not of that metric.
    """
    if given is None:
        return
    if not isinstance(answer, PairAnswer):
        raise EstimateError(f"{answer.metric} is not a pair: leave --given out")
    if given not in answer.names:
        raise EstimateError(
            f"{answer.metric} is a pair of {' and '.join(answer.names)}: give one of them"
        )


def shares_below(answer: Answer, limits: Sequence[float]) -> list[dict[str, float | None]]:
    """For JSON: each `limit` with the `share` below it, and the interval's `low` and `high`."""
    assert isinstance(answer, Distribution)
    rows = []
    for limit in limits:
        found = answer.share_below(limit)
        numbers = (found.share, found.low, found.high)
        told = [each if answer.n and math.isfinite(each) else None for each in numbers]
        rows.append(dict(zip(("limit", "share", "low", "high"), (limit, *told), strict=True)))
    return rows

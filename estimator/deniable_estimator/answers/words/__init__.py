"""What pages and terminal say and draw of each kind of answer: one file each, and here the list."""

from __future__ import annotations

from typing import Any

from deniable_estimator.answers.base import Answer
from deniable_estimator.answers.distribution import Distribution
from deniable_estimator.answers.mean import Mean
from deniable_estimator.answers.pair import PairAnswer
from deniable_estimator.answers.retention import RetentionAnswer
from deniable_estimator.answers.shares import Shares
from deniable_estimator.answers.words.base import Kind
from deniable_estimator.answers.words.numbers import DistributionKind, MeanKind
from deniable_estimator.answers.words.pair import PairKind
from deniable_estimator.answers.words.retention import RetentionKind
from deniable_estimator.answers.words.shares import SharesKind

__all__ = ["KINDS", "kind_of"]

KINDS: dict[type[Answer], Kind[Any]] = {
    Shares: SharesKind(),
    Mean: MeanKind(),
    Distribution: DistributionKind(),
    PairAnswer: PairKind(),
    RetentionAnswer: RetentionKind(),
}
"""answer -> how it is told."""


def kind_of(answer: Answer) -> Kind[Any]:
    """How this answer is told."""
    return KINDS[type(answer)]

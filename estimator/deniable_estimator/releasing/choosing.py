"""Which statistic of a metric receives noise."""

from __future__ import annotations

from fractions import Fraction

from deniable_estimator.analyses import analysis_of
from deniable_estimator.analyses.base import OracleAnalysis
from deniable_estimator.analyses.cohorts import CohortAnalysis
from deniable_estimator.analyses.hadamard_response import HadamardResponseAnalysis
from deniable_estimator.analyses.histogram import HistogramAnalysis
from deniable_estimator.analyses.projective_geometry import ProjectiveGeometryAnalysis
from deniable_estimator.analyses.sliding_window import SlidingWindowAnalysis
from deniable_estimator.errors import EstimateError
from deniable_estimator.questions.reading import Part
from deniable_estimator.releasing.noise import Method, gaussian, laplace
from deniable_estimator.releasing.number_statistics import CellCounts, ScoreSum
from deniable_estimator.releasing.share_statistics import MessageCounts, SupportCounts
from deniable_estimator.releasing.statistic import Statistic

__all__ = ["statistic_of"]

MOST_MESSAGES = 1 << 17
"""The most messages that receive noise: each takes about 0.1 ms to draw."""


def statistic_of(
    part: Part, level: float, unit: str | None, method: Method | None = None
) -> Statistic:
    """What of this tally receives noise; without a method, for choosing one value.

    Raises:
        EstimateError: nothing here can, or a candidate cannot be estimated.
    """
    analysis = analysis_of(part.scheme.mechanism)
    if isinstance(analysis, CohortAnalysis):
        raise EstimateError(
            f"{analysis.mechanism.name} estimates strings jointly from whole tables, which receive "
            "no noise: release the sums as they are, without --epsilon"
        )
    if isinstance(analysis, OracleAnalysis):
        found = SupportCounts(part, level, unit)
        return _less(found, MessageCounts(part, level, unit), method) if _sends_one(part) else found
    if isinstance(analysis, SlidingWindowAnalysis):
        return ScoreSum(part, level, unit)
    if isinstance(analysis, HistogramAnalysis):
        return CellCounts(part, level, unit)
    raise EstimateError(
        f"{part.tally.metric} has no noise to add to a release yet: release its sums as they are, "
        "without --epsilon"
    )


def _sends_one(part: Part) -> bool:
    """Whether a report is one message of a single row, which supports several values."""
    analysis, rows = analysis_of(part.scheme.mechanism), part.scheme.mechanism.rows
    kinds = (ProjectiveGeometryAnalysis, HadamardResponseAnalysis)
    return isinstance(analysis, kinds) and rows[0].width <= MOST_MESSAGES


def _less(values: SupportCounts, messages: MessageCounts, method: Method | None) -> SupportCounts:
    """That of the two with less noise in a share at the same epsilon."""
    if method is None:
        return values
    noise = [
        laplace(Fraction(1), each.sensitivity)
        if method == "laplace"
        else gaussian(Fraction(1), 1e-8, each.sensitivity)
        for each in (values, messages)
    ]
    one, other = (
        each.variances(drawn.variance)[1]
        for each, drawn in zip((values, messages), noise, strict=True)
    )
    return messages if other < one else values

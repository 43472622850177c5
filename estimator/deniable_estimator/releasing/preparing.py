"""Reads what a release needs, checks that it may be released, and finds its noise."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime
from fractions import Fraction
from typing import Any

from deniable import Metric, Registry
from deniable.protocol import windows
from deniable.protocol.types.discovery import Discovery
from deniable.protocol.types.retention import Retention
from deniable_collector.upkeep.keeper import SETTLED
from deniable_estimator.analyses import analysis_of
from deniable_estimator.analyses.base import OracleAnalysis
from deniable_estimator.analyses.cohorts import CohortAnalysis
from deniable_estimator.analyses.numbers import HistogramAnalysis
from deniable_estimator.analyses.numbers.sliding_window import SlidingWindowAnalysis
from deniable_estimator.analyses.planes import HadamardResponseAnalysis
from deniable_estimator.analyses.projective_geometry import ProjectiveGeometryAnalysis
from deniable_estimator.asking.fetch import Question, Selection, select
from deniable_estimator.asking.query import find_metric
from deniable_estimator.asking.reader import Reader
from deniable_estimator.errors import EstimateError
from deniable_estimator.kinds.basis import Part
from deniable_estimator.privacy.computing import guarantee_in
from deniable_estimator.privacy.outsider import DELTA, LEAST_REPORTS, released_sums
from deniable_estimator.releasing.noise import Method, Sensitivity, noise_of
from deniable_estimator.releasing.overlaps import counted
from deniable_estimator.releasing.prepared import (
    NoReports,
    Piece,
    Prepared,
    ReleaseRequest,
)
from deniable_estimator.releasing.statistic import (
    CellCounts,
    MessageCounts,
    ScoreSum,
    Statistic,
    SupportCounts,
)

MOST_MESSAGES = 1 << 17
"""The most messages that receive noise: each takes about 0.1 ms to draw."""


def statistic_of(part: Part, method: Method) -> Statistic[Any]:
    """What of this tally receives noise of this kind.

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
        values = SupportCounts(part, analysis)
        if method == "exponential" or not _sends_one(analysis):
            return values
        # That of the two with less noise in a share at the same epsilon.
        messages = MessageCounts(part, analysis)
        one, other = (
            each.variances(noise_of(method, Fraction(1), 1e-8, each.sensitivity).variance)[1]
            for each in (values, messages)
        )
        return messages if other < one else values
    if isinstance(analysis, SlidingWindowAnalysis):
        return ScoreSum(part, analysis)
    if isinstance(analysis, HistogramAnalysis):
        return CellCounts(part, analysis)
    raise EstimateError(
        f"{part.tally.metric} has no noise to add to a release yet: release its sums as they are, "
        "without --epsilon"
    )


def _sends_one(analysis: OracleAnalysis[Any]) -> bool:
    """Whether a report is one message of a single row, which supports several values."""
    kinds = (ProjectiveGeometryAnalysis, HadamardResponseAnalysis)
    return isinstance(analysis, kinds) and analysis.mechanism.rows[0].width <= MOST_MESSAGES


def prepare(
    reader: Reader,
    registry: Registry,
    request: ReleaseRequest,
    now: float | None = None,
    progress: Callable[[str], None] = lambda what: None,
) -> Prepared:
    """Read what a release needs, and find its noise.

    Without a last day the range ends with the newest window that takes no reports any more.

    Raises:
        MetricError: the registry declares no such metric.
        NoReports: nothing was reported in the range.
        EstimateError: the request makes no sense, names a window that still takes reports or has
            too few, or the reports cannot be released so.
        StoreUnavailable: the store cannot answer now.
    """
    metric = find_metric(registry, request.query.metric)
    source = registry.unasked.get(metric.name, metric)
    given = guarantee_in(registry, source)
    progress("Reading")
    chosen = _settled(
        select(reader, registry, request.query),
        request,
        time.time() if now is None else now,
    )
    pieces = _pieces(chosen, request)
    labels = chosen.labels
    limit = given.lifetime_reports
    reports = len(labels) if limit is None else min(len(labels), limit)
    progress("Computing what the sums reveal")
    # In one sum, each of the device's reports hides among its part of the others.
    hiding = min(piece.n for piece in pieces) // (1 if len(pieces) > 1 else reports)
    outsider = released_sums(registry, source, reports, max(1, hiding), DELTA)
    found = Prepared(request, registry, metric, given, tuple(pieces), reports, outsider)
    return found if request.epsilon is None else _with_noise(found, request.epsilon)


def _settled(chosen: Selection, request: ReleaseRequest, now: float) -> Selection:
    """The selection without windows that still take reports, if nobody asked for them.

    Raises:
        NoReports: it has no window.
        EstimateError: a day of one was asked for.
    """
    taking = [label for label in chosen.labels if windows.end(label) + SETTLED > now]
    settled = [label for label in chosen.labels if label not in taking]
    if not chosen.labels:
        raise NoReports("nothing was reported in that range")
    if taking and (request.query.days.last < date.max or not settled):
        first = min(taking, key=windows.start)
        when = datetime.fromtimestamp(windows.end(first) + SETTLED, UTC).date()
        state = "has not ended" if windows.end(first) > now else "still takes late reports"
        raise EstimateError(
            f"window {first} {state}: two readings of it would publish the few reports in "
            f"between. Release it from {when.isoformat()} on, or end the range before it with --to"
        )
    return chosen.within(settled)


def _pieces(chosen: Selection, request: ReleaseRequest) -> list[Piece]:
    metric = chosen.metric
    if isinstance(metric.type, Retention):
        raise EstimateError(
            f"{metric.name} is a retention, which is not released yet: its cohorts need the sums "
            "of single windows, and no guarantee is computed for those together. Publish a picture "
            "or a link instead"
        )
    groups = [[label] for label in chosen.labels] if request.form == "trend" else [chosen.labels]
    pieces = []
    for labels in groups:
        within = chosen.within(labels)
        # Counted first: reports that come in between are then taken for new ones the next time.
        where_counted = counted(within)
        question = within.read()
        if question.unreadable:
            raise EstimateError(
                f"window {question.unreadable[0]} cannot be read now, and the sum would lack it: "
                "`deniable store info` says why. Restore it, or release the windows before and "
                "after it"
            )
        informed = [part for part in question.parts if part.tally.reports]
        if informed and (len(informed) > 1 or question.parts[0] not in informed):
            raise EstimateError(
                "the range holds reports that were made under an earlier definition of "
                f"{metric.name}: their guarantee is another. Begin it later with --from"
            )
        unnamed = question.parts and question.parts[0].unnamed and not question.pair
        if request.epsilon is None and unnamed and not isinstance(metric.type, Discovery):
            raise EstimateError(
                f"{metric.name} takes any string: name those to look for with --candidates FILE"
            )
        statistic = None if request.kind == "exact" else _noisy(metric, question, request.kind)
        pieces.append(Piece(tuple(labels), question, statistic, where_counted))
    for piece in pieces:
        _check_size(piece, metric)
    return pieces


def _noisy(metric: Metric, question: Question, method: Method) -> Statistic[Any]:
    """What of the data receives noise."""
    if any(part.tally.reports for part in question.pair):
        pair = question.pair[0].tally.metric
        raise EstimateError(
            f"{metric.name} is not reported by itself, but as a part of {pair}: release that with "
            "noise"
        )
    if isinstance(metric.type, Discovery):
        raise EstimateError(
            "a list of discovered strings is released without --epsilon only: which strings are "
            "found depends on all reports at once, and no noise on their counts hides that. To "
            "count known strings with noise, declare a metric of type string"
        )
    found = statistic_of(question.parts[0], method)
    if method == "exponential" and not isinstance(found, SupportCounts):
        raise EstimateError("only values that are counted have a leader: release the table")
    return found


def _check_size(piece: Piece, metric: Metric) -> None:
    if piece.n == 0:
        raise NoReports("nothing was reported in that range")
    if piece.n < LEAST_REPORTS:
        label = piece.labels[0]
        where = label if len(piece.labels) == 1 else f"{label} ... {piece.labels[-1]}"
        raise EstimateError(
            f"{where} has {piece.n:,} reports of {metric.name}, and fewer than "
            f"{LEAST_REPORTS:,} are not released: each would be hidden among too few. Release "
            "more windows together"
        )


def _with_noise(found: Prepared, epsilon: Fraction) -> Prepared:
    statistic, kind = found.pieces[0].statistic, found.request.kind
    assert statistic is not None
    assert kind != "exact"
    own = statistic.scheme.mechanism.epsilon * found.reports
    if epsilon >= own:
        raise EstimateError(
            f"noise to epsilon {float(epsilon):g} would add nothing: the noise of the "
            f"devices themselves already holds epsilon {own:g} for what a device gave to "
            "these windows, against everybody. Ask for less, or release the sums as they are"
        )
    # The exponential mechanism compares counters, of which one report moves each by at most 1.
    each = Sensitivity(1, 1) if kind == "exponential" else statistic.sensitivity
    squared = found.squared(found.reports)
    return replace(found, noise=noise_of(kind, epsilon, DELTA, each, found.reports, squared))

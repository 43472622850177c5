"""Reads what a release needs, checks that it may be released, and finds its noise.

Nothing here draws noise or writes anything, so it also serves to show what a release would cost.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from fractions import Fraction
from typing import Any, Literal, TypeAlias

import numpy as np

from deniable import Metric, Registry
from deniable.protocol import windows
from deniable.protocol.types.discovery import Discovery
from deniable.protocol.types.retention import Retention
from deniable_collector.upkeep.keeper import SETTLED
from deniable_estimator.asking.fetch import Question, Selection, select
from deniable_estimator.asking.query import Query, find_metric
from deniable_estimator.asking.reader import Reader
from deniable_estimator.document.units import Unit
from deniable_estimator.errors import EstimateError
from deniable_estimator.privacy.computing import guarantee_in
from deniable_estimator.privacy.guarantees import Bound, Guarantee
from deniable_estimator.privacy.outsider import DELTA, LEAST_REPORTS, ReleasedSums, released_sums
from deniable_estimator.releasing.charge import Counted, Kind, reports_counted
from deniable_estimator.releasing.noise import AddedNoise, Method, Sensitivity, noise_of, of_rho
from deniable_estimator.releasing.statistic import Statistic, SupportCounts, statistic_of

Form: TypeAlias = Literal["table", "trend", "leader"]
"""One sum of all windows, one for each window, or the name of the largest value alone."""

LEAST_EPSILON = Fraction(1, 1000)
MOST_EPSILON = Fraction(1000)


@dataclass(frozen=True, slots=True)
class ReleaseRequest:
    """What is asked for.

    Attributes:
        epsilon: that of noise, for all that a device reported in the windows of the release; None
            for the sums as they are.

    Raises:
        EstimateError: an epsilon cannot be, or the leader has none.
    """

    query: Query
    form: Form = "table"
    method: Method = "laplace"
    epsilon: Fraction | None = None

    @property
    def kind(self) -> Kind:
        """How it is made private."""
        if self.epsilon is None:
            return "exact"
        return "exponential" if self.form == "leader" else self.method

    def __post_init__(self) -> None:
        if self.form == "leader" and self.epsilon is None:
            raise EstimateError(
                "the leader alone is drawn with noise: say with which --epsilon. Without "
                "noise, release the table"
            )
        if self.epsilon is not None and not LEAST_EPSILON <= self.epsilon <= MOST_EPSILON:
            raise EstimateError(
                f"epsilon must be from {float(LEAST_EPSILON):g} to {float(MOST_EPSILON):g}, "
                f"not {float(self.epsilon):g}"
            )


class NoReports(EstimateError):
    """Nothing was reported in the range."""


@dataclass(frozen=True, eq=False)
class Piece:
    """One published table: that of one window, or of all.

    Attributes:
        statistic: what receives noise; None for the sums as they are.
        counted: where its reports are counted.
    """

    labels: tuple[str, ...]
    question: Question
    statistic: Statistic[Any] | None
    counted: Counted

    @property
    def n(self) -> int:
        """Reports."""
        return self.question.n


def squared(pieces: Sequence[Piece], reports: int) -> int:
    """How often the rho of each of so many reports of a device counts: in one table they add up
    before they are squared, in those of different windows they move different numbers."""
    return reports if len(pieces) == 1 else 1


@dataclass(frozen=True, eq=False)
class Prepared:
    """What `prepare` found.

    Attributes:
        reports: how many of the reports are of one device at most.
        outsider: what the sums as they are reveal to a reader of sums.
        noise: None for the sums as they are.
    """

    request: ReleaseRequest
    registry: Registry
    metric: Metric
    given: Guarantee
    pieces: tuple[Piece, ...]
    reports: int
    outsider: ReleasedSums
    noise: AddedNoise | None

    @property
    def source(self) -> Metric:
        """What devices report: the metric, or the pair that gives its shares."""
        return self.registry.unasked.get(self.metric.name, self.metric)

    @property
    def labels(self) -> tuple[str, ...]:
        """All windows, the oldest first."""
        return tuple(label for piece in self.pieces for label in piece.labels)

    @property
    def n(self) -> int:
        """Reports."""
        return sum(piece.n for piece in self.pieces)

    def guarantee(self, reports: int | None = None) -> tuple[float, float]:
        """(epsilon, delta) for a device, or for one that gave only so many reports."""
        count = self.reports if reports is None else reports
        if self.noise is None:
            return self.outsider.epsilon.epsilon, DELTA
        if self.noise.epsilon is not None:
            return Bound.of(self.noise.epsilon * count).epsilon, 0.0
        return of_rho(float(self.noise.rho * count * squared(self.pieces, count)), DELTA), DELTA

    @property
    def _smallest(self) -> Statistic[Any]:
        """What receives noise of the piece with the fewest reports."""
        found = min(self.pieces, key=lambda piece: piece.n).statistic
        assert found is not None
        return found

    def widest(self) -> tuple[float, float, Unit] | None:
        """Half of the widest interval that the smallest piece would have without the noise and
        with it, and their unit; None where no numbers receive noise."""
        if self.noise is None or self.request.form == "leader":
            return None
        statistic = self._smallest
        exact = statistic.exact()
        plain, noisy = (statistic.answer(exact, each) for each in (0.0, self.noise.variance))
        own, both = ((each.series.high - each.series.low) / 2 for each in (plain, noisy))
        known = np.isfinite(both)
        if not known.any():
            return None
        return float(own[known].max()), float(both[known].max()), plain.unit

    def added(self) -> float:
        """The variance that the noise adds to a published number of the smallest piece, as a part
        of that of the devices' own noise."""
        assert self.noise is not None
        own, added = self._smallest.variances(self.noise.variance)
        return added / own


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
    labels, limit = chosen.labels, given.lifetime_reports
    groups = [(label,) for label in labels] if request.form == "trend" else [labels]
    pieces = tuple(_piece(chosen, each, request) for each in groups)
    reports = len(labels) if limit is None else min(len(labels), limit)
    progress("Computing what the sums reveal")
    # In one sum, each of the device's reports hides among its part of the others.
    hiding = min(piece.n for piece in pieces) // (1 if len(pieces) > 1 else reports)
    outsider = released_sums(registry, source, reports, max(1, hiding), DELTA)
    noise = _noise(request, pieces, reports)
    return Prepared(request, registry, metric, given, pieces, reports, outsider, noise)


def _settled(chosen: Selection, request: ReleaseRequest, now: float) -> Selection:
    """The selection without windows that still take reports, if nobody asked for them.

    Raises:
        NoReports: it has no window.
        EstimateError: a day of one was asked for, or its sums are not released.
    """
    metric = chosen.metric
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
    if isinstance(metric.type, Retention):
        raise EstimateError(
            f"{metric.name} is a retention, which is not released yet: its cohorts need the sums "
            "of single windows, and no guarantee is computed for those together. Show it by a "
            "link, to those who may see its sums"
        )
    return chosen.within(settled)


def _piece(chosen: Selection, labels: tuple[str, ...], request: ReleaseRequest) -> Piece:
    metric, within = chosen.metric, chosen.within(labels)
    # Counted first: reports that come in between are then taken for new ones the next time.
    where_counted = reports_counted(within)
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
    if question.n == 0:
        raise NoReports("nothing was reported in that range")
    if question.n < LEAST_REPORTS:
        where = labels[0] if len(labels) == 1 else f"{labels[0]} ... {labels[-1]}"
        raise EstimateError(
            f"{where} has {question.n:,} reports of {metric.name}, and fewer than "
            f"{LEAST_REPORTS:,} are not released: each would be hidden among too few. Release "
            "more windows together"
        )
    return Piece(labels, question, statistic, where_counted)


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


def _noise(request: ReleaseRequest, pieces: Sequence[Piece], reports: int) -> AddedNoise | None:
    """The noise that was asked for, for so many reports of a device."""
    statistic, epsilon = pieces[0].statistic, request.epsilon
    if statistic is None or epsilon is None or request.kind == "exact":
        return None
    own = statistic.scheme.mechanism.epsilon * reports
    if epsilon >= own:
        raise EstimateError(
            f"noise to epsilon {float(epsilon):g} would add nothing: the noise of the "
            f"devices themselves already holds epsilon {own:g} for what a device gave to "
            "these windows, against everybody. Ask for less, or release the sums as they are"
        )
    # The exponential mechanism compares counters, of which one report moves each by at most 1.
    each = Sensitivity(1, 1) if request.kind == "exponential" else statistic.sensitivity
    times = squared(pieces, reports)
    return noise_of(request.kind, epsilon, DELTA, each, reports, times)

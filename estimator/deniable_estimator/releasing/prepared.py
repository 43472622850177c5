"""What a release is asked for; and one that is ready to be made, of which the reports are read, and
the noise and the charge are known.

Nothing here draws noise or writes anything, so it also serves to show what a release would cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal, TypeAlias

import numpy as np

from deniable import Metric, Registry
from deniable_estimator.asking.fetch import Question
from deniable_estimator.asking.query import Query
from deniable_estimator.document.units import Unit
from deniable_estimator.errors import EstimateError
from deniable_estimator.privacy.guarantees import Bound, Guarantee
from deniable_estimator.privacy.outsider import DELTA, LEAST_REPORTS, released_sums
from deniable_estimator.privacy.spans import ReleasedSums
from deniable_estimator.releasing.charge import Charge, Kind
from deniable_estimator.releasing.manifest import canonical, digest
from deniable_estimator.releasing.noise import AddedNoise, Method, of_rho
from deniable_estimator.releasing.overlaps import Counted, SumCell, cells
from deniable_estimator.releasing.statistic import LEVEL, Statistic

Form: TypeAlias = Literal["table", "trend", "leader"]
"""One sum of all windows, one for each window, or the name of the largest value alone."""

LEAST_EPSILON = Fraction(1, 1000)
MOST_EPSILON = Fraction(1000)

_NAMED = 2
"""An error names so many windows; of more, their number of reports says enough."""


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
    noise: AddedNoise | None = None

    @property
    def labels(self) -> tuple[str, ...]:
        """All windows, the oldest first."""
        return tuple(label for piece in self.pieces for label in piece.labels)

    @property
    def n(self) -> int:
        """Reports."""
        return sum(piece.n for piece in self.pieces)

    def squared(self, reports: int) -> int:
        """How often the rho of each of so many reports of a device counts: in one table they add up
        before they are squared, in those of different windows they move different numbers."""
        return reports if len(self.pieces) == 1 else 1

    def guarantee(self, reports: int | None = None) -> tuple[float, float]:
        """(epsilon, delta) for a device, or for one that gave only so many reports."""
        count = self.reports if reports is None else reports
        if self.noise is None:
            return self.outsider.epsilon.epsilon, DELTA
        if self.noise.epsilon is not None:
            return Bound.of(self.noise.epsilon * count).epsilon, 0.0
        return of_rho(float(self.noise.rho * count * self.squared(count)), DELTA), DELTA

    @property
    def charge(self) -> Charge:
        """What the release spends."""
        epsilon, delta = self.guarantee()
        window, rho = None, None
        if self.noise is not None:
            pure = self.noise.epsilon
            window = None if pure is None else Bound.of(pure).epsilon
            rho = float(self.noise.rho) * self.squared(self.reports)
        return Charge(
            self.given.metric,
            self.labels,
            self.given.lifetime_reports,
            self.request.kind,
            epsilon,
            delta,
            window,
            rho,
            tuple(piece.counted for piece in self.pieces),
        )

    def charge_after(self, earlier: Sequence[Charge]) -> Charge:
        """What the release spends if those were made before.

        Raises:
            EstimateError: whoever subtracts them is left with the sum of too few reports.
        """
        charge = self.charge
        exact = [each for each in earlier if each.kind == "exact"]
        sums = [each.sums for each in exact]
        noisy = [each.sums for each in earlier if each.kind != "exact"]
        if self.noise is not None:
            if not exact:
                return charge
            delta = exact[-1].delta
            before, after = (
                self._joint(cells(sums, charge.sums, each, exact=False), delta)
                for each in (noisy, [*noisy, charge.sums])
            )
            return replace(charge, separated=max(0.0, after - before))
        if not earlier:
            return charge
        found = cells(sums, charge.sums, noisy)
        least = min(cell.reports for cell in found)
        if least < LEAST_REPORTS:
            raise EstimateError(
                "earlier releases without noise hold a part of the same reports: whoever subtracts "
                f"them from this one is left with the sum of {least:,} reports{_of(found, least)}, "
                f"and fewer than {LEAST_REPORTS:,} are not released, because each would hide among "
                "too few. Nothing was released. Of a range that slides, like the last 30 days, "
                "release each window once with --form trend, or a table for each week or month. Or "
                "wait until the new windows have enough reports, or add noise with --epsilon"
            )
        return replace(charge, epsilon=max(charge.epsilon, self._joint(found, charge.delta)))

    def _joint(self, found: Sequence[SumCell], delta: float) -> float:
        """What the exact sums of these cells reveal together."""
        if not found:
            return 0.0
        limit = self.given.lifetime_reports
        together = frozenset[str]().union(*(cell.windows for cell in found))
        reports = min(
            cell.hiding // max(1, min(len(cell.windows), limit or len(cell.windows)))
            for cell in found
        )
        joint = released_sums(self.registry, self.source, len(together), max(1, reports), delta)
        return joint.epsilon.epsilon

    @property
    def source(self) -> Metric:
        """What devices report: the metric, or the pair that gives its shares."""
        return self.registry.unasked.get(self.metric.name, self.metric)

    @property
    def id(self) -> str:
        """Names the release: the same request of the same reports has the same id."""
        request, candidates = self.request, self.request.query.candidates
        asked: dict[str, Any] = {
            "metric": request.query.metric,
            "registry": registry_digest(self.registry),
            "schemes": [
                part.scheme.fingerprint for piece in self.pieces for part in piece.question.parts
            ],
            "windows": [[list(piece.labels), piece.n] for piece in self.pieces],
            "where": dict(request.query.where),
            "candidates": None if candidates is None else list(candidates),
            "form": request.form,
            "kind": request.kind,
            "epsilon": str(request.epsilon),
            "delta": DELTA,
            "level": LEVEL,
        }
        return digest(canonical(asked))[:24]

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


def registry_digest(registry: Registry) -> str:
    """SHA-256 of the compiled registry."""
    return digest(canonical(registry.compile()))


def _of(found: Sequence[SumCell], least: int) -> str:
    """The windows of the smallest cell, if they are few enough to be named."""
    windows = sorted(next(cell.windows for cell in found if cell.reports == least))
    return f" of {' and '.join(windows)}" if len(windows) <= _NAMED else ""

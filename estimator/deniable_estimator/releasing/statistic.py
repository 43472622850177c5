"""What receives noise in a release, how far one report moves it, and the answer that follows.

A *statistic* is a list of integers, each a sum over reports. Its size does not depend on the
reports, and the number of reports is published as it is. Neighbours differ in what one report says:
its row and its segment, which do not depend on the value, count as known.

* Shares: how many reports support each value. Of all values published, a report supports between
  `fewest` and `most`, so two reports differ in at most min(2 most, 2 (count - fewest), count) of
  them, by one each.
* Shares of a long list, whose reports are one message that supports many values: how often each
  message was sent. Two reports differ in two messages, by one each. Of the two, the one is taken
  whose noise moves shares less.
* A distribution of numbers: the counters of all rows. Two reports differ in two columns of one row,
  or, of bitmaps, in all of them.
* A mean: the sum of the scores of all reports, in units of 2**-20; two reports differ by the
  difference of the largest and the smallest score at most. The variance of the devices' own noise
  is not published, so the largest that is possible at such a mean is taken.

The published number is (statistic + noise) debiased as always, so its variance is that of the
devices' noise, plus the variance of the noise here times the square of the debiasing's factor.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from deniable_collector.tally import TallyRow
from deniable_estimator.analyses import analysis_of, asked_values
from deniable_estimator.analyses.anomalies import Verdict
from deniable_estimator.analyses.base import Finding, OneRowAnalysis, OracleAnalysis
from deniable_estimator.analyses.cohorts import CohortAnalysis
from deniable_estimator.analyses.hashed import HashedAnalysis, hash_places
from deniable_estimator.analyses.numbers import HistogramAnalysis, MeanEstimate
from deniable_estimator.analyses.numbers.sliding_window import SlidingWindowAnalysis
from deniable_estimator.analyses.planes import HadamardResponseAnalysis, PlanesAnalysis
from deniable_estimator.analyses.projective_geometry import ProjectiveGeometryAnalysis
from deniable_estimator.errors import EstimateError
from deniable_estimator.kinds.base import Answer
from deniable_estimator.kinds.basis import Part
from deniable_estimator.kinds.numbers.distribution import estimate_distribution
from deniable_estimator.kinds.numbers.mean import Mean, number_answer
from deniable_estimator.kinds.shares.making import infer
from deniable_estimator.releasing.noise import Method, Sensitivity, noise_of
from deniable_estimator.statistics.intervals import Noise as ShareNoise
from deniable_estimator.statistics.intervals import debias

MOST_MESSAGES = 1 << 17
"""The most messages that receive noise: each takes about 0.1 ms to draw."""

LEVEL = 0.95
"""That of the intervals of all releases. Their delta is `DELTA`."""

_UNIT = 1 << 20
"""A score of a mean is a multiple of one over this."""

MOST_STRINGS = 2000
"""The most strings of one release with noise: their collisions are solved for together."""

_TWINS = 0.5
"""Strings that share their column in more than this part of the rows cannot be told apart."""

_Analysis = TypeVar("_Analysis")


class Statistic(ABC, Generic[_Analysis]):
    """What of one scheme's tally receives noise."""

    def __init__(self, part: Part, analysis: _Analysis) -> None:
        self.part, self._analysis = part, analysis
        self.tally, self.scheme = part.tally, part.scheme

    @property
    @abstractmethod
    def sensitivity(self) -> Sensitivity:
        """How far one report moves it."""

    @abstractmethod
    def exact(self) -> Sequence[int]:
        """Its integers, without noise: they must not be published."""

    @abstractmethod
    def answer(self, noisy: Sequence[int], variance: float) -> Answer:
        """What people read, from integers with noise of this variance each."""

    @abstractmethod
    def variances(self, variance: float) -> tuple[float, float]:
        """The variance of a published number because of the devices' own noise (of a value that
        nobody has), and what noise of `variance` on each integer adds; in the square of its unit,
        of a mean in that of half its range."""


class SupportCounts(Statistic[OracleAnalysis[Any]]):
    """The support of each value of a frequency oracle."""

    def __init__(self, part: Part, analysis: OracleAnalysis[Any]) -> None:
        super().__init__(part, analysis)
        self.values, self._items = asked_values(part.scheme, part.candidates)
        self._places: NDArray[np.int64] | None = None
        if isinstance(analysis, HashedAnalysis):
            if len(self.values) > MOST_STRINGS:
                raise EstimateError(
                    f"a release with noise has at most {MOST_STRINGS:,} strings, not "
                    f"{len(self.values):,}: name fewer candidates"
                )
            self._places = np.array(list(hash_places(analysis.mechanism, list(self.values))))

    @property
    def sensitivity(self) -> Sensitivity:
        count = len(self.values)
        fewest, most = self._supported()
        moved = min(2 * most, 2 * (count - fewest), count)
        return Sensitivity(moved, moved)

    def exact(self) -> Sequence[int]:
        if self._places is None:
            counts = self._analysis.support(self.tally, self._items).counts
        else:
            assert isinstance(self._analysis, HashedAnalysis)
            channel: OneRowAnalysis[Any] = self._analysis.channel
            counts = np.zeros(len(self.values), np.int64)
            for row, places in zip(self.tally.rows, self._places, strict=True):
                counts += channel.places(row.cells)[places]
        return [int(each) for each in counts]

    def variances(self, variance: float) -> tuple[float, float]:
        mechanism, n = self._analysis.mechanism, self.tally.reports
        own = float(ShareNoise.of(mechanism.p, mechanism.q, n, 1).a[0])
        return own, variance / (n * float(mechanism.p - mechanism.q)) ** 2

    def answer(self, noisy: Sequence[int], variance: float) -> Answer:
        mechanism, n = self._analysis.mechanism, self.tally.reports
        share = debias(np.array(noisy, np.float64), n, mechanism.p, mechanism.q)
        noise = ShareNoise.of(mechanism.p, mechanism.q, n, len(share))
        noise = replace(noise, a=noise.a + self.variances(variance)[1])
        if self._places is not None:
            solve = self._apart()
            share = solve @ share
            noise = noise.weighted(np.sqrt(np.square(solve).sum(axis=1)))
        noise = replace(
            noise.turned(np.atleast_2d), kept=self._analysis.kept_noise([n], [self.part.repeats])
        )
        (found,) = infer(
            [self.part.basis],
            self.values,
            Finding.of(share, noise),
            self._analysis.exposure(share),
            [()],
            LEVEL,
            complete=self.part.candidates is None,
        )
        return found

    def _supported(self) -> tuple[int, int]:
        """The fewest and the most of the values that one report supports."""
        analysis = self._analysis
        if self._places is None:
            return analysis.supported(len(self.values))
        assert isinstance(analysis, HashedAnalysis)
        channel = analysis.channel
        width = int(analysis.mechanism.width)
        _, most = channel.supported(width)
        fullest = 0
        for places in self._places:
            strings = np.bincount(places, minlength=width)
            if isinstance(channel, ProjectiveGeometryAnalysis):
                # A point supports a value if and only if the value, as a point, supports it.
                points = np.zeros(channel.mechanism.messages, np.int64)
                points[:width] = strings
                fullest = max(fullest, int(channel.places(points).max()))
            else:
                # In the worst case a report supports the columns with the most strings.
                fullest = max(fullest, int(np.sort(strings)[-most:].sum()))
        return 0, fullest

    def _apart(self) -> NDArray[np.float64]:
        """What undoes the collisions of the strings among each other, shape (d, d).

        The support of a string also counts others that share its column in a part k of the rows.
        q expects that of one string in `width`, so the share of each other string counts for
        (k - 1 / width) (p - q of the channel) / (p - q) too much.

        Raises:
            EstimateError: two strings have the same columns in so many rows that their shares
                cannot be told apart.
        """
        mechanism = self._analysis.mechanism
        assert self._places is not None
        count = len(self.values)
        alike = np.zeros((count, count))
        for places in self._places:
            alike += places[:, None] == places[None, :]
        alike /= len(self._places)
        twins = np.argwhere(np.triu(alike, 1) > _TWINS)
        if len(twins):
            one, other = (self.values[at] for at in twins[0].tolist())
            raise EstimateError(
                f"{one!r} and {other!r} have the same hashes in most rows, so a release with "
                "noise cannot tell them apart: leave one of them out"
            )
        channel = mechanism.channel
        factor = float((channel.p - channel.q) / (mechanism.p - mechanism.q))
        table = factor * (alike - 1 / mechanism.width)
        np.fill_diagonal(table, 1.0)
        return np.asarray(np.linalg.inv(table))


class MessageCounts(SupportCounts):
    """How often each message was sent, for mechanisms whose reports are one message that supports
    many values: a report changes two of many counters, and a value adds up some of them.

    The support of a value is the sum of the messages that support it, so noise of variance v on
    each of s messages is noise of s v on the support.
    """

    @property
    def sensitivity(self) -> Sensitivity:
        return Sensitivity(2, 2)

    def exact(self) -> Sequence[int]:
        (row,) = self.tally.rows
        return [int(each) for each in row.cells]

    def variances(self, variance: float) -> tuple[float, float]:
        assert isinstance(self._analysis, PlanesAnalysis)
        return super().variances(self._analysis.near * variance)

    def answer(self, noisy: Sequence[int], variance: float) -> Answer:
        (row,) = self.tally.rows
        tally = replace(self.tally, rows=(replace(row, cells=np.array(noisy, np.int64)),))
        support = self._analysis.support(tally, self._items).counts
        return super().answer([int(each) for each in support], variance)


class ScoreSum(Statistic[SlidingWindowAnalysis]):
    """The sum of the scores of a mean."""

    @property
    def sensitivity(self) -> Sensitivity:
        apart = max(self._scores) - min(self._scores)
        return Sensitivity(apart, apart * apart)

    def exact(self) -> Sequence[int]:
        (row,) = self.tally.rows
        return [sum(s * int(c) for s, c in zip(self._scores, row.cells.tolist(), strict=True))]

    @property
    def _scores(self) -> list[int]:
        return [round(each * _UNIT) for each in self._analysis.mechanism.scores()]

    def variances(self, variance: float) -> tuple[float, float]:
        n = self.tally.reports
        _, squares = self._analysis.level_noise()
        # No crowd's mean square is above that of the level where it is largest.
        return float(squares.max()) / n, variance / (_UNIT * n) ** 2

    def answer(self, noisy: Sequence[int], variance: float) -> Answer:
        n = self.tally.reports
        own, added = self.variances(variance)
        # The square of the mean is not taken off: what is known of it is noisy.
        shared = (self.part.repeats - 1) / n
        found = MeanEstimate(noisy[0] / (_UNIT * n), own + added, n, shared, 1.0)
        return number_answer(Mean, self.part, LEVEL, found, ())


class CellCounts(Statistic[HistogramAnalysis[Any]]):
    """The counters of a distribution's rows. A report is in one of them, and sets columns there."""

    @property
    def sensitivity(self) -> Sensitivity:
        rows = self.scheme.mechanism.rows
        moved = max(
            row.width if row.columns is None else 2 * min(row.columns, row.width - row.columns)
            for row in rows
        )
        return Sensitivity(moved, moved)

    def exact(self) -> Sequence[int]:
        return [int(each) for row in self.tally.rows for each in row.cells]

    def variances(self, variance: float) -> tuple[float, float]:
        """Of the share below the middle, for numbers that are spread evenly."""
        own, both = (self._middle(noise) for noise in (0.0, variance))
        return own, both - own

    def answer(self, noisy: Sequence[int], variance: float) -> Answer:
        left, rows = list(noisy), []
        for row in self.tally.rows:
            cells, left = left[: len(row.cells)], left[len(row.cells) :]
            rows.append(TallyRow(row.reports, np.array(cells, np.int64), variance))
        part = replace(self.part, tally=replace(self.tally, rows=tuple(rows)))
        found = estimate_distribution(part, LEVEL)
        # Whether such counters look honest cannot be said.
        return replace(found, verdict=Verdict.of(()))

    def _middle(self, noise: float) -> float:
        rows = []
        for row, declared in zip(self.tally.rows, self.scheme.mechanism.rows, strict=True):
            part = (declared.columns or declared.width / 2) / declared.width
            cells = np.full(declared.width, round(row.reports * part), np.int64)
            rows.append(TallyRow(row.reports, cells, noise))
        sums = self._analysis.sums(rows, 1.0)
        known = sums.variance[np.isfinite(sums.variance)]
        if not known.any():
            raise EstimateError(
                f"{self.tally.reports:,} reports say nothing of numbers, because one of the rows "
                "has too few of them: release more windows together"
            )
        return float(known[len(known) // 2])


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

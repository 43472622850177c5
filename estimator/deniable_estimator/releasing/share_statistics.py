"""Shares of values with noise: on the support of each value, or on each message that was sent (see
`statistic.py`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable_estimator.analyses import analysis_of
from deniable_estimator.analyses.base import Counts, Finding, OneRowAnalysis, OracleAnalysis
from deniable_estimator.analyses.candidates import asked_values
from deniable_estimator.analyses.hashed import HashedAnalysis, hash_places
from deniable_estimator.analyses.poisoning import Exposure
from deniable_estimator.analyses.projective_geometry import ProjectiveGeometryAnalysis
from deniable_estimator.answers.base import Answer
from deniable_estimator.answers.shares import infer
from deniable_estimator.asking.reading import Part
from deniable_estimator.errors import EstimateError
from deniable_estimator.releasing.noise import Sensitivity
from deniable_estimator.releasing.statistic import Statistic
from deniable_estimator.statistics.intervals import Noise as ShareNoise
from deniable_estimator.statistics.intervals import debias

MOST_STRINGS = 2000
"""The most strings of one release with noise: their collisions are solved for together."""

_TWINS = 0.5
"""Strings that share their column in more than this part of the rows cannot be told apart."""


class SupportCounts(Statistic):
    """The support of each value of a frequency oracle."""

    def __init__(self, part: Part, level: float, unit: str | None) -> None:
        super().__init__(part, level, unit)
        self.values, self._items = asked_values(part.tally, part.scheme, part.candidates)
        analysis = analysis_of(part.scheme.mechanism)
        assert isinstance(analysis, OracleAnalysis)
        self._analysis = analysis
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
        return [int(each) for each in self._support()]

    def variances(self, variance: float) -> tuple[float, float]:
        mechanism, n = self._analysis.mechanism, self.tally.reports
        own = float(ShareNoise.of(mechanism.p, mechanism.q, n, 1).a[0])
        return own, variance / (n * float(mechanism.p - mechanism.q)) ** 2

    def answer(self, noisy: Sequence[int], variance: float) -> Answer:
        mechanism, n = self._analysis.mechanism, self.tally.reports
        basis = self.basis
        share = debias(np.array(noisy, np.float64), n, mechanism.p, mechanism.q)
        noise = ShareNoise.of(mechanism.p, mechanism.q, n, len(share))
        noise = replace(noise, a=noise.a + self.variances(variance)[1])
        if self._places is not None:
            solve = self._apart()
            share = solve @ share
            noise = noise.weighted(np.sqrt(np.square(solve).sum(axis=1)))
        kept = self._analysis.kept_noise(n, basis.participation.repeats)
        noise = replace(noise, kept=kept)
        return infer(
            basis,
            self.part.candidates is None,
            self.values,
            Finding.of(share, noise),
            Exposure.of(mechanism, share, n, n),
            (),
            self.level,
            "storey",
        )

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

    def _support(self) -> Counts:
        if self._places is None:
            return self._analysis.support(self.tally, self._items).counts
        assert isinstance(self._analysis, HashedAnalysis)
        channel: OneRowAnalysis[Any] = self._analysis.channel
        counts = np.zeros(len(self.values), np.int64)
        for row, places in zip(self.tally.rows, self._places, strict=True):
            counts += channel.places(row.cells)[places]
        return counts

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

    def __init__(self, part: Part, level: float, unit: str | None) -> None:
        super().__init__(part, level, unit)
        mechanism = self._analysis.mechanism
        self._times = max(len(list(mechanism.support(item))) for item in self._some())

    @property
    def sensitivity(self) -> Sensitivity:
        return Sensitivity(2, 2)

    def exact(self) -> Sequence[int]:
        (row,) = self.tally.rows
        return [int(each) for each in row.cells]

    def variances(self, variance: float) -> tuple[float, float]:
        return super().variances(self._times * variance)

    def answer(self, noisy: Sequence[int], variance: float) -> Answer:
        (row,) = self.tally.rows
        tally = replace(self.tally, rows=(replace(row, cells=np.array(noisy, np.int64)),))
        support = self._analysis.support(tally, self._items).counts
        return super().answer([int(each) for each in support], variance)

    def _some(self) -> list[int]:
        """The items, or some of many: each has as many messages as any other."""
        return [int(each) for each in self._items[:2]]

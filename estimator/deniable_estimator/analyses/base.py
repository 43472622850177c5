"""The contract between a mechanism and the estimator: what a tally of its reports says.

Each mechanism has one analysis, in one file of this folder: how its tallies are decoded and drawn,
what fake devices could do to them, how the sums of honest devices look, and what its memos, if it
has any, add to all that. Nothing else in the estimator asks which mechanism it deals with.

**The poisoning budget** is how far fake devices could move an estimate at most. A fake does not
randomize. It sends the well-formed report that moves the estimate most. Let a fraction b of all
reports be fake, and let f be the share of a value among the honest ones. If every fake supports the
value (Cao, Jia and Gong, USENIX Security 2021), its estimate rises by ::

    G = b [A - f],   A = (1 - q) / (p - q)             what fakes alone would show
    G = b [A - f],   A = (a - r q) / (p - q)           in all, for r targets at once

where a is how many of the targets one report can support. If none supports it, the
estimate falls by b [f - B] with B = -q / (p - q). Small epsilons have p near q, so a large A.
Filters of RAPPOR are decoded by a regression: see `deniable_estimator.analyses.cohorts`.

**What devices keep** from one report to the next are their values, and memos if any. A mechanism
with memos has two rounds. The noise of the fresh one averages out over windows; the noise of the
permanent one does not, and neither does the choice of devices. With the `repeats` of
`deniable_estimator.statistics.participation`, the variance of the average is largest if every
device keeps its value, and then ::

    Var = [V + (repeats - 1) V1] / n,   V = r (1-r) / (p-q)**2,  V1 = m (1-m) / (p1-q1)**2

where V is the variance of one report and V1 the variance of what is kept (m = q1 + f (p1-q1) is
how often a memo supports a value of share f): the law of total variance, device by device.
Without memos the value itself is kept: p1 = 1, q1 = 0, V1 = f (1-f).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Generic, NamedTuple, Self, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from deniable.protocol.mechanisms import FrequencyOracle, Mechanism, Memoizing
from deniable_collector.tally import Tally, TallyRow
from deniable_estimator.analyses import anomalies
from deniable_estimator.errors import EstimateError
from deniable_estimator.statistics.intervals import FloatArray, Noise, debias
from deniable_estimator.statistics.significance import share_p_values

Counts: TypeAlias = NDArray[np.int64]

Items: TypeAlias = Sequence[Any] | NDArray[np.int64]
"""What the mechanism randomizes, one for each requested value: int64 indices into a closed
domain, or strings."""

_SHARES = 201
"""How many shares, from 0 to 1, are tried for the largest part of the variance that is kept."""


class Support(NamedTuple):
    """The sufficient statistic of a pure protocol, for d values; of T tallies in arrays of shape
    (T, d)."""

    counts: NDArray[Any]
    """Shape (d,), integers or floats: reports that support each value."""
    reports: Any
    """The number of reports: one number for all values, or shape (d,)."""
    ghosts: NDArray[np.bool_] | None = None
    """Shape (d,): values whose support seems to come from hash collisions, because the tables
    disagree; they are estimated but never called detected."""


@dataclass(frozen=True, eq=False)
class Finding:
    """Unbiased shares of d values in each of T tallies; arrays have shape (T, d)."""

    share: FloatArray
    """NaN if nothing is known."""
    noise: Noise
    p_value: FloatArray
    """One-sided, for the hypothesis that no device has the value; NaN if nothing is known."""
    ghosts: NDArray[np.bool_]
    """Values that must not count as detected, because their support is a hash collision."""
    warnings: Sequence[tuple[str, ...]] = ()
    """Those of each tally, if any has some."""

    @classmethod
    def of(cls, share: FloatArray, noise: Noise, ghosts: NDArray[np.bool_] | None = None) -> Self:
        """The finding with p-values computed from the noise of each value; arrays of one tally may
        have shape (d,)."""
        share, noise = np.atleast_2d(share), noise.turned(np.atleast_2d)
        ghosts = np.zeros(share.shape, np.bool_) if ghosts is None else np.atleast_2d(ghosts)
        with np.errstate(invalid="ignore"):
            return cls(share, noise, share_p_values(share, noise), ghosts)


FAKES = 0.01
"""The default fraction of reports that are assumed to be fake."""

AnyMechanism = TypeVar("AnyMechanism", bound=Mechanism[Any])
AnyOracle = TypeVar("AnyOracle", bound=FrequencyOracle[Any])


class Pull(NamedTuple):
    """The share of the target that fakes alone would show, exactly."""

    most: Fraction
    """If they all push it up."""
    least: Fraction
    """If they all push it down; negative."""


class Exposure(NamedTuple):
    """How far d shares move, divided by the fraction of fakes; shape (d,) each.

    Multiplied by the fraction of fakes, these are the poisoning budget. Both are positive.
    """

    gain: FloatArray
    loss: FloatArray

    @classmethod
    def worst(cls, parts: Sequence[Exposure]) -> Exposure:
        """That of an average over schemes by their reports: fakes report under the one that moves
        it most."""
        return cls(*np.max(parts, axis=0))


class Analysis(Generic[AnyMechanism]):
    """What a tally of one mechanism says."""

    def __init__(self, mechanism: AnyMechanism) -> None:
        self.mechanism = mechanism

    @property
    def remembers(self) -> bool:
        """Whether it has memos."""
        return isinstance(self.mechanism, Memoizing)

    def memo_channel(self) -> tuple[Fraction, Fraction]:
        """(p1, q1): how often what a device keeps sets the column of its own value, and of a given
        other one. Without memos it keeps the value itself.

        They correspond to p and q of a report; for strings, without hash collisions.
        """
        if self.remembers:
            raise NotImplementedError(f"the memos of {self.mechanism.name} are not known here")
        return Fraction(1), Fraction(0)

    def kept_part(self) -> float:
        """The part of a report's variance that stays the same on a device at most: of V1 / V in
        `deniable_estimator.statistics.participation` the largest, over all shares.

        Without memos the value stays, and of what is calculated from a report it determines at most
        tanh(epsilon / 2)**2 of the variance: so much of chi-squared any channel of that epsilon
        lets through (Asoodeh and Zhang, Contraction of locally differentially private mechanisms,
        IEEE J. Sel. Areas Inf. Theory 2024). With memos it is taken as all.
        """
        return 1.0 if self.remembers else math.tanh(self.mechanism.epsilon / 2) ** 2

    def alternation_loss(self, reports: int) -> float:
        """ln of how much likelier it is that odd reports all look like one value and even ones
        all like another if two values alternate than if one stays (see
        `deniable_estimator.privacy.computing`); of memos alone.

        `reports` is even. With hashing, the two values do not collide in the device's cohort.
        """
        raise NotImplementedError

    def entries(self, values: int | None) -> int | None:
        """How many memos a device can have at most, for a list of so many values; None for any
        number."""
        return values

    def sample_rows(
        self, items: Items, counts: Counts, rng: np.random.Generator
    ) -> tuple[TallyRow, ...]:
        """A tally drawn from its exact distribution: `counts[i]` devices, shape (d,), have the
        i-th item.

        Raises:
            EstimateError: this mechanism's tallies cannot be drawn.
        """
        name = self.mechanism.name
        raise EstimateError(f"tallies of {name} cannot be simulated: simulate its devices")

    def ones(self) -> anomalies.Ones | None:
        """How many ones honest bitmaps hold; None where reports are no bitmaps."""
        return None

    def commonest(self) -> float | None:
        """The most that a row's most frequent message can be expected to be sent, as a part of
        its reports, whatever the crowd; None where that says nothing about fakes."""
        return None

    def tests(self, rows: Sequence[TallyRow], repeats: float = 1.0) -> Iterator[anomalies.Found]:
        """Whether rows with LEAST_REPORTS reports in all can be the sums of honest ones;
        `repeats` is how often devices reported from the same memo (`Participation.repeats`)."""
        if (ones := self.ones()) is not None:
            yield from anomalies.bitmap_figures(rows, ones, repeats)
        yield from anomalies.row_figures(rows, repeats)
        if (commonest := self.commonest()) is not None:
            yield anomalies.message_figure(rows, commonest)

    def figures(
        self,
        tallies: Sequence[Tally],
        repeats: Sequence[float],
        of_shares: Iterable[tuple[anomalies.Found, ...]] | None = None,
    ) -> list[tuple[anomalies.Figure, ...]]:
        """All tests that are possible for each of T tallies of one scheme: those of the shares of
        values, if any were asked for, and those of its rows."""
        each = zip(tallies, repeats, of_shares or [()] * len(tallies), strict=True)
        return [
            tuple(
                anomalies.Figure(name, tally.scheme, *numbers)
                for name, *numbers in (*tested, *self.tests(tally.rows, times))
            )
            if tally.reports >= anomalies.LEAST_REPORTS
            else ()
            for tally, times, tested in each
        ]


class OracleAnalysis(Analysis[AnyOracle]):
    """What a tally of a frequency oracle says: the share of any value.

    A subclass for each kind of oracle says what supports a value.
    """

    tests_shares = True
    """Whether no share of an honest crowd lies further below zero than noise takes it. In small
    tables other strings' collisions move shares by more than noise."""

    lift = 0.0
    """By how much q overrates the support of a value that nobody has, in shares."""

    def support(self, tally: Tally, items: Items) -> Support:
        """How many of the tally's reports support each item."""
        raise NotImplementedError

    def shares(self, tallies: Sequence[Tally], items: Items) -> tuple[Support, FloatArray, Noise]:
        """What supports each item in each of T tallies, its unbiased share, and the noise of
        reports of as many devices, in arrays of shape (T, d)."""
        found = [self.support(each, items) for each in tallies]
        p, q = self.mechanism.p, self.mechanism.q
        counts = np.array([each.counts for each in found])
        reports = np.array([np.atleast_1d(each.reports) for each in found])
        ghosts = [each.ghosts for each in found if each.ghosts is not None]
        with np.errstate(divide="ignore", invalid="ignore"):
            share = debias(counts, reports, p, q)
        support = Support(counts, reports, np.array(ghosts) if ghosts else None)
        return support, share, Noise.of(p, q, reports, share.shape)

    def find(
        self, tallies: Sequence[Tally], items: Items, level: float, repeats: Sequence[float]
    ) -> tuple[Finding, Counts]:
        """The shares of the items, and how many reports each is estimated from, in an array of
        shape (T, d), or (T, 1). `repeats` is that of `Participation` for each tally."""
        support, share, noise = self.shares(tallies, items)
        kept = self.kept_noise([each.reports for each in tallies], repeats)
        return Finding.of(share, replace(noise, kept=kept), support.ghosts), support.reports

    def kept_part(self) -> float:
        share = np.linspace(0, 1, _SHARES)
        channels = self.memo_channel(), (self.mechanism.p, self.mechanism.q)
        kept, every = (Noise.of(*each, 1, _SHARES).at(share) for each in channels)
        return float((kept / every).max())

    def kept_noise(self, reports: Sequence[int], repeats: Sequence[float]) -> Noise | None:
        """What repeated reports of the same devices add to the noise of each value's share (see
        the docstring of this module), of T tallies in arrays of shape (T, 1). None where
        no device reported twice."""
        n = np.array(reports, np.int64)[:, np.newaxis]
        times = np.where(n > 0, np.array(repeats)[:, np.newaxis], 1.0)
        if (times == 1).all():
            return None
        return Noise.of(*self.memo_channel(), n, n.shape).weighted(np.sqrt(times - 1))

    def supported(self, targets: int) -> tuple[int, int]:
        """The fewest and the most of so many targets that one report can support.

        An attacker can try strings until they hash as desired.
        """
        return 0, targets

    def pull(self, targets: int = 1) -> Pull:
        """What fakes alone would show, of a value or of so many targets in all."""
        p, q = self.mechanism.p, self.mechanism.q
        lowest, highest = self.supported(targets)
        return Pull((highest - targets * q) / (p - q), (lowest - targets * q) / (p - q))

    def exposure(
        self, share: FloatArray, weight: float | FloatArray = 1.0, targets: int = 1
    ) -> Exposure:
        """How far fakes move shares, each of so many targets together. If a value is estimated from
        some of the reports, fakes choose to be among them: `weight` is how many times as many there
        are in all."""
        most, least = map(float, self.pull(targets))
        honest = np.clip(share, 0.0, 1.0)
        return Exposure(weight * (most - honest), weight * (honest - least))

    def share_tests(self, share: FloatArray, noise: Noise) -> Iterable[tuple[anomalies.Found, ...]]:
        """What shares of T tallies, shape (T, d), say of whether these are sums of honest
        reports."""
        if not self.tests_shares or not share.size:
            return [()] * len(share)
        return anomalies.share_figures(share, noise, self.lift, self.together())

    def together(self) -> float:
        """By how much values that move together inflate the variance of a count of values."""
        return 1.0


def sample_each_row(
    channels: Sequence[Analysis[Any]],
    places: Iterable[Sequence[int] | Counts],
    counts: Counts,
    rng: np.random.Generator,
) -> tuple[TallyRow, ...]:
    """A tally whose rows devices draw by lot; in each row its channel reports a cell. `places` says
    for each row in which cell of it the i-th of `counts` is."""
    left, found = np.array(counts, np.int64), list[TallyRow]()
    for row, (channel, at) in enumerate(zip(channels, places, strict=True)):
        here = rng.binomial(left, 1 / (len(channels) - row))
        left -= here
        crowd = np.zeros(channel.mechanism.size, np.int64)
        np.add.at(crowd, at, here)
        found += channel.sample_rows(range(len(crowd)), crowd, rng)
    return tuple(found)


class OneRowAnalysis(OracleAnalysis[AnyOracle]):
    """That of an oracle over a closed domain whose tally is one row. Hashed strings use it for
    each of their rows."""

    def places(self, cells: Counts) -> Counts:
        """The support of each value, shape (size,), from the counts of all columns."""
        return cells

    def support(self, tally: Tally, items: Items) -> Support:
        (row,) = tally.rows
        return Support(self.places(row.cells)[items], tally.reports)

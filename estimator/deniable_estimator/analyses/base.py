"""The contract between a mechanism and the estimator: what a tally of its reports says.

Each mechanism has one analysis, in one file of this folder: how its tallies are decoded and drawn,
what fake devices could do to them, how the sums of honest devices look, and what its memos, if it
has any, add to all that. Nothing else in the estimator asks which mechanism it deals with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Generic, NamedTuple, Self, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from deniable.protocol.mechanisms import FrequencyOracle, Mechanism
from deniable_collector.tally import Tally, TallyRow
from deniable_estimator.errors import EstimateError
from deniable_estimator.statistics.intervals import FloatArray, Noise, debias
from deniable_estimator.statistics.significance import share_p_values

Counts: TypeAlias = NDArray[np.int64]

Items: TypeAlias = Sequence[Any] | NDArray[np.int64]
"""What the mechanism randomizes, one for each requested value: int64 indices into a closed
domain, or strings."""


class Support(NamedTuple):
    """The sufficient statistic of a pure protocol, for d values."""

    counts: NDArray[Any]
    """Shape (d,), integers or floats: reports that support each value."""
    reports: int | NDArray[np.int64]
    """The number of reports: one number for all values, or shape (d,)."""
    ghosts: NDArray[np.bool_] | None = None
    """Shape (d,): values whose support seems to come from hash collisions, because the tables
    disagree; they are estimated but never called detected."""


@dataclass(frozen=True, eq=False)
class Finding:
    """Unbiased shares of d values; arrays have shape (d,)."""

    share: FloatArray
    """NaN if nothing is known."""
    noise: Noise
    p_value: FloatArray
    """One-sided, for the hypothesis that no device has the value; NaN if nothing is known."""
    ghosts: NDArray[np.bool_]
    """Values that must not count as detected, because their support is a hash collision."""
    warnings: tuple[str, ...] = ()

    @classmethod
    def of(cls, share: FloatArray, noise: Noise, ghosts: NDArray[np.bool_] | None = None) -> Self:
        """The finding with p-values computed from the noise of each value."""
        if ghosts is None:
            ghosts = np.zeros(len(share), np.bool_)
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


class Ones(NamedTuple):
    """What is known of the ones in the bitmap of an honest report, whatever its value."""

    width: int
    """Bits of the bitmap."""
    p11: float
    """How often a bit is 1 that the value sets."""
    p01: float
    """How often a bit is 1 that the value does not set."""
    hashes: float = 1.0
    """Bits that a value sets."""
    fewer: float = 0.0
    """By how many bits less a value may set on average over the rows, because its hashes meet."""


class MemoryAnalysis:
    """What the memos of a mechanism add; a mechanism without memos has none of it."""

    def memo_channel(self) -> tuple[Fraction, Fraction]:
        """(p1, q1): how often a memo sets the column of its own value, and of a given other one.

        They correspond to p and q of a report; for strings, without hash collisions.
        """
        raise NotImplementedError

    def alternation_loss(self, reports: int) -> float:
        """ln of how much likelier it is that odd reports all look like one value and even ones
        all like another if two values alternate than if one stays (see
        `deniable_estimator.privacy.computing`).

        `reports` is even. With hashing, the two values do not collide in the device's cohort.
        """
        raise NotImplementedError

    def entries(self, values: int | None) -> int | None:
        """How many memos a device can have at most, for a list of so many values; None for any
        number."""
        return values


class Analysis(Generic[AnyMechanism]):
    """What a tally of one mechanism says."""

    def __init__(self, mechanism: AnyMechanism) -> None:
        self.mechanism = mechanism

    @property
    def memory(self) -> MemoryAnalysis | None:
        """What its memos add; None where it has none."""
        return self if isinstance(self, MemoryAnalysis) else None

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

    def ones(self) -> Ones | None:
        """How many ones honest bitmaps hold; None where reports are no bitmaps."""
        return None

    def commonest(self) -> float | None:
        """The most that a row's most frequent message can be expected to be sent, as a part of
        its reports, whatever the crowd; None where that says nothing about fakes."""
        return None


class OracleAnalysis(Analysis[AnyOracle]):
    """What a tally of a frequency oracle says: the share of any value.

    As it stands it serves any oracle, by counting cell by cell. An oracle of a cleverer kind
    has a subclass that counts faster.
    """

    tests_shares = True
    """Whether no share of an honest crowd lies further below zero than noise takes it. In small
    tables other strings' collisions move shares by more than noise."""

    lift = 0.0
    """By how much q overrates the support of a value that nobody has, in shares."""

    def support(self, tally: Tally, items: Items) -> Support:
        """How many of the tally's reports support each item."""
        rows = [row.cells for row in tally.rows]
        support = self.mechanism.support
        counts = [sum(int(rows[row][column]) for row, column in support(item)) for item in items]
        return Support(np.array(counts), tally.reports)

    def shares(self, tally: Tally, items: Items) -> tuple[Support, FloatArray, Noise]:
        """What supports each item, its unbiased share, and the noise of reports of as many
        devices."""
        support, p, q = self.support(tally, items), self.mechanism.p, self.mechanism.q
        with np.errstate(divide="ignore", invalid="ignore"):
            share = debias(support.counts, support.reports, p, q)
        return support, share, Noise.of(p, q, support.reports, len(share))

    def find(
        self, tally: Tally, items: Items, level: float, repeats: float
    ) -> tuple[Finding, int | Counts]:
        """The shares of the items, and how many reports each is estimated from: one number, or
        shape (d,). `repeats` is that of `Participation`."""
        support, share, noise = self.shares(tally, items)
        noise = replace(noise, kept=self.kept_noise(tally.reports, repeats))
        return Finding.of(share, noise, support.ghosts), support.reports

    def kept_noise(
        self, reports: int | Sequence[int], repeats: float | Sequence[float]
    ) -> Noise | None:
        """What repeated reports of the same devices add to the noise of each value's share (see
        `deniable_estimator.analyses.memoized`): of a tally, or of n tallies with reports, in arrays
        of shape (n,). None where no device reported twice, in any of them or in all."""
        n, times = np.atleast_1d(np.asarray(reports, np.int64)), np.atleast_1d(repeats)
        if times[0] == 1 or not n.any():
            return None
        memory = self.memory
        p1, q1 = memory.memo_channel() if memory else (Fraction(1), Fraction(0))
        return Noise.of(p1, q1, n, len(n)).weighted(np.sqrt(times - 1))

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

    def together(self) -> float:
        """By how much values that move together inflate the variance of a count of values."""
        return 1.0


class OneRowAnalysis(OracleAnalysis[AnyOracle]):
    """That of an oracle over a closed domain whose tally is one row. Hashed strings use it for
    each of their rows."""

    def places(self, cells: Counts) -> Counts:
        """The support of each value, shape (size,), from the counts of all columns."""
        return cells

    def support(self, tally: Tally, items: Items) -> Support:
        (row,) = tally.rows
        return Support(self.places(row.cells)[items], tally.reports)

    def shares_of_each(self, tallies: Sequence[Tally], items: Items) -> tuple[FloatArray, Noise]:
        """The unbiased share of each item in n tallies with reports, shape (n, d), and the noise
        of each tally, in arrays of shape (n,)."""
        p, q = self.mechanism.p, self.mechanism.q
        counts = np.array([self.support(tally, items).counts for tally in tallies])
        reports = np.array([tally.reports for tally in tallies])
        share = debias(counts, reports[:, np.newaxis], p, q)
        return share, Noise.of(p, q, reports, len(tallies))

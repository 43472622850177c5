"""Cohorts: the part of the devices first active in one window that is active k windows later.

N(c, k) is how many devices of cohort c are active in window c + k. The reports of n devices on
their cohort count it with noise: a report supports the cell of its cohort with probability p and
any other with probability q, so for N devices of a cohort among n that reported, given these ::

    N^ = (S - n q) / (p - q),   Var = n u + N v,   u = q (1-q) / (p-q)**2,  v = (1-p-q) / (p-q)
    Cov of two cells = n z + (N_i + N_j) g          (one report supports k of d cells)
    z     = (P(both, neither of them its own) - q**2) / (p-q)**2
    z + g = (P(both, one of them its own) - p q) / (p-q)**2

**The retention** R of age k, of one cohort or of the devices of several, is a quotient. With ::

    T = sum of N^(c, k) - R * sum of N^(c, 0),   E T = 0
    Var T = A + B R + C R**2

all R with T**2 <= z**2 Var T are an interval that covers R at its level whatever the denominator
is (Fieller, J. Roy. Stat. Soc. B 1954). The variance holds R itself instead of an estimate of it.
Where the denominator cannot be told from 0 the set has no limit on a side. R lies between 0 and 1,
so only this part of the set counts: all of it says nothing, and if nothing is left, the
reports do not fit to any retention.

**Whether devices come back** is chance, too. All devices of N(c, k) were in window c, so their
number adds N(c, 0) R (1 - R), and less would be said of future devices like them. If each window
asks only a part s of the devices, and so counts others, it adds N(c, 0) R [1 + R (1 - 2 s)]. With
one R for cohorts that differ this is too much rather than too little.

**Memos.** A device keeps its memo, so what it says in window c + k is not independent of window c.
With `e` the chance that a memo is a cell and (p2 - q2) the effect of the memo on a report, the
noise of the same cell in two windows has the covariance e (1 - e) (p2 - q2)**2 for each device in
both, which is positive, and the quotient takes -2 R of it: leaving it out makes intervals wider,
never narrower. Over several cohorts other cells meet, whose covariance is negative. For a device
with x for its cohort, T takes b[m] = [c + k active] - R [c active] of its memo m = c, and
`tests/estimator/retention` enumerates the lives of a device: the sum of all covariances is not
positive if devices active in another window are at least as likely to be back as others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deniable.protocol.mechanisms.memoized_retention import MemoizedRetention
from deniable.protocol.mechanisms.subset_selection import MemoizedSubsetSelection
from deniable_collector.tally import Tally, TallyRow
from deniable_estimator.analyses.base import Analysis, Counts, Items, sample_each_row
from deniable_estimator.analyses.own_columns import MemoizedSubsetSelectionAnalysis
from deniable_estimator.statistics.detection import deviations
from deniable_estimator.statistics.intervals import FloatArray, fieller_ends
from deniable_estimator.statistics.participation import Participation


@dataclass(frozen=True, eq=False)
class WindowedTally(Tally):
    """A sum of windows with the tallies of single ones, of which each is about other cohorts."""

    each: tuple[Tally, ...] = ()
    """Its own windows and those before them, in which its cohorts began."""


class RetentionAnalysis(Analysis[MemoizedRetention]):
    """What the rows have in common. A device answers one of them for ever, with its channel."""

    @property
    def channels(self) -> list[MemoizedSubsetSelectionAnalysis]:
        return [MemoizedSubsetSelectionAnalysis(each) for each in self.mechanism.channels]

    def sample_rows(
        self, items: Items, counts: Counts, rng: np.random.Generator
    ) -> tuple[TallyRow, ...]:
        rows = range(len(self.channels))
        places = ([self.mechanism.place(row, item) for item in items] for row in rows)
        return sample_each_row(self.channels, places, counts, rng)

    def memo_channel(self) -> tuple[Fraction, Fraction]:
        """That of the row whose memos say most."""
        return max((each.memo_channel() for each in self.channels), key=lambda pair: pair[0])

    def alternation_loss(self, reports: int) -> float:
        return max(each.alternation_loss(reports) for each in self.channels)

    def entries(self, values: int | None) -> int:
        """One for each state of the lifecycle, or one for the cohort and one for "older"."""
        return 3 if "lifecycle" in self.mechanism.asks else 2


@dataclass(frozen=True, eq=False)
class CohortCounts:
    """How many devices of each age were active in W windows, of one crowd or of many at once."""

    numbers: tuple[int, ...]
    """Of the windows, in their order (`deniable.protocol.windows.number`)."""
    reports: FloatArray
    """Shape (..., W), as all that follow but one."""
    counts: FloatArray
    """Shape (..., W, ages + 1): devices that were first active so many windows before, unbiased."""
    alone: FloatArray
    """n u: the variance of a count of no devices."""
    own: FloatArray
    """v: what each counted device adds to it."""
    between: FloatArray
    """n z: the covariance of two counts of no devices."""
    owned: FloatArray
    """g: what each device of one of the two adds to that."""
    pull: FloatArray
    """By how many devices one fake raises a count at most."""
    push: FloatArray
    """By how many it lowers one."""

    @property
    def ages(self) -> int:
        return int(self.counts.shape[-1]) - 1

    @classmethod
    def of(
        cls,
        channel: MemoizedSubsetSelection,
        numbers: Sequence[int],
        reports: NDArray[np.int64],
        cells: NDArray[np.int64],
    ) -> CohortCounts:
        """Those of tallies under one scheme.

        Args:
            numbers: of the W windows, in their order.
            reports: shape (..., W).
            cells: shape (..., W, ages + 2), as they were tallied: the cohort whose window has the
                number c is cell c mod (ages + 1), and the last cell is of all older ones.
        """
        size, k, ages = channel.size, channel.k, channel.size - 2
        p, q = float(channel.p), float(channel.q)
        gap = p - q
        n = np.asarray(reports, np.float64)
        number = np.array(numbers, np.int64)[:, np.newaxis]
        places = (number - np.arange(ages + 1)) % (ages + 1)
        support = np.take_along_axis(
            cells, np.broadcast_to(places, (*cells.shape[:-1], ages + 1)), axis=-1
        )
        with_own = p * (k - 1) / (size - 1) - p * q
        pairs = (p * (k - 1) * (k - 2) + (1 - p) * k * (k - 1)) / ((size - 1) * (size - 2))
        without = pairs - q * q
        one = np.ones_like(n)
        return cls(
            tuple(numbers),
            n,
            (support - n[..., np.newaxis] * q) / gap,
            n * q * (1 - q) / gap**2,
            one * ((1 - p - q) / gap),
            n * without / gap**2,
            one * ((with_own - without) / gap**2),
            one * ((1 - q) / gap),
            one * (q / gap),
        )

    @classmethod
    def added(cls, parts: Sequence[CohortCounts]) -> CohortCounts:
        """Those of several schemes of the same ages, whose reports may be of the same windows.

        Raises:
            ValueError: there are none.
        """
        if len(parts) == 1:
            return parts[0]
        numbers = [number for each in parts for number in each.numbers]
        found, place = np.unique(numbers, return_inverse=True)
        # 1 for each window of a part in its place.
        into = np.eye(len(found))[place]

        def joined(name: str, axis: int = -1) -> FloatArray:
            return np.concatenate([getattr(each, name) for each in parts], axis=axis)

        reports = joined("reports")
        each_report = np.maximum(reports @ into, 1)
        return cls(
            tuple(found.tolist()),
            reports @ into,
            into.T @ joined("counts", -2),
            joined("alone") @ into,
            (joined("own") * reports) @ into / each_report,
            joined("between") @ into,
            (joined("owned") * reports) @ into / each_report,
            (joined("pull")[..., np.newaxis] * into).max(axis=-2),
            (joined("push")[..., np.newaxis] * into).max(axis=-2),
        )


class Ratio(NamedTuple):
    """The retention of M groups; arrays of shape (..., M)."""

    value: FloatArray
    """From 0 to 1; NaN where everything fits, where the interval has no limit, or nothing fits."""
    std_error: FloatArray
    low: FloatArray
    high: FloatArray
    """0 and 1 where nothing is known; NaN where no retention fits to the reports."""
    counted: FloatArray
    """The devices of the first window, unbiased."""
    fakes: FloatArray
    """By how much the retention rises at most for each fake in a report, to first order."""

    @property
    def empty(self) -> NDArray[np.bool_]:
        """Where no retention fits."""
        return np.isnan(self.low)


class Cells(NamedTuple):
    """The cells (c, k) of a triangle that were seen; arrays of shape (M,)."""

    first: NDArray[np.intp]
    """The place of window c."""
    later: NDArray[np.intp]
    """The place of window c + k."""
    age: NDArray[np.intp]
    """k, from 1 on."""


def cells_of(numbers: Sequence[int], ages: int) -> Cells:
    """All cells between windows of these numbers."""
    number = np.array(numbers, np.intp)
    age = number - number[:, np.newaxis]
    first, later = np.nonzero((age > 0) & (age <= ages))
    return Cells(first, later, age[first, later])


def retention(
    counts: CohortCounts, cells: Cells, asked: Participation, level: float = 0.95
) -> Ratio:
    """The retention of each of these cells."""
    return _fieller(level, *_terms(counts, cells, asked))


def _terms(counts: CohortCounts, cells: Cells, asked: Participation) -> list[FloatArray]:
    """What each cell adds to a quotient: all that `_fieller` takes of it, arrays of shape
    (..., M)."""
    first, later = cells.first, cells.later
    there = np.maximum(counts.counts[..., first, 0], 0.0)
    again = np.array([asked.again(age) for age in cells.age.tolist()])
    return [
        counts.counts[..., later, cells.age],
        counts.counts[..., first, 0],
        counts.alone[..., later],
        (counts.own[..., later] + 1) * there,
        counts.alone[..., first] + (counts.own[..., first] + 1 - 2 * again) * there,
        counts.reports[..., later] * counts.pull[..., later],
        counts.reports[..., first] * counts.push[..., first],
    ]


def average(counts: CohortCounts, cells: Cells, asked: Participation, level: float = 0.95) -> Ratio:
    """The curve: the retention of each age from 1 to `ages`, over the devices of all cohorts that
    were seen at that age."""
    terms = _terms(counts, cells, asked)
    found = [_average(counts, cells, terms, age, level) for age in range(1, counts.ages + 1)]
    return Ratio(*(np.stack(column, axis=-1) for column in zip(*found, strict=True)))


def _average(
    counts: CohortCounts, cells: Cells, terms: Sequence[FloatArray], age: int, level: float
) -> Ratio:
    mine = cells.age == age
    first, later = cells.first[mine], cells.later[mine]
    there = np.maximum(counts.counts[..., first, 0], 0.0)
    back, begun, a, b, c, pull, push = (each[..., mine].sum(axis=-1) for each in terms)
    # In a window in which one cohort begins and another one is back, both counts have the noise of
    # the same reports.
    begins = {at: place for place, at in enumerate(first.tolist())}
    for place, at in enumerate(later.tolist()):
        if at in begins:
            owned = counts.owned[..., at]
            b = b - 2 * (counts.between[..., at] + there[..., begins[at]] * owned)
            c = c - 2 * there[..., place] * owned
    return _fieller(level, back, begun, a, b, c, pull, push)


def _fieller(
    level: float,
    back: FloatArray,
    there: FloatArray,
    a: FloatArray,
    b: FloatArray,
    c: FloatArray,
    pull: FloatArray,
    push: FloatArray,
) -> Ratio:
    """All R from 0 to 1 with (back - R there)**2 <= z**2 (a + b R + c R**2)."""
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, not {level}")
    z = deviations(level)
    square = there**2 - z * z * c
    half = back * there + z * z * b / 2
    rest = back**2 - z * z * a
    low, high = fieller_ends(square, half, rest)
    none = low > high
    with np.errstate(divide="ignore", invalid="ignore"):
        # What fits to every retention says nothing, so no point of it is told.
        told = (square > 0) & ~none & ((low > 0) | (high < 1))
        value = np.where(told, np.clip(back / there, 0.0, 1.0), math.nan)
        error = np.sqrt(np.maximum(a + b * value + c * value**2, 0.0)) / there
        fakes = np.where(told, (pull + np.nan_to_num(value) * push) / there, 1.0)
    low, high = (np.where(none, math.nan, each) for each in (low, high))
    return Ratio(value, error, low, high, there, fakes)

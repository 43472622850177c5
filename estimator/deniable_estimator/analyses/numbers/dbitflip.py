"""The estimate of dBitFlip: any sum of shares with its variance, from the counts of noisy bits.

The k cells are dealt to R rows of d bits. Each row has a crowd of its own, drawn whatever the
numbers are, so n reports of a row in which c_j set the bit of cell j estimate its share ::

    f_j = (c_j / n - s) / (1 - 2 s)                 s = the chance that a bit is flipped

What is asked for is W . f. All shares sum to 1, so with w, the average of W over all cells,
w + (W - w) . f is the same, and has the least noise, as all shares have equal errors. Given its
number, the bits of a report are independent, and a number sets one bit of its row or none. So for
the weights C = W - w of one row ::

    variance = [V |C|**2 + S] / n,   V = s (1-s) / (1 - 2 s)**2,   S = C**2 . f - (C . f)**2

S is the choice of devices, and V the noise. A device that reports again keeps its row, its number
and the memo, which has the same form with a in place of s (the chance that a bit of it is flipped),
and only the noise of the report is new. If devices reported `repeats` times
(`deniable_estimator.statistics.participation`), then ::

    variance = [V |C|**2 + S + (repeats - 1) (V1 |C|**2 + S)] / n,   V1 = a (1-a) / (1 - 2 a)**2

S is taken from the estimates of f, which noise can make too small: it is never below 0 in all. A
bit says nothing of the cells of other rows, so if one row has too few reports, nothing is known.

**Fakes** are those of `base` beside this file: the score of a report is the sum over the bits
of its row of C (b - s) / (1 - 2 s), and a fake chooses all bits b.

**Honest reports.** Devices keep their rows and memos, so if they reported `repeats` times,
variances are that many times larger at most.

* *rows*: chi-square of the reports in each row beside equal shares.
* *ones*: how many bits are set in all reports. Whatever its number is, a device has a bit of its
  own in one of the R rows, and draws one of them. So the mean is d s + (1 - 2 s) / R and the
  variance d s (1 - s) + (1 - 2 s)**2 (1 - 1 / R) / R.
* *lowest*, *low*: the counter of a cell that is too low for any share of 0 or more, times the
  number of cells; and how many counters are more than a standard error below that. Given the
  numbers, they are independent.

A tally is drawn exactly: devices go to rows by a multinomial, and given those of each cell, the
counter of a bit is the sum of two binomials, independent of all others.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from deniable.protocol.mechanisms.base import ONE
from deniable.protocol.mechanisms.dbitflip import DBitFlip
from deniable.protocol.mechanisms.rappor import Rounds
from deniable_collector.tally import TallyRow
from deniable_estimator.analyses import anomalies
from deniable_estimator.analyses.base import Counts, Items
from deniable_estimator.analyses.numbers import Attack, HistogramAnalysis, worst
from deniable_estimator.analyses.numbers.cell_sums import LEAST_ROW, CellSums, SchemeSums, quadratic
from deniable_estimator.analyses.own_columns import alternating_bits
from deniable_estimator.statistics.intervals import FloatArray
from deniable_estimator.statistics.tails import normal_tails


@dataclass(frozen=True, eq=False)
class BitPart(SchemeSums):
    """The tally of dBitFlip."""

    shares: FloatArray
    """The share of each cell from its row alone, shape (k,); unbiased. 0 if nothing is known."""
    noise: FloatArray
    """V, with (repeats - 1) V1 and what a release has added, of each row; shape (R,)."""
    repeats: float
    live: bool
    """Whether all rows have enough reports."""

    @property
    def cells(self) -> int:
        return len(self.shares)

    @property
    def seen(self) -> int:
        return 1 if self.live else self.cells

    def fresh(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        centred = weights - weights.mean(axis=1, keepdims=True)
        noise, each, told = self._terms(centred)
        covariance = (centred * each) @ centred.T - told @ told.T
        np.fill_diagonal(covariance, np.maximum(np.diag(covariance), np.square(centred) @ noise))
        return centred @ self.shares, covariance

    def edges(self) -> tuple[FloatArray, FloatArray]:
        weights = np.tri(self.cells + 1, self.cells, -1)
        centred = weights - weights.mean(axis=1, keepdims=True)
        noise, each, told = self._terms(centred)
        variance = np.square(centred) @ each - np.square(told).sum(axis=1)
        return centred @ self.shares, np.maximum(variance, np.square(centred) @ noise)

    def spread(
        self, inside: FloatArray | None, within: FloatArray, without: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        if inside is None:
            inside = np.tri(self.cells - 1, self.cells)
        # The number of a device scores its weight in its own row, and nothing in the others.
        centred = inside - inside.mean(axis=1, keepdims=True)
        count = len(self.row_reports)
        inner, outer = (
            np.array(
                [
                    (devices * centred**power).reshape(len(inside), -1, count).sum(axis=1).T
                    for power in (1, 2)
                ]
            )
            for devices in (within, without)
        )
        reports = (self.row_reports / self.repeats)[:, None]
        a, b, c = quadratic(inner, outer, reports)
        noise = np.broadcast_to(self.noise / self.row_reports, (self.cells // count, count))
        return a + np.square(centred) @ noise.ravel(), b, c

    def _terms(self, centred: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """V / n and (V + f_j) / n for each cell, shape (k,), and (C . f) / sqrt(n) for each row,
        shape (f, R); all with what devices keep."""
        count = len(self.row_reports)
        grid = self.shares.reshape(-1, count)
        noise = np.broadcast_to(self.noise / self.row_reports, grid.shape)
        each = noise + self.repeats * grid / self.row_reports
        told = (centred.reshape(len(centred), -1, count) * grid).sum(axis=1)
        return noise.ravel(), each.ravel(), told * np.sqrt(self.repeats / self.row_reports)


class DBitFlipAnalysis(HistogramAnalysis[DBitFlip]):
    """A distribution, and the mean of the middles of its cells."""

    def sample_rows(
        self, items: Items, counts: Counts, rng: np.random.Generator
    ) -> tuple[TallyRow, ...]:
        count, s = len(self.mechanism.rows), float(self.mechanism.flipped)
        drawn, cells = rng.multinomial(counts, np.full(count, 1 / count)), self.cells(items)
        rows = []
        for row in range(count):
            devices = int(drawn[:, row].sum())
            crowd = np.bincount(cells, weights=drawn[:, row], minlength=self.mechanism.cells)
            true = crowd.astype(np.int64)[row::count]
            sent = rng.binomial(true, 1 - s) + rng.binomial(devices - true, s)
            rows.append(TallyRow(devices, sent))
        return tuple(rows)

    def sums(self, rows: Sequence[TallyRow], repeats: float) -> CellSums:
        """Nothing if one of the rows has few reports."""
        bits, counts = self.mechanism, np.array([row.reports for row in rows], np.float64)
        flipped = float(bits.flipped)
        noise = _bit_noise(flipped) + (repeats - 1) * _bit_noise(float(bits.memo_flipped))
        released = np.array([row.noise for row in rows]) / (1 - 2 * flipped) ** 2
        live, least = bool(counts.min() >= LEAST_ROW), np.maximum(counts, 1)
        part = BitPart(
            1.0,
            least,
            self.shares(rows) * live,
            noise + released / least,
            repeats,
            live,
        )
        return CellSums.of([part], int(counts.sum()), 0.0)

    def shares(self, rows: Sequence[TallyRow]) -> FloatArray:
        """The unbiased share of each cell, shape (k,); 0 in rows without reports."""
        s = float(self.mechanism.flipped)
        told = [(row.cells / max(1, row.reports) - s) / (1 - 2 * s) for row in rows]
        shares = np.where([row.reports > 0 for row in rows], np.array(told).T, 0.0)
        # Cell j is bit j // rows of row j mod rows.
        return np.asarray(shares.ravel())

    def planned_mean(self) -> float:
        """With W, its average w and the planned variance V of one cell's share, V times the sum of
        (W - w)**2."""
        squares = float(np.square(self.points - self.points.mean()).sum())
        return float(self.mechanism.share_variance) * squares

    def curve_attack(self, fakes: float) -> Attack:
        """That of a crowd spread evenly over all cells."""
        bits = self.mechanism
        return _curve_attack(bits.cells, len(bits.rows), float(bits.flipped), fakes)

    def attack(self, mean: float, fakes: float) -> Attack:
        """That of a crowd spread evenly over all cells, whatever the mean is."""
        flipped, rows = float(self.mechanism.flipped), len(self.mechanism.rows)
        return _attack(self.points, rows, flipped, fakes)

    def memo_channel(self) -> tuple[Fraction, Fraction]:
        return 1 - self.mechanism.memo_flipped, self.mechanism.memo_flipped

    def alternation_loss(self, reports: int) -> float:
        """Between two cells of a row; where rows have one bit, between its cell and another."""
        mechanism = self.mechanism
        rounds = Rounds(2 * mechanism.memo, mechanism.fresh, ONE - mechanism.fresh)
        return alternating_bits(rounds, mechanism.bits, 1, int(mechanism.bits > 1), reports // 2)

    def entries(self, values: int | None) -> int:
        """One for each cell of the row, and one for all cells of other rows."""
        return self.mechanism.bits + (len(self.mechanism.rows) > 1)

    def tests(self, rows: Sequence[TallyRow], repeats: float = 1.0) -> Iterator[anomalies.Found]:
        mechanism, n = self.mechanism, sum(row.reports for row in rows)
        yield from anomalies.row_figures(rows, repeats)
        s, count = float(mechanism.flipped), len(rows)
        seen = sum(int(row.cells.sum()) for row in rows) / n
        expected = mechanism.bits * s + (1 - 2 * s) / count
        own = (1 - 2 * s) ** 2 * (1 - 1 / count) / count
        error = math.sqrt((mechanism.bits * s * (1 - s) + own) * repeats / n)
        yield "ones", seen, expected, normal_tails((seen - expected) / error)
        reports = np.array([max(1, row.reports) for row in rows], np.float64)
        if reports.min() * s < anomalies.CROWDED:
            return
        # Without the half, counters of few reports would be below their expectation too often.
        counters = np.array([row.cells for row in rows], np.float64).T + 0.5
        scores = (counters - reports * s) / np.sqrt(reports * s * (1 - s) * repeats)
        lowest = self.shares(rows).min()
        tail = normal_tails(min(0.0, float(scores.min()))) / 2
        yield "lowest", float(lowest), 0.0, min(1.0, mechanism.cells * tail)
        yield anomalies.low_figure(int((scores < -1).sum()), mechanism.cells)


def _bit_noise(flipped: float) -> float:
    """The variance of a share from one bit that is flipped so often."""
    return flipped * (1 - flipped) / (1 - 2 * flipped) ** 2


@lru_cache(maxsize=16)
def _curve_attack(cells: int, rows: int, flipped: float, fakes: float) -> Attack:
    """It depends on the mechanism alone, and takes longer than all else that a window is asked
    for."""
    return _attack(np.tri(cells - 1, cells), rows, flipped, fakes)


def _attack(weights: FloatArray, rows: int, flipped: float, fakes: float) -> Attack:
    """How far fakes move that of f questions which they move most: a fake sets each bit as suits
    it."""
    centred = (weights - weights.mean(axis=1, keepdims=True)).reshape(len(weights), -1, rows)
    one, zero = centred * (1 - flipped) / (1 - 2 * flipped), -centred * flipped / (1 - 2 * flipped)
    mean = centred.sum(axis=1) / weights.shape[1]
    up, down = np.maximum(one, zero).sum(axis=1), np.minimum(one, zero).sum(axis=1)
    return worst((up - mean, mean - down), np.full(rows, 1 / rows), fakes)

"""Sums of shares of the cells of a distribution, each with its variance.

Every mechanism with cells gives one `SchemeSums` a scheme: estimates that are linear in the
counters, so unbiased and not clipped, whose variance comes from the same counters. It is that of
the share in the population that the devices were drawn from.

If the same devices reported `repeats` times (`deniable_estimator.statistics.participation`), what
they keep is W at their number. So (repeats - 1) / n times V1 is added, V1 = the variance of W over
devices. It is not known, and is taken at the upper end of two standard errors, but never above the
most that is possible: F (1 - F) at the F nearest to 1/2, or a quarter of the square of what W
spans. With memos, a part counts all that devices keep itself.

So is the variance of an interval's ends, which hold the shares F that the estimate does not
contradict. It is that of F, not of the estimate, which may be 0 by chance: with the cells inside of
a range and those outside in the proportions that are estimated, it is a quadratic in F (`Noise`),
and so intervals are those of other shares (`deniable_estimator.statistics.counts`).

Estimates under several schemes with the same cells are averaged with one weight each, its reports,
for all questions the same, so that shares still add up.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from deniable_estimator.statistics.intervals import FloatArray, Noise

LEAST_ROW = 30
"""A row with fewer reports is left out: its variance could not be estimated."""

_LEAST_SUM = 1e-300

CAUTION = 2.0
"""Standard errors by which what devices keep may exceed its estimate."""


@dataclass(frozen=True, eq=False)
class SchemeSums(ABC):
    """The tally of one scheme, and what it counts for.

    Values leave out what no counter is needed for: the average of W over the cells.
    """

    weight: float
    row_reports: FloatArray
    """Of each row that tells of cells, shape (R,)."""

    @property
    @abstractmethod
    def cells(self) -> int:
        """d."""

    @property
    def reports(self) -> float:
        """In these rows."""
        return float(self.row_reports.sum())

    @property
    @abstractmethod
    def seen(self) -> int:
        """How many neighbouring cells the rows cannot tell apart: 1 if they see each, d if they
        see nothing."""

    @abstractmethod
    def fresh(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Values, shape (f,), and covariances, shape (f, f), of W . f, shape (f, d)."""

    def least_noise(self, weights: FloatArray) -> FloatArray:
        """What is known of the variances before any report and is the least to be told of W . f,
        shape (f, d), because few reports do not tell it; shape (f,)."""
        return np.zeros(len(weights))

    @abstractmethod
    def edges(self) -> tuple[FloatArray, FloatArray]:
        """Those of the shares below all edges, shape (d + 1,) each; variances mean nothing where
        the rows do not see the edge."""

    @abstractmethod
    def spread(
        self, inside: FloatArray | None, within: FloatArray, without: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The variance of the shares F of f ranges of cells as a function of F, that is a, b and c
        of `Noise`, shape (f,) each.

        Args:
            inside: 1 for the cells of each range, shape (f, d); None: those below the edges 1 to
                d - 1.
            within: how its devices are spread over each range, shape (f, d), with sums of 1.
            without: the same of those outside.
        """


@dataclass(frozen=True, eq=False)
class CellSums:
    """The share of numbers below each edge, and any other sum of shares of the d cells."""

    below: FloatArray
    """Shape (d + 1,), for the edges 0 to d; the first is 0 and the last is 1. Where the variance
    is infinite, the share is spread evenly over what the rows do tell apart."""
    variance: FloatArray
    """Shape (d + 1,); infinite for edges that no row with enough reports sees."""
    reports: int
    """All reports of the tally, also in rows that are not used."""
    shared: float
    """By what part of V1 the variance is larger because the same devices report again. All reports
    count: of those that one device sent, a part falls into each row."""
    parts: tuple[SchemeSums, ...]

    @classmethod
    def of(cls, parts: Sequence[SchemeSums], reports: int, shared: float) -> Self:
        """The weighted sum of parts, whose weights sum to 1."""
        cells = parts[0].cells
        below, variance = np.arange(cells + 1) / cells, np.zeros(cells + 1)
        for part in parts:
            value, noise = part.edges()
            below = below + part.weight * value
            variance = variance + part.weight**2 * noise
            variance[np.arange(cells + 1) % part.seen > 0] = np.inf
        variance = variance + _kept(below, variance, shared)
        return cls(below, variance, reports, shared, tuple(parts))

    @property
    def cells(self) -> int:
        """d, with the one below `low` and the one from `high` on."""
        return len(self.below) - 1

    def kept(self, weights: FloatArray) -> FloatArray:
        """Bounds of the variances over devices of W at a device's number, shape (f,)."""
        value, _ = self.fresh(weights)
        squares, noise = self.fresh(weights**2)
        reach = CAUTION * np.sqrt(np.maximum(np.diag(noise), 0.0))
        return np.clip(squares + reach - value**2, 0.0, np.square(np.ptp(weights, axis=1)) / 4)

    def share(self, start: float, end: float) -> tuple[float, float]:
        """The share of numbers between two edges (0 to d), and its variance.

        Within a cell numbers count as evenly spread, so at edge 2.25 a quarter of cell 2 lies
        below.
        """
        cell = np.arange(self.cells)
        weights = np.clip(end - cell, 0, 1) - np.clip(start - cell, 0, 1)
        value, covariance = self.fresh(weights[None])
        variance = np.maximum(covariance[0], 0.0)
        if np.isfinite(variance[0]):
            variance = variance + _kept(value, variance, self.shared)
        return float(value[0]), float(variance[0])

    def noise(self, first: int, last: int, shares: FloatArray) -> Noise:
        """The noise of the share of the cells from edge `first` to edge `last`, shape (1,);
        `shares` are likely ones of all cells, shape (d,)."""
        cell = np.arange(self.cells)
        inside = ((first <= cell) & (cell < last))[None].astype(np.float64)
        return self._noise(inside, inside, shares)

    def edge_noise(self, shares: FloatArray) -> Noise:
        """That of the shares below the edges 1 to d - 1, shape (d - 1,)."""
        return self._noise(None, np.tri(self.cells - 1, self.cells), shares)

    def _noise(self, asked: FloatArray | None, inside: FloatArray, shares: FloatArray) -> Noise:
        # One report that is spread evenly: a range without devices has some distribution, too.
        likely = (self.reports * shares + 1 / self.cells) / (self.reports + 1)
        within, without = inside * likely, (1 - inside) * likely
        for each in (within, without):
            each /= np.maximum(each.sum(axis=1, keepdims=True), _LEAST_SUM)
        total = np.zeros((3, len(inside)))
        for part in self.parts:
            total += part.weight**2 * np.array(part.spread(asked, within, without))
        a, b, c = total
        a = np.where(self._blind(inside), np.inf, np.maximum(a, 0.0))
        zero, shared = np.zeros(len(inside)), np.full(len(inside), self.shared)
        kept = Noise(zero, shared, shared, zero) if self.shared else None
        return Noise(a, b, c, np.maximum(c, 0.0), kept)

    def fresh(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Sums W . f over the cells, for f questions with weights W, shape (f, d): their values,
        shape (f,), and covariances, shape (f, f), without what devices keep, other than memos.

        A question that the rows cannot answer has an infinite variance and covariances of 0.
        """
        value = weights.mean(axis=1)
        covariance = np.zeros((len(weights), len(weights)))
        for part in self.parts:
            mean, spread = part.fresh(weights)
            value += part.weight * mean
            covariance += part.weight**2 * spread
        places = np.flatnonzero(self._blind(weights))
        covariance[places, :] = covariance[:, places] = 0.0
        covariance[places, places] = np.inf
        return value, covariance

    def _blind(self, weights: FloatArray) -> NDArray[np.bool_]:
        """Which questions the rows cannot answer, shape (f,)."""
        seen = max(part.seen for part in self.parts)
        if seen == 1:
            return np.zeros(len(weights), np.bool_)
        apart = np.ptp(weights.reshape(len(weights), -1, seen), axis=2)
        return np.asarray(apart.max(axis=1) > 0)


def combine_sums(estimates: Sequence[CellSums], extra: float = 0.0) -> CellSums:
    """The average of estimates of one crowd under several schemes with the same edges.

    Args:
        extra: what is added to `shared`, because the same devices used several schemes
            (`deniable_estimator.statistics.participation.together`).
    """
    weights = sum_weights(estimates)
    if not any(weights):
        return estimates[0]
    used = [(each, weight) for each, weight in zip(estimates, weights, strict=True) if weight]
    shared = extra + sum(weight**2 * each.shared for each, weight in used)
    parts = [
        replace(part, weight=weight * part.weight) for each, weight in used for part in each.parts
    ]
    return CellSums.of(parts, sum(each.reports for each, _ in used), shared)


def sum_weights(estimates: Sequence[CellSums]) -> list[float]:
    """The weights that `combine_sums` gives them: with a sum of 1, or all 0 if nothing is known.

    A scheme of which a row has too few reports gets none if others have enough in all.
    """
    finest = min((part.seen for each in estimates for part in each.parts), default=0)
    told = [
        sum(part.reports for part in each.parts if part.seen == finest and finest < part.cells)
        for each in estimates
    ]
    total = sum(told)
    return [worth / total if total else 0.0 for worth in told]


def quadratic(
    inside: FloatArray, outside: FloatArray, reports: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """a, b and c of the variance of F, from the mean and the mean square of what a report inside,
    and one outside, scores: means and squares, shape (2, R, f); `reports` has shape (R, 1)."""
    (mean, square), (other, other_square) = inside, outside
    apart = mean - other
    a = ((other_square - other**2) / reports).sum(axis=0)
    b = ((square - other_square - 2 * other * apart) / reports).sum(axis=0)
    return a, b, (apart**2 / reports).sum(axis=0)


def _kept(share: FloatArray, variance: FloatArray, shared: float) -> FloatArray:
    """`shared` times F (1 - F) at the F nearest to 1/2 that is possible."""
    reach = CAUTION * np.sqrt(variance)
    nearest = np.clip(np.clip(0.5, share - reach, share + reach), 0.0, 1.0)
    return np.asarray(shared * nearest * (1 - nearest))

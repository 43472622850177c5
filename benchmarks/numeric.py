"""Means, distributions and quantiles of numbers: are their intervals honest?

optimum    the worst variance of a mean over the least possible one, by linear programming
means      how often intervals of means hold the truth, from a sliding window and from a tree
shares     how often intervals of the curve, of ranges and of the clamped ends hold the truth
quantiles  how often intervals of quantiles hold the truth

Tallies are drawn from their exact distribution. Intervals of 95%.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.optimize import linprog
from scipy.sparse import csr_matrix

from common.tables import Cell, Goal, Table, run
from deniable.protocol.mechanisms.hierarchical_histogram import HierarchicalHistogram
from deniable.protocol.mechanisms.number_range import TOP, Histogram, NumberRange
from deniable.protocol.mechanisms.sliding_window import SlidingWindow
from deniable_collector.tally import TallyRow
from deniable_estimator.analyses import analysis_of
from deniable_estimator.analyses.numbers.scores import scores
from deniable_estimator.statistics.expected import mean_variance

QUANTILES = (0.5, 0.9, 0.95, 0.99)
LEVEL = 0.95
Z = 1.959964
RANGE = NumberRange("0", "1")
EPSILONS = (0.5, 1.0, 2.0, 4.0)
CROWDS = (10_000, 100_000, 1_000_000)

FINE = 254 * 32
"""Positions in the range; 254 cells of the range hold 32 each."""

BELOW, ABOVE = 0.02, 0.002
"""The shares below and above the range."""

NAMES = ("smooth", "skewed", "bimodal", "spiky")


@dataclass(frozen=True, eq=False)
class Population:
    """Shares of positions, with what lies below (first) and at `high` and above (last)."""

    positions: NDArray[np.int64]
    shares: NDArray[np.float64]

    @cached_property
    def sums(self) -> NDArray[np.float64]:
        return np.cumsum(self.shares)

    def mean(self) -> float:
        """Between -1 and 1; what is outside counts as the end of the range."""
        return float(self.shares @ (np.clip(self.positions, 0, TOP) / TOP * 2 - 1))

    def quantile(self, p: float) -> int:
        """The first position up to which at least p lies."""
        return int(self.positions[np.searchsorted(self.sums, p)])

    def cells(self, mechanism: Histogram) -> NDArray[np.float64]:
        """The shares of the mechanism's cells."""
        cell = np.searchsorted(np.array(mechanism.edges), self.positions, side="right")
        return np.bincount(cell, weights=self.shares, minlength=mechanism.cells)


def population(name: str) -> Population:
    """One of NAMES."""
    # The middles of equal parts of the range, so that none lies on an edge of cells.
    places = (np.arange(FINE) + 0.5) / FINE
    if name == "smooth":
        density = stats.beta(5, 2).pdf(places)
    elif name == "skewed":
        density = stats.lognorm(1.0, scale=0.05).pdf(places)
    elif name == "bimodal":
        peaks = stats.norm(0.25, 0.05).pdf(places), stats.norm(0.7, 0.1).pdf(places)
        density = 0.4 * peaks[0] + 0.6 * peaks[1]
    else:
        density = np.full(FINE, 0.5 / FINE)
        density[[int(FINE * place) for place in (0.02, 0.1, 0.5, 0.9)]] += 0.125
    inner = density / density.sum() * (1 - BELOW - ABOVE)
    positions = np.concatenate([[-1], np.floor(places * TOP).astype(np.int64), [TOP]])
    return Population(positions, np.concatenate([[BELOW], inner, [ABOVE]]))


def sample_crowd(
    tree: HierarchicalHistogram,
    shares: NDArray[np.float64],
    reports: int,
    rng: np.random.Generator,
) -> tuple[TallyRow, ...]:
    """The rows of devices drawn from a population with these shares of the cells: the columns of
    each are one multinomial, which takes no longer for more devices."""
    weights = np.array(tree.weights, np.float64)
    rows = []
    for row, count in enumerate(rng.multinomial(reports, weights / weights.sum())):
        nodes = shares.reshape(tree.levels[row].size, -1).sum(axis=1)
        rate = nodes @ scores(tree).chances[row]
        rows.append(TallyRow(int(count), rng.multinomial(count, rate / rate.sum())))
    return tuple(rows)


def settings() -> Iterator[tuple[str, Population, HierarchicalHistogram, float, int]]:
    """(name, population, tree, epsilon, reports)."""
    for epsilon in EPSILONS:
        tree = HierarchicalHistogram.design(RANGE, epsilon)
        for name in NAMES:
            for reports in CROWDS:
                yield name, population(name), tree, epsilon, reports


GRID, SCORES = 33, 65
"""Numbers on a grid of -1 to 1, and scores on a grid of -A to A."""


def least_variance(epsilon: float) -> float:
    """n times the worst variance of the best mechanism over the reaches A that are tried."""
    odds = math.exp(epsilon)
    one_bit = (odds + 1) / (odds - 1)
    found = [with_reach(epsilon, one_bit * factor) for factor in (1, 1.15, 1.3, 1.5, 1.8, 2.2)]
    return min(each for each in found if each is not None)


def with_reach(epsilon: float, reach: float) -> float | None:
    """The program chooses the probability of each score for each number. By symmetry only the
    numbers from 0 on are variables."""
    x = np.linspace(0, 1, GRID // 2 + 1)
    scores = np.linspace(-reach, reach, SCORES)
    # Mirrored scores share the least probability m, and number 0 has mirrored probabilities.
    fold = np.abs(np.arange(SCORES) - SCORES // 2)
    cells = len(x) * SCORES
    size = cells + SCORES // 2 + 2
    equal, right = [], []
    most, limit = [], []
    for i, number in enumerate(x):
        own = i * SCORES + np.arange(SCORES)
        equal += [(own, np.ones(SCORES)), (own, scores)]
        right += [1.0, float(number)]
        for j in range(SCORES):
            least = cells + fold[j]
            most += [
                (np.array([least, own[j]]), np.array([1.0, -1.0])),
                (np.array([own[j], least]), np.array([1.0, -math.exp(epsilon)])),
            ]
            limit += [0.0, 0.0]
        most.append((np.append(own, size - 1), np.append(scores**2, -1.0)))
        limit.append(float(number**2))
    cost = np.zeros(size)
    cost[-1] = 1
    solved = linprog(
        cost,
        A_ub=matrix(most, size),
        b_ub=limit,
        A_eq=matrix(equal, size),
        b_eq=right,
        method="highs",
    )
    return float(solved.fun) if solved.status == 0 else None


def matrix(rows: list[tuple[np.ndarray, np.ndarray]], size: int) -> csr_matrix:
    numbers = np.repeat(np.arange(len(rows)), [len(columns) for columns, _ in rows])
    columns = np.concatenate([columns for columns, _ in rows])
    values = np.concatenate([values for _, values in rows])
    return csr_matrix((values, (numbers, columns)), shape=(len(rows), size))


def optimum(quick: bool) -> Iterator[Table]:
    table = Table("numeric-optimum", "Sliding window: worst variance of a mean of one report")
    for epsilon in (1.0, 4.0) if quick else (0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0):
        worst = mean_variance(SlidingWindow.design(RANGE, epsilon))
        least = least_variance(epsilon)
        ratio = worst / least
        goal = Goal("≤ 1.02", ratio <= 1.02)
        table.add(epsilon=epsilon, worst=worst, least=least, ratio=f"{ratio:.3f}", goal=goal)
    yield table


def held_table(name: str, held: dict[tuple[float, int], list[list[float]]], *columns: str) -> Table:
    """The means over populations, of all settings, and their extremes."""
    table = Table(name, "Intervals that hold the truth, % (goal: 94 to 96)")

    def add(epsilon: Cell, reports: Cell, figures: NDArray[np.float64]) -> None:
        shown = (f"{100 * each:.1f}" for each in figures)
        table.rows.append(
            {"epsilon": epsilon, "reports": reports, **dict(zip(columns, shown, strict=True))}
        )

    for (epsilon, reports), lines in held.items():
        add(f"{epsilon:g}", f"{reports:,}", np.mean(lines, axis=0))
    every = [line for lines in held.values() for line in lines]
    for title, pick in (("all", np.mean), ("least of 48", np.min), ("most of 48", np.max)):
        add(title, "", pick(every, axis=0))
    return table


def means(quick: bool) -> Iterator[Table]:
    rng = np.random.default_rng(1)
    held: dict[tuple[float, int], list[list[float]]] = {}
    for _, crowd, tree, epsilon, reports in settings():
        fine, coarse = map(analysis_of, (SlidingWindow.design(RANGE, epsilon), tree))
        cells, mean = crowd.cells(tree), crowd.mean()
        found = []
        for _ in range(100 if quick else 10_000):
            drawn = rng.multinomial(reports, crowd.shares)
            exact = fine.mean(fine.sample_rows(crowd.positions, drawn, rng))
            rough = coarse.mean_of(coarse.sums(sample_crowd(tree, cells, reports, rng), 1.0))
            ends = exact.interval(LEVEL), rough.interval(LEVEL)
            found.append([low <= mean <= high for low, high in ends])
        held.setdefault((epsilon, reports), []).append(np.mean(found, axis=0).tolist())
    table = held_table("numeric-means", held, "mean", "tree's mean")
    table.note = "The tree's mean allows for where numbers lie in its cells, so it holds more."
    yield table


def shares(quick: bool) -> Iterator[Table]:
    rng = np.random.default_rng(1)
    held: dict[tuple[float, int], list[list[float]]] = {}
    for _, crowd, tree, epsilon, reports in settings():
        analysis, cells = analysis_of(tree), crowd.cells(tree)
        sums = np.concatenate([[0.0], np.cumsum(cells)])
        found = []
        for _ in range(40 if quick else 2000):
            rows = sample_crowd(tree, cells, reports, rng)
            drawn = analysis.distribution(rows, LEVEL, 1.0)
            near = np.abs(drawn.cdf - sums[1:-1]) <= Z * np.sqrt(drawn.variance)
            ranges = []
            for start, end in np.sort(rng.integers(0, tree.cells + 1, (10, 2)), axis=1).tolist():
                if start < end:
                    share, variance = drawn.sums.share(start, end)
                    truth = sums[end] - sums[start]
                    ranges.append(abs(share - truth) <= Z * math.sqrt(variance) + 1e-12)
            below, above = drawn.below, drawn.above
            clamped = below.low <= cells[0] <= below.high, above.low <= cells[-1] <= above.high
            found.append([near.mean(), np.mean(ranges), *clamped])
        held.setdefault((epsilon, reports), []).append(np.mean(found, axis=0).tolist())
    yield held_table("numeric-shares", held, "curve", "ranges", "below", "above")


def quantiles(quick: bool) -> Iterator[Table]:
    table = Table("numeric-quantiles", "Quantiles whose intervals hold the truth (goal: 94%)")
    rng = np.random.default_rng(2)
    runs = 60 if quick else 2000
    held: dict[float, list[float]] = {p: [] for p in QUANTILES}
    opened: dict[float, list[float]] = {p: [] for p in QUANTILES}
    for _, crowd, tree, _, reports in settings():
        analysis, cells = analysis_of(tree), crowd.cells(tree)
        hits, limits = dict.fromkeys(QUANTILES, 0), dict.fromkeys(QUANTILES, 0)
        for _ in range(runs):
            rows = sample_crowd(tree, cells, reports, rng)
            found = analysis.distribution(rows, LEVEL, 1.0)
            for p in QUANTILES:
                quantile = found.quantile(p)
                low = -1 if quantile.low is None else quantile.low
                high = TOP + 1 if quantile.high is None else quantile.high
                hits[p] += low <= crowd.quantile(p) < high
                limits[p] += quantile.high is None
        for p in QUANTILES:
            held[p].append(hits[p] / runs)
            opened[p].append(limits[p] / runs)
    for p in QUANTILES:
        table.rows.append(
            {
                "quantile": f"p{100 * p:g}",
                "held, mean": f"{100 * np.mean(held[p]):.1f}%",
                "held, least": f"{100 * np.min(held[p]):.1f}%",
                "settings under 94%": f"{sum(each < 0.94 for each in held[p])} of {len(held[p])}",
                "no upper limit": f"{100 * np.mean(opened[p]):.0f}%",
            }
        )
    yield table


PARTS = {
    "optimum": optimum,
    "means": means,
    "shares": shares,
    "quantiles": quantiles,
}

if __name__ == "__main__":
    run(__doc__, PARTS)

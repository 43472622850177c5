"""The settings: epsilons, crowds, and populations as exact shares of many positions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from rich.table import Table
from scipy import stats

from deniable.mechanisms import Histogram
from deniable.mechanisms.hierarchical_histogram import HierarchicalHistogram
from deniable.mechanisms.number_range import TOP, NumberRange

RANGE = NumberRange("0", "1")
EPSILONS = (0.5, 1.0, 2.0, 4.0)
CROWDS = (10_000, 100_000, 1_000_000)

FINE = 254 * 32
"""Positions in the range; 254 cells of the range hold 32 each."""

CLAMPED = (0.02, 0.002)
"""The shares below and above the range in the populations that leave it."""

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


def population(name: str, clamped: bool = True) -> Population:
    """One of NAMES; all of it is in the range unless `clamped`."""
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
    below, above = CLAMPED if clamped else (0.0, 0.0)
    inner = density / density.sum() * (1 - below - above)
    positions = np.concatenate([[-1], np.floor(places * TOP).astype(np.int64), [TOP]])
    return Population(positions, np.concatenate([[below], inner, [above]]))


def settings() -> Iterator[tuple[str, Population, HierarchicalHistogram, float, int]]:
    """(name, population, tree, epsilon, reports)."""
    for epsilon in EPSILONS:
        tree = HierarchicalHistogram.design(RANGE, epsilon)
        for name in NAMES:
            for reports in CROWDS:
                yield name, population(name), tree, epsilon, reports


def new_table(title: str, *columns: str) -> Table:
    table = Table(title=title)
    for column in columns:
        table.add_column(column, justify="right")
    return table

"""Drawn histograms of numbers beside those of other mechanisms, what memos cost, and the time to
decode a window.

Run: python benchmarks/number_histograms.py [--quick]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator

import numpy as np
from rich.console import Console
from rich.table import Table

from deniable.mechanisms import DBitFlip
from deniable.mechanisms.hierarchical_histogram import HierarchicalHistogram
from deniable_collector.tally import TallyRow
from deniable_estimator.analyses.numbers.bits import estimate_bits
from deniable_estimator.analyses.numbers.distribution import distribution
from deniable_estimator.analyses.numbers.mean import cells_mean
from deniable_estimator.analyses.numbers.sampling import sample_bits, sample_crowd
from numeric.peers import drawn_by_channel, drawn_by_haar, piecewise_channel, square_wave_channel
from numeric.populations import CROWDS, EPSILONS, NAMES, RANGE, new_table, population

QUANTILES = (0.5, 0.9, 0.95, 0.99)


def histograms(runs: int) -> Iterator[Table]:
    """Wasserstein-1 distance of the drawn histogram, beside other mechanisms."""
    names = ("tree", "square wave, EMS", "piecewise, EMS", "Haar")
    table = new_table(
        "Wasserstein-1 distance, thousandths of the range", "", "epsilon", "reports", *names
    )
    rng = np.random.default_rng(4)
    ratios = []
    for epsilon in EPSILONS:
        tree = HierarchicalHistogram.design(RANGE, epsilon)
        size = tree.cells
        square, piecewise = square_wave_channel(epsilon, size), piecewise_channel(epsilon, size)
        for name in NAMES:
            cells = population(name, clamped=False).cells(tree)
            for reports in CROWDS[1:]:
                distances = np.zeros(len(names))
                for _ in range(runs):
                    drawn = (
                        distribution(tree, sample_crowd(tree, cells, reports, rng)).histogram(),
                        drawn_by_channel(square, cells, reports, epsilon, rng),
                        drawn_by_channel(piecewise, cells, reports, epsilon, rng),
                        drawn_by_haar(cells, reports, epsilon, rng),
                    )
                    curves = np.cumsum(np.array(drawn) - cells, axis=1)
                    distances += np.abs(curves).sum(axis=1) / size / runs
                ratios.append(distances / distances.min())
                figures = [f"{1000 * each:.2f}" for each in distances]
                table.add_row(name, f"{epsilon:g}", f"{reports:,}", *figures)
    means = np.exp(np.mean(np.log(ratios), axis=0))
    table.add_row("over the best", "", "", *(f"{each:.2f}" for each in means))
    table.caption = f"means of {runs} tallies; the last line is the geometric mean of all settings"
    yield table


def memos(runs: int) -> Iterator[Table]:
    """Errors of the shares below all edges with memos (dBitFlip), beside those without (tree), at
    the same epsilon of one report; a memo has twice that."""
    columns = ("tree, error", "dBitFlip, error", "covered", "variance over tree", "fresh")
    table = new_table(
        "Shares below an edge with memos, 100,000 reports", "epsilon", "cells", *columns
    )
    rng, reports = np.random.default_rng(6), 100_000
    for epsilon in EPSILONS:
        for cells in (16, 64, 256):
            tree = HierarchicalHistogram.design(RANGE, epsilon, cells)
            bits = DBitFlip.design(RANGE, epsilon, 2 * epsilon, cells)
            places = np.array([-1, *bits.edges])
            squares, covered = np.zeros(2), []
            for name in NAMES:
                shares = population(name).cells(tree)
                below = np.cumsum(shares)[:-1]
                for _ in range(runs):
                    found = distribution(tree, sample_crowd(tree, shares, reports, rng))
                    counts = rng.multinomial(reports, shares / shares.sum())
                    sums = estimate_bits(bits, sample_bits(bits, places, counts, rng))
                    errors = np.array([found.cdf - below, sums.below[1:-1] - below])
                    squares += np.square(errors).mean(axis=1) / runs / len(NAMES)
                    covered.append(
                        (np.abs(errors[1]) <= 1.96 * np.sqrt(sums.variance[1:-1])).mean()
                    )
            table.add_row(
                f"{epsilon:g}",
                str(cells),
                *(f"{100 * each:.2f}%" for each in np.sqrt(squares)),
                f"{100 * np.mean(covered):.1f}%",
                f"{squares[1] / squares[0]:.2f}",
                f"{bits.fresh_epsilon:.1f}",
            )
    table.caption = f"root mean squares over all edges, four populations and {runs} tallies of each"
    yield table


def decoding() -> Iterator[Table]:
    """The time to decode one window: curve, bands, four quantiles, clamped shares, mean."""
    table = new_table("Decoding one window", "cells", "epsilon", "columns", "ms", "scores, ms once")
    rng = np.random.default_rng(5)
    for cells in (256, 1024):
        for epsilon in EPSILONS:
            tree = HierarchicalHistogram.design(RANGE, epsilon, cells)
            rows = sample_crowd(tree, np.full(cells, 1 / cells), 100_000, rng)
            times = [_decoded(tree, rows) for _ in range(8)]
            columns = f"{sum(level.columns for level in tree.levels):,}"
            figures = f"{1000 * min(times[1:]):.2f}", f"{1000 * times[0]:.0f}"
            table.add_row(str(cells), f"{epsilon:g}", columns, *figures)
    yield table


def _decoded(tree: HierarchicalHistogram, rows: tuple[TallyRow, ...]) -> float:
    """CPU seconds."""
    start = time.process_time()
    found = distribution(tree, rows)
    for p in QUANTILES:
        found.quantile(p)
    assert found.below.low < found.above.high
    cells_mean(tree, found.sums)
    return time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    console = Console(width=100)
    quick = parser.parse_args().quick
    for table in (*histograms(2 if quick else 10), *memos(4 if quick else 100), *decoding()):
        console.print(table)


if __name__ == "__main__":
    main()

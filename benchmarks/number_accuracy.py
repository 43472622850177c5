"""Means, distributions and quantiles of numbers: are their intervals honest, and how wide?

Tallies are drawn from their exact distribution. Intervals of 95 %; *in* is how often they hold the
truth. Run: python benchmarks/number_accuracy.py [--quick] [--only optimum|coverage|quantiles|...]
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterator

import numpy as np
from rich.console import Console
from rich.table import Table

from deniable.mechanisms.hierarchical_histogram import HierarchicalHistogram
from deniable.mechanisms.number_range import TOP
from deniable.mechanisms.sliding_window import SlidingWindow
from deniable.number_forecast import mean_variance
from deniable_collector.tally import TallyRow
from deniable_estimator.numbers.change import mean_shift, quantile_shift
from deniable_estimator.numbers.distribution import distribution
from deniable_estimator.numbers.mean import (
    cell_points,
    level_noise,
    tree_mean,
    window_channel,
    window_mean,
)
from deniable_estimator.numbers.sampling import sample_crowd, window_rates
from numeric.dense import DenseHistogram
from numeric.optimum import least_variance
from numeric.peers import drawn_by_channel, drawn_by_haar, piecewise_channel, square_wave_channel
from numeric.populations import CROWDS, EPSILONS, NAMES, RANGE, new_table, population, settings

QUANTILES = (0.5, 0.9, 0.95, 0.99)
LEVEL = 0.95
Z = 1.959964


def optimum(runs: int) -> Iterator[Table]:
    """(a) The worst variance of a mean over the least possible one, and its bias."""
    table = new_table(
        "Sliding window: worst variance", "epsilon", "n Var", "least", "ratio", "bias"
    )
    for epsilon in (0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0):
        window = SlidingWindow.design(RANGE, epsilon)
        worst, least = mean_variance(window), least_variance(epsilon)
        inside, outside = window_channel(window)
        scores = np.array(window.scores())
        levels, _ = level_noise(window)
        owned = [scores[i : i + window.width].sum() for i in range(len(levels))]
        bias = np.abs(outside * scores.sum() + (inside - outside) * np.array(owned) - levels).max()
        in_errors = bias / math.sqrt(worst / 1_000_000)
        ratio = f"{worst / least:.3f}"
        table.add_row(f"{epsilon:g}", f"{worst:.4f}", f"{least:.4f}", ratio, f"{in_errors:.1e}")
    table.caption = "bias: in standard errors of a million reports; exact"
    yield table


def coverage(runs: int) -> Iterator[Table]:
    """(b) How often intervals of means, curves, ranges and clamped shares hold the truth."""
    columns = ("mean", "tree's mean", "of middles", "curve", "ranges", "below", "above")
    table = new_table("Intervals that hold the truth, %", "epsilon", "reports", *columns)
    rng = np.random.default_rng(1)
    every: list[list[float]] = []
    pooled: dict[tuple[float, int], list[list[float]]] = {}
    for _, crowd, tree, epsilon, reports in settings():
        window = SlidingWindow.design(RANGE, epsilon)
        rates = window_rates(window, crowd.positions, crowd.shares)
        cells, mean = crowd.cells(tree), crowd.mean()
        sums = np.concatenate([[0.0], np.cumsum(cells)])
        middles = float(cells @ cell_points(tree)[0])
        held = np.zeros((runs, len(columns)))
        for run in range(runs):
            row = TallyRow(reports, rng.multinomial(reports, rates / rates.sum()))
            found = distribution(tree, sample_crowd(tree, cells, reports, rng), LEVEL)
            near = np.abs(found.cdf - sums[1:-1]) <= Z * np.sqrt(found.variance)
            ranges = []
            for start, end in np.sort(rng.integers(0, tree.cells + 1, (10, 2)), axis=1).tolist():
                if start < end:
                    share, variance = found.tree.share(start, end)
                    truth = sums[end] - sums[start]
                    ranges.append(abs(share - truth) <= Z * math.sqrt(variance) + 1e-12)
            low, high = window_mean(window, row).interval(LEVEL)
            below, above = found.below, found.above
            rough = tree_mean(tree, found.tree)
            wide = rough.interval(LEVEL)
            held[run] = (
                low <= mean <= high,
                wide[0] <= mean <= wide[1],
                abs(rough.mean - middles) <= Z * rough.std_error,
                near.mean(),
                np.mean(ranges),
                below.low <= cells[0] <= below.high,
                above.low <= cells[-1] <= above.high,
            )
        figures = held.mean(axis=0).tolist()
        every.append(figures)
        pooled.setdefault((epsilon, reports), []).append(figures)
    for (epsilon, reports), lines in pooled.items():
        means = [f"{100 * each:.1f}" for each in np.mean(lines, axis=0)]
        table.add_row(f"{epsilon:g}", f"{reports:,}", *means)
    for title, pick in (("all", np.mean), ("least of 48", np.min), ("most of 48", np.max)):
        table.add_row(title, "", *(f"{100 * each:.1f}" for each in pick(every, axis=0)))
    table.caption = (
        f"means of four populations, {runs} tallies each (± {100 * math.sqrt(0.0475 / runs):.1f} "
        "for one; curves and ranges pool many shares). The tree's mean allows for where numbers "
        "lie in its cells; of middles: the mean of the middles of the cells, without allowance"
    )
    yield table


def quantiles(runs: int) -> Iterator[Table]:
    """(c) How often quantiles' intervals hold the truth, and how wide beside the dense decoder."""
    table = new_table(
        "Quantiles", "p", "in, mean", "in, least", "settings under 94 %", "width", "open"
    )
    rng = np.random.default_rng(2)
    held: dict[float, list[float]] = {p: [] for p in QUANTILES}
    widths: dict[float, list[float]] = {p: [] for p in QUANTILES}
    opened: dict[float, list[float]] = {p: [] for p in QUANTILES}
    dense: dict[float, DenseHistogram] = {}
    low_settings: list[str] = []
    for name, crowd, tree, epsilon, reports in settings():
        if epsilon not in dense:
            dense[epsilon] = DenseHistogram(tree)
        cells = crowd.cells(tree)
        hits = dict.fromkeys(QUANTILES, 0)
        limits = dict.fromkeys(QUANTILES, 0)
        for run in range(runs):
            rows = sample_crowd(tree, cells, reports, rng)
            found = distribution(tree, rows, LEVEL)
            for p in QUANTILES:
                quantile, truth = found.quantile(p), crowd.quantile(p)
                low = -1 if quantile.low is None else quantile.low
                high = TOP + 1 if quantile.high is None else quantile.high
                hits[p] += low <= truth < high
                limits[p] += quantile.high is None
                if run < 3:
                    first, last = dense[epsilon].cells(rows, p, Z)
                    own = quantile.cells[1] - quantile.cells[0]
                    widths[p].append(own / (last - first))
        for p in QUANTILES:
            held[p].append(hits[p] / runs)
            opened[p].append(limits[p] / runs)
            if hits[p] / runs < 0.94:
                setting = f"p{100 * p:g}, {name}, epsilon {epsilon:g}, {reports:,} reports"
                low_settings.append(f"{setting}: {hits[p] / runs:.3f}")
    for p in QUANTILES:
        table.add_row(
            f"p{100 * p:g}",
            f"{100 * np.mean(held[p]):.1f} %",
            f"{100 * np.min(held[p]):.1f} %",
            f"{sum(each < 0.94 for each in held[p])} of {len(held[p])}",
            f"{np.exp(np.mean(np.log(widths[p]))):.3f}, at most {max(widths[p]):.2f}",
            f"{100 * np.mean(opened[p]):.0f} %",
        )
    table.caption = (
        f"{runs} tallies for each of 48 settings; width over that of the dense decoder; open: no "
        f"upper limit. Under 94 %: {'; '.join(low_settings) or 'none'}"
    )
    yield table


def changes(runs: int) -> Iterator[Table]:
    """(d) How often a change is told where there is none, at 5 %."""
    table = new_table(
        "Changes told where there are none", "of", "mean", "least", "most", "shift not 0"
    )
    rng = np.random.default_rng(3)
    told: dict[str, list[float]] = {f"p{100 * p:g}": [] for p in QUANTILES} | {"mean": []}
    outside: dict[str, list[float]] = {key: [] for key in told}
    for _, crowd, tree, epsilon, reports in settings():
        window = SlidingWindow.design(RANGE, epsilon)
        rates = window_rates(window, crowd.positions, crowd.shares)
        cells = crowd.cells(tree)
        found: dict[str, list[tuple[bool, bool]]] = {key: [] for key in told}
        for _ in range(runs):
            before, after = (
                distribution(tree, sample_crowd(tree, cells, reports, rng), LEVEL) for _ in range(2)
            )
            means = [
                window_mean(
                    window, TallyRow(reports, rng.multinomial(reports, rates / rates.sum()))
                )
                for _ in range(2)
            ]
            shifts = {f"p{100 * p:g}": quantile_shift(before, after, p) for p in QUANTILES}
            shifts["mean"] = mean_shift(*means)
            for key, shift in shifts.items():
                found[key].append((shift.p_value < 0.05, not shift.low <= 0 <= shift.high))
        for key, pairs in found.items():
            told[key].append(np.mean([pair[0] for pair in pairs]))
            outside[key].append(np.mean([pair[1] for pair in pairs]))
    for key, each in told.items():
        low, high = f"{100 * min(each):.1f} %", f"{100 * max(each):.1f} %"
        table.add_row(
            key, f"{100 * np.mean(each):.1f} %", low, high, f"{100 * np.mean(outside[key]):.1f} %"
        )
    error = 100 * math.sqrt(0.0475 / runs)
    table.caption = f"{runs} pairs of tallies for each of 48 settings, ± {error:.1f} for one"
    yield table


def histograms(runs: int) -> Iterator[Table]:
    """(e) Wasserstein-1 distance of the drawn histogram, beside other mechanisms."""
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


def decoding(runs: int) -> Iterator[Table]:
    """(f) The time to decode one window: curve, bands, four quantiles, clamped shares, mean."""
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
    found = distribution(tree, rows, LEVEL)
    for p in QUANTILES:
        found.quantile(p)
    assert found.below.low < found.above.high
    tree_mean(tree, found.tree)
    return time.process_time() - start


SECTIONS: dict[str, tuple[Callable[[int], Iterator[Table]], int, int]] = {
    "optimum": (optimum, 1, 1),
    "coverage": (coverage, 2000, 40),
    "quantiles": (quantiles, 2000, 60),
    "changes": (changes, 2000, 40),
    "histograms": (histograms, 10, 2),
    "decoding": (decoding, 1, 1),
}
"""name -> (section, tallies for each setting, the same with --quick)."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", action="append", choices=SECTIONS)
    arguments = parser.parse_args()
    console = Console(width=110)
    for name, (section, full, quick) in SECTIONS.items():
        if arguments.only and name not in arguments.only:
            continue
        start = time.process_time()
        for table in section(quick if arguments.quick else full):
            console.print(table)
        console.print(f"{name}: {time.process_time() - start:.0f} s of CPU", highlight=False)


if __name__ == "__main__":
    main()

"""Means, distributions and quantiles of numbers: are their intervals honest, and how wide?

Tallies are drawn from their exact distribution. Intervals of 95%; *in* is how often they hold the
truth. Run: python benchmarks/number_accuracy.py [--quick] [--only means]
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterator

import numpy as np
from rich.console import Console
from rich.table import Table

from deniable.mechanisms.number_range import TOP
from deniable.mechanisms.sliding_window import SlidingWindow
from deniable.scheme import Scheme
from deniable_collector.tally import Tally, TallyRow
from deniable_estimator.analyses.numbers.change import quantile_shift
from deniable_estimator.analyses.numbers.distribution import distribution
from deniable_estimator.analyses.numbers.mean import (
    cell_points,
    cells_mean,
    level_noise,
    window_channel,
    window_mean,
)
from deniable_estimator.analyses.numbers.sampling import sample_crowd, window_rates
from deniable_estimator.analyses.numbers.tree import estimate_tree
from deniable_estimator.answers.mean import estimate_mean
from deniable_estimator.forecasting.number_forecast import mean_variance
from numeric.dense import DenseHistogram
from numeric.optimum import least_variance
from numeric.populations import RANGE, new_table, settings

QUANTILES = (0.5, 0.9, 0.95, 0.99)
LEVEL = 0.95
DAY = "2026-11-20"
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


def means(runs: int) -> Iterator[Table]:
    """(b) How often intervals of means hold the truth, from a sliding window and from a tree."""
    rng = np.random.default_rng(1)
    held: dict[tuple[float, int], list[list[float]]] = {}
    for _, crowd, tree, epsilon, reports in settings():
        window = SlidingWindow.design(RANGE, epsilon)
        rates = window_rates(window, crowd.positions, crowd.shares)
        cells, mean = crowd.cells(tree), crowd.mean()
        middles = float(cells @ cell_points(tree)[0])
        found = []
        for _ in range(runs):
            row = TallyRow(reports, rng.multinomial(reports, rates / rates.sum()))
            rows = sample_crowd(tree, cells, reports, rng)
            rough = cells_mean(tree, estimate_tree(tree, rows))
            ends = window_mean(window, row).interval(LEVEL), rough.interval(LEVEL)
            near = abs(rough.mean - middles) <= Z * rough.std_error
            found.append([*(low <= mean <= high for low, high in ends), near])
        held.setdefault((epsilon, reports), []).append(np.mean(found, axis=0).tolist())
    table = _held(held, "mean", "tree's mean", "of middles")
    error = 100 * math.sqrt(0.0475 / runs)
    table.caption = (
        f"{runs} tallies in each of 48 settings, ± {error:.1f}. The tree's mean allows for where "
        "numbers lie in its cells; of middles: the mean of the middles of the cells"
    )
    yield table


def shares(runs: int) -> Iterator[Table]:
    """(b) How often intervals of the curve, of ranges and of clamped shares hold the truth."""
    rng = np.random.default_rng(1)
    held: dict[tuple[float, int], list[list[float]]] = {}
    for _, crowd, tree, epsilon, reports in settings():
        cells = crowd.cells(tree)
        sums = np.concatenate([[0.0], np.cumsum(cells)])
        found = []
        for _ in range(runs):
            drawn = distribution(tree, sample_crowd(tree, cells, reports, rng), LEVEL)
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
    table = _held(held, "curve", "ranges", "below", "above")
    error = 100 * math.sqrt(0.0475 / runs)
    table.caption = (
        f"{runs} tallies in each of 48 settings, ± {error:.1f}; curves and ranges pool many shares"
    )
    yield table


def _held(held: dict[tuple[float, int], list[list[float]]], *columns: str) -> Table:
    """The means over populations, of all settings, and their extremes."""
    table = new_table("Intervals that hold the truth, %", "epsilon", "reports", *columns)
    for (epsilon, reports), lines in held.items():
        figures = [f"{100 * each:.1f}" for each in np.mean(lines, axis=0)]
        table.add_row(f"{epsilon:g}", f"{reports:,}", *figures)
    every = [line for lines in held.values() for line in lines]
    for title, pick in (("all", np.mean), ("least of 48", np.min), ("most of 48", np.max)):
        table.add_row(title, "", *(f"{100 * each:.1f}" for each in pick(every, axis=0)))
    return table


def quantiles(runs: int) -> Iterator[Table]:
    """(c) How often quantiles' intervals hold the truth, and how wide beside the dense decoder."""
    table = new_table(
        "Quantiles", "p", "in, mean", "in, least", "settings under 94%", "width", "open"
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
            f"{100 * np.mean(held[p]):.1f}%",
            f"{100 * np.min(held[p]):.1f}%",
            f"{sum(each < 0.94 for each in held[p])} of {len(held[p])}",
            f"{np.exp(np.mean(np.log(widths[p]))):.3f}, at most {max(widths[p]):.2f}",
            f"{100 * np.mean(opened[p]):.0f}%",
        )
    table.caption = (
        f"{runs} tallies for each of 48 settings; width over that of the dense decoder; open: no "
        f"upper limit. Under 94%: {'; '.join(low_settings) or 'none'}"
    )
    yield table


def changes(runs: int) -> Iterator[Table]:
    """(d) How often a change is told where there is none, at 5%."""
    table = new_table(
        "Changes told where there are none", "of", "mean", "least", "most", "shift not 0"
    )
    rng = np.random.default_rng(3)
    told: dict[str, list[float]] = {f"p{100 * p:g}": [] for p in QUANTILES} | {"mean": []}
    outside: dict[str, list[float]] = {key: [] for key in told}
    for _, crowd, tree, epsilon, reports in settings():
        window = SlidingWindow.design(RANGE, epsilon)
        scheme = Scheme("number", window, ())
        rates = window_rates(window, crowd.positions, crowd.shares)
        cells = crowd.cells(tree)
        found: dict[str, list[tuple[bool, bool]]] = {key: [] for key in told}
        for _ in range(runs):
            before, after = (
                distribution(tree, sample_crowd(tree, cells, reports, rng), LEVEL) for _ in range(2)
            )
            for p in QUANTILES:
                shift = quantile_shift(before, after, p)
                outside_zero = not shift.low <= 0 <= shift.high
                found[f"p{100 * p:g}"].append((shift.p_value < 0.05, outside_zero))
            counts = [rng.multinomial(reports, rates / rates.sum()) for _ in range(2)]
            first, second = (
                estimate_mean(
                    Tally("m", scheme.fingerprint, (DAY,), (TallyRow(reports, each),)), scheme
                )
                for each in counts
            )
            change = second.change_from(first)
            outside_zero = not change.low[0] <= 0 <= change.high[0]
            found["mean"].append((bool(change.changed[0]), outside_zero))
        for key, pairs in found.items():
            told[key].append(np.mean([pair[0] for pair in pairs]))
            outside[key].append(np.mean([pair[1] for pair in pairs]))
    for key, each in told.items():
        low, high = f"{100 * min(each):.1f}%", f"{100 * max(each):.1f}%"
        table.add_row(
            key, f"{100 * np.mean(each):.1f}%", low, high, f"{100 * np.mean(outside[key]):.1f}%"
        )
    error = 100 * math.sqrt(0.0475 / runs)
    table.caption = f"{runs} pairs of tallies for each of 48 settings, ± {error:.1f} for one"
    yield table


SECTIONS: dict[str, tuple[Callable[[int], Iterator[Table]], int, int]] = {
    "optimum": (optimum, 1, 1),
    "means": (means, 10_000, 100),
    "shares": (shares, 2000, 40),
    "quantiles": (quantiles, 2000, 60),
    "changes": (changes, 2000, 40),
}
"""name -> (section, tallies for each setting, the same with --quick)."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", action="append", choices=SECTIONS)
    arguments = parser.parse_args()
    console = Console(width=100)
    for name, (section, full, quick) in SECTIONS.items():
        if arguments.only and name not in arguments.only:
            continue
        start = time.process_time()
        for table in section(quick if arguments.quick else full):
            console.print(table)
        console.print(f"{name}: {time.process_time() - start:.0f} s of CPU", highlight=False)


if __name__ == "__main__":
    main()

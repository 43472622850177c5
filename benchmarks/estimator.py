"""How fast and how honest estimates are, beside naive baselines measured in the same run.

Time: the baseline estimates value by value in plain Python, and simulates a crowd device
by device (both timed on a part and scaled up). Calibration: the baseline is the textbook's
symmetric interval and its z-test with the plug-in error, unadjusted.
Run: python benchmarks/estimator.py
"""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import NormalDist

import numpy as np
from rich.console import Console
from rich.table import Table

from deniable import Scheme
from deniable.mechanisms import SubsetSelection
from deniable_collector.tally import Tally, TallyRow
from deniable_estimator.analyses.sampling import sample_tally
from deniable_estimator.answers.shares import estimate
from deniable_estimator.planning.population import zipf_shares

TALLIES = 300
_Z = NormalDist().inv_cdf(0.975)


def seconds(call: Callable[[], object], rounds: int = 3) -> float:
    """The shortest of a few runs."""
    times = []
    for _ in range(rounds):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return min(times)


def scheme_of(size: int, epsilon: float) -> Scheme:
    mechanism = SubsetSelection.design(size, epsilon)
    return Scheme("category", mechanism, tuple(map(str, range(size))))


def naive_estimate(tally: Tally, scheme: Scheme, values: int) -> list[tuple[float, ...]]:
    """Share, error, interval and p-value of the first `values` values, one after another."""
    p, q, n = float(scheme.mechanism.p), float(scheme.mechanism.q), tally.reports
    normal = NormalDist()
    rows = []
    for item in range(values):
        rate = int(tally.rows[0].cells[item]) / n
        share, error = (rate - q) / (p - q), (rate * (1 - rate) / n) ** 0.5 / (p - q)
        tail = 1 - normal.cdf(share / error)
        rows.append((share, error, share - _Z * error, share + _Z * error, tail))
    return rows


def time_estimates() -> Table:
    table = Table(title="Estimate of every value, n = 10^6 (seconds)")
    for name in ("values", "deniable", "value by value"):
        table.add_column(name, justify="right")
    rng = np.random.default_rng(1)
    for size in (100, 10_000, 1_000_000):
        scheme = scheme_of(size, 4.0)
        cells = rng.binomial(10**6, float(scheme.mechanism.q), size)
        tally = Tally("m", scheme.fingerprint, ("w",), (TallyRow(10**6, cells),))
        ours = seconds(lambda tally=tally, scheme=scheme: estimate(tally, scheme))
        part = min(size, 5000)
        naive = seconds(
            lambda tally=tally, scheme=scheme, part=part: naive_estimate(tally, scheme, part)
        )
        table.add_row(f"{size:,}", f"{ours:.4f}", f"{naive * size / part:.4f}")
    return table


def time_tallies() -> Table:
    table = Table(title="Drawing the tally of a crowd, epsilon 1 (seconds)")
    for name in ("values", "devices", "deniable", "device by device"):
        table.add_column(name, justify="right")
    rng = np.random.default_rng(2)
    for size in (2, 100, 1000):
        scheme = scheme_of(size, 1.0)
        randomize = scheme.mechanism.randomize
        each = seconds(lambda randomize=randomize: [randomize(0) for _ in range(500)]) / 500
        for devices in (10**5, 10**9):
            counts = rng.multinomial(devices, zipf_shares(size, 1.0))
            ours = seconds(lambda counts=counts, scheme=scheme: sample_tally(scheme, counts, rng))
            table.add_row(f"{size:,}", f"{devices:,}", f"{ours:.4f}", f"{each * devices:,.0f}")
    return table


def calibration() -> Table:
    table = Table(
        title=f"Calibration over {TALLIES} tallies: Zipf 1.1 over a fifth of the values, in percent"
    )
    for name in ("values", "epsilon", "devices"):
        table.add_column(name, justify="right")
    for name in ("coverage", "false finds", "plug-in coverage", "plug-in false finds"):
        table.add_column(name, justify="right")
    rng = np.random.default_rng(3)
    for size, epsilon, devices in ((10, 1.0, 10**4), (100, 1.0, 10**5), (100, 4.0, 2000)):
        scheme = scheme_of(size, epsilon)
        truth = np.zeros(size)
        truth[: size // 5] = zipf_shares(size // 5, 1.1)
        sums = np.zeros(4)
        for _ in range(TALLIES):
            tally = sample_tally(scheme, rng.multinomial(devices, truth), rng)
            answer = estimate(tally, scheme)
            plain = np.abs(answer.share - truth) <= _Z * answer.std_error
            found = answer.share > NormalDist().inv_cdf(0.95) * answer.std_error
            sums += (
                ((answer.low <= truth) & (truth <= answer.high)).mean(),
                answer.detected[truth == 0].sum() / max(answer.detected.sum(), 1),
                plain.mean(),
                found[truth == 0].sum() / max(found.sum(), 1),
            )
        cells = [f"{100 * each / TALLIES:.1f}" for each in sums]
        table.add_row(f"{size}", f"{epsilon:g}", f"{devices:,}", *cells)
    return table


def main() -> None:
    console = Console()
    for table in (time_estimates(), time_tallies(), calibration()):
        console.print(table)


if __name__ == "__main__":
    main()

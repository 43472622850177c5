"""Intervals of strings that were hashed in public cohorts: how often they cover.

Cohort local hashing, fresh (1,024 cohorts) and with memory (256), in one window. 200 strings by
Zipf's law with exponent 1.1, 20 of them, at random, not among the candidates; every run draws new
hash functions. Nominal coverage is 95%, of the 5 and the 20 most common strings that are listed,
of all others, and of candidates that nobody has. The baseline, in the same run, is the interval
that a fit has which was not searched for: the same decoder, told that the search used up nothing.

    python benchmarks/cohorts.py [--runs 1.0] [--candidates 1000] [--seed N]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import click
import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track

from deniable import Scheme
from deniable.mechanisms import CohortLocalHashing, MemoizedLocalHashing
from deniable_estimator.analyses.cohorts import decoder
from deniable_estimator.analyses.sampling import sample_tally
from deniable_estimator.answers.shares import Shares, estimate
from deniable_estimator.planning.population import zipf_shares
from oracles.tables import Cell, Goal, Measured, Result

STRINGS, UNLISTED = 200, 20
KINDS: dict[str, Callable[[str, float], Any]] = {
    "fresh": CohortLocalHashing.design,
    "memoized": lambda salt, epsilon: MemoizedLocalHashing.design(salt, epsilon, 2 * epsilon),
}
EPSILONS = {1.0: 100, 2.0: 100, 4.0: 40}
"""epsilon -> runs; with epsilon 4 the table has 14 times the cells of that with 1."""
DEVICES = (200_000, 1_000_000, 5_000_000)
GROUPS = {"top 5": slice(0, 5), "top 20": slice(0, 20), "others": slice(20, STRINGS - UNLISTED)}


def covered(answer: Shares, truth: NDArray[np.float64]) -> NDArray[np.bool_]:
    inside: NDArray[np.bool_] = (answer.low <= truth) & (truth <= answer.high)
    return inside


def measure(
    kind: str,
    epsilon: float,
    devices: int,
    candidates: int,
    runs: int,
    rng: np.random.Generator,
    console: Console,
) -> dict[str, Cell]:
    shares = zipf_shares(STRINGS, 1.1)
    names = [f"string {number}" for number in range(STRINGS)]
    absent = [f"absent {number}" for number in range(candidates - STRINGS + UNLISTED)]
    ours, alone = [], []
    what = f"{kind}, epsilon {epsilon:g}, {devices:,}"
    for _ in track(range(runs), what, console=console, transient=True):
        scheme = Scheme("string", KINDS[kind](f"salt {rng.integers(1 << 62)}", epsilon), ())
        listed = np.sort(rng.permutation(STRINGS)[UNLISTED:])
        asked = [*(names[each] for each in listed), *absent]
        truth = np.concatenate([shares[listed], np.zeros(len(absent))])
        tally = sample_tally(scheme, rng.multinomial(devices, shares), rng, values=names)
        ours.append(covered(estimate(tally, scheme, asked), truth))
        with patch.object(decoder, "_left_by_search", return_value=1.0):
            alone.append(covered(estimate(tally, scheme, asked), truth))
    row: dict[str, Cell] = {"noise": kind, "epsilon": epsilon, "devices": devices, "runs": runs}
    for name, places in GROUPS.items():
        row[name] = _mean([each[places].mean() for each in ours])
    row["nobody's"] = _mean([each[STRINGS - UNLISTED :].mean() for each in ours])
    top = row["top 20"]
    assert isinstance(top, Measured)
    met = 0.94 - 2 * top.error <= top.value <= 0.96 + 2 * top.error
    row["goal, top 20"] = Goal("0.94 to 0.96", met)
    for name, places in list(GROUPS.items())[1:]:
        row[f"{name}, fit alone"] = _mean([each[places].mean() for each in alone])
    return row


def _mean(values: list[float]) -> Measured:
    return Measured(float(np.mean(values)), float(np.std(values, ddof=1)) / len(values) ** 0.5)


@click.command(help=__doc__)
@click.option("--runs", default=1.0, help="As a part, or a multiple, of the usual number.")
@click.option("--candidates", default=1000, show_default=True)
@click.option("--epsilon", "epsilons", multiple=True, type=float, help="These instead of all.")
@click.option("--seed", type=int, help="A fixed seed instead of a fresh one.")
def main(runs: float, candidates: int, epsilons: tuple[float, ...], seed: int | None) -> None:
    entropy = np.random.SeedSequence(seed)
    rng, console = np.random.default_rng(entropy), Console(stderr=True)
    rows = [
        measure(kind, epsilon, devices, candidates, max(5, round(runs * usual)), rng, console)
        for kind in KINDS
        for epsilon, usual in EPSILONS.items()
        if not epsilons or epsilon in epsilons
        for devices in DEVICES
    ]
    title = f"Coverage of 95% intervals, {candidates:,} candidates, seed {entropy.entropy}"
    Console(width=170).print(Result("cohorts", title, rows).table())


if __name__ == "__main__":
    main()

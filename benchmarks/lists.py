"""Lists of finds: how many of the values that are there are found, and which part is false.

Storey's step-up test as `significance.adjust_p` has it, beside Benjamini and Hochberg's (from
scipy) and Bonferroni's on the same p-values, at nominal 5%, in five families of populations:

closed   subset selection; half, a tenth or all of the values are there (Zipf 1.1)
hashed   hashed projective geometry; candidates and strings that nobody listed (Zipf 1.1)
local    cohort local hashing, fresh and with memory, of which a part is not listed (Zipf 1.1)
rappor   RAPPOR's published parameters; shares fall by e over 20 strings, or by Zipf's law
google   the "small" and "medium" cases of google/rappor's regression test (its table
         `tests/regtest_spec.py`: 100 strings of a million clients and 1,000 of ten million, five
         distributions by five settings), with hash functions drawn at random

found: true values found in a run. false: the mean over runs of the false part of what was found,
which is the false discovery rate; with its standard error, by which the goal is met or missed.

    python benchmarks/lists.py [--runs 1.0] [--only NAME] [--seed N]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import cycle
from typing import Any, NamedTuple, TypeAlias

import click
import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track
from scipy.stats import false_discovery_control

from deniable import Scheme
from deniable.mechanisms import (
    AUTO,
    CohortLocalHashing,
    MemoizedLocalHashing,
    SubsetSelection,
    design_string,
)
from deniable_estimator.analyses.cohorts.decoder import decode
from deniable_estimator.analyses.cohorts.design import Design
from deniable_estimator.analyses.sampling import sample_tally
from deniable_estimator.answers.shares import estimate
from deniable_estimator.planning.population import zipf_shares
from deniable_estimator.statistics.significance import adjust_p
from oracles.tables import Cell, Goal, Measured, Result

LEVEL = 0.05
ZIPF = 1.1

Floats: TypeAlias = NDArray[np.float64]
Mask: TypeAlias = NDArray[np.bool_]
Drawn: TypeAlias = tuple[Floats, Mask]
"""p-values of one list, and which of its values are there."""


class Population(NamedTuple):
    name: str
    runs: int
    draw: Callable[[np.random.Generator], Drawn]


def closed() -> Iterator[Population]:
    for size, runs in ((10, 1500), (20, 1000), (100, 400), (1024, 40)):
        for epsilon in (1.0, 4.0):
            for there in (size // 2, size // 10, size):
                # So many that the commonest can be seen and the rarest cannot.
                devices = 10**6 if size >= 100 else 10**5
                name = f"{size:,} values, {there:,} there, epsilon {epsilon:g}, n = {devices:,}"
                draw = partial(_closed, size=size, epsilon=epsilon, there=there, devices=devices)
                yield Population(name, runs, draw)


def _closed(rng: np.random.Generator, size: int, epsilon: float, there: int, devices: int) -> Drawn:
    scheme = Scheme("category", SubsetSelection.design(size, epsilon), tuple(map(str, range(size))))
    truth = np.zeros(size)
    truth[:there] = zipf_shares(there, ZIPF)
    answer = estimate(sample_tally(scheme, rng.multinomial(devices, truth), rng), scheme)
    return answer.p_value, truth > 0


def hashed() -> Iterator[Population]:
    for candidates, devices, epsilon, strings, unlisted, runs in (
        (100_000, 10**7, 2.0, 200, 0.3, 60),
        (100_000, 10**6, 2.0, 200, 0.1, 60),
        (20_000, 10**6, 2.0, 200, 0.3, 100),
        (1_000, 10**6, 4.0, 400, 0.1, 150),
        (1_000, 10**6, 4.0, 400, 0.3, 150),
        (220, 10**6, 4.0, 137, 0.2, 200),
        (1_000, 10**8, 4.0, 2_000, 0.7, 60),
    ):
        yield Population(
            f"{candidates:,} candidates, {strings:,} strings, {unlisted:.0%} of them unlisted, "
            f"epsilon {epsilon:g}, n = {devices:,}",
            runs,
            partial(
                _strings,
                make=lambda salt, epsilon=epsilon: design_string(AUTO, salt, epsilon),
                candidates=candidates,
                shares=zipf_shares(strings, ZIPF),
                unlisted=unlisted,
                devices=devices,
            ),
        )


def local() -> Iterator[Population]:
    for name, make in (
        ("fresh", CohortLocalHashing.design),
        ("memoized", lambda salt, epsilon: MemoizedLocalHashing.design(salt, epsilon, 2 * epsilon)),
    ):
        for epsilon, devices, unlisted in (
            (1.0, 200_000, 0.1),
            (1.0, 5_000_000, 0.3),
            (2.0, 1_000_000, 0.3),
            (4.0, 200_000, 0.1),
        ):
            yield Population(
                f"{name}, 1,000 candidates, {unlisted:.0%} of 200 strings unlisted, "
                f"epsilon {epsilon:g}, n = {devices:,}",
                20 if epsilon == 4.0 else 60,
                partial(
                    _strings,
                    make=partial(_designed, make, epsilon),
                    candidates=1_000,
                    shares=zipf_shares(200, ZIPF),
                    unlisted=unlisted,
                    devices=devices,
                ),
            )


def _designed(make: Callable[[str, float], Any], epsilon: float, salt: str) -> Any:
    return make(salt, epsilon)


def _strings(
    rng: np.random.Generator,
    make: Callable[[str], Any],
    candidates: int,
    shares: Floats,
    unlisted: float,
    devices: int,
) -> Drawn:
    """Fresh hash functions, and a random part of the strings that is not listed."""
    scheme = Scheme("string", make(f"salt {rng.integers(1 << 62)}"), ())
    strings = [f"there-{number}.example" for number in range(len(shares))]
    listed = rng.permutation(len(shares)) >= round(unlisted * len(shares))
    asked = [text for text, each in zip(strings, listed, strict=True) if each]
    asked += [f"absent-{number}.example" for number in range(candidates - len(asked))]
    tally = sample_tally(scheme, rng.multinomial(devices, shares), rng, values=strings)
    answer = estimate(tally, scheme, asked)
    return answer.p_value, np.arange(candidates) < listed.sum()


def rappor() -> Iterator[Population]:
    fading = np.exp(-np.arange(200) / 20)
    for law, shares in (("exponential", fading / fading.sum()), ("Zipf", zipf_shares(200, ZIPF))):
        for candidates, devices, unlisted, runs in (
            (10_000, 10**6, 0.1, 60),
            (10_000, 10**6, 0.3, 60),
            (1_000, 10**7, 0.3, 60),
            (10_000, 10**7, 0.1, 40),
        ):
            yield Population(
                f"{law}, {candidates:,} candidates, {unlisted:.0%} of 200 strings unlisted, "
                f"n = {devices:,}",
                runs,
                partial(
                    _bloom,
                    table=(64, 128, 2),
                    noise=(0.5, 0.75, 0.5),
                    shares=shares,
                    unlisted=unlisted,
                    absent=candidates - round((1 - unlisted) * 200),
                    devices=devices,
                ),
            )


def google() -> Iterator[Population]:
    settings = (
        # name, (p, q, f), further candidates for each string, unlisted
        ("typical", (0.39, 0.61, 0.45), 0.2, 0.1),
        ("sharp", (0.39, 0.61, 0.45), 0.0, 0.0),
        ("loose", (0.225, 0.775, 0.0), 0.2, 0.1),
        ("over x2", (0.39, 0.61, 0.45), 2.0, 0.1),
        ("over x10", (0.39, 0.61, 0.45), 10.0, 0.1),
    )
    for size, strings, devices, runs in (("small", 100, 10**6, 100), ("medium", 1000, 10**7, 25)):
        ranks = np.arange(1, strings + 1)
        laws = {
            "unif": np.ones(strings),
            "exp": np.exp(-5 * ranks / strings),
            "gauss": np.exp(-(((ranks - strings / 2) * 6 / strings) ** 2) / 2),
            "zipf1": 1 / ranks,
            "zipf1.5": ranks**-1.5,
        }
        for name, noise, further, unlisted in settings:
            turns = cycle(law / law.sum() for law in laws.values())
            yield Population(
                f"{size}, {name}",
                runs,
                partial(
                    _in_turn,
                    turns=turns,
                    table=(128, 8, 2),
                    noise=noise,
                    unlisted=unlisted,
                    absent=int(further * strings),
                    devices=devices,
                ),
            )


def _in_turn(rng: np.random.Generator, turns: Iterator[Floats], **asked: Any) -> Drawn:
    return _bloom(rng, shares=next(turns), **asked)


def _bloom(
    rng: np.random.Generator,
    table: tuple[int, int, int],
    noise: tuple[float, float, float],
    shares: Floats,
    unlisted: float,
    absent: int,
    devices: int,
) -> Drawn:
    """RAPPOR over (cohorts, bits, hashes), with (p, q, f)."""
    cohorts, bits, hashes = table
    p, q, f = noise
    p11, p01 = q * (1 - f / 2) + p * f / 2, p * (1 - f / 2) + q * f / 2
    strings = len(shares)
    listed = rng.permutation(strings) >= round(unlisted * strings)
    positions = rng.integers(0, bits, (strings, cohorts, hashes))
    reports = rng.multinomial(devices, np.full(cohorts, 1 / cohorts))
    counts = np.empty((cohorts, bits), np.int64)
    for cohort in range(cohorts):
        sets = np.zeros((strings, bits), np.int64)
        np.put_along_axis(sets, positions[:, cohort], 1, axis=1)
        true = rng.multinomial(reports[cohort], shares) @ sets
        counts[cohort] = rng.binomial(true, p11) + rng.binomial(reports[cohort] - true, p01)
    others = rng.integers(0, bits, (absent, cohorts, hashes))
    design = Design.of(np.concatenate([positions[listed], others]), bits)
    found = decode(counts, reports, design, p01, p11, background=1 - (1 - 1 / bits) ** hashes)
    return found.p_value, np.arange(len(design)) < listed.sum()


def benjamini_hochberg(p: Floats) -> Floats:
    adjusted = np.full(len(p), np.nan)
    known = np.isfinite(p)
    adjusted[known] = false_discovery_control(p[known])
    return adjusted


RULES: dict[str, Callable[[Floats], Floats]] = {
    "Storey": lambda p: adjust_p(p, "storey"),
    "Benjamini-Hochberg": benjamini_hochberg,
    "Bonferroni": lambda p: adjust_p(p, "bonferroni"),
}
FAMILIES = {each.__name__: each for each in (closed, hashed, local, rappor, google)}


def measure(name: str, part: float, rng: np.random.Generator, console: Console) -> Result:
    rows: list[dict[str, Cell]] = []
    for population in FAMILIES[name]():
        found: dict[str, list[int]] = {rule: [] for rule in RULES}
        false: dict[str, list[float]] = {rule: [] for rule in RULES}
        runs = max(5, round(part * population.runs))
        for _ in track(range(runs), population.name, console=console, transient=True):
            p, there = population.draw(rng)
            for rule, adjusted in RULES.items():
                detected = adjusted(p) <= LEVEL
                found[rule].append(int((detected & there).sum()))
                false[rule].append((detected & ~there).sum() / max(1, detected.sum()))
        rates = {rule: _mean(each) for rule, each in false.items()}
        ours = rates["Storey"]
        row: dict[str, Cell] = {"population": population.name, "runs": runs}
        for rule, rate in rates.items():
            row[rule] = (
                f"{np.mean(found[rule]):.1f}, {100 * rate.value:.1f} ± {100 * rate.error:.1f}%"
            )
        row["goal"] = Goal("≤ 5%", ours.value <= LEVEL + 2 * ours.error)
        rows.append(row)
    return Result(name, f"{name}: found in a run, and the false part of it", rows)


def _mean(values: list[float]) -> Measured:
    return Measured(float(np.mean(values)), float(np.std(values, ddof=1)) / len(values) ** 0.5)


@click.command(help=__doc__)
@click.option("--runs", default=1.0, help="As a part, or a multiple, of the usual number.")
@click.option("--only", multiple=True, type=click.Choice(list(FAMILIES)), help="This family.")
@click.option("--seed", type=int, help="A fixed seed instead of a fresh one.")
def main(runs: float, only: tuple[str, ...], seed: int | None) -> None:
    entropy = np.random.SeedSequence(seed)
    rng, console = np.random.default_rng(entropy), Console(stderr=True)
    Console().print(f"Seed {entropy.entropy}.")
    for name in only or FAMILIES:
        Console(width=150).print(measure(name, runs, rng, console).table(), "")


if __name__ == "__main__":
    main()

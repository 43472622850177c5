"""Pairs: how exact the joint of two lists is, whether its intervals and its test hold, and what the
planner promises of them.

The baseline for the joint is epsilon split in halves over the two values, as multi-freq-ldpy does
it, whose joint somebody has to fit to the pairs of messages: by expectation maximization (EM), from
messages of generalized randomized response that the library itself draws, and of subset selection
where the patterns can be enumerated. Its margins alone give the product of both. Our tallies are
drawn from their exact distribution.
Run: python benchmarks/pairs.py [--runs 1000] [--peers FOLDER]
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from deniable.mechanisms import SubsetSelection
from deniable_estimator.analyses import analysis_of
from deniable_estimator.analyses.pairs.conditional import conditionals
from deniable_estimator.analyses.pairs.covariance import Covariance
from deniable_estimator.analyses.pairs.dependence import independence
from deniable_estimator.analyses.pairs.effect import effect
from deniable_estimator.analyses.pairs.shrinkage import shrunken
from deniable_estimator.planning.pairs import dependent_table, power
from deniable_estimator.planning.population import pair_shares, zipf_shares
from deniable_estimator.statistics.intervals import FloatArray, score_interval
from deniable_estimator.statistics.normalization import normalize
from deniable_estimator.statistics.significance import adjust_p, share_p_values
from oracles.peers import default_place, prepare

SIDE = Path(__file__).with_name("oracles") / "pair_side.py"

JOINT = tuple(
    (size, n, epsilon)
    for size, n in ((6, 100_000), (6, 1_000_000), (20, 1_000_000))
    for epsilon in (1.0, 2.0, 4.0)
)
"""values of each list, reports, epsilon"""

COVERED = (
    # rows, columns, epsilon, reports
    (2, 2, 1.0, 2_000),
    (2, 2, 1.0, 100_000),
    (3, 4, 1.0, 10_000),
    (6, 6, 1.0, 100_000),
    (6, 6, 4.0, 10_000),
    (10, 10, 2.0, 100_000),
    (20, 20, 2.0, 1_000_000),
)

SIZES = (
    (2, 2, 1.0, 2_000),
    (3, 4, 1.0, 2_000),
    (6, 6, 1.0, 10_000),
    (6, 6, 4.0, 10_000),
    (10, 10, 2.0, 100_000),
    (20, 20, 2.0, 100_000),
    (30, 30, 1.0, 100_000),
)

POWERS = (
    # rows, columns, epsilon, reports, Cramer's V
    (2, 2, 1.0, 5_000, 0.06),
    (3, 4, 1.0, 10_000, 0.1),
    (6, 6, 1.0, 50_000, 0.09),
    (6, 6, 4.0, 5_000, 0.08),
    (10, 10, 2.0, 50_000, 0.09),
)

_STEPS = 2000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--repetitions", type=int, default=4, help="of each joint, with the peer")
    parser.add_argument("--peers", type=Path, default=default_place())
    parser.add_argument("--only", choices=["joint", "shrunken", "coverage", "size", "power"])
    options = parser.parse_args()
    console = Console()
    parts = {
        "joint": lambda: joint(options.repetitions, prepare(options.peers)),
        "shrunken": lambda: nearer(max(5, options.runs // 50)),
        "coverage": lambda: coverage(options.runs),
        "size": lambda: level(options.runs),
        "power": lambda: reached(options.runs),
    }
    for name, part in parts.items():
        if options.only in (None, name):
            console.print(part())


def truth(rows: int, columns: int, dependence: float = 0.3) -> FloatArray:
    """A table with the margins of Zipf's law, in which some rise together."""
    shares = zipf_shares(rows, 1.0), zipf_shares(columns, 1.0)
    return pair_shares(*shares, dependence).reshape(rows, columns)


def drawn(
    mechanism: SubsetSelection, table: FloatArray, n: int, rng: np.random.Generator
) -> FloatArray:
    counts = rng.multinomial(n, table.ravel())
    (row,) = analysis_of(mechanism).sample_rows(range(table.size), counts, rng)
    p, q = float(mechanism.p), float(mechanism.q)
    found: FloatArray = ((row.cells / n - q) / (p - q)).reshape(table.shape)
    return found


def joint(repetitions: int, python: Path) -> Table:
    """Total variation of the joint, ours beside the peer's."""
    names = (
        *("ours", "shrunken", "split GRR + EM", "split SS + EM", "product of margins"),
        *("ours / best of EM", "shrunken / best"),
    )
    table = _table("Total variation of the joint", ("lists", "reports", "epsilon", *names))
    with subprocess.Popen(
        [python, SIDE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as side:
        for size, n, epsilon in JOINT:
            rng = np.random.default_rng(size + n)
            f = truth(size, size)
            errors = [
                [
                    *(_apart(each, f) for each in _ours(size, epsilon, n, f, rng)),
                    *_split(side, f, epsilon, n, seed),
                    _split_sets(f, epsilon, n, rng) if size <= 6 else math.nan,
                ]
                for seed in range(repetitions)
            ]
            ours, small, grr, product, sets = np.mean(errors, axis=0)
            best = np.nanmin([grr, sets])
            table.add_row(
                f"{size} x {size}",
                f"{n:,}",
                f"{epsilon:g}",
                *(f"{each:.3f}" for each in (ours, small, grr, sets, product)),
                f"{ours / best:.2f}",
                f"{small / best:.2f}",
            )
        assert side.stdin is not None
        side.stdin.close()
    return table


def _ours(
    size: int, epsilon: float, n: int, f: FloatArray, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Our cells, normalized and shrunken, as the answer has them."""
    mechanism = SubsetSelection.design(size * size, epsilon)
    found, model = drawn(mechanism, f, n, rng), Covariance.of(mechanism, n)
    share, noise = found.ravel(), model.noise(1, found.size)
    detected = adjust_p(share_p_values(share, noise), "storey") <= 0.05
    return normalize(share, detected, complete=True).reshape(f.shape), shrunken(found, model)


def nearer(runs: int) -> Table:
    """What shrinking changes, where the two depend on each other in several ways or not at all."""
    kinds = ("rising together", "independent", "at random")
    names = (f"{kind}, {name}" for kind in kinds for name in ("normalized", "shrunken"))
    table = _table(
        "Total variation, normalized and shrunken", ("lists", "reports", "epsilon", *names)
    )
    for size, n, epsilon in (*JOINT, *((20, 100_000, epsilon) for epsilon in (1.0, 2.0, 4.0))):
        rng = np.random.default_rng(size + n)
        product = truth(size, size, 0.0)
        random = product * np.random.default_rng(1).lognormal(0.0, 0.7, product.shape)
        errors: list[float] = []
        for f in (truth(size, size), product, random / random.sum()):
            made = [_ours(size, epsilon, n, f, rng) for _ in range(runs)]
            errors += np.mean(
                [[_apart(each, f) for each in both] for both in made], axis=0
            ).tolist()
        cells = (f"{each:.3f}" for each in errors)
        table.add_row(f"{size} x {size}", f"{n:,}", f"{epsilon:g}", *cells)
    return table


def _split(
    side: subprocess.Popen[str], f: FloatArray, epsilon: float, n: int, seed: int
) -> Iterator[float]:
    """EM on the messages that multi-freq-ldpy draws, and the product of the margins that it
    estimates."""
    assert side.stdin is not None
    assert side.stdout is not None
    request = {"table": f.tolist(), "epsilon": epsilon, "n": n, "seed": seed}
    print(json.dumps(request), file=side.stdin, flush=True)
    answer: dict[str, Any] = json.loads(side.stdout.readline())
    size = len(f)
    e = math.exp(epsilon / 2)
    channel = (np.eye(size) * (e - 1) + 1) / (e + size - 1)
    yield _apart(_em(np.array(answer["sent"]), channel), f)
    margins = [np.maximum(each, 0) for each in map(np.array, answer["margins"])]
    yield _apart(np.outer(*(each / each.sum() for each in margins)), f)


def _split_sets(f: FloatArray, epsilon: float, n: int, rng: np.random.Generator) -> float:
    """EM on pairs of sets: subset selection with half of epsilon for each value."""
    size = len(f)
    mechanism = SubsetSelection.design(size, epsilon / 2)
    patterns = list(combinations(range(size), mechanism.k))
    p, k = float(mechanism.p), mechanism.k
    held, lacking = p / math.comb(size - 1, k - 1), (1 - p) / math.comb(size - 1, k)
    channel = np.array([[held if i in each else lacking for i in range(size)] for each in patterns])
    sent = rng.multinomial(n, (channel @ f @ channel.T).ravel())
    return _apart(_em(sent.reshape(len(patterns), len(patterns)), channel), f)


def _em(sent: Any, channel: FloatArray) -> FloatArray:
    """The joint that explains pairs of messages best, by expectation maximization."""
    size = channel.shape[1]
    f = np.full((size, size), 1 / size**2)
    seen = sent / sent.sum()
    for _ in range(_STEPS):
        f = f * (channel.T @ (seen / (channel @ f @ channel.T)) @ channel)
    return f


def _apart(found: FloatArray, f: FloatArray) -> float:
    return float(np.abs(found - f).sum() / 2)


def coverage(runs: int) -> Table:
    """How often 95% intervals hold the truth: of cells, margins, known conditionals in both
    directions, and Cramer's V of the lumped table."""
    names = ("cells", "margins", "conditionals", "Cramér's V")
    table = _table("Coverage of 95% intervals, %", ("lists", "epsilon", "reports", *names, "±"))
    for rows, columns, epsilon, n in COVERED:
        rng = np.random.default_rng(rows * n)
        mechanism, f = SubsetSelection.design(rows * columns, epsilon), truth(rows, columns)
        model = Covariance.of(mechanism, n)
        some = max(100, runs // 4) if rows >= 20 else runs
        inside = np.zeros((some, 4))
        for run in range(some):
            found = drawn(mechanism, f, n, rng)
            inside[run] = (
                _held(found.ravel(), f.ravel(), model, 1),
                _held(found.sum(axis=1), f.sum(axis=1), model, columns),
                _held_given(found, f, model),
                _held_effect(found, f, model),
            )
        values = 100 * np.nanmean(inside, axis=0)
        error = 100 * math.sqrt(0.05 * 0.95 / some)
        table.add_row(
            *(f"{rows} x {columns}", f"{epsilon:g}", f"{n:,}"),
            *(f"{each:.1f}" for each in values),
            f"{error:.1f}",
        )
    return table


def _held(found: FloatArray, f: FloatArray, model: Covariance, cells: int) -> float:
    low, high = score_interval(found, model.noise(cells, len(found)), 0.95)
    return float(((low <= f) & (f <= high)).mean())


def _held_given(found: FloatArray, f: FloatArray, model: Covariance) -> float:
    held, known = [], []
    for one, other in ((found, f), (found.T, f.T)):
        given = conditionals(one, model, 0.95)
        share = other / other.sum(axis=1, keepdims=True)
        held.append(((given.low <= share) & (share <= given.high)).ravel())
        known.append(given.known.ravel())
    return float(np.concatenate(held)[np.concatenate(known)].mean())


def _held_effect(found: FloatArray, f: FloatArray, model: Covariance) -> float:
    """Against the V of the true table, lumped in the same way."""
    told = effect(found, model, 0.95)
    small = f
    for axis, places in enumerate(told.lumped):
        kept = np.setdiff1d(np.arange(f.shape[axis]), places)
        rest = small.take(places, axis).sum(axis=axis, keepdims=True)
        parts = [small.take(kept, axis), *((rest,) if places else ())]
        small = np.concatenate(parts, axis=axis)
    product = np.outer(small.sum(axis=1), small.sum(axis=0))
    least = min(small.shape) - 1
    if least < 1:
        return math.nan
    v = math.sqrt(float(((small - product) ** 2 / product).sum()) / least)
    return float(told.low <= v <= told.high)


def level(runs: int) -> Table:
    """How often the test of independence calls independent lists dependent."""
    table = _table(
        "Size of the test of independence at 5%", ("lists", "epsilon", "reports", "size, %", "±")
    )
    for rows, columns, epsilon, n in SIZES:
        some = max(100, runs // 3) if rows >= 20 else runs
        found = _called(truth(rows, columns, 0.0), epsilon, n, some)
        error = 100 * math.sqrt(found * (1 - found) / some)
        table.add_row(
            *(f"{rows} x {columns}", f"{epsilon:g}", f"{n:,}"), f"{100 * found:.1f}", f"{error:.1f}"
        )
    return table


def reached(runs: int) -> Table:
    """The power that the planner promises, and how often a dependence is found."""
    table = _table(
        "Power", ("lists", "epsilon", "reports", "Cramér's V", "promised, %", "found, %", "±")
    )
    for rows, columns, epsilon, n, v in POWERS:
        f = dependent_table(rows, columns, v)
        model = Covariance.of(SubsetSelection.design(rows * columns, epsilon), n)
        found = _called(f, epsilon, n, runs)
        error = 100 * math.sqrt(found * (1 - found) / runs)
        table.add_row(
            *(f"{rows} x {columns}", f"{epsilon:g}", f"{n:,}", f"{v:g}"),
            f"{100 * power(f, model):.1f}",
            f"{100 * found:.1f}",
            f"{error:.1f}",
        )
    return table


def _called(f: FloatArray, epsilon: float, n: int, runs: int) -> float:
    """The part of the tallies that are called dependent."""
    rng = np.random.default_rng(f.size + n)
    mechanism = SubsetSelection.design(f.size, epsilon)
    model = Covariance.of(mechanism, n)
    found = [independence(drawn(mechanism, f, n, rng), model).p_value for _ in range(runs)]
    return float(np.mean(np.array(found) <= 0.05))


def _table(title: str, headings: Sequence[str]) -> Table:
    table = Table(title=title, title_justify="left")
    for each in headings:
        table.add_column(each, justify="right")
    return table


if __name__ == "__main__":
    main()

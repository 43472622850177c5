"""Devices that remember: what averaging reveals, and what memory costs.

Run: python benchmarks/memory.py [--json] [--devices 400] [--peers PLACE]

Averaging: a device holds one of ten values all the time, and the best possible attacker,
who knows the mechanism and its public hashes, names it from 1,000 reports. The bound is what
the epsilon of one memo allows for ten equally likely values. multi-freq-ldpy's longitudinal
RAPPOR (L_SUE) draws the permanent response anew in every call.
Variance: of a rare value, over the least possible at the same epsilon of one report.
Chains: epsilon of one report by enumeration of all memos and reports of both rounds.
"""

from __future__ import annotations

import itertools
import json
import math
import subprocess
from fractions import Fraction
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.progress import track

from deniable.mechanisms import (
    BasicRappor,
    MemoizedLocalHashing,
    MemoizedSubsetSelection,
    Memoizing,
    Rappor,
    Report,
    design_memoized,
)
from deniable.mechanisms.choice import loss
from deniable.randomness import PRECISION, below
from oracles import peers
from oracles.tables import Cell, Goal, Measured, Result

REPORTS = 1000
STEPS = (1, 10, 100, REPORTS)
VALUES = [f"string {number}" for number in range(10)]
EPSILON, LIFETIME = 1.0, 2.0

_PEER = """
import json, sys
import numpy as np
from multi_freq_ldpy.long_freq_est.L_SUE import L_SUE_Client
devices, steps, values, lifetime, epsilon = json.loads(sys.argv[1])
for device in range(devices):
    reports = [L_SUE_Client(device % values, values, lifetime, epsilon) for _ in range(steps[-1])]
    sums = np.cumsum(reports, axis=0)
    print(json.dumps([int(sums[step - 1].argmax()) for step in steps]))
"""


def scores(mechanism: Memoizing[Any], row: int, counts: list[int], n: int) -> list[float]:
    """ln of the likelihood of each value, up to a constant, given how often columns were set."""
    if isinstance(mechanism, MemoizedSubsetSelection):
        # Whatever the other memos weigh, the likelihood grows with the count of one's own.
        return [counts[item] for item in range(len(VALUES))]
    if isinstance(mechanism, MemoizedLocalHashing):
        return [counts[mechanism.place(row, text)] for text in VALUES]
    assert isinstance(mechanism, (BasicRappor, Rappor))
    rounds = mechanism.rounds
    flip = rounds.f / 2 / 2**PRECISION
    p, q = (each / 2**PRECISION for each in (rounds.p, rounds.q))
    gains = []
    for ones in counts:
        zero = ones * math.log(p) + (n - ones) * math.log1p(-p)
        one = ones * math.log(q) + (n - ones) * math.log1p(-q)
        memo = [math.log(weight) + each for weight, each in ((1 - flip, one), (flip, zero))]
        none = [math.log(weight) + each for weight, each in ((flip, one), (1 - flip, zero))]
        gains.append(float(np.logaddexp(*memo) - np.logaddexp(*none)))
    items = range(len(VALUES)) if mechanism.size else VALUES
    cells = [mechanism.cell(row, item) for item in items]
    return [sum(gain for bit, gain in enumerate(gains) if cell >> bit & 1) for cell in cells]


def named(mechanism: Memoizing[Any], devices: int) -> list[int]:
    """How many devices are named rightly after each number of STEPS reports."""
    right = [0] * len(STEPS)
    width = mechanism.rows[0].width
    for device in range(devices):
        true = device % len(VALUES)
        row = below(len(mechanism.rows))
        memo = mechanism.memoize(mechanism.cell(row, true if mechanism.size else VALUES[true]))
        counts = [0] * width
        for number in range(1, REPORTS + 1):
            columns = mechanism.report(row, memo).columns
            if mechanism.rows[0].packing == "index":
                counts[columns] += 1
            else:
                while columns:
                    low = columns & -columns
                    counts[low.bit_length() - 1] += 1
                    columns ^= low
            if number in STEPS:
                each = scores(mechanism, row, counts, number)
                best = [item for item, score in enumerate(each) if score == max(each)]
                right[STEPS.index(number)] += best[below(len(best))] == true
    return right


def averaging(python: Path, devices: int, console: Console) -> Result:
    """How often the value of a device is named after 1, 10, 100 and 1,000 reports."""
    size = len(VALUES)
    mechanisms: dict[str, Memoizing[Any]] = {
        "subset selection": MemoizedSubsetSelection.design(size, EPSILON, LIFETIME),
        "cohort local hashing": MemoizedLocalHashing.design("city", EPSILON, LIFETIME),
        "basic RAPPOR": BasicRappor.design(size, EPSILON, LIFETIME),
        "RAPPOR": Rappor.design("city", EPSILON, LIFETIME),
        "RAPPOR, the paper's parameters": Rappor.paper("city"),
    }
    rows: list[dict[str, Cell]] = []
    for name in track(mechanisms, "Averaging", console=console, transient=True):
        mechanism = mechanisms[name]
        odds = float(mechanism.lifetime_odds)
        bound = odds / (odds + size - 1)
        right = named(mechanism, devices)
        slack = 3 * math.sqrt(bound * (1 - bound) / devices)
        goal = Goal("within the bound", right[-1] / devices <= bound + slack)
        rows.append(
            {
                "device": f"deniable {name}",
                "lifetime": mechanism.lifetime_epsilon,
                **_shares(right, devices),
                "bound": bound,
                "goal": goal,
            }
        )
    arguments = json.dumps([devices, STEPS, size, LIFETIME, EPSILON])
    output = subprocess.run(
        [python, "-c", _PEER, arguments], capture_output=True, text=True, check=True
    ).stdout
    guesses = np.array([json.loads(line) for line in output.splitlines()])
    hits = (guesses == np.arange(devices)[:, None] % size).sum(axis=0).tolist()
    odds = math.exp(LIFETIME)
    last = {"bound": odds / (odds + size - 1), "goal": None}
    rows.append(
        {
            "device": "multi-freq-ldpy L_SUE",
            "lifetime": LIFETIME,
            **_shares(hits, devices),
            **last,
        }
    )
    title = f"Value named rightly out of {size}, epsilon {EPSILON:g}"
    return Result("averaging", title, rows, f"{devices} devices each, one value all the time.")


def _shares(right: list[int], devices: int) -> dict[str, Cell]:
    return {
        f"{step:,} reports": Measured(hits / devices, _error(hits, devices))
        for step, hits in zip(STEPS, right, strict=True)
    }


def _error(hits: float, n: int) -> float:
    share = (hits + 1) / (n + 2)
    return math.sqrt(share * (1 - share) / n)


def variances() -> Result:
    """What one report of each mechanism with memory loses against the best without memory."""
    rows: list[dict[str, Cell]] = []

    def add(name: str, mechanism: Memoizing[Any], ratio: float, *, default: bool) -> None:
        rows.append(
            {
                "mechanism": name,
                "epsilon": mechanism.epsilon,
                "lifetime": mechanism.lifetime_epsilon,
                "variance / best": ratio,
                "goal": Goal("at most 1.05", ratio <= 1.05) if default else None,
            }
        )

    for size, epsilon, lifetime in (
        (2, 1.0, 2.0),
        (10, 1.0, 4.0),
        (100, 1.0, 4.0),
        (100, 2.0, 4.0),
    ):
        chosen = design_memoized("auto", "metric", size, epsilon, lifetime)
        name = chosen.name.replace("_", " ")
        ratio = loss(chosen, size, epsilon)
        add(f"auto, {size} values: {name}", chosen, ratio, default=True)
    add("auto, strings: memoized local hashing", *_strings("auto"), default=True)
    add("RAPPOR, default", *_strings("rappor"), default=True)
    add("RAPPOR, the paper's", *_strings("rappor_paper"), default=False)
    add("RAPPOR, Chromium's", *_strings("rappor_chromium"), default=False)
    note = "Closed lists: summed over all values. Strings: of a rare one, over 4e / (e-1)^2."
    return Result("variance", "Variance of one report with memory", rows, note)


def _strings(name: str) -> tuple[Memoizing[Any], float]:
    paper = Rappor.paper("metric")
    epsilon, lifetime = paper.epsilon, paper.lifetime_epsilon
    if name == "rappor_chromium":
        epsilon = Rappor.chromium("metric").epsilon
    mechanism = design_memoized(name, "metric", None, epsilon, lifetime)
    if isinstance(mechanism, Rappor):
        p, q, hashes = mechanism.rounds.p11, mechanism.rounds.p01, mechanism.bloom.h
    else:
        p, q, hashes = mechanism.p, mechanism.q, 1
    odds = math.exp(mechanism.epsilon)
    variance = float(q * (1 - q) / (hashes * (p - q) ** 2))
    return mechanism, variance / (4 * odds / (odds - 1) ** 2)


def enumerated(mechanism: MemoizedSubsetSelection | BasicRappor) -> float:
    """Epsilon of one report: both rounds multiplied out over all memos and reports."""
    size = mechanism.size
    if isinstance(mechanism, MemoizedSubsetSelection):
        sets = itertools.combinations(range(size), mechanism.k)
        reports = [sum(1 << column for column in columns) for columns in sets]
        memos = {
            item: [
                mechanism.permanent.p if memo == item else mechanism.permanent.q
                for memo in range(size)
            ]
            for item in range(size)
        }

        def fresh(memo: int, report: int) -> Fraction:
            columns = report if mechanism.k > 1 else report.bit_length() - 1
            return mechanism.fresh.likelihood(Report(0, columns), memo)
    else:
        reports = list(range(1 << size))
        flip = Fraction(mechanism.rounds.f, 2 << PRECISION)
        memos = {
            item: [_product((memo ^ 1 << item), size, flip) for memo in reports]
            for item in range(size)
        }

        def fresh(memo: int, report: int) -> Fraction:
            ones = Fraction(mechanism.rounds.q, 1 << PRECISION)
            zeros = Fraction(mechanism.rounds.p, 1 << PRECISION)
            likelihood = Fraction(1)
            for bit in range(size):
                chance = ones if memo >> bit & 1 else zeros
                likelihood *= chance if report >> bit & 1 else 1 - chance
            return likelihood

    worst = Fraction(1)
    for report in reports:
        after = [fresh(memo, report) for memo in range(len(memos[0]))]
        chances = [
            sum((a * b for a, b in zip(each, after, strict=True)), Fraction(0))
            for each in memos.values()
        ]
        worst = max(worst, max(chances) / min(chances))
    return math.log(worst)


def _product(flipped: int, size: int, flip: Fraction) -> Fraction:
    away = flipped.bit_count()
    return flip**away * (1 - flip) ** (size - away)


def published(lifetime: float, epsilon: float, size: int) -> MemoizedSubsetSelection:
    """LOLOHA's two rounds over `size` buckets as Arcolezi et al. (EDBT 2023) calibrate them."""
    long, short = math.exp(lifetime), math.exp(epsilon)
    p1 = long / (long + size - 1)
    q1 = (1 - p1) / (size - 1)
    p2 = (q1 - short * p1) / (-p1 * short + size * q1 * short - q1 * short - p1 * (size - 1) + q1)
    return MemoizedSubsetSelection(size, 1, int(p1 * 2**PRECISION), int(p2 * 2**PRECISION))


def chains() -> Result:
    """Declared epsilons of one report, and what they are."""
    rows: list[dict[str, Cell]] = []

    def add(name: str, declared: float, lifetime: float, epsilon: float, ours: bool) -> None:
        within = abs(declared - epsilon) <= 1e-6
        rows.append(
            {
                "chain": name,
                "lifetime": lifetime,
                "declared": declared,
                "enumerated": f"{epsilon:.9f}",
                "goal": Goal("equal to 1e-6", within) if ours else None,
            }
        )

    for epsilon, lifetime in ((0.5, 1.0), (1.0, 4.0), (3.0, 4.0)):
        selection = MemoizedSubsetSelection.design(6, epsilon, lifetime)
        add(f"subset selection, {selection.k} of 6", epsilon, lifetime, enumerated(selection), True)
        hashing = MemoizedLocalHashing.design("city", epsilon, lifetime).channel
        name = f"cohort local hashing, {hashing.size} buckets"
        add(name, epsilon, lifetime, enumerated(hashing), True)
    for epsilon, lifetime in ((0.5, 1.0), (1.0, 4.0), (3.0, 5.0)):
        rappor = BasicRappor.design(4, epsilon, lifetime)
        add("basic RAPPOR, 4 values", epsilon, lifetime, enumerated(rappor), True)
    loloha = published(4.0, 3.0, 15)
    add("published LOLOHA, its 15 buckets", 3.0, 4.0, enumerated(loloha), False)
    return Result("chains", "Exact epsilon of one report through both rounds", rows)


@click.command(help=__doc__)
@click.option("--json", "as_json", is_flag=True, help="Print JSON and nothing else.")
@click.option("--devices", default=400, show_default=True, help="Attacked in each row.")
@click.option(
    "--peers",
    "place",
    type=click.Path(path_type=Path, file_okay=False),
    default=peers.default_place,
    help="The peers' environment; made if it is not there.",
)
def main(as_json: bool, devices: int, place: Path) -> None:
    console = Console(stderr=True)
    results = [
        averaging(peers.prepare(place), devices, console),
        variances(),
        chains(),
    ]
    if as_json:
        click.echo(json.dumps({each.name: each.to_dict() for each in results}, indent=1))
        return
    for each in results:
        Console(width=None).print(each.table(), "")


if __name__ == "__main__":
    main()

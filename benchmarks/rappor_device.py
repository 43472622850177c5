"""RAPPOR and memory on a device: what a report costs, and what a thousand of them reveal.

Run: python benchmarks/rappor_device.py [--json] [--peers PLACE]

Time: a full report of 128 bits (Bloom filter, permanent response, instantaneous response),
beside one that answers bit by bit, in the same run. Averaging: one device in many with one
value all the time sends 1,000 reports, and the best possible attacker names its value;
multi-freq-ldpy's longitudinal RAPPOR draws the permanent response anew in every call and
leaves it to its caller to keep. Chains: the exact epsilon of the composed channel, beside
that of the published calibration with its own number of buckets.
"""

from __future__ import annotations

import json
import math
import subprocess
from collections.abc import Callable
from pathlib import Path
from random import SystemRandom
from typing import Any

import click
from rich.console import Console

from hearsay.hashing import hash64
from hearsay.mechanisms import BasicRappor, MemoizedLocalHashing, MemoizedSubsetSelection, Rappor
from hearsay.randomness import PRECISION
from oracles import peers
from oracles.tables import Cell, Goal, Result
from oracles.timing import microseconds_each

MICROSECONDS = 12.0
REPORTS = 1000
VALUES = 10
DEVICES = 400
PUBLISHED_BUCKETS = {(2.0, 1.0): 3, (4.0, 2.0): 7, (4.0, 3.0): 15, (5.0, 2.5): 11}
"""Lifetime and epsilon -> the number of buckets that the published formula gives."""

_SYSTEM = SystemRandom()
_STRINGS = [f"string {number}" for number in range(512)]


def bit_by_bit(mechanism: Rappor) -> Callable[[int], list[bool]]:
    """RAPPOR as a textbook writes it: a float for each bit of each round."""
    bloom, rounds = mechanism.bloom, mechanism.rounds
    f, p, q = (each / 2**PRECISION for each in (rounds.f, rounds.p, rounds.q))

    def report(number: int) -> list[bool]:
        text = _STRINGS[number]
        bits = [False] * bloom.k
        for each in range(bloom.h):
            bits[hash64(bloom.salt, 3 * bloom.h + each, text) % bloom.k] = True
        memo = []
        for bit in bits:
            kept = _SYSTEM.random()
            memo.append(kept < f / 2 if kept < f else bit)
        return [_SYSTEM.random() < (q if bit else p) for bit in memo]

    return report


def times() -> Result:
    """Microseconds of one report at 128 bits."""
    paper = Rappor.paper("homepage")
    tuned = Rappor.design("homepage", paper.epsilon, paper.lifetime_epsilon)
    rows: list[dict[str, Cell]] = []
    for name, mechanism in (("paper's parameters", paper), ("default", tuned)):
        memos = {mechanism.cell(3, text): mechanism.memoize(1) for text in _STRINGS}

        def known(number: int, mechanism: Rappor = mechanism, memos: Any = memos) -> object:
            return mechanism.report(3, memos[mechanism.cell(3, _STRINGS[number])])

        def new(number: int, mechanism: Rappor = mechanism) -> object:
            return mechanism.report(3, mechanism.memoize(mechanism.cell(3, _STRINGS[number])))

        naive = microseconds_each(bit_by_bit(mechanism), len(_STRINGS), 200, rounds=9)
        for memory, call in (("looked up", known), ("drawn", new)):
            ours = microseconds_each(call, len(_STRINGS), 400, rounds=25)
            rows.append(
                {
                    "RAPPOR, 128 bits": name,
                    "permanent response": memory,
                    "hearsay, us": ours,
                    "bit by bit, us": naive if memory == "drawn" else None,
                    "goal": Goal(f"at most {MICROSECONDS:g}", ours <= MICROSECONDS),
                }
            )
    return Result("time", "One report on the device", rows)


_PEER = """
import json, sys
import numpy as np
from multi_freq_ldpy.long_freq_est.L_SUE import L_SUE_Client
devices, reports, values, lifetime, epsilon = json.loads(sys.argv[1])
for device in range(devices):
    ones = sum(L_SUE_Client(device % values, values, lifetime, epsilon) for _ in range(reports))
    print(json.dumps([int(each) for each in ones]))
"""


def averaging(python: Path) -> Result:
    """How often the value of a device is named after 1,000 reports, out of ten."""
    epsilon, lifetime = 1.0, 2.0
    mechanism = BasicRappor.design(VALUES, epsilon, lifetime)

    def ones(item: int, *, memory: bool) -> list[int]:
        cell = mechanism.cell(0, item)
        memo = mechanism.memoize(cell)
        counts = [0] * VALUES
        for _ in range(REPORTS):
            columns = mechanism.report(0, memo if memory else mechanism.memoize(cell)).columns
            for bit in range(VALUES):
                counts[bit] += columns >> bit & 1
        return counts

    def named(devices: list[list[int]]) -> float:
        # With memory or without, a value is the likelier the more often its bit was 1.
        right = [
            max(range(VALUES), key=counts.__getitem__) == device % VALUES
            for device, counts in enumerate(devices)
        ]
        return sum(right) / len(right)

    arguments = json.dumps([DEVICES, REPORTS, VALUES, lifetime, epsilon])
    output = subprocess.run(
        [python, "-c", _PEER, arguments], capture_output=True, text=True, check=True
    ).stdout
    seen = {
        "hearsay": [ones(device % VALUES, memory=True) for device in range(DEVICES)],
        "hearsay, its memory switched off": [
            ones(device % VALUES, memory=False) for device in range(DEVICES)
        ],
        "multi-freq-ldpy L_SUE": [json.loads(line) for line in output.splitlines()],
    }
    odds = float(mechanism.lifetime_odds)
    bound = odds / (odds + VALUES - 1)
    rows: list[dict[str, Cell]] = []
    for name, devices in seen.items():
        share = named(devices)
        error = math.sqrt(bound * (1 - bound) / DEVICES)
        rows.append(
            {
                "device": name,
                "named rightly": share,
                "bound of a memo": bound,
                "goal": Goal("within the bound", share <= bound + 2 * error)
                if name == "hearsay"
                else None,
            }
        )
    title = f"Averaging {REPORTS:,} reports of one value out of {VALUES}, epsilon 1, lifetime 2"
    return Result("averaging", title, rows, f"{DEVICES} devices each; guessing names 0.1 of them.")


def published(lifetime: float, epsilon: float) -> float:
    """The exact epsilon of the chain as Arcolezi et al. (EDBT 2023) calibrate it."""
    size = PUBLISHED_BUCKETS[lifetime, epsilon]
    long, short = math.exp(lifetime), math.exp(epsilon)
    p1 = long / (long + size - 1)
    q1 = (1 - p1) / (size - 1)
    p2 = (q1 - short * p1) / (-p1 * short + size * q1 * short - q1 * short - p1 * (size - 1) + q1)
    one = 2**PRECISION
    return MemoizedSubsetSelection(size, 1, int(p1 * one), int(p2 * one)).epsilon


def chains() -> Result:
    """Declared and exact epsilons of memoized chains."""
    rows: list[dict[str, Cell]] = []
    for lifetime, epsilon in PUBLISHED_BUCKETS:
        hashing = MemoizedLocalHashing.design("homepage", epsilon, lifetime)
        selection = MemoizedSubsetSelection.design(20, epsilon, lifetime)
        rows.append(
            {
                "lifetime": lifetime,
                "epsilon": epsilon,
                "buckets": hashing.width,
                "local hashing": f"{hashing.epsilon:.9f}",
                "published": f"{published(lifetime, epsilon):.3f}",
                "subset selection, 20 values": f"{selection.epsilon:.9f}",
                "goal": Goal(
                    "to 1e-6",
                    all(
                        0 <= epsilon - each.epsilon + 1e-15 < 1e-6 for each in (hashing, selection)
                    ),
                ),
            }
        )
    return Result("chains", "Exact epsilon of one report through both rounds", rows)


@click.command(help=__doc__)
@click.option("--json", "as_json", is_flag=True, help="Print JSON and nothing else.")
@click.option(
    "--peers",
    "place",
    type=click.Path(path_type=Path, file_okay=False),
    default=peers.default_place,
    help="The peers' environment; made if it is not there.",
)
def main(as_json: bool, place: Path) -> None:
    results = [times(), averaging(peers.prepare(place)), chains()]
    if as_json:
        click.echo(json.dumps({each.name: each.to_dict() for each in results}, indent=1))
        return
    for each in results:
        Console(width=None).print(each.table(), "")


if __name__ == "__main__":
    main()

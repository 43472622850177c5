"""Devices that remember: what averaging many reports of one device reveals.

A device holds one of ten values all the time, and the best possible attacker, who knows the
mechanism and its public hashes, names it from up to 1,000 reports. The bound is what the epsilon of
one memo allows for ten equally likely values. The baseline is multi-freq-ldpy's longitudinal RAPPOR
(L_SUE), which draws its permanent response anew in every call.
"""

from __future__ import annotations

import json
import math
import subprocess
from collections.abc import Iterator
from typing import Any

import numpy as np

from common import peers
from common.tables import Cell, Goal, Measured, Table, run
from deniable.protocol.mechanisms import Memoizing
from deniable.protocol.mechanisms.hashed import MemoizedLocalHashing
from deniable.protocol.mechanisms.rappor import BasicRappor, Rappor
from deniable.protocol.mechanisms.subset_selection import MemoizedSubsetSelection
from deniable.protocol.randomness import PRECISION, below

REPORTS = 1000
STEPS = (1, 10, 100, REPORTS)
VALUES = [f"string {number}" for number in range(10)]
EPSILON, LIFETIME = 1.0, 2.0

PEER = """
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


def averaging(quick: bool) -> Iterator[Table]:
    size, devices = len(VALUES), 100 if quick else 1000
    table = Table("memory-averaging", f"Value named rightly out of {size}, epsilon {EPSILON:g}")
    for name, mechanism in (
        ("subset selection", MemoizedSubsetSelection.design(size, EPSILON, LIFETIME)),
        ("cohort local hashing", MemoizedLocalHashing.design("city", EPSILON, LIFETIME)),
        ("basic RAPPOR", BasicRappor.design(size, EPSILON, LIFETIME)),
        ("RAPPOR", Rappor.design("city", EPSILON, LIFETIME)),
        ("RAPPOR, the paper's parameters", Rappor.paper("city")),
    ):
        lifetime = mechanism.lifetime_epsilon
        table.rows.append(
            named_row(f"deniable {name}", lifetime, named(mechanism, devices), devices)
        )
    arguments = json.dumps([devices, STEPS, size, LIFETIME, EPSILON])
    output = subprocess.run(
        [peers.python(), "-c", PEER, arguments], capture_output=True, text=True, check=True
    ).stdout
    guesses = np.array([json.loads(line) for line in output.splitlines()])
    right = (guesses == np.arange(devices)[:, None] % size).sum(axis=0).tolist()
    table.rows.append(named_row("multi-freq-ldpy L_SUE", LIFETIME, right, devices))
    yield table


def named_row(device: str, lifetime: float, right: list[int], devices: int) -> dict[str, Cell]:
    odds = math.exp(lifetime)
    bound = odds / (odds + len(VALUES) - 1)
    slack = 3 * math.sqrt(bound * (1 - bound) / devices)
    row: dict[str, Cell] = {"device": device, "lifetime": lifetime}
    for step, hits in zip(STEPS, right, strict=True):
        share = (hits + 1) / (devices + 2)
        row[f"{step:,} reports"] = Measured(
            hits / devices, math.sqrt(share * (1 - share) / devices)
        )
    row["bound"] = bound
    row["goal"] = Goal("within the bound", right[-1] / devices <= bound + slack)
    return row


if __name__ == "__main__":
    run(__doc__, {"averaging": averaging})

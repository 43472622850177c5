"""The pictures of docs/how/, each computed from the mechanisms that devices run."""

from __future__ import annotations

import math
from collections.abc import Callable

from deniable.mechanisms import (
    FrequencyOracle,
    HadamardResponse,
    MemoizedSubsetSelection,
    ProjectiveGeometry,
    SubsetSelection,
    UnaryEncoding,
)
from explained.drawings import debias, discoveries, plane, tree
from explained.svg import Axis, Line, lines

__all__ = ["PICTURES"]

EPSILONS = (0.5, 1.0, 2.0, 4.0)


def odds() -> str:
    """What a guess becomes after one report."""
    priors = [step / 100 for step in range(101)]
    drawn = [
        Line(
            f"epsilon {epsilon:g}",
            [(p, p * math.exp(epsilon) / (1 + p * math.expm1(epsilon))) for p in priors],
        )
        for epsilon in EPSILONS
    ]
    ticks = (0, 0.25, 0.5, 0.75, 1)
    before = Axis("probability before the report", ticks, "{:.0%}".format)
    after = Axis("largest probability after it", ticks, "{:.0%}".format)
    return lines("How far one report can move a guess", before, after, drawn)


def _sum_of_variances(oracle: FrequencyOracle, size: int) -> float:
    """n times the sum of the variances of all shares; it does not depend on the shares."""
    p, q = float(oracle.p), float(oracle.q)
    return (p * (1 - p) + (size - 1) * q * (1 - q)) / (p - q) ** 2


def oracles() -> str:
    """The error of each frequency oracle over the least possible one."""
    epsilon = 2.0
    sizes = sorted({round(2 * 1.35**step) for step in range(21)})
    unary = UnaryEncoding.optimized(2, epsilon)
    found: dict[str, Callable[[int], FrequencyOracle]] = {
        "subset selection": lambda size: SubsetSelection.design(size, epsilon),
        "randomized response": lambda size: SubsetSelection.design(size, epsilon, 1),
        "projective geometry": lambda size: ProjectiveGeometry.design(size, epsilon),
        "unary, optimized": lambda size: unary,
        "Hadamard response": lambda size: HadamardResponse.design(size, epsilon),
    }
    drawn = []
    for name, design in found.items():
        points = []
        for size in sizes:
            least = _sum_of_variances(SubsetSelection.design(size, epsilon), size)
            points.append((size, _sum_of_variances(design(size), size) / least))
        drawn.append(Line(name, points))
    return lines(
        "The error of frequency oracles at epsilon 2",
        Axis("values (epsilon 2)", (2, 5, 10, 20, 50, 100, 200, 500, 1000), logarithmic=True),
        Axis("variance over the least possible", (0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4)),
        drawn,
    )


def crowd() -> str:
    """The standard error of a rare value, by the number of devices."""
    devices = [10 ** (step / 4) for step in range(12, 25)]
    drawn = []
    for epsilon in EPSILONS:
        oracle = SubsetSelection.design(10, epsilon)
        p, q = float(oracle.p), float(oracle.q)
        one = math.sqrt(q * (1 - q)) / (p - q)
        drawn.append(Line(f"epsilon {epsilon:g}", [(n, 100 * one / math.sqrt(n)) for n in devices]))
    thousands = (1e3, 1e4, 1e5, 1e6)
    return lines(
        "The standard error of a rare value among ten",
        Axis("devices that report", thousands, lambda n: f"{n:,.0f}", logarithmic=True),
        Axis("standard error, points", (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30), logarithmic=True),
        drawn,
    )


def _majority(right: float, reports: int) -> float:
    """How often the majority of so many answers is right; a tie is decided by a coin."""
    chances = [
        math.comb(reports, k) * right**k * (1 - right) ** (reports - k) for k in range(reports + 1)
    ]
    return sum(
        chance * (1 if 2 * k > reports else 0.5 if 2 * k == reports else 0)
        for k, chance in enumerate(chances)
    )


def averaging() -> str:
    """How often the best guess names a boolean that stays, after many reports."""
    reports = [1, 3, 5, 7, 9, 13, 19, 29, 45, 69, 99]
    fresh = float(SubsetSelection.design(2, 1.0).p)
    chain = MemoizedSubsetSelection.design(2, 1.0, 3.0)
    memo, again = float(chain.permanent.p), float(chain.fresh.p)

    def with_memo(count: int) -> float:
        known = _majority(again, count)
        return memo * known + (1 - memo) * (1 - known)

    drawn = [
        Line("new noise, no ledger", [(t, _majority(fresh, t)) for t in reports]),
        Line("new noise, ledger of 3", [(t, _majority(fresh, min(t, 3))) for t in reports]),
        Line("memo with epsilon 3", [(t, with_memo(t)) for t in reports]),
    ]
    return lines(
        "How often an attacker names a boolean that never changes",
        Axis("reports of the device, epsilon 1 each", (1, 3, 10, 30, 100), logarithmic=True),
        Axis("right guesses", (0.5, 0.6, 0.7, 0.8, 0.9, 1), "{:.0%}".format),
        drawn,
    )


PICTURES = {
    "odds": odds,
    "oracles": oracles,
    "crowd": crowd,
    "averaging": averaging,
    "debias": debias,
    "tree": tree,
    "plane": plane,
    "discoveries": discoveries,
}
"""The file of each picture in docs/images/how/, without its ending."""

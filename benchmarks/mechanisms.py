"""What one report costs a device, beside a naive baseline measured in the same run.

The baselines are written as one would without care for speed: a subset by
`SystemRandom().sample`, sorted; a point of a hyperplane by one `secrets.randbelow` per
coordinate; bits by one `SystemRandom().random()` each.

Run: python benchmarks/mechanisms.py
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from random import SystemRandom

from rich.console import Console
from rich.table import Table

from deniable.mechanisms import (
    STRING_DESIGNS,
    ProjectiveGeometry,
    SubsetSelection,
    UnaryEncoding,
    design,
    design_string,
)

SIZES = (2, 10, 100, 1024, 10**5, 10**6)
EPSILONS = (0.5, 1.0, 2.0, 4.0)
ROUNDS = 25
_SYSTEM = SystemRandom()


def microseconds(call: Callable[[int], object], size: int, calls: int = 100) -> float:
    """The smallest mean CPU time of one call over many short rounds, in microseconds."""
    items = [number * 7919 % size for number in range(calls)]
    best = float("inf")
    for _ in range(ROUNDS):
        begin = time.process_time()
        for item in items:
            call(item)
        best = min(best, time.process_time() - begin)
    return best / calls * 1e6


def naive_subset(mechanism: SubsetSelection) -> Callable[[int], list[int]]:
    """Subset selection as a textbook writes it, with floats and a sorted sample."""
    size, k, p = mechanism.size, mechanism.k, float(mechanism.p)

    def randomize(item: int) -> list[int]:
        truthful = _SYSTEM.random() < p
        others = _SYSTEM.sample(range(size - 1), k - truthful)
        chosen = [other + (other >= item) for other in others]
        if truthful:
            chosen.append(item)
        return sorted(chosen)

    return randomize


def naive_point(mechanism: ProjectiveGeometry) -> Callable[[int], list[int]]:
    """Projective geometry response, coordinate by coordinate; not even turned into an index."""
    order, dimension, p = mechanism.order, mechanism.dimension, float(mechanism.p)

    def randomize(item: int) -> list[int]:
        value = mechanism.coordinates(item)
        lead = value.index(1)
        target = 0 if _SYSTEM.random() < p else 1 + secrets.randbelow(order - 1)
        vector = [secrets.randbelow(order) for _ in range(dimension)]
        vector[lead] = 0
        vector[lead] = (target - sum(a * b for a, b in zip(vector, value, strict=True))) % order
        scale = pow(next(each for each in vector if each), -1, order) if any(vector) else 0
        return [each * scale % order for each in vector]

    return randomize


def naive_bits(mechanism: UnaryEncoding) -> Callable[[int], list[bool]]:
    """Unary encoding, bit by bit."""
    p, q = float(mechanism.p), float(mechanism.q)

    def randomize(item: int) -> list[bool]:
        return [_SYSTEM.random() < (p if bit == item else q) for bit in range(mechanism.size)]

    return randomize


def main() -> None:
    table = Table(title=f"One report on the device (microseconds, smallest of {ROUNDS} rounds)")
    for column in ("mechanism", "values", "epsilon", "bytes", "deniable", "naive"):
        table.add_column(column, justify="left" if column == "mechanism" else "right")
    cases: list[tuple[str, int, float]] = [
        ("auto", size, epsilon) for size in SIZES for epsilon in EPSILONS
    ]
    cases += [("optimized_unary_encoding", 1024, 1.0), ("hadamard_response", 10**6, 1.0)]
    for name, size, epsilon in cases:
        mechanism = design(name, size, epsilon)
        naive: Callable[[int], object] | None = None
        if isinstance(mechanism, SubsetSelection):
            naive = naive_subset(mechanism)
        elif isinstance(mechanism, ProjectiveGeometry):
            naive = naive_point(mechanism)
        elif isinstance(mechanism, UnaryEncoding):
            naive = naive_bits(mechanism)
        table.add_row(
            mechanism.name,
            f"{size:,}",
            f"{epsilon:g}",
            str(mechanism.rows[0].report_bytes),
            f"{microseconds(mechanism.randomize, size):.1f}",
            f"{microseconds(naive, size):.1f}" if naive else "",
        )
    strings = [f"string {number}" for number in range(1000)]
    for name in STRING_DESIGNS:
        hashed = design_string(name, "city", 2.0)
        table.add_row(
            name,
            "strings",
            "2",
            str(hashed.rows[0].report_bytes),
            f"{microseconds(lambda item, draw=hashed.randomize: draw(strings[item]), 1000):.1f}",
            "",
        )
    Console().print(table)


if __name__ == "__main__":
    main()

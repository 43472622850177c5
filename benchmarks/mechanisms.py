"""What one report costs a device, beside a naive baseline measured in the same run.

The baseline draws the same k-subset with `SystemRandom().sample` and sorts it, or, where
the report is one index, makes the same projective-geometry report with one call to
`secrets.randbelow` per coordinate. Run: python benchmarks/mechanisms.py
"""

from __future__ import annotations

import time
from collections.abc import Callable
from random import SystemRandom

from rich.console import Console
from rich.table import Table

from hearsay.mechanisms import SubsetSelection, design

SIZES = (10, 100, 1024)
EPSILONS = (0.5, 1.0, 2.0, 4.0)
ROUNDS = 7
_SYSTEM = SystemRandom()


def microseconds(call: Callable[[int], object], size: int, calls: int = 400) -> float:
    """The smallest mean time of one call over a few rounds, in microseconds."""
    items = [number * 7919 % size for number in range(calls)]
    best = float("inf")
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        for item in items:
            call(item)
        best = min(best, time.perf_counter() - begin)
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


def main() -> None:
    table = Table(title="One report on the device (microseconds, smallest of 7 rounds)")
    for column in ("mechanism", "values", "epsilon", "bytes", "hearsay", "naive"):
        table.add_column(column, justify="left" if column == "mechanism" else "right")
    for size in SIZES:
        for epsilon in EPSILONS:
            mechanism = design("auto", size, epsilon)
            assert isinstance(mechanism, SubsetSelection)
            table.add_row(
                f"{mechanism.name}, k = {mechanism.k}",
                f"{size:,}",
                f"{epsilon:g}",
                str(mechanism.rows[0].report_bytes),
                f"{microseconds(mechanism.randomize, size):.1f}",
                f"{microseconds(naive_subset(mechanism), size):.1f}",
            )
    Console().print(table)


if __name__ == "__main__":
    main()

"""What one report of a number costs a device, beside subset selection in the same run.

Each time is that of all that happens between the merged number and the report: its position, and
the draws from the operating system's randomness. The last column has the time to design the
mechanism from the registry, which happens once in the life of a process.

Run: python benchmarks/number_device.py
"""

from __future__ import annotations

import time
from collections.abc import Callable

from rich.console import Console
from rich.table import Table

from deniable.mechanisms import HierarchicalHistogram, NumberRange, SlidingWindow, SubsetSelection
from deniable.mechanisms.sliding_window import _solve

EPSILONS = (0.5, 1.0, 2.0, 4.0)
ROUNDS = 25
CALLS = 400
GOAL = 10.0
"""Microseconds a report."""

RANGES = {
    "linear": NumberRange("0.05", "20"),
    "log": NumberRange("0.05", "20", "log"),
}


def least(call: Callable[[], object], rounds: int = ROUNDS) -> float:
    """The smallest CPU time of many calls, in microseconds."""
    best = float("inf")
    for _ in range(rounds):
        begin = time.process_time_ns()
        call()
        best = min(best, (time.process_time_ns() - begin) / 1e3)
    return best


def designed(make: Callable[[], object]) -> float:
    """The time of one design that is not remembered, in milliseconds."""

    def once() -> None:
        _solve.cache_clear()
        make()

    return least(once, 10) / 1e3


def main() -> None:
    """Print the table."""
    values = [0.01 * (number * 7919 % 2500) for number in range(CALLS)]
    table = Table(title=f"CPU time of a report, {CALLS} numbers across the range; goal {GOAL:g} us")
    for heading in ("mechanism", "scale", "epsilon", "us a report", "goal", "design, ms"):
        table.add_column(heading, justify="left" if heading in ("mechanism", "scale") else "right")
    for epsilon in EPSILONS:
        for scale, numbers in RANGES.items():
            designs: dict[str, Callable[[], SlidingWindow | HierarchicalHistogram]] = {
                "sliding window": lambda n=numbers, e=epsilon: SlidingWindow.design(n, e),
                "one bit (duchi)": lambda n=numbers, e=epsilon: SlidingWindow.design(n, e, 2),
            }
            for cells in (64, 256, 1024):
                designs[f"histogram, {cells:,} cells"] = lambda n=numbers, e=epsilon, c=cells: (
                    HierarchicalHistogram.design(n, e, c)
                )
            designs["histogram, 256 cells, and mean"] = lambda n=numbers, e=epsilon: (
                HierarchicalHistogram.design(n, e, mean=True)
            )
            for name, make in designs.items():
                mechanism = make()

                def reports(m: SlidingWindow | HierarchicalHistogram = mechanism) -> None:
                    for value in values:
                        m.randomize(m.range.position(value))

                each = least(reports) / CALLS
                goal = "yes" if each <= GOAL else "no"
                cost = f"{designed(make):.1f}"
                table.add_row(name, scale, f"{epsilon:g}", f"{each:.2f}", goal, cost)
        for size in (2, 64, 256):
            selection = SubsetSelection.design(size, epsilon)
            items = [number * 7919 % size for number in range(CALLS)]

            def subsets(m: SubsetSelection = selection, items: list[int] = items) -> None:
                for item in items:
                    m.randomize(item)

            each = least(subsets) / CALLS
            table.add_row(f"subset selection, {size} values", "", f"{epsilon:g}", f"{each:.2f}")
        table.add_section()
    Console(width=110).print(table)


if __name__ == "__main__":
    main()

"""What all benchmarks share: tables, how they are run and printed, and CPU time.

Each script ends with `run(__doc__, PARTS)`: a part is a function of `quick` that makes tables.
`--save` writes them as CSV beside the scripts, into tables/.
"""

from __future__ import annotations

import csv
import math
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import click
import rich.table
from rich.console import Console

SAVED = Path(__file__).parents[1] / "tables"


class Measured(NamedTuple):
    """A simulated figure with its standard error (NaN: only one repetition, so unknown)."""

    value: float
    error: float

    def __str__(self) -> str:
        error = "?" if math.isnan(self.error) else number(self.error, 1)
        return f"{number(self.value)} ± {error}"


class Goal(NamedTuple):
    """What a row should reach, and whether it does."""

    text: str
    met: bool

    def __str__(self) -> str:
        return f"{self.text} {'yes' if self.met else 'NO'}"


Cell: TypeAlias = str | float | Measured | Goal | None


@dataclass
class Table:
    """All rows have the keys of the first, which are the columns; `name` is that of the file."""

    name: str
    title: str
    note: str = ""
    rows: list[Mapping[str, Cell]] = field(default_factory=list)

    def add(self, **cells: Cell) -> None:
        """A row whose columns have plain names."""
        self.rows.append(cells)

    def show(self) -> None:
        """Print it for people."""
        table = rich.table.Table(title=self.title, caption=self.note, caption_justify="left")
        for column, cell in self.rows[0].items():
            table.add_column(column, justify="left" if isinstance(cell, str) else "right")
        for row in self.rows:
            table.add_row(*map(text, row.values()))
        Console(width=None if sys.stdout.isatty() else 150).print(table, "")

    def save(self) -> None:
        """Write it as tables/NAME.csv."""
        with (SAVED / f"{self.name}.csv").open("w", newline="", encoding="utf-8") as file:
            lines = csv.writer(file, lineterminator="\n")
            lines.writerow(self.rows[0])
            lines.writerows(map(text, row.values()) for row in self.rows)


def number(value: float, digits: int = 3) -> str:
    """With so many significant digits, and commas."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    if float(value).is_integer() and abs(value) < 1e15:
        return f"{value:,.0f}"
    if abs(value) < 1e-6:
        return f"{value:.0e}"
    decimals = digits - 1 - math.floor(math.log10(abs(value)))
    return f"{value:,.{max(decimals, 0)}f}"


def text(cell: Cell) -> str:
    """A cell as people and CSV files read it."""
    if cell is None:
        return ""
    return number(cell) if isinstance(cell, (int, float)) else str(cell)


def cpu_seconds(call: Callable[[], Any], rounds: int = 5) -> float:
    """CPU seconds of one call, the smallest of some: the machine is shared, and noise only adds."""

    def once() -> float:
        begin = time.process_time()
        call()
        return time.process_time() - begin

    return min(once() for _ in range(rounds))


def run(doc: str, parts: Mapping[str, Callable[[bool], Iterable[Table]]]) -> None:
    """The command of a script."""

    @click.command(help=doc)
    @click.option("--quick", is_flag=True, help="Fewer repetitions.")
    @click.option("--only", multiple=True, type=click.Choice(list(parts)), help="This part alone.")
    @click.option("--save", is_flag=True, help="Write the tables into benchmarks/tables.")
    def main(quick: bool, only: tuple[str, ...], save: bool) -> None:
        for name in only or parts:
            for table in parts[name](quick):
                table.show()
                if save:
                    table.save()

    main()

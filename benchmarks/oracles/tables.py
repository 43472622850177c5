"""Results as data, printed as tables for people or as JSON for programs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from rich.table import Table

__all__ = ["Cell", "Goal", "Measured", "Result"]


class Measured(NamedTuple):
    """A simulated figure with its standard error (NaN: only one repetition, so unknown)."""

    value: float
    error: float

    def __str__(self) -> str:
        if math.isnan(self.error):
            return f"{number(self.value)} ± ?"
        return f"{number(self.value)} ± {number(self.error, 1)}"


class Goal(NamedTuple):
    """What a row should reach, and whether it does."""

    text: str
    met: bool

    def __str__(self) -> str:
        return f"[{'green' if self.met else 'red'}]{self.text} {'yes' if self.met else 'NO'}[/]"


Cell: TypeAlias = str | float | Measured | Goal | None


@dataclass(frozen=True)
class Result:
    """One table: rows are mappings with the same keys, which are the columns."""

    name: str
    title: str
    rows: Sequence[dict[str, Cell]]
    note: str = ""
    detail: dict[str, Any] = field(default_factory=dict)
    """What JSON carries beside the table."""

    def table(self) -> Table:
        """The table as rich prints it."""
        table = Table(title=self.title, caption=self.note, caption_justify="left")
        for column, cell in self.rows[0].items():
            table.add_column(column, justify="left" if isinstance(cell, str) else "right")
        for row in self.rows:
            table.add_row(*(_text(cell) for cell in row.values()))
        return table

    def to_dict(self) -> dict[str, Any]:
        """The table and its detail as JSON carries them."""
        rows = [{column: _plain(cell) for column, cell in row.items()} for row in self.rows]
        return {"title": self.title, "note": self.note, "rows": rows, **self.detail}


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


def _text(cell: Cell) -> str:
    if cell is None:
        return "—"
    return number(cell) if isinstance(cell, (int, float)) else str(cell)


def _plain(cell: Cell) -> Any:
    if isinstance(cell, (Measured, Goal)):
        return {
            key: None if isinstance(value, float) and math.isnan(value) else value
            for key, value in cell._asdict().items()
        }
    return cell

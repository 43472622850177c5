"""The registry's keys of a number: what each may hold, and what several say together."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from deniable.protocol.errors import SchemeError
from deniable.protocol.mechanisms.dbitflip import CELLS as MEMOIZED_CELLS
from deniable.protocol.mechanisms.dbitflip import DBITFLIP_CELLS
from deniable.protocol.mechanisms.hierarchical_histogram import CELLS
from deniable.protocol.mechanisms.number_range import NumberRange, number_text
from deniable.protocol.types.base import Table

Ask: TypeAlias = Literal["mean", "distribution"]

QUESTIONS: tuple[Ask, ...] = ("mean", "distribution")
"""What `ask` may name."""

CELL_CHOICES = (16, 64, 256, 1024)
"""What `cells` may say."""

ADVICE = {
    "low": ": the smallest number that you want to tell apart",
    "high": ": the largest number that you want to tell apart",
    "ask": ': "mean", "distribution" or both. A mean alone takes far fewer devices',
}
"""What each required key is for."""


def check_cells(value: Any) -> str | None:
    """What is wrong with the value of `cells`; None if nothing is."""
    fine = type(value) is int and value in CELL_CHOICES
    return None if fine else f"must be one of {', '.join(map(str, CELL_CHOICES))}"


def read_range(table: Table) -> NumberRange | None:
    """The range that the keys declare, all of which are of their kind; mistakes are reported."""
    settings = table.settings
    scale, integer = settings.get("scale", "linear"), settings.get("integer", False)
    broken = [key for key in ("low", "high") if not float(settings[key]).is_integer()]
    if integer and broken:
        for key in broken:
            table.report(key, f"is {settings[key]}, but integer says that numbers are whole")
        return None
    low, high = (number_text(float(settings[key])) for key in ("low", "high"))
    try:
        return NumberRange(low, high, scale, integer)
    except SchemeError as error:
        table.report("integer" if integer and scale == "log" else "low", str(error))
        return None


def read_cells(table: Table, asked: tuple[Ask, ...]) -> int | None:
    """Into how many cells a distribution is cut; None, after a report, if there are none so."""
    settings = table.settings
    if "cells" in settings and "distribution" not in asked:
        table.report("cells", 'cuts a distribution: add "distribution" to ask, or remove it')
    memoize = settings.get("longitudinal") == "memoize"
    cells = settings.get("cells", MEMOIZED_CELLS if memoize else CELLS)
    if memoize and "mean" in asked:
        table.report(
            "longitudinal",
            'is memoize, but a mean has no memos: set ask = "distribution", which also tells '
            'the mean less exactly, or longitudinal = "fresh"',
        )
        return None
    if memoize and cells not in DBITFLIP_CELLS:
        table.report(
            "cells",
            f"is {cells}: with memos a distribution has at most {DBITFLIP_CELLS[-1]}, because "
            "its noise grows with their number",
        )
        return None
    return int(cells)

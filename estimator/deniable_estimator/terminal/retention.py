"""Who comes back in a terminal: the lifecycle with its growth, the average curve, and the triangle.

Importing this file registers how a retention is shown (`estimate_view`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from deniable_estimator.answers.retention import RetentionAnswer
from deniable_estimator.answers.retention_words import (
    devices_between,
    devices_text,
    finding_words,
    impossible_words,
    quick_text,
)
from deniable_estimator.answers.units import half_width
from deniable_estimator.terminal.tables import alarms, estimate_view, heading, picture

_ROWS = 14
"""How many windows and cohorts are shown; CSV and JSON have all."""


@estimate_view.register
def _(
    answer: RetentionAnswer,
    truth: Mapping[str, float] | None = None,
    limits: Any = (),
    given: Any = None,
) -> RenderableType:
    """All series with their intervals; with `truth`, by series, beside them."""
    parts: list[RenderableType] = [heading(answer)]
    if answer.n:
        parts += [Text(finding_words(answer), style="bold"), _series_table(answer, truth)]
        if answer.growth:
            parts += ["", _growth_table(answer)]
        if rows := answer.rows():
            parts += ["", _triangle(answer, rows)]
        parts.append(
            Text(
                f"Poisoning budget: {answer.fakes * 100:.3g}% fake devices could add up to "
                f"{answer.unit.text(answer.budget, answer.budget)} points to any one number.",
                style="dim",
            )
        )
    if wrong := impossible_words(answer):
        parts.append(Text(wrong, style="bold red"))
    parts += [Text(f"Note: {warning}.", style="yellow") for warning in answer.warnings]
    return Group(*parts, *alarms(answer))


def _series_table(answer: RetentionAnswer, truth: Mapping[str, float] | None) -> Table:
    table = Table(box=None, header_style="bold", padding=(0, 1, 0, 0))
    table.add_column("devices", vertical="bottom")
    for name in (
        *(("truth\n%",) if truth else ()),
        "share\n%",
        f"{answer.level * 100:.3g}% interval\n%",
    ):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column(f"\n0{100:>19}", no_wrap=True)
    series, unit = answer.series, answer.unit
    columns = (series.value, series.low, series.high)
    for name, value, low, high in zip(series.names, *map(list, columns), strict=True):
        spread = half_width(value, low, high)
        cells = [Text(unit.label(name))]
        if truth:
            cells.append(Text(unit.text(truth.get(name, math.nan), 0.001)))
        known = not math.isnan(value)
        between = f"{unit.text(low, spread)} .. {unit.text(high, spread)}" if known else ""
        cells += [Text(unit.text(value, spread)), Text(between)]
        cells.append(picture(low, value, high, 1.0) if known else Text())
        table.add_row(*cells, style=None if known else "dim")
    return table


def _growth_table(answer: RetentionAnswer) -> Table:
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column(answer.window, no_wrap=True)
    for name in ("active", "new", "stayed", "returned", "lost", "interval", "came for\neach lost"):
        table.add_column(name, justify="right", no_wrap=True, vertical="bottom")
    for each in answer.growth[-_ROWS:]:
        lost = (
            ("", "") if each.lost is None else (devices_text(each.lost), devices_between(each.lost))
        )
        table.add_row(
            each.window,
            f"{each.active:,.0f}",
            *map(devices_text, each[2:5]),
            *lost,
            quick_text(each),
        )
    return table


def _triangle(answer: RetentionAnswer, rows: list[tuple[Any, ...]]) -> Table:
    """Percent of each cohort, in whole points; a question mark where its devices are too few."""
    table = Table(box=None, header_style="bold", padding=(0, 1, 0, 0))
    table.add_column("first\nactive in", no_wrap=True)
    table.add_column("counted", justify="right", no_wrap=True, vertical="bottom")
    ages = max(age for _, _, age, *_ in rows)
    for age in range(1, ages + 1):
        table.add_column(f"{age}", justify="right", no_wrap=True, vertical="bottom")
    found: dict[str, dict[int, Text]] = {}
    began: dict[str, float] = {}
    for cohort, _, age, devices, value, _, low, high, _ in rows:
        began[cohort] = devices
        text = "?" if value is None else f"{value * 100:.0f}"
        wide = value is None or high - low > 0.2
        found.setdefault(cohort, {})[age] = Text(text, style="dim" if wide else "")
    for cohort, cells in list(found.items())[-_ROWS:]:
        table.add_row(
            cohort,
            f"{max(0.0, began[cohort]):,.0f}",
            *(cells.get(age, "") for age in range(1, ages + 1)),
        )
    table.caption = (
        f"% active so many {answer.window}s later. Dim: known to ±10 points at best; ?: too few "
        "devices."
    )
    table.caption_justify = "left"
    return table

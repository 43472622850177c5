"""A metric by segments in a terminal: each series with one line for each segment."""

from __future__ import annotations

import math

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from deniable_estimator.answers.base import Answer
from deniable_estimator.answers.segmented import Segmented, shown_series
from deniable_estimator.answers.units import half_width
from deniable_estimator.terminal.tables import MOST_ROWS, heading, interval, picture

_UNLIMITED = 10_000
"""Columns of a terminal that has room for everything."""


def segments_view(found: Segmented) -> RenderableType:
    """The verdict, and each series by segment, with its difference from the reference."""
    title = heading(found.total)
    parts: list[RenderableType] = [title.append("  ·  by " + ", ".join(found.by))]
    if not found.total.n:
        return Group(*parts)
    style = "green" if found.differs.any() else "dim"
    parts.append(Text(f"{found.verdict}.", style=style))
    lines = len(found.groups) + 1 + (found.rest is not None)
    names = shown_series(found, max(1, MOST_ROWS // lines))
    parts.append(
        _Fitting(_segments_table(found, names), _segments_table(found, names, pictured=False))
    )
    if more := len(found.names) - len(names):
        parts.append(Text(f"and {more:,} more: --csv or --json shows all", style="dim"))
    notes = [each[:1].upper() + each[1:] for each in found.notes]
    parts += [Text(f"Note: {note}.", style="yellow") for note in notes]
    return Group(*parts)


class _Fitting:
    """A table, or the narrower one where there is no room for it."""

    def __init__(self, wide: Table, narrow: Table) -> None:
        self._wide, self._narrow = wide, narrow

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        needed = console.measure(self._wide, options=options.update(max_width=_UNLIMITED)).maximum
        yield self._wide if needed <= options.max_width else self._narrow


def _segments_table(found: Segmented, names: list[str], *, pictured: bool = True) -> Table:
    unit = found.total.unit
    what, measure = unit.heading
    table = Table(box=None, header_style="bold", padding=(0, 1, 0, 0))
    table.add_column("series" if not unit.of_all else "value", overflow="fold")
    table.add_column("segment", overflow="fold")
    level = f"{found.level * 100:.3g}% interval\n{measure}"
    for name in ("reports", f"{what}\n{measure}", level):
        table.add_column(name, justify="right", no_wrap=True)
    if pictured:
        table.add_column("", no_wrap=True)
    reference = found.reference
    compared = "" if reference is None else f"difference from\n{_printable(reference.name)}"
    table.add_column(compared, no_wrap=True)
    answers: list[tuple[str, Answer]] = [(each.name, each.answer) for each in found.groups]
    if found.rest is not None:
        answers.append((f"rest ({len(found.small)})", found.rest))
    answers.append(("total", found.total))
    for name in names:
        place = found.names.index(name)
        base, top = _axis(answers, name)
        for number, (segment, answer) in enumerate(answers):
            mark = " *" if found.differs[place] else ""
            table.add_row(
                Text(_printable(name) + mark if number == 0 else ""),
                Text(_printable(segment), style="dim" if segment == "total" else ""),
                *_cells(found, answer, name, (base, top))[: 4 if pictured else 3],
                _difference(found, found.groups[number].key, name)
                if number < len(found.groups)
                else Text(),
            )
    if any(found.differs[found.names.index(name)] for name in names):
        table.caption = "* differs between segments"
        table.caption_justify = "left"
    return table


def _axis(answers: list[tuple[str, Answer]], name: str) -> tuple[float, float]:
    """One scale for all segments of a series."""
    ends = [0.0]
    for _, answer in answers:
        place = answer.series.place(name)
        if place is not None:
            ends += [float(answer.series.low[place]), float(answer.series.high[place])]
    known = [each for each in ends if math.isfinite(each)]
    base = 0.0 if answers[0][1].unit.of_all else min(known)
    return base, max(max(known), base + 1e-12)


def _cells(
    found: Segmented, answer: Answer, name: str, axis: tuple[float, float]
) -> tuple[Text, Text, Text, Text]:
    series, unit = answer.series, answer.unit
    place = series.place(name)
    if place is None or not math.isfinite(float(series.value[place])):
        return Text(f"{answer.n:,}"), Text("unknown"), Text(), Text()
    value, low, high = (float(each[place]) for each in (series.value, series.low, series.high))
    spread = half_width(value, low, high)
    base, top = axis
    return (
        Text(f"{answer.n:,}"),
        Text(unit.text(value, spread)),
        Text(interval(unit, low, high, spread)),
        picture(low - base, value - base, high - base, top - base),
    )


def _difference(found: Segmented, key: tuple[str, ...], name: str) -> Text:
    comparison = found.comparisons.get(key)
    if comparison is None or name not in comparison.values:
        return Text()
    place = comparison.values.index(name)
    low, high = comparison.ends(place)
    numbers = (comparison.difference[place], comparison.low[place], comparison.high[place])
    difference = float(numbers[0])
    if not math.isfinite(difference):
        return Text("unknown", style="dim")
    spread = half_width(*map(float, numbers))
    told = f"{found.total.unit.signed(difference, spread)} ({low} to {high})"
    return Text(told, style="" if comparison.changed[place] else "dim")


def _printable(text: str) -> str:
    """A text without control characters for the terminal."""
    return "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in text)

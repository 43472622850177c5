"""A document in a terminal."""

from __future__ import annotations

from rich.align import Align, AlignMethod
from rich.console import (
    Console,
    ConsoleOptions,
    Group,
    RenderableType,
    RenderResult,
)
from rich.table import Table
from rich.text import Text

from deniable_estimator.document.document import Document, Frame, Note, WordedValue, cell

BAR = 20
"""The letters of a bar."""

_UNLIMITED = 10_000
"""Columns of a terminal that has room for everything."""

_WORDS = 12
"""Columns that sentences have beside a bar, more than their longest word needs."""

_STYLES = {
    "plain": None,
    "quiet": "dim",
    "strong": "bold",
    "good": "green",
    "warn": "yellow",
    "alarm": "bold red",
}


def show(document: Document) -> None:
    """Print the document."""
    Console().print(document_view(document))


def document_view(document: Document) -> RenderableType:
    """The document: what it is about, its notes, its facts, its frames, and its verdict last."""
    parts: list[RenderableType] = [Text(document.subtitle, style="bold")]
    parts += [_sentence(each) for each in document.notes]
    facts = Table(box=None, show_header=False, pad_edge=False)
    facts.add_column(style="dim")
    facts.add_column(overflow="fold")
    facts.add_column(style="dim", overflow="fold")
    for each in document.facts:
        facts.add_row(each.name, Text(each.text), Text(each.help))
    if document.facts:
        parts.append(facts)
    for frame in document.frames:
        parts += ["", *([Text(frame.title, style="bold")] if frame.title else []), _Fitting(frame)]
        parts += [Text(each, style="dim") for each in frame.notes]
    if document.verdict.text:
        parts += ["", _sentence(document.verdict)]
    return Group(*parts)


def _sentence(note: Note) -> Text:
    return Text(note.text, style=_STYLES[note.tone] or "")


class _Fitting:
    """A table, without its bars where there is no room for them."""

    def __init__(self, frame: Frame) -> None:
        self._frame = frame

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        table = _table(self._frame, drawn=True)
        least, most = console.measure(table, options=options.update(max_width=_UNLIMITED))
        fits = min(least + _WORDS, most) <= options.max_width
        yield table if fits else _table(self._frame, drawn=False)


def _table(frame: Frame, *, drawn: bool) -> Table:
    tones = frame.tones or ["plain"] * len(frame.rows)
    bars = {at for row in frame.rows for at in frame.shown if getattr(row[at], "drawn", None)}
    # Words begin at the left, so they need room after a number; a bar takes what room there is.
    apart = 2 if not bars and any(each.kind == "words" for each in frame.columns) else 1
    table = Table(box=None, header_style="bold", padding=(0, apart, 0, 0), pad_edge=False)
    table.show_header = any(frame.columns[place].title for place in frame.shown)
    for place in frame.shown:
        column = frame.columns[place]
        justify: AlignMethod = "left" if column.kind == "words" else "right"
        table.add_column(_heading(column.title, justify), justify=justify, overflow="fold")
        if column.kind == "estimate":
            table.add_column(_heading(column.interval, "right"), justify="right", no_wrap=True)
            if drawn and place in bars:
                table.add_column(_heading(column.scale, "left"), no_wrap=True)
    for row, tone in zip(frame.rows, tones, strict=True):
        cells: list[Text] = []
        for place in frame.shown:
            column, value = frame.columns[place], row[place]
            style = _STYLES[value.tone] if isinstance(value, WordedValue) else None
            cells.append(Text(cell(column, value), style=style or ""))
            if column.kind == "estimate":
                cells.append(Text(value.between, style=style or ""))
                if drawn and place in bars:
                    cells.append(picture(*value.drawn) if value.drawn else Text())
        table.add_row(*cells, style=_STYLES[tone])
    return table


def _heading(title: str, justify: AlignMethod) -> Align:
    """The head of a column, close to its cells: a long one beside it takes more lines."""
    return Align(Text(title, justify=justify), justify, vertical="bottom")


def picture(low: float, number: float, high: float) -> Text:
    """A bar from 0 to 1: solid up to `low`, then shaded up to `high`, a mark at the number."""
    ends = [round(min(max(each, 0.0), 1.0) * BAR) for each in (low, high)]
    solid, shaded = ends[0], ends[1] - ends[0]
    mark = min(max(round(number * BAR), 0), BAR - 1)
    bar = list("█" * solid + "▒" * shaded + " " * (BAR - solid - shaded))
    bar[mark] = "┃"
    text = Text("".join(bar), style="cyan")
    text.stylize("bold white", mark, mark + 1)
    return text

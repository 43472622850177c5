"""A document in a terminal."""

from __future__ import annotations

from rich.align import Align, AlignMethod
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from deniable_estimator.document.document import Document, Estimate, Frame, Note
from deniable_estimator.messages import isolated

MOST_ROWS = 40
"""How many rows a table shows; CSV and JSON have all of them."""

BAR = 20
"""The letters of a bar."""

_UNLIMITED = 10_000
"""Columns of a terminal that has room for everything."""

_WORDS = 12
"""Columns that sentences have beside a bar, more than their longest word needs."""

_LEFT = ("words", "name")
"""The kinds of columns that begin at the left."""

_STYLES = {
    "plain": None,
    "quiet": "dim",
    "strong": "bold",
    "good": "green",
    "warn": "yellow",
    "alarm": "bold red",
}


def show(document: Document, console: Console | None = None) -> None:
    """Print the document: what it is about, its notes, its facts, its frames, and its verdict
    last."""
    console = console or Console()
    parts: list[RenderableType] = [Text(document.subtitle, "bold"), *map(_sentence, document.notes)]
    if document.facts:
        facts = Table(box=None, show_header=False, pad_edge=False)
        facts.add_column(style="dim")
        facts.add_column(overflow="fold")
        facts.add_column(style="dim", overflow="fold")
        for each in document.facts:
            facts.add_row(each.name, Text(each.text), Text(each.help))
        parts.append(facts)
    for frame in document.frames:
        parts += [Text()] if frame.rows or frame.notes else []
        if frame.rows:
            parts += [Text(frame.title, "bold")] if frame.title else []
            parts += [Text(frame.subtitle, "dim")] if frame.subtitle else []
            parts.append(_fitting(frame, console))
        parts += [Text(each, "dim") for each in (*frame.notes, *_helps(frame))]
    if document.reading:
        parts += [Text(), *(Text(each, "dim") for each in document.reading)]
    if document.verdict.text:
        parts += [Text(), _sentence(document.verdict)]
    for part in parts:
        console.print(part)


def _sentence(note: Note) -> Text:
    return Text(note.text, style=_STYLES[note.tone] or "")


def _helps(frame: Frame) -> list[str]:
    """What the titles of its columns mean."""
    shown = [frame.columns[place] for place in frame.shown]
    return [f"{each.title}: {each.help}." for each in shown if each.help and frame.rows]


def printable(value: str) -> str:
    """The value without control characters for the terminal."""
    return "".join(
        letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in value
    )


def _fitting(frame: Frame, console: Console) -> Table:
    """Its table, without its bars and closer together where there is no room for them."""
    wide = console.options.update(max_width=_UNLIMITED)
    table = _table(frame, drawn=True)
    least, most = console.measure(table, options=wide)
    if min(least + _WORDS, most) > console.width:
        table = _table(frame, drawn=False)
        _, most = console.measure(table, options=wide)
    cells = (each for _, row in frame.laid() for each in row)
    sentences = any(column.kind == "words" and len(text) > BAR for column, text, _ in cells)
    if most > console.width and not sentences:
        table.padding = (0, 1, 0, 0)
    return table


def _table(frame: Frame, *, drawn: bool) -> Table:
    bars = frame.bars
    # Words begin at the left, so they need room after a number; a bar takes what room there is.
    apart = 2 if not bars and any(each.kind in _LEFT for each in frame.columns) else 1
    table = Table(box=None, header_style="bold", padding=(0, apart, 0, 0), pad_edge=False)
    table.show_header = any(frame.columns[place].title for place in frame.shown)
    for place in frame.shown:
        column = frame.columns[place]
        justify: AlignMethod = "left" if column.kind in _LEFT else "right"
        table.add_column(_heading(column.title, justify), justify=justify, overflow="fold")
        if column.kind == "estimate":
            table.add_column(_heading(column.interval, "right"), justify="right", no_wrap=True)
            if drawn and column.key in bars:
                low, high = column.scale or ("", "")
                ends = f"{low}{high:>{BAR - len(low)}}"
                table.add_column(_heading(ends, "left"), no_wrap=True)
    for tone, row in frame.laid():
        cells: list[Text] = []
        for column, text, worded in row:
            style = (_STYLES[worded.tone] if worded else None) or ""
            told = isolated(printable(text)) if column.kind == "name" else text
            if worded and worded.tag:
                told = f"{told}  {worded.tag}"
            if column.kind != "estimate" and isinstance(worded, Estimate) and worded.between:
                told = f"{told} ({worded.between})"
            cells.append(Text(told, style))
            if isinstance(worded, Estimate) and column.kind == "estimate":
                cells.append(Text(worded.between, style))
                if drawn and column.key in bars:
                    cells.append(picture(*worded.drawn) if worded.drawn else Text())
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

"""A document in a terminal."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from deniable_estimator.document.document import Document, Frame, cell

_STYLES = {"plain": None, "quiet": "dim", "good": "green", "warn": "yellow", "alarm": "bold red"}


def document_view(document: Document) -> RenderableType:
    """The document: what it is about, its notes, its facts, its frames, and its verdict last."""
    parts: list[RenderableType] = [Text(document.subtitle, style="bold")]
    parts += [Text(each.text, style=_STYLES[each.tone] or "") for each in document.notes]
    facts = Table(box=None, show_header=False, pad_edge=False)
    facts.add_column(style="dim")
    facts.add_column(overflow="fold")
    facts.add_column(style="dim", overflow="fold")
    for each in document.facts:
        facts.add_row(each.name, Text(each.text), Text(each.help))
    if document.facts:
        parts.append(facts)
    for frame in document.frames:
        parts += ["", Text(frame.title, style="bold"), _table(frame)]
        parts += [Text(each, style="dim") for each in frame.notes]
    verdict = document.verdict
    return Group(*parts, "", Text(verdict.text, style=_STYLES[verdict.tone] or ""))


def _table(frame: Frame) -> Table:
    table = Table(box=None, header_style="bold", padding=(0, 1, 0, 0), pad_edge=False)
    for place in frame.shown:
        table.add_column(frame.columns[place].title, justify="right", vertical="bottom")
    tones = frame.tones or ["plain"] * len(frame.rows)
    for row, tone in zip(frame.rows, tones, strict=True):
        cells = (Text(cell(frame.columns[place], row[place])) for place in frame.shown)
        table.add_row(*cells, style=_STYLES[tone])
    return table

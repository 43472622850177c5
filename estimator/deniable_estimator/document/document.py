"""A document: facts, tables and sentences, as data that is not yet laid out.

Whoever answers a question makes one, and the only words of the answer are in it. `document_view`,
`to_json` and the template `_document.html` show it; none of them knows what it is about. The keys
of facts, frames and columns are those of its JSON.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from rich.console import RenderableType

Kind: TypeAlias = Literal["text", "count", "number", "share"]
"""How a cell is written: `share` in percent, and a count with thousands separators."""
Tone: TypeAlias = Literal["plain", "quiet", "good", "warn", "alarm"]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a frame."""

    key: str
    title: str
    kind: Kind = "text"
    empty: str = ""
    """What stands for None."""
    data_only: bool = False
    """Whether files alone have it."""


@dataclass(frozen=True, slots=True)
class WordedValue:
    """A cell whose text says more than its number."""

    value: Any
    text: str


@dataclass(frozen=True)
class Frame:
    """A table: a row has a value for each column, or a WordedValue."""

    key: str
    title: str
    columns: tuple[Column, ...]
    rows: Sequence[Sequence[Any]]
    tones: Sequence[Tone] = ()
    """Of each row; all are plain if there are none."""
    notes: tuple[str, ...] = ()

    @property
    def shown(self) -> tuple[int, ...]:
        """The places of the columns that people see."""
        return tuple(at for at, each in enumerate(self.columns) if not each.data_only)


@dataclass(frozen=True, slots=True)
class Fact:
    """A figure with its name; `help` says what it means."""

    key: str
    name: str
    value: Any
    """For programs."""
    text: str
    """For people."""
    help: str = ""


@dataclass(frozen=True, slots=True)
class Note:
    """A sentence about the whole document."""

    text: str
    tone: Tone = "plain"


@dataclass(frozen=True)
class Document:
    """An answer as it is told."""

    kind: str
    subtitle: str
    """What the answer is about."""
    verdict: Note
    """The answer in one sentence."""
    facts: tuple[Fact, ...] = ()
    frames: tuple[Frame, ...] = ()
    notes: tuple[Note, ...] = ()
    snippet: str = ""
    """What to declare, as TOML."""
    about: Mapping[str, Any] = field(default_factory=dict)
    """What files have beside this."""


def cell(column: Column, value: Any) -> str:
    """The text of a cell."""
    if isinstance(value, WordedValue):
        return value.text
    if value is None:
        return column.empty
    if column.kind == "share":
        return f"{100 * value:.3g}%"
    if column.kind == "count":
        return f"{value:,}"
    return f"{value:g}" if column.kind == "number" else value


def to_json(document: Document) -> str:
    """The values of its facts and frames under their keys, and its sentences, as JSON, in which a
    number that is none may not stand."""
    content = {
        "kind": document.kind,
        "subtitle": document.subtitle,
        "verdict": document.verdict.text,
        "notes": [each.text for each in document.notes],
        **{name: plain(each) for name, each in document.about.items()},
        **{each.key: plain(each.value) for each in document.facts},
        **{each.key: _rows(each) for each in document.frames},
    }
    return json.dumps(content, ensure_ascii=False, allow_nan=False)


def _rows(frame: Frame) -> list[dict[str, Any]]:
    keys = [each.key for each in frame.columns]
    return [
        {
            key: plain(value.value if isinstance(value, WordedValue) else value)
            for key, value in zip(keys, row, strict=True)
        }
        for row in frame.rows
    ]


def plain(value: Any) -> Any:
    """The value of objects, maps, lists, texts and numbers: an object that knows better says its
    own `to_dict`."""
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if hasattr(value, "_asdict"):
        return plain(value._asdict())
    if is_dataclass(value):
        return {each.name: plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        return {name: plain(each) for name, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, tuple | list) else value


_STYLES = {"plain": None, "quiet": "dim", "good": "green", "warn": "yellow", "alarm": "bold red"}


def document_view(document: Document) -> RenderableType:
    """The document: what it is about, its notes, its facts, its frames, and its verdict last."""
    # The dashboard reads documents without rich.
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

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
        table = Table(box=None, header_style="bold", padding=(0, 1, 0, 0), pad_edge=False)
        for place in frame.shown:
            table.add_column(frame.columns[place].title, justify="right", vertical="bottom")
        tones = frame.tones or ["plain"] * len(frame.rows)
        for row, tone in zip(frame.rows, tones, strict=True):
            cells = (Text(cell(frame.columns[place], row[place])) for place in frame.shown)
            table.add_row(*cells, style=_STYLES[tone])
        parts += ["", Text(frame.title, style="bold"), table]
        parts += [Text(each, style="dim") for each in frame.notes]
    verdict = document.verdict
    return Group(*parts, "", Text(verdict.text, style=_STYLES[verdict.tone] or ""))

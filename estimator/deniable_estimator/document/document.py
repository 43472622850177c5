"""A document: facts, tables and sentences, as data that is not yet laid out.

Whoever answers a question makes one, and the only words of the answer are in it. `terminal.py`,
`to_json` and the template `_document.html` show it; none of them knows what it is about. The keys
of facts, frames and columns are those of its JSON.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, Literal, TypeAlias

from deniable_estimator.document.plot.marks import BarRow, Chart

Kind: TypeAlias = Literal["text", "words", "name", "count", "number", "share", "estimate"]
"""How a cell is written: `share` in percent, a count with thousands separators, `words` from the
left, a `name` that strangers may have chosen too, and an Estimate with its interval."""
Tone: TypeAlias = Literal["plain", "quiet", "strong", "good", "warn", "alarm"]


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
    help: str = ""
    """What the title means."""
    sort: str = ""
    """By what people may sort the rows with it, if they may."""
    aside: bool = False
    """Whether it is left out where there is little room."""
    interval: str = ""
    """What stands over the intervals of estimates."""
    scale: tuple[str, str] | None = None
    """What stands over their bars: the ends of the axis."""
    zero: float = 0.0
    """Where on that axis, from 0 to 1, lies zero."""


@dataclass(frozen=True, slots=True)
class WordedValue:
    """A cell whose text says more than its number."""

    value: Any
    text: str
    tone: Tone = "plain"
    tag: str = ""
    """A word beside it, for those who do not see its tone or that of its row."""


@dataclass(frozen=True, slots=True)
class Estimate(WordedValue):
    """A number with its interval as text, and with a bar."""

    between: str = ""
    drawn: tuple[float, float, float] | None = None
    """Where on the axis, from 0 to 1, are the lower end, the number and the upper end. An end may
    lie outside of it, or have no limit."""

    def bar(self, label: str = "") -> BarRow:
        """The same as a row of a chart."""
        if self.drawn is None:
            return BarRow(label, self.text, known=False)
        open_low, open_high = self.drawn[0] == -math.inf, self.drawn[2] == math.inf
        low, at, high = (round(100 * min(max(each, 0.0), 1.0), 2) for each in self.drawn)
        return BarRow(
            label,
            self.text,
            # Nothing tells where in such an interval the number is: a point would mislead.
            *(None if open_low or open_high else at, low, high),
            between=self.between,
            open_low=open_low,
            open_high=open_high,
            known=not (open_low and open_high),
        )


@dataclass(frozen=True, slots=True)
class Picture:
    """A chart with its words."""

    chart: Chart
    title: str = ""
    subtitle: str = ""
    folded: Chart | None = None
    """The rest of it on the same scale, which is folded away below it."""
    fold: str = ""
    """What stands over the rest."""
    legend: tuple[tuple[str, str], ...] = ()
    """Marks of the chart, and what they stand for."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Frame:
    """A table: a row has a value for each column, or a WordedValue. It may have pictures, and
    nothing else where they say it all."""

    key: str
    title: str
    columns: tuple[Column, ...] = ()
    rows: Sequence[Sequence[Any]] = ()
    tones: Sequence[Tone] = ()
    """Of each row; all are plain if there are none."""
    notes: tuple[str, ...] = ()
    subtitle: str = ""
    pictures: tuple[Picture, ...] = ()
    folded: int = 0
    """How many rows, the last ones, are folded away where people can unfold them."""
    fold: str = ""
    """What stands over those; without a row it says that there would be some."""
    more: int = 0
    """How many rows there are that it does not list."""

    @property
    def narrow(self) -> Frame:
        """The same for where there is little room."""
        columns = (replace(each, data_only=each.data_only or each.aside) for each in self.columns)
        return replace(self, columns=tuple(columns))

    @property
    def shown(self) -> tuple[int, ...]:
        """The places of the columns that people see."""
        return tuple(at for at, each in enumerate(self.columns) if not each.data_only)

    @property
    def bars(self) -> frozenset[str]:
        """The keys of the columns that have bars."""
        return frozenset(
            self.columns[at].key
            for at in self.shown
            if any(isinstance(row[at], Estimate) and row[at].drawn for row in self.rows)
        )

    @property
    def endless(self) -> bool:
        """Whether one of the bars has no limit on one side."""
        return any(
            each.bar().endless for row in self.rows for each in row if isinstance(each, Estimate)
        )

    def laid(
        self, first: int = 0, end: int | None = None
    ) -> Iterator[tuple[Tone, list[tuple[Column, str, WordedValue | None]]]]:
        """The rows from `first` to before `end` as people see them: the tone of each, and its cells
        as text, with what is worded."""
        shown = [(at, self.columns[at]) for at in self.shown]
        tones = self.tones or ["plain"] * len(self.rows)
        for row, tone in zip(self.rows[first:end], tones[first:end], strict=True):
            yield (
                tone,
                [(column, cell(column, row[at]), _worded(column, row[at])) for at, column in shown],
            )


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
    reading: tuple[str, ...] = ()
    """How the numbers are to be read, in sentences that hold for all such answers."""
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


def _worded(column: Column, value: Any) -> WordedValue | None:
    if isinstance(value, WordedValue):
        return value
    return Estimate(None, column.empty) if column.kind == "estimate" else None


def to_data(document: Document) -> dict[str, Any]:
    """The values of its facts and frames under their keys, and its sentences, as JSON has them."""
    return {
        "kind": document.kind,
        "subtitle": document.subtitle,
        "verdict": document.verdict.text,
        "notes": [each.text for each in document.notes],
        **{name: plain(each) for name, each in document.about.items()},
        **{each.key: plain(each.value) for each in document.facts},
        **{each.key: _rows(each) for each in document.frames},
    }


def to_json(document: Document) -> str:
    """The same as text, in which a number that is none may not stand."""
    return json.dumps(to_data(document), ensure_ascii=False, allow_nan=False)


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

"""Boards as data: charts and paragraphs in their order, read from `boards/NAME.toml`, or a list of
every mistake in the file; and those of a folder, each read anew when its file has changed."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from deniable import Metric, Registry
from deniable.protocol.types.number import Number
from deniable_estimator.annotations import MOST_TEXT as MOST_ANNOTATION
from deniable_estimator.asking.trend import GROUPS
from deniable_estimator.document.plot.marks import MOST_LINES
from deniable_estimator.files import (
    CheckedFileError,
    LastGood,
    TomlChecker,
    is_plain_text,
    nearest,
    read_text,
)
from deniable_estimator.kinds.registry import series_of

ChartView: TypeAlias = Literal["headline", "shares", "trend", "table"]
"""The answer in a sentence; the bars of shares, the histogram of a distribution, or a mean on its
scale; the values over time; or the values with their intervals."""
BoardSize: TypeAlias = Literal["small", "half", "full"]
"""A third of the width, half of it, or all of it."""

VIEWS, SIZES = get_args(ChartView), get_args(BoardSize)

SCHEMA = 1
"""The version of the format."""

MOST_BOARDS = 100
"""The most files of a folder: the first by name are taken."""

MOST_CHARTS = 24
"""Each is calculated while the page waits."""
MOST_ITEMS = 60
MOST_TITLE = 120
MOST_DESCRIPTION = 500
MOST_TEXT = 4_000
MOST_DAYS = 3_660
MOST_VALUES = 20

TOP_KEYS = ("schema", "title", "description", "items")
CHART_KEYS = ("metric", "view", "title", "days", "from", "to", "since", "by", "values", "size")
"""The keys of an item that is a chart."""
TEXT_KEYS = ("text", "title", "size")
"""The keys of an item that is text."""

NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
"""A board's name, which is in its address."""

_UNFIT = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029]")


@dataclass(frozen=True, slots=True)
class BoardChart:
    """One chart of a metric."""

    metric: str
    view: ChartView = "shares"
    title: str | None = None
    """The metric's description, if not given."""
    days: int | None = None
    """So many days up to the last complete window; None leaves it to the pages."""
    asked: Mapping[str, str] = field(default_factory=dict)
    """Its other days, and the period of a trend, as the address of the metric's page has them."""
    values: tuple[str, ...] = ()
    """The values that are shown; none leaves it to the answer."""
    size: BoardSize = "half"


@dataclass(frozen=True, slots=True)
class BoardText:
    """Paragraphs between the charts, under a heading if it has a title."""

    paragraphs: tuple[str, ...]
    title: str | None = None
    size: BoardSize = "full"


BoardItem: TypeAlias = BoardChart | BoardText


@dataclass(frozen=True, slots=True)
class Board:
    """One board."""

    name: str
    """That of its file, without .toml."""
    title: str
    description: str
    items: tuple[BoardItem, ...]

    @property
    def charts(self) -> tuple[BoardChart, ...]:
        """The items that are charts."""
        return tuple(each for each in self.items if isinstance(each, BoardChart))


def load_board(path: Path, registry: Registry) -> Board:
    """Read a board from its file, whose name is the board's.

    Raises:
        CheckedFileError: the file cannot be read, or has mistakes (all of them are listed).
    """
    return parse_board(read_text(path), path.stem, registry, str(path))


def parse_board(text: str, name: str, registry: Registry, source: str | None = None) -> Board:
    """Read a board from TOML text.

    Raises:
        CheckedFileError: the text has mistakes (all of them are listed).
    """
    checker = TomlChecker(text, source or f"{name}.toml")
    checker.check_schema(SCHEMA)
    checker.check_keys((), checker.document, TOP_KEYS)
    top = _Keys(checker, (), checker.document)
    title, description = top.line("title", MOST_TITLE), top.line("description", MOST_DESCRIPTION)
    if "title" not in checker.document:
        top.report("title", "is missing: name the board")
    tables = checker.tables("items", MOST_ITEMS)
    if not checker.document.get("items"):
        top.report("items", "are missing: write [[items]] and a metric or a text under it")
    items: list[BoardItem] = []
    for path, table in tables:
        keys = _Keys(checker, path, table)
        if ("metric" in table) == ("text" in table):
            checker.report(path, "must have either a metric, to be a chart, or a text")
        else:
            items.append(_chart(keys, registry) if "metric" in table else _text(keys))
    if sum("metric" in table for _, table in tables) > MOST_CHARTS:
        top.report("items", f"are more than {MOST_CHARTS} charts: make two boards of them")
    checker.finish()
    return Board(name, title or "", description or "", tuple(items))


@dataclass(frozen=True)
class _Keys:
    """The keys of a table. What is wrong with one is reported, and read as its default."""

    checker: TomlChecker
    path: Sequence[str]
    table: dict[str, Any]

    def report(self, key: str, what: str) -> None:
        self.checker.report((*self.path, key), what)

    def line(self, key: str, most: int) -> str | None:
        value: str | None = self.table.get(key)
        if value is None or is_plain_text(value, most):
            return value
        self.report(key, f"must be a line of 1 to {most} characters")
        return None

    def one_of(self, key: str, choices: Collection[str], default: Any) -> Any:
        value = self.table.get(key, default)
        if value == default or value in list(choices):
            return value
        self.report(key, f"must be {' or '.join(choices)}")
        return default

    def day(self, key: str) -> date | None:
        value = self.table.get(key)
        if value is None or (isinstance(value, date) and not isinstance(value, datetime)):
            return value
        self.report(key, "must be a day like 2026-11-20, without quotes")
        return None


def _text(keys: _Keys) -> BoardText:
    keys.checker.check_keys(keys.path, keys.table, TEXT_KEYS)
    text = keys.table["text"]
    fine = isinstance(text, str) and text.strip() and len(text) <= MOST_TEXT
    if not fine or _UNFIT.search(text.replace("\r\n", "\n")):
        told = f"must be text of 1 to {MOST_TEXT:,} characters; an empty line begins a paragraph"
        keys.report("text", told)
        text = ""
    parts = re.split(r"\n\s*\n", text.replace("\r\n", "\n").strip())
    return BoardText(
        tuple(" ".join(each.split()) for each in parts),
        keys.line("title", MOST_TITLE),
        keys.one_of("size", SIZES, "full"),
    )


def _chart(keys: _Keys, registry: Registry) -> BoardChart:
    table, report = keys.table, keys.report
    keys.checker.check_keys(keys.path, table, CHART_KEYS)
    name = table["metric"]
    metric = registry.metrics.get(name) if isinstance(name, str) else None
    if metric is None:
        told = nearest(name, registry.metrics) if isinstance(name, str) else ""
        report("metric", f"is not declared in the registry{told}")
    view = keys.one_of("view", VIEWS, "shares")
    first, last = keys.day("from"), keys.day("to")
    if first and last and last < first:
        report("to", "lies before `from`: swap the two dates")
    elif first and last and (last - first).days >= MOST_DAYS:
        report("from", f"is more than {MOST_DAYS:,} days before `to`")
    days = table.get("days")
    if days is not None and not (type(days) is int and 1 <= days <= MOST_DAYS):
        report("days", f"must be a whole number from 1 to {MOST_DAYS:,}")
    if "days" in table and ("from" in table or "to" in table):
        report("days", "cannot be given beside `from` and `to`: choose one")
    if "since" in table and table.keys() & {"days", "from", "to"}:
        report("since", "takes the place of `days`, `from` and `to`: choose one")
    if "to" in table and "from" not in table:
        report("to", "needs `from` beside it")
    if "by" in table and view != "trend":
        report("by", 'belongs to a trend: write view = "trend", or remove it')
    title = keys.line("title", MOST_TITLE)
    keys.line("since", MOST_ANNOTATION)
    keys.one_of("by", GROUPS[metric.window if metric else "day"], None)
    return BoardChart(
        metric=str(name),
        view=view,
        title=title,
        days=days,
        asked={name: str(table[name]) for name in ("from", "to", "since", "by") if name in table},
        values=_values(keys, view, metric, registry),
        size=keys.one_of("size", SIZES, "half"),
    )


def _values(
    keys: _Keys, view: ChartView, metric: Metric | None, registry: Registry
) -> tuple[str, ...]:
    values, most = keys.table.get("values"), MOST_LINES if view == "trend" else MOST_VALUES
    if values is None:
        return ()
    fine = isinstance(values, list) and all(is_plain_text(each, 1024) for each in values)
    number = isinstance(metric and metric.type, Number)
    if view == "headline":
        keys.report("values", "cannot be chosen for a headline: remove it")
    elif not fine or not 1 <= len(values) <= most or len(set(values)) < len(values):
        keys.report("values", f"must be a list of 1 to {most} different values, as text")
    elif number and view == "shares":
        keys.report("values", "cannot be chosen for the chart of a number: remove it")
    elif metric is not None and not metric.needs_candidates:
        known = series_of(metric, registry)
        for each in values:
            if each not in known:
                told = f"names {each!r}, which {metric.name} does not have{nearest(each, known)}"
                keys.report("values", told)
    return tuple(values) if fine else ()


class BoardFolder:
    """Name of a board -> the board, from NAME.toml in a folder. Threads may share it."""

    def __init__(self, folder: Path | None, registry: Registry) -> None:
        self._folder = folder
        self._registry = registry
        self._files: dict[str, LastGood[Board | None]] = {}

    @property
    def names(self) -> list[str]:
        """The names of all files, sorted; empty if the folder is gone."""
        if self._folder is None:
            return []
        try:
            found = [each.stem for each in self._folder.iterdir() if each.suffix == ".toml"]
        except OSError:
            return []
        return sorted(each for each in found if NAME.fullmatch(each))[:MOST_BOARDS]

    @property
    def refused(self) -> list[str]:
        """Files of boards that have no address: their name is none, or they are too many."""
        names = set(self.names)
        found = [] if self._folder is None else self._folder.glob("*.toml")
        return sorted(each.name for each in found if each.stem not in names)

    def get(self, name: str) -> tuple[Board | None, CheckedFileError | None]:
        """The board in force, and what is wrong with its file.

        Raises:
            KeyError: there is no such file; it has the nearest name, if there is one.
        """
        known = self.names
        if self._folder is None or name not in known:
            self._files.pop(name, None)
            raise KeyError(*difflib.get_close_matches(name[:200], known, n=1))
        if name not in self._files:
            read = partial(load_board, registry=self._registry)
            self._files[name] = LastGood(self._folder / f"{name}.toml", read, None)
        file = self._files[name]
        return file.value, file.mistakes

    def all(self) -> list[tuple[str, Board | None, CheckedFileError | None]]:
        """Every board with its name, by title."""
        found = [(name, *self.get(name)) for name in self.names]
        return sorted(found, key=lambda each: (each[1].title if each[1] else each[0]).casefold())

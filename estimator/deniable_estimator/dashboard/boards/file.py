"""Reads `boards/NAME.toml`: one board, or a list of every mistake in the file."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any, cast

from deniable import Metric, Registry
from deniable.protocol.types.number import Number
from deniable_estimator.answers.distribution import series_names
from deniable_estimator.asking.trend import GROUPS
from deniable_estimator.dashboard.boards.board import (
    SIZES,
    VIEWS,
    Board,
    BoardChart,
    BoardItem,
    BoardText,
)
from deniable_estimator.document.plot.marks import MOST_LINES
from deniable_estimator.files import TomlChecker, is_plain_text, nearest, read_text

SCHEMA = 1
"""The version of the format."""

MOST_CHARTS = 24
"""Each is calculated while the page waits."""
MOST_ITEMS = 60
MOST_TITLE = 120
MOST_DESCRIPTION = 500
MOST_TEXT = 4_000
MOST_DAYS = 3_660
MOST_SINCE = 200
MOST_VALUES = 20

TOP_KEYS = ("schema", "title", "description", "items")
CHART_KEYS = ("metric", "view", "title", "days", "from", "to", "since", "by", "values", "size")
"""The keys of an item that is a chart."""
TEXT_KEYS = ("text", "title", "size")
"""The keys of an item that is text."""

_UNFIT = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029]")


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
    title = _line(checker, (), checker.document, "title", MOST_TITLE)
    if "title" not in checker.document:
        checker.report(("title",), "is missing: name the board")
    description = _line(checker, (), checker.document, "description", MOST_DESCRIPTION)
    tables = checker.tables("items", MOST_ITEMS)
    if not checker.document.get("items"):
        checker.report(("items",), "are missing: write [[items]] and a metric or a text under it")
    items = [_item(checker, path, table, registry) for path, table in tables]
    if sum("metric" in table for _, table in tables) > MOST_CHARTS:
        checker.report(("items",), f"are more than {MOST_CHARTS} charts: make two boards of them")
    checker.finish()
    kept = tuple(each for each in items if each is not None)
    return Board(name, title or "", description or "", kept)


def _item(
    checker: TomlChecker, path: tuple[str, str], table: dict[str, Any], registry: Registry
) -> BoardItem | None:
    if ("metric" in table) == ("text" in table):
        checker.report(path, "must have either a metric, to be a chart, or a text")
        return None
    before = len(checker.problems)
    item = (_chart if "metric" in table else _text)(checker, path, table, registry)
    return item if len(checker.problems) == before else None


def _text(
    checker: TomlChecker, path: tuple[str, str], table: dict[str, Any], registry: Registry
) -> BoardItem:
    checker.check_keys(path, table, TEXT_KEYS)
    text = table["text"]
    fine = isinstance(text, str) and text.strip() and len(text) <= MOST_TEXT
    if not fine or _UNFIT.search(text.replace("\r\n", "\n")):
        checker.report(
            (*path, "text"),
            f"must be text of 1 to {MOST_TEXT:,} characters; an empty line begins a paragraph",
        )
        text = ""
    parts = re.split(r"\n\s*\n", text.replace("\r\n", "\n").strip())
    return BoardText(
        tuple(" ".join(each.split()) for each in parts),
        _line(checker, path, table, "title", MOST_TITLE),
        _one_of(checker, path, table, "size", tuple(SIZES), "full"),
    )


def _chart(
    checker: TomlChecker, path: tuple[str, str], table: dict[str, Any], registry: Registry
) -> BoardItem:
    checker.check_keys(path, table, CHART_KEYS)
    name = table["metric"]
    metric = registry.metrics.get(name) if isinstance(name, str) else None
    if metric is None:
        told = nearest(name, registry.metrics) if isinstance(name, str) else ""
        checker.report((*path, "metric"), f"is not declared in the registry{told}")
    view = _one_of(checker, path, table, "view", tuple(VIEWS), "shares")
    first, last = (_day(checker, path, table, key) for key in ("from", "to"))
    if first and last and last < first:
        checker.report((*path, "to"), "lies before `from`: swap the two dates")
    elif first and last and (last - first).days >= MOST_DAYS:
        checker.report((*path, "from"), f"is more than {MOST_DAYS:,} days before `to`")
    days = table.get("days")
    if days is not None and not (type(days) is int and 1 <= days <= MOST_DAYS):
        checker.report((*path, "days"), f"must be a whole number from 1 to {MOST_DAYS:,}")
        days = None
    if "days" in table and ("from" in table or "to" in table):
        checker.report((*path, "days"), "cannot be given beside `from` and `to`: choose one")
    since = _line(checker, path, table, "since", MOST_SINCE)
    if "since" in table and table.keys() & {"days", "from", "to"}:
        checker.report((*path, "since"), "takes the place of `days`, `from` and `to`: choose one")
    if "to" in table and "from" not in table:
        checker.report((*path, "to"), "needs `from` beside it")
    return BoardChart(
        metric=str(name),
        view=cast(Any, view),
        title=_line(checker, path, table, "title", MOST_TITLE),
        days=days,
        first=first,
        last=last,
        since=since,
        by=_by(checker, path, table, view, metric),
        values=_values(checker, path, table, view, metric),
        size=cast(Any, _one_of(checker, path, table, "size", tuple(SIZES), "half")),
    )


def _by(
    checker: TomlChecker, path: tuple[str, str], table: dict[str, Any], view: str,
    metric: Metric | None,
) -> Any:  # fmt: skip
    if "by" not in table:
        return None
    if view != "trend":
        checker.report((*path, "by"), 'belongs to a trend: write view = "trend", or remove it')
        return None
    choices = GROUPS[metric.window] if metric else GROUPS["day"]
    return _one_of(checker, path, table, "by", choices, None)


def _values(
    checker: TomlChecker, path: tuple[str, str], table: dict[str, Any], view: str,
    metric: Metric | None,
) -> tuple[str, ...]:  # fmt: skip
    if "values" not in table:
        return ()
    values, most = table["values"], MOST_LINES if view == "trend" else MOST_VALUES
    where = (*path, "values")
    if view == "headline":
        checker.report(where, "cannot be chosen for a headline: remove it")
        return ()
    fine = isinstance(values, list) and all(is_plain_text(each, 1024) for each in values)
    if not fine or not 1 <= len(values) <= most or len(set(values)) < len(values):
        checker.report(where, f"must be a list of 1 to {most} different values, as text")
        return ()
    if isinstance(metric and metric.type, Number) and view == "shares":
        checker.report(where, "cannot be chosen for the chart of a number: remove it")
        return ()
    for each in values:
        known = _known(metric)
        if known is not None and each not in known:
            checker.report(where, f"names {each!r}, which {_named(metric)} does not have"
                           f"{nearest(each, known)}")  # fmt: skip
    return tuple(values)


def _known(metric: Metric | None) -> Collection[str] | None:
    """The values or numbers of a metric; None if any text may be one."""
    if metric is None or metric.needs_candidates:
        return None
    return series_names(metric.type) if isinstance(metric.type, Number) else metric.values


def _named(metric: Metric | None) -> str:
    return metric.name if metric else ""


def _line(
    checker: TomlChecker, path: Sequence[str], table: dict[str, Any], key: str, most: int
) -> str | None:
    value = table.get(key)
    if value is None or is_plain_text(value, most):
        return cast("str | None", value)
    checker.report((*path, key), f"must be a line of 1 to {most} characters")
    return None


def _one_of(
    checker: TomlChecker, path: tuple[str, str], table: dict[str, Any], key: str,
    choices: Sequence[str], default: Any,
) -> Any:  # fmt: skip
    value = table.get(key, default)
    if key in table and value not in choices:
        checker.report((*path, key), f"must be {' or '.join(choices)}")
        return default
    return value


def _day(
    checker: TomlChecker, path: tuple[str, str], table: dict[str, Any], key: str
) -> date | None:
    value = table.get(key)
    if value is None:
        return None
    if isinstance(value, date) and not isinstance(value, datetime):
        return value
    checker.report((*path, key), "must be a day like 2026-11-20, without quotes")
    return None

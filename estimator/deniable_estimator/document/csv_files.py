"""Numbers and texts as files have them; every CSV is written and read here."""

from __future__ import annotations

import csv
import io
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from deniable.protocol.errors import ValueListError

_UNSAFE = re.compile("[;\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")

_FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""What begins a formula. The last four are the wide forms, which some spreadsheets take as well."""

_NUMBER = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")


Table: TypeAlias = tuple[Sequence[str], Iterable[Sequence[Any]]]
"""A header, and lines."""


class Filed(ABC):
    """What can be written into a file."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """For JSON; what cannot be said is null."""

    @abstractmethod
    def csv_table(self) -> Table:
        """For CSV: the header, and the lines."""

    def to_csv(self) -> str:
        """Its table for a spreadsheet (RFC 4180)."""
        return csv_text(*self.csv_table())


def csv_text(header: Iterable[str], rows: Iterable[Iterable[Any]], *, raw: bool = False) -> str:
    """A table as CSV (RFC 4180). Values may be a stranger's strings, so that texts are written as
    `harmless` does, unless it is `raw`: for programs alone."""
    text = io.StringIO()
    writer = csv.writer(text)
    lines = chain((header,), rows)
    writer.writerows(lines if raw else (map(_harmless_cell, line) for line in lines))
    return text.getvalue()


def utf8_text(path: Path) -> str:
    """The text of a file, without a byte order mark.

    Raises:
        ValueListError: it cannot be read, or is not UTF-8.
    """
    try:
        return path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise ValueListError(str(path), None, f"cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        told = "is not UTF-8 text; save the file in that encoding"
        raise ValueListError(str(path), line, told) from None


def csv_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The rows of a CSV file that hold anything, with their lines; its errors are those of
    `utf8_text`, and that it is not CSV."""
    # Only line ends end a row: splitlines would break a string at U+2028.
    rows = csv.reader(utf8_text(path).replace("\r\n", "\n").split("\n"), strict=True)
    try:
        for row in rows:
            if row:
                yield rows.line_num, row
    except csv.Error as error:
        raise ValueListError(str(path), rows.line_num, f"is not CSV: {error}") from None


def plain(column: Iterable[Any]) -> list[Any]:
    """Python's own numbers, with None for NaN and for infinity."""
    found = column.tolist() if isinstance(column, np.ndarray) else column
    return [None if isinstance(x, float) and not math.isfinite(x) else x for x in found]


def records(names: Iterable[str], *columns: Iterable[Any]) -> list[dict[str, Any]]:
    """Lines as JSON has them: in each the cells of these columns under their names."""
    keys = tuple(names)
    return [dict(zip(keys, row, strict=True)) for row in zip(*map(plain, columns), strict=True)]


def table_of(table: Table, series: Collection[str]) -> Table:
    """The lines of these series alone; all if there are none."""
    header, lines = table
    if not series:
        return table
    place = next(header.index(name) for name in _SERIES if name in header)
    return header, (line for line in lines if line[place] in series)


def told_of(told: Any, series: Collection[str]) -> Any:
    """The same of what `Filed.to_dict` says: wherever it lists series, these alone, and nothing of
    an answer that is not told by its series."""
    if isinstance(told, dict):
        return {
            key: told_of(each, series) for key, each in told.items() if key not in _WITHOUT_SERIES
        }
    if isinstance(told, list) and told and isinstance(told[0], dict):
        if (first := next(iter(told[0]))) in _SERIES:
            return [each for each in told if each[first] in series]
        return [told_of(each, series) for each in told]
    return told


_SERIES = ("value", "series")
"""What files call the name of a series."""

_WITHOUT_SERIES = frozenset({"cells", "cdf", "margins", "cohorts", "growth"})


def harmless(text: str) -> str:
    """A text for a spreadsheet. Control characters, those that reorder what follows, and the
    semicolon, at which some spreadsheets begin a new cell, are written as \\xNN or \\uNNNN. An
    apostrophe is put before what a spreadsheet would take for a formula (OWASP, CSV Injection). A
    number such as -0.5 is none."""
    safe = _UNSAFE.sub(_escaped, text)
    formula = safe.lstrip().startswith(_FORMULA) and not _NUMBER.fullmatch(safe)
    return f"'{safe}" if formula else safe


def _harmless_cell(cell: Any) -> Any:
    return harmless(cell) if isinstance(cell, str) else cell


def _escaped(found: re.Match[str]) -> str:
    return "\\x3b" if found[0] == ";" else found[0].encode("unicode_escape").decode()

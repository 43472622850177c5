"""Numbers as files have them."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterable
from typing import Any

from numpy.typing import NDArray

_UNSAFE = re.compile("[;\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")

_FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""What begins a formula. The last four are the wide forms, which some spreadsheets take as well."""


def csv_text(header: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """A table as CSV (RFC 4180)."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(tuple(header))
    writer.writerows(rows)
    return text.getvalue()


def plain(column: NDArray[Any]) -> list[Any]:
    """Python's own numbers, with None for NaN and for infinity."""
    found: list[Any] = column.tolist()
    return [None if isinstance(x, float) and not math.isfinite(x) else x for x in found]


def harmless(text: str) -> str:
    """A stranger's text for a CSV. Control characters, those that reorder what follows, and the
    semicolon, at which some spreadsheets begin a new cell, are written as \\xNN or \\uNNNN. An
    apostrophe is put before what a spreadsheet would take for a formula (OWASP, CSV Injection)."""
    safe = _UNSAFE.sub(_escaped, text)
    return f"'{safe}" if safe.lstrip()[:1] in _FORMULA else safe


def _escaped(found: re.Match[str]) -> str:
    return "\\x3b" if found[0] == ";" else found[0].encode("unicode_escape").decode()

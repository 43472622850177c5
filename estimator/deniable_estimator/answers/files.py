"""Numbers as files have them."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable
from typing import Any

from numpy.typing import NDArray

__all__ = ["csv_text", "plain", "unformulated"]


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


def unformulated(text: str) -> str:
    """A stranger's text for a CSV: with an apostrophe before it where a spreadsheet would take it
    for a formula (OWASP, CSV Injection)."""
    begins = text.lstrip()[:1]
    return f"'{text}" if text[:1] in ("\t", "\r") or begins in ("=", "+", "-", "@") else text

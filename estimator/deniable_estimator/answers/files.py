"""Numbers as files have them."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable
from typing import Any

from numpy.typing import NDArray

__all__ = ["csv_text", "plain"]


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

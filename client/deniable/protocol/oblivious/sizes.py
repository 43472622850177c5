"""How large sealed messages are, so that their size tells nothing of what a report says.

The relay sees sizes. A batch is padded to a power of two that depends on nothing random: on the
names in it, on how many reports and columns it has, and on no digit of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

SMALLEST = 1 << 10
"""Bytes that every request and every response has at least."""

_DIGITS = 10
"""As many as the largest row and column of any scheme have."""


def padded_size(size: int) -> int:
    """The power of two, from SMALLEST on, in which so many bytes fit."""
    return max(SMALLEST, 1 << max(0, size - 1).bit_length())


def sealed_size(body: bytes, around: int) -> int:
    """The bytes of the message that carries a batch: `around` is what is around the batch in it."""
    return padded_size(around + _bound(body))


def _bound(body: bytes) -> int:
    """The most bytes that a batch of the same metrics, schemes, windows and counts could have."""
    try:
        reports = json.loads(body)["reports"]
        return len(body) + sum(_spare(report) for report in reports)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return len(body)


def _spare(report: dict[str, Any]) -> int:
    """What the numbers of one report could be longer."""
    columns, row = report["columns"], report.get("row")
    # A row 0 is left out.
    spare = len(f',"row":{"9" * _DIGITS}') if row is None else _left([row])
    if isinstance(columns, int):
        spare += _left([columns])
    elif isinstance(columns, list):
        spare += _left(columns)
    return spare


def _left(numbers: Iterable[int]) -> int:
    return sum(max(0, _DIGITS - len(str(number))) for number in numbers)

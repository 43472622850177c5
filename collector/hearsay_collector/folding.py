"""Many reports become few increments: how much to add to which cells of which rows."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from hearsay.mechanisms import Packing, Row
from hearsay_collector.stores.base import Increment, TallyRowKey

__all__ = ["Accepted", "increments"]

_BLOCK_BITS = 1 << 22
"""Bits unpacked at once, a byte each: hostile batches of wide rows must not fill the memory."""


class Accepted(NamedTuple):
    """A report that passed: the row it adds to, and its columns as `Report.columns` has them."""

    key: TallyRowKey
    row: Row
    columns: int


def increments(reports: Iterable[Accepted]) -> dict[TallyRowKey, Increment]:
    """The sum of all reports, one increment for each row that they name."""
    rows: dict[TallyRowKey, Row] = {}
    columns: defaultdict[TallyRowKey, list[int]] = defaultdict(list)
    for report in reports:
        rows[report.key] = report.row
        columns[report.key].append(report.columns)
    return {key: _sum(rows[key], each) for key, each in columns.items()}


def _sum(row: Row, reports: list[int]) -> Increment:
    if row.packing is Packing.INDEX:
        counted = Counter(reports)
        return Increment(row.width, len(reports), tuple(counted), tuple(counted.values()))
    size = (row.width + 7) // 8
    counts = np.zeros(row.width, np.int64)
    at_once = max(1, _BLOCK_BITS // row.width)
    for first in range(0, len(reports), at_once):
        block = reports[first : first + at_once]
        packed = b"".join(columns.to_bytes(size, "little") for columns in block)
        bits = np.unpackbits(
            np.frombuffer(packed, np.uint8).reshape(len(block), size),
            axis=1,
            count=row.width,
            bitorder="little",
        )
        counts += bits.sum(axis=0, dtype=np.int64)
    touched = np.flatnonzero(counts)
    return Increment(
        row.width, len(reports), tuple(touched.tolist()), tuple(counts[touched].tolist())
    )

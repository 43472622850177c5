"""Many reports become few increments: how much to add to which cells of which rows."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from hearsay.mechanisms import Packing, Row
from hearsay_collector.stores.base import Increment, TallyRowKey
from hearsay_collector.sums import count_bitmaps

__all__ = ["Accepted", "increments", "merged"]

_BLOCK_BITS = 1 << 22
"""Bits of bitmaps laid side by side at once: hostile batches of wide rows must not fill the
memory."""


class Accepted(NamedTuple):
    """A report that passed: the row it adds to, and its columns as `Report.columns` has them."""

    key: TallyRowKey
    row: Row
    columns: int


def increments(reports: Iterable[Accepted]) -> dict[TallyRowKey, Increment]:
    """The sum of all reports, one increment for each row that they name."""
    rows: dict[TallyRowKey, Row] = {}
    columns: defaultdict[TallyRowKey, list[int]] = defaultdict(list)
    for key, row, each in reports:
        rows[key] = row
        columns[key].append(each)
    return {key: _sum(rows[key], each) for key, each in columns.items()}


def merged(parts: Iterable[Mapping[TallyRowKey, Increment]]) -> dict[TallyRowKey, Increment]:
    """The sum of several sums."""
    found: defaultdict[TallyRowKey, list[Increment]] = defaultdict(list)
    for part in parts:
        for key, increment in part.items():
            found[key].append(increment)
    return {key: each[0] if len(each) == 1 else _add(each) for key, each in found.items()}


def _add(parts: list[Increment]) -> Increment:
    columns = np.concatenate([np.asarray(part.columns, np.int64) for part in parts])
    counts = np.concatenate([np.asarray(part.counts, np.int64) for part in parts])
    touched, places = np.unique(columns, return_inverse=True)
    sums = np.zeros(len(touched), np.int64)
    np.add.at(sums, places, counts)
    return Increment(parts[0].width, sum(part.reports for part in parts), touched, sums)


def _sum(row: Row, reports: list[int]) -> Increment:
    if row.packing is Packing.INDEX:
        counted = Counter(reports)
        return Increment(row.width, len(reports), tuple(counted), tuple(counted.values()))
    size = (row.width + 7) // 8
    counts = np.zeros(row.width, np.int64)
    at_once = max(1, _BLOCK_BITS // row.width)
    for first in range(0, len(reports), at_once):
        block = reports[first : first + at_once]
        packed = b"".join([columns.to_bytes(size, "little") for columns in block])
        counts += count_bitmaps(np.frombuffer(packed, np.uint8).reshape(-1, size), row.width)
    touched = np.flatnonzero(counts).astype(np.int64, copy=False)
    return Increment(row.width, len(reports), touched, counts[touched])

"""Binary batches, for relays: fixed-width records of one metric, scheme and window.

A body is a header and `count` records of equal width, all numbers little-endian::

    4 bytes   magic, "HSYB"
    1         version, 1
    16        batch id
    1, 1, 1   lengths of metric, scheme and window
    1         bytes of a record that name its row (0 where the scheme has one row)
    4         bytes of a record that hold its columns
    4         count
    ...       metric, scheme and window, in ASCII
    ...       the records: row, columns

The columns of a row that is packed as an index are its number in `Row.report_bytes` bytes;
of a list, its numbers in ascending order, each in as few bytes as the row's width takes; of
a bitmap, its bytes. Where rows differ, every record has room for the widest, filled up with
zeros. `client/vectors/binary.json` holds valid and invalid examples.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hearsay import WireError
from hearsay.mechanisms import Packing, Report, Row
from hearsay_collector.folding import stretches
from hearsay_collector.stores.base import Increment
from hearsay_collector.sums import DENSE, count_bitmaps, count_indices

__all__ = ["MEDIA_TYPE", "BinaryBatch", "Summed", "decode", "encode", "sum_records"]

MEDIA_TYPE = "application/vnd.hearsay.batch"

_MAGIC = b"HSYB"
_VERSION = 1
_NONE = np.zeros(0, np.int64)
_SPREAD = 4
"""Rows are added side by side if that takes at most so many times the room of the batch."""

_HEADER = struct.Struct("<4sB16sBBBBII")


class BinaryBatch(NamedTuple):
    """A decoded header with the records behind it; `records` has shape (count, bytes)."""

    id: str
    metric: str
    scheme: str
    window: str
    row_bytes: int
    records: NDArray[np.uint8]


class Summed(NamedTuple):
    """What a batch adds to each row, and which records are left out of that.

    `bad_rows` and `bad_columns` are the indices of those records, ascending.
    """

    increments: dict[int, Increment]
    bad_rows: NDArray[np.int64]
    bad_columns: NDArray[np.int64]


def encode(
    batch_id: str, metric: str, scheme: str, window: str, rows: Sequence[Row], reports: list[Report]
) -> bytes:
    """The body of a binary batch; the reports fit into the rows."""
    row_bytes, column_bytes = _layout(rows)
    names = [text.encode("ascii") for text in (metric, scheme, window)]
    header = _HEADER.pack(
        *(_MAGIC, _VERSION, bytes.fromhex(batch_id), *map(len, names)),
        *(row_bytes, column_bytes, len(reports)),
    )
    pieces = [header, *names]
    for row, columns in reports:
        pieces.append(row.to_bytes(row_bytes, "little"))
        pieces.append(_pack(rows[row], columns).ljust(column_bytes, b"\0"))
    return b"".join(pieces)


def decode(body: bytes) -> BinaryBatch:
    """Read the header and lay the records out; they are not looked at yet.

    Raises:
        WireError: `malformed_batch`.
    """
    if len(body) < _HEADER.size or not body.startswith(_MAGIC):
        raise _malformed("a binary batch begins with its header, and that with HSYB")
    _, version, batch_id, *lengths, row_bytes, column_bytes, count = _HEADER.unpack_from(body)
    if version != _VERSION:
        raise _malformed(f"version must be {_VERSION}")
    start = _HEADER.size + sum(lengths)
    if not column_bytes or len(body) != start + count * (row_bytes + column_bytes):
        raise _malformed("the body must be as long as its header says")
    # What is not ASCII names nothing, and is refused as any unknown name.
    names = body[_HEADER.size : start].decode("ascii", "replace")
    metric, scheme = names[: lengths[0]], names[lengths[0] : lengths[0] + lengths[1]]
    window = names[lengths[0] + lengths[1] :]
    records = np.frombuffer(body, np.uint8, offset=start).reshape(count, row_bytes + column_bytes)
    return BinaryBatch(batch_id.hex(), metric, scheme, window, row_bytes, records)


def sum_records(batch: BinaryBatch, rows: Sequence[Row]) -> Summed:
    """Validate all records and add up the good ones, without a loop over them.

    Raises:
        WireError: `malformed_batch`: the records are not laid out for these rows.
    """
    row_bytes, column_bytes = _layout(rows)
    count, width = batch.records.shape
    if (batch.row_bytes, width - batch.row_bytes) != (row_bytes, column_bytes):
        raise _malformed(
            f"records of this scheme have {row_bytes} bytes of row and {column_bytes} of columns"
        )
    named = _numbers(batch.records[:, :row_bytes]) if row_bytes else np.zeros(count, np.int64)
    known = named < len(rows)
    kinds: dict[Row, list[int]] = {}
    for number, row in enumerate(rows):
        kinds.setdefault(row, []).append(number)
    increments: dict[int, Increment] = {}
    bad = [_NONE]
    for row, numbers in kinds.items():
        if len(kinds) == 1 and known.all():
            # Nearly every batch: all of its rows are alike, and none of its records is bad.
            slots, columns = named, batch.records[:, row_bytes:]
            good = _good(row, columns)
            places = _NONE if good.all() else np.arange(count)
        else:
            places = np.flatnonzero(np.isin(named, numbers))
            slots = np.searchsorted(numbers, named[places])
            columns = batch.records[places, row_bytes:]
            good = _good(row, columns)
        if len(places):
            bad.append(places[~good])
            slots, columns = slots[good], columns[good]
        increments.update(_sum(row, numbers, slots, columns))
    return Summed(increments, np.flatnonzero(~known), np.sort(np.concatenate(bad)))


def _layout(rows: Sequence[Row]) -> tuple[int, int]:
    """Bytes of a record that name its row, and that hold its columns."""
    return _bytes_for(len(rows)) if len(rows) > 1 else 0, max(map(_column_bytes, rows))


def _column_bytes(row: Row) -> int:
    if row.packing is Packing.LIST:
        return (row.columns or 1) * _bytes_for(row.width)
    return row.report_bytes


def _bytes_for(numbers: int) -> int:
    """Bytes that hold every number below `numbers`."""
    return max(1, ((numbers - 1).bit_length() + 7) // 8)


def _pack(row: Row, columns: int) -> bytes:
    if row.packing is Packing.LIST:
        size = _bytes_for(row.width)
        pieces = []
        while columns:
            lowest = columns & -columns
            pieces.append((lowest.bit_length() - 1).to_bytes(size, "little"))
            columns ^= lowest
        return b"".join(pieces)
    return columns.to_bytes(row.report_bytes, "little")


def _numbers(data: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Little-endian numbers of up to four bytes: the last axis is one number's."""
    size = data.shape[-1]
    if size in (1, 2, 4):
        packed = np.ascontiguousarray(data).view(f"<u{size}")[..., 0]
        return packed.astype(np.int64)
    numbers = data[..., 0].astype(np.int64)
    for place in range(1, size):
        numbers |= data[..., place].astype(np.int64) << (8 * place)
    return numbers


def _good(row: Row, data: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Which of these columns a device could have sent for the row; shape (n,)."""
    size = _column_bytes(row)
    good = np.ones(len(data), np.bool_)
    if data.shape[1] > size:
        good &= ~data[:, size:].any(axis=1)
        data = data[:, :size]
    if row.packing is not Packing.BITMAP:
        numbers = _indices(row, data)
        good &= numbers[:, -1] < row.width
        if numbers.shape[1] > 1:
            good &= (np.diff(numbers, axis=1) > 0).all(axis=1)
        return good
    if row.width % 8:
        good &= data[:, -1] >> (row.width % 8) == 0
    if row.columns is not None:
        whole = np.ascontiguousarray(data)
        words = whole.view(np.uint64) if size % 8 == 0 else whole
        good &= np.bitwise_count(words).sum(axis=1, dtype=np.int64) == row.columns
    return good


def _sum(
    row: Row, numbers: list[int], slots: NDArray[np.int64], data: NDArray[np.uint8]
) -> Iterator[tuple[int, Increment]]:
    """The sums of rows that are alike; record i names the row `numbers[slots[i]]`."""
    reports = np.bincount(slots, minlength=len(numbers))
    if row.packing is Packing.BITMAP:
        counts = _count_slots(slots, reports, np.ascontiguousarray(data[:, : row.report_bytes]))
        yield from _stretches(row, numbers, reports, counts[:, : row.width])
        return
    indices = _indices(row, data[:, : _column_bytes(row)])
    if len(numbers) > 1:
        indices = indices + slots[:, None] * row.width
    size = row.width * len(numbers)
    if size <= DENSE * indices.size:
        counts = np.bincount(indices.ravel(), minlength=size).astype(np.int64, copy=False)
        yield from _stretches(row, numbers, reports, counts.reshape(len(numbers), row.width))
        return
    touched, counts = count_indices(indices.ravel(), size)
    ends = np.searchsorted(touched, np.arange(1, len(numbers) + 1) * row.width)
    first = 0
    for slot, last in enumerate(ends.tolist()):
        if reports[slot]:
            columns = touched[first:last] - slot * row.width
            number = int(reports[slot])
            yield numbers[slot], Increment(row.width, number, columns, counts[first:last])
        first = last


def _stretches(
    row: Row, numbers: list[int], reports: NDArray[np.intp], counts: NDArray[np.int64]
) -> Iterator[tuple[int, Increment]]:
    named = np.flatnonzero(reports)
    for slot, increment in zip(
        named.tolist(), stretches(row.width, reports[named].tolist(), counts[named]), strict=True
    ):
        yield numbers[slot], increment


def _count_slots(
    slots: NDArray[np.int64], reports: NDArray[np.intp], bitmaps: NDArray[np.uint8]
) -> NDArray[np.int64]:
    """The counts of each row, from bitmaps that are mixed among them; shape (rows, bits)."""
    size = bitmaps.shape[1]
    if len(reports) == 1:
        return count_bitmaps(bitmaps, 8 * size)[None]
    # Numbers of 16 bits are sorted by radix, several times as fast.
    order = np.argsort(slots.astype(np.min_scalar_type(len(reports))), kind="stable")
    starts = np.cumsum(reports) - reports
    deepest = int(reports.max())
    whole = bitmaps.view(f"V{size}")[:, 0][order]
    if deepest * len(reports) <= _SPREAD * len(slots):
        # The bitmaps of all rows side by side are one long bitmap: one addition for all.
        depth = np.arange(len(slots)) - np.repeat(starts, reports)
        laid = np.zeros(deepest * len(reports), whole.dtype)
        laid[depth * len(reports) + np.repeat(np.arange(len(reports)), reports)] = whole
        beside = laid.view(np.uint8).reshape(deepest, len(reports) * size)
        return count_bitmaps(beside, 8 * beside.shape[1]).reshape(len(reports), 8 * size)
    counts = np.zeros((len(reports), 8 * size), np.int64)
    ordered = whole.view(np.uint8).reshape(-1, size)
    for slot in np.flatnonzero(reports).tolist():
        mine = ordered[starts[slot] : starts[slot] + reports[slot]]
        counts[slot] = count_bitmaps(mine, counts.shape[1])
    return counts


def _indices(row: Row, data: NDArray[np.uint8]) -> NDArray[np.int64]:
    """The columns of records that are packed as numbers; shape (n, columns)."""
    columns = (row.columns or 1) if row.packing is Packing.LIST else 1
    return _numbers(data.reshape(len(data), columns, data.shape[1] // columns))


def _malformed(message: str) -> WireError:
    return WireError("malformed_batch", message)

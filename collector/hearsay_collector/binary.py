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
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hearsay import WireError
from hearsay.mechanisms import Packing, Report, Row
from hearsay_collector.stores.base import Increment
from hearsay_collector.sums import count_bitmaps, count_indices

__all__ = ["MEDIA_TYPE", "BinaryBatch", "Summed", "decode", "encode", "sum_records"]

MEDIA_TYPE = "application/vnd.hearsay.batch"

_MAGIC = b"HSYB"
_VERSION = 1
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
    width = batch.records.shape[1]
    if (batch.row_bytes, width - batch.row_bytes) != (row_bytes, column_bytes):
        raise _malformed(
            f"records of this scheme have {row_bytes} bytes of row and {column_bytes} of columns"
        )
    columns = batch.records[:, row_bytes:]
    if len(rows) == 1:
        good, increment = _sum_row(rows[0], columns)
        bad = np.flatnonzero(~good).astype(np.int64, copy=False)
        return Summed({0: increment} if increment.reports else {}, bad[:0], bad)
    named = _numbers(batch.records[:, :row_bytes])
    bad_rows = np.flatnonzero(named >= len(rows)).astype(np.int64, copy=False)
    order = np.argsort(np.minimum(named, len(rows)).astype(np.uint32), kind="stable")
    ends = np.cumsum(np.bincount(np.minimum(named, len(rows)), minlength=len(rows) + 1))
    increments = {}
    bad_places = []
    first = 0
    for row, last in enumerate(ends[: len(rows)].tolist()):
        if last > first:
            places = order[first:last]
            good, increment = _sum_row(rows[row], columns[places])
            bad_places.append(places[~good])
            if increment.reports:
                increments[row] = increment
        first = last
    bad = np.sort(np.concatenate(bad_places)) if bad_places else bad_rows[:0]
    return Summed(increments, bad_rows, bad.astype(np.int64, copy=False))


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
        places = (place for place in range(row.width) if columns >> place & 1)
        return b"".join(place.to_bytes(size, "little") for place in places)
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


def _sum_row(row: Row, data: NDArray[np.uint8]) -> tuple[NDArray[np.bool_], Increment]:
    """Which records of one row are good, shape (n,), and the sum of those."""
    size = _column_bytes(row)
    good = np.ones(len(data), np.bool_)
    if size < data.shape[1]:
        good &= ~data[:, size:].any(axis=1)
        data = data[:, :size]
    if row.packing is Packing.BITMAP:
        good &= _good_bitmaps(row, data)
        counts = count_bitmaps(data if good.all() else data[good], row.width)
        touched = np.flatnonzero(counts).astype(np.int64, copy=False)
        return good, Increment(row.width, int(good.sum()), touched, counts[touched])
    if row.packing is Packing.LIST:
        numbers = _numbers(data.reshape(len(data), row.columns or 1, _bytes_for(row.width)))
        good &= (np.diff(numbers, axis=1) > 0).all(axis=1) & (numbers[:, -1] < row.width)
    else:
        numbers = _numbers(data)
        good &= numbers < row.width
    if not good.all():
        numbers = numbers[good]
    touched, counts = count_indices(numbers.ravel(), row.width)
    return good, Increment(row.width, len(numbers), touched, counts)


def _good_bitmaps(row: Row, data: NDArray[np.uint8]) -> NDArray[np.bool_]:
    good: NDArray[np.bool_] = np.ones(len(data), np.bool_)
    if row.width % 8:
        good &= data[:, -1] >> (row.width % 8) == 0
    if row.columns is not None:
        words = data
        if data.shape[1] % 8 == 0:
            words = np.ascontiguousarray(data).view(np.uint64)
        good &= np.bitwise_count(words).sum(axis=1, dtype=np.int64) == row.columns
    return good


def _malformed(message: str) -> WireError:
    return WireError("malformed_batch", message)

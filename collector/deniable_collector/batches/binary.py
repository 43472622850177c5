"""Binary batches, for relays: fixed-width records of one metric, scheme and window.

A body is a header and `count` records of equal width, all numbers little-endian::

    4 bytes   magic, "DNYB"
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
a bitmap, its bytes. If rows differ in width, every record has room for the widest, and is
padded with zeros. `client/vectors/binary.json` holds valid and invalid examples.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deniable import WireError
from deniable.mechanisms import Packing, Report, Row
from deniable_collector.batches.folding import Block, spread
from deniable_collector.batches.sums import count_bitmaps, count_indices
from deniable_collector.stores.commits import Increment

__all__ = ["MEDIA_TYPE", "BinaryBatch", "Layout", "Summed", "decode", "encode", "sum_records"]

MEDIA_TYPE = "application/vnd.deniable.batch"

_MAGIC = b"DNYB"
_VERSION = 1
_NONE = np.zeros(0, np.int64)
_DENSE = 4
"""A batch is summed as a block if there are at most so many columns for each number in it."""

_SPREAD = 4
"""Rows are added side by side if that needs at most so many times the memory of the batch."""

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
    """What a batch adds to rows, and which records are left out.

    A row that is added to is in `increments` or in one of the `blocks`. `bad_rows` and
    `bad_columns` are the indices of the bad records, ascending.
    """

    blocks: list[Block[int]]
    increments: dict[int, Increment]
    bad_rows: NDArray[np.int64]
    bad_columns: NDArray[np.int64]


def encode(
    batch_id: str, metric: str, scheme: str, window: str, rows: Sequence[Row], reports: list[Report]
) -> bytes:
    """The body of a binary batch; the reports fit into the rows."""
    layout = Layout(rows)
    row_bytes, column_bytes = layout.row_bytes, layout.column_bytes
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
    """Read the header and give the records their shape, without validating them.

    Raises:
        WireError: `malformed_batch`.
    """
    if len(body) < _HEADER.size or not body.startswith(_MAGIC):
        raise _malformed("a binary batch begins with a header, which begins with DNYB")
    _, version, batch_id, *lengths, row_bytes, column_bytes, count = _HEADER.unpack_from(body)
    if version != _VERSION:
        raise _malformed(f"version must be {_VERSION}")
    start = _HEADER.size + sum(lengths)
    if not column_bytes or len(body) != start + count * (row_bytes + column_bytes):
        raise _malformed("the body must be as long as its header says")
    # A name that is not ASCII is refused like any unknown name.
    names = body[_HEADER.size : start].decode("ascii", "replace")
    metric, scheme = names[: lengths[0]], names[lengths[0] : lengths[0] + lengths[1]]
    window = names[lengths[0] + lengths[1] :]
    records = np.frombuffer(body, np.uint8, offset=start).reshape(count, row_bytes + column_bytes)
    return BinaryBatch(batch_id.hex(), metric, scheme, window, row_bytes, records)


class Layout:
    """The layout of the records of a scheme with these rows.

    `row_bytes` of a record name its row, and `column_bytes` hold its columns. `kinds` groups
    the row numbers by width and packing.
    """

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = len(rows)
        self.row_bytes = _bytes_for(len(rows)) if len(rows) > 1 else 0
        kinds: dict[Row, list[int]] = {}
        for number, row in enumerate(rows):
            kinds.setdefault(row, []).append(number)
        self.kinds = tuple((row, tuple(numbers)) for row, numbers in kinds.items())
        self.column_bytes = max(map(_column_bytes, kinds))


def sum_records(batch: BinaryBatch, layout: Layout) -> Summed:
    """Validate all records and add up the good ones, without a loop over them.

    Raises:
        WireError: `malformed_batch`: the records have another layout.
    """
    count, width = batch.records.shape
    row_bytes, column_bytes = layout.row_bytes, layout.column_bytes
    if (batch.row_bytes, width - batch.row_bytes) != (row_bytes, column_bytes):
        raise _malformed(
            f"records of this scheme have {row_bytes} bytes of row and {column_bytes} of columns"
        )
    if row_bytes:
        named = _numbers(batch.records[:, :row_bytes])
    else:
        named = np.zeros(count, np.uint8)
    unknown = np.flatnonzero(named >= layout.rows) if row_bytes else _NONE
    summed = Summed([], {}, unknown, _NONE)
    bad = []
    for row, numbers in layout.kinds:
        if len(layout.kinds) == 1 and not len(unknown):
            # Nearly every batch: all of its rows are of one kind, and no record is bad.
            places, slots, columns = None, named, batch.records[:, row_bytes:]
        else:
            places = np.flatnonzero(np.isin(named, numbers))
            slots = np.searchsorted(numbers, named[places])
            columns = batch.records[places, row_bytes:]
        values, good = _read(row, columns)
        if good is not None:
            bad.append(np.flatnonzero(~good) if places is None else places[~good])
            slots, values = slots[good], values[good]
        if len(slots):
            _sum(summed, row, numbers, slots, values)
    return summed._replace(bad_columns=np.sort(np.concatenate(bad))) if bad else summed


def _column_bytes(row: Row) -> int:
    if row.packing is Packing.LIST:
        return (row.columns or 1) * _bytes_for(row.width)
    return row.report_bytes


def _bytes_for(numbers: int) -> int:
    """How many bytes can hold every number below `numbers`."""
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


def _numbers(data: NDArray[np.uint8]) -> NDArray[np.integer]:
    """Little-endian numbers of up to four bytes; the last axis holds the bytes of one number."""
    size = data.shape[-1]
    if size in (1, 2, 4):
        return np.ascontiguousarray(data).view(f"<u{size}")[..., 0]
    # Numbers of 32 bits are sorted twice as fast as those of 64.
    numbers = data[..., size - 1].astype(np.uint32)
    for place in reversed(range(size - 1)):
        numbers <<= np.uint32(8)
        numbers |= data[..., place]
    return numbers


def _read(
    row: Row, data: NDArray[np.uint8]
) -> tuple[NDArray[np.integer], NDArray[np.bool_] | None]:
    """The columns of records, and which of these a device could have sent for the row (None:
    all).

    The columns of bitmaps have shape (n, bytes), those of numbers (n, columns).
    """
    size = _column_bytes(row)
    tests = []
    if data.shape[1] > size:
        tests.append(~data[:, size:].any(axis=1))
        data = data[:, :size]
    values: NDArray[np.integer]
    if row.packing is Packing.BITMAP:
        values = whole = np.ascontiguousarray(data)
        if row.width % 8:
            tests.append(data[:, -1] >> (row.width % 8) == 0)
        if row.columns is not None:
            words = whole.view(np.uint64) if size % 8 == 0 else whole
            tests.append(np.bitwise_count(words).sum(axis=1, dtype=np.int64) == row.columns)
    else:
        columns = (row.columns or 1) if row.packing is Packing.LIST else 1
        values = _numbers(data.reshape(len(data), columns, size // columns))
        tests.append(values[:, -1] < row.width)
        if columns > 1:
            tests.append((values[:, 1:] > values[:, :-1]).all(axis=1))
    if all(test.all() for test in tests):
        return values, None
    return values, np.logical_and.reduce(tests)


def _sum(
    summed: Summed,
    row: Row,
    numbers: tuple[int, ...],
    slots: NDArray[np.integer],
    values: NDArray[np.integer],
) -> None:
    """Add the sums of rows of one kind; record i names the row `numbers[slots[i]]`."""
    one = len(numbers) == 1
    reports = np.array([len(slots)]) if one else np.bincount(slots, minlength=len(numbers))
    if row.packing is Packing.BITMAP:
        counts = _count_slots(slots, reports, values.view(np.uint8))[:, : row.width]
    else:
        size = row.width * len(numbers)
        indices = values.ravel() if one else (values + slots[:, None] * np.int64(row.width)).ravel()
        if size > _DENSE * indices.size:
            summed.increments.update(_sparse(row, numbers, reports, indices, size))
            return
        counts = np.bincount(indices, minlength=size).reshape(len(numbers), row.width)
    block = Block(numbers, reports, counts)
    if len(numbers) <= len(slots):
        summed.blocks.append(block)
    else:
        # A few reports must not occupy the memory of all rows until they are committed.
        summed.increments.update(spread(block))


def _sparse(
    row: Row,
    numbers: tuple[int, ...],
    reports: NDArray[np.int64],
    indices: NDArray[np.integer],
    size: int,
) -> Iterator[tuple[int, Increment]]:
    touched, counts = count_indices(indices, size)
    ends = np.searchsorted(touched, np.arange(1, len(numbers) + 1) * row.width)
    first = 0
    for slot, last in enumerate(ends.tolist()):
        if reports[slot]:
            columns = touched[first:last] - slot * row.width
            number = int(reports[slot])
            yield numbers[slot], Increment(row.width, number, columns, counts[first:last])
        first = last


def _count_slots(
    slots: NDArray[np.integer], reports: NDArray[np.int64], bitmaps: NDArray[np.uint8]
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


def _malformed(message: str) -> WireError:
    return WireError("malformed_batch", message)

"""The forms of a tally in Redis: one string each, dense, sparse, sealed, or a sum.

A string is a header of two u64, the stamp of the last commit and the form, and then, little-endian:

- form 4 or 8, *dense*: all counters of the tally, in so many bytes each.
- *sparse*, where that is smaller: the reports of the rows as u32, and then a hash table of the
  counters that are not zero. `_sparse_form` says how its numbers are in the form.
- SEALED: a block (`sealed.py`).
- SUM: the length of a record as u32, the record, and a block.

Zeros at the end of an open form may be missing. `fold.lua` adds to open forms in place.

The table has slots of 8 bytes, u32 place + 1 (0: empty) and u32 count. An entry is searched from
the slot of its hash on, and entries are in the order of (hash, place). So the table of a sum is the
same in whatever order its counters came: it tells no more than the sum does. (O. Amble and D. E.
Knuth, Ordered hash tables, The Computer Journal 17, 1974.)
"""

from __future__ import annotations

import struct

import numpy as np
from numpy.typing import NDArray

from deniable_collector.stores.commits import MAX_CELL, TallyKey, new_stamp
from deniable_collector.stores.contract import Head
from deniable_collector.stores.errors import StoreError
from deniable_collector.stores.sealed import add_counters, reports_in
from deniable_collector.stores.vectors import Addition, Shape, full

HEADER = struct.Struct("<QQ")
_SEALED, _SUM = 64, 65
_LENGTH = struct.Struct("<I")

_STAMP = 8

_NARROW_TOP = 2**32 - 1

_SPARSE = 128
_ROWS_UNIT, _SLOTS_UNIT = 1 << 8, 1 << 24
_MOST_ROWS, _MOST_SLOTS = 1 << 16, 1 << 26
_MOST_PLACES = 1 << 26
"""Above these a tally is dense; fold.lua calculates in doubles, which are exact up to 2**53."""

_FACTOR, _HASHES = 41_475_557, 1 << 26
"""The hash of a place is place * _FACTOR % _HASHES: neighbours are spread evenly over the table,
because _FACTOR / _HASHES is about the golden ratio (Knuth, volume 3, section 6.4)."""

_LOAD = 0.5
"""The part of the slots that are used in a new table. A script asks for another table when an entry
is far from the slot of its hash, at a load of about 0.85."""

_SPARE = 64
"""Slots behind the last hash, for the last entries."""

_FEWEST = 32

_SWAP, _SWAP_COUNTER = 110.0, 0.0135
_RUN, _RUN_COUNTER = 3.5, 0.15
"""What the ways of adding cost, in microseconds of both sides: a swap for itself and for each
counter of the tally, a run for itself and for each of its counters (benchmarks/stores.py)."""

_RUN_GAP = 16
_RUN_COUNTERS = 512
"""Reading and writing up to so many zeros costs less than another run; the longest run."""


class TallyWrite:
    """What a commit adds to one tally, and the ways in which it can be added."""

    def __init__(self, tally: TallyKey, key: str, addition: Addition, shape: Shape) -> None:
        self.tally = tally
        self.key = key
        self.stamp = new_stamp().to_bytes(8, "little")
        self._addition = addition
        self._shape = shape
        self._sparse: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None
        self.must_swap = int(addition.counts.max()) > _NARROW_TOP
        if addition.places is None:
            touched, runs = addition.size, 1 + addition.size // _RUN_COUNTERS
        else:
            self._sparse = places, _ = addition.sparse()
            touched = len(places)
            runs = 1 + int(np.count_nonzero(np.diff(places) > _RUN_GAP))
        swap = _SWAP + _SWAP_COUNTER * addition.size
        self.may_swap = swap < _RUN * runs + _RUN_COUNTER * touched
        self._touched = touched

    def swap(self, old: bytes | None) -> tuple[bytes, bytes]:
        """The header of the old string, and the whole new one, which is open.

        Raises:
            StoreError: a counter would exceed the highest, or a sealed block is damaged.
        """
        if old is None:
            counters = np.zeros(self._addition.size, np.int64)
        else:
            counters = counters_of(old, self.tally, self._addition.size)
        self._addition.to(counters)
        if int(counters.max()) > MAX_CELL:
            raise full(self.tally)
        new = _open_value(self.stamp, counters, len(self._shape.widths))
        return (old or b"")[: HEADER.size], new

    @property
    def first_form(self) -> bytes:
        """ "+" and the form that the tally gets if it does not exist."""
        rows = len(self._shape.widths)
        return b"+%d" % (_sparse_form(self._touched, rows, self._addition.size) or 4)

    @property
    def runs(self) -> bytes:
        """The addition as runs of neighbouring counters, dense within a run."""
        places, counts = self._sparse or self._addition.sparse()
        new = np.diff(places, prepend=-_RUN_GAP - 1) > _RUN_GAP
        # Long runs are cut: the script has them on its stack.
        starts = places[new]
        since = places - np.repeat(starts, np.diff(np.flatnonzero(new), append=len(places)))
        new[1:] |= np.diff(since // _RUN_COUNTERS) > 0
        begins = np.flatnonzero(new)
        ends = np.append(begins[1:], len(places)) - 1
        firsts, lengths = places[begins], places[ends] - places[begins] + 1
        heads = np.cumsum(2 + lengths) - lengths - 2
        runs = np.zeros(int(np.sum(2 + lengths)), "<u4")
        runs[heads], runs[heads + 1] = firsts, lengths
        runs[places + np.repeat(heads + 2 - firsts, ends + 1 - begins)] = counts
        return runs.tobytes()


def add_value(value: bytes, tally: TallyKey, total: NDArray[np.int64]) -> None:
    """Add the counters in a tally's string to a vector of the tally's size.

    Raises:
        StoreError: it is sealed, and its block is damaged; or its form is not known.
    """
    form = _form_of(value, tally)
    if form in (_SEALED, _SUM):
        add_counters(tally, total, value[HEADER.size + _record_size(value, form) :])
    elif form >= _SPARSE:
        rows = _rows_in(form)
        reports = np.frombuffer(value[HEADER.size : HEADER.size + 4 * rows], "<u4")
        total[: len(reports)] += reports
        table = np.frombuffer(value[HEADER.size + 4 * rows :], "<u4").reshape(-1, 2)
        used = table[table[:, 0] > 0].astype(np.int64)
        total[used[:, 0] - 1] += used[:, 1]
    else:
        found = np.frombuffer(value, f"<u{form}", offset=HEADER.size).astype(np.int64)
        total[: len(found)] += found


def counters_of(value: bytes, tally: TallyKey, size: int) -> NDArray[np.int64]:
    """The vector of shape (size,) in a tally's string.

    Raises:
        StoreError: as `add_value` does.
    """
    counters = np.zeros(size, np.int64)
    add_value(value, tally, counters)
    return counters


def _form_of(value: bytes, tally: TallyKey) -> int:
    """The form in a header.

    Raises:
        StoreError: it is not known.
    """
    form: int = HEADER.unpack_from(value)[1]
    if form not in (4, 8, _SEALED, _SUM) and form % _ROWS_UNIT != _SPARSE:
        raise StoreError(
            f"metric {tally.metric}, window {tally.window} cannot be read: another version of "
            "deniable has written it, or something else"
        )
    return form


def reports_of(value: bytes, tally: TallyKey, rows: int) -> NDArray[np.int64]:
    """The reports of each row. Of an open form the first HEADER.size + 8 * rows bytes are enough.

    Raises:
        StoreError: as `add_value` does.
    """
    form = _form_of(value, tally)
    if form == _SEALED:
        return reports_in(tally, value[HEADER.size :])
    size = 4 if form >= _SPARSE else form
    end = HEADER.size + size * rows
    found = np.frombuffer(value[HEADER.size : end], f"<u{size}")
    reports = np.zeros(rows, np.int64)
    reports[: len(found)] = found
    return reports


def head_of(value: bytes) -> Head | None:
    """The head of a tally whose string has this beginning; None if the record of a sum is not all
    there."""
    stamp, form = value[:_STAMP].hex(), HEADER.unpack_from(value)[1]
    record = value[HEADER.size + _LENGTH.size :]
    if form != _SUM:
        return Head(stamp, form == _SEALED)
    size = _record_size(value, form) - _LENGTH.size
    return Head(stamp, True, record[:size]) if len(record) >= size else None


def _record_size(value: bytes, form: int) -> int:
    """The bytes of a record, with its length; 0 if there is none."""
    return _LENGTH.size + _LENGTH.unpack_from(value, HEADER.size)[0] if form == _SUM else 0


def sealed_value(stamp: str, block: bytes) -> bytes:
    """The sealed string for an open one, with the same stamp, because the sums are the same."""
    return bytes.fromhex(stamp) + _SEALED.to_bytes(8, "little") + block


def sum_value(record: bytes, block: bytes) -> bytes:
    """The string of a sum, with a new stamp."""
    return HEADER.pack(new_stamp(), _SUM) + _LENGTH.pack(len(record)) + record + block


def _open_value(stamp: bytes, counters: NDArray[np.int64], rows: int) -> bytes:
    """The smaller of the open forms."""
    top = int(counters.max())
    if top <= _NARROW_TOP:
        places = np.flatnonzero(counters[rows:]) + rows
        if form := _sparse_form(len(places), rows, len(counters)):
            form, table = _table(form, places, counters)
            reports = counters[:rows].astype("<u4").tobytes()
            return stamp + form.to_bytes(8, "little") + reports + table
        return stamp + (4).to_bytes(8, "little") + counters.astype("<u4").tobytes()
    return stamp + (8).to_bytes(8, "little") + counters.astype("<u8").tobytes()


def _sparse_form(entries: int, rows: int, size: int) -> int:
    """The sparse form for so many entries; 0 if the dense one is smaller, or there can be none."""
    slots = max(_FEWEST, int(entries / _LOAD))
    if rows >= _MOST_ROWS or slots >= _MOST_SLOTS or size > _MOST_PLACES:
        return 0
    if 4 * rows + 8 * (slots + _SPARE) >= 4 * size:
        return 0
    return _SPARSE + _ROWS_UNIT * rows + _SLOTS_UNIT * slots


def _rows_in(form: int) -> int:
    return form // _ROWS_UNIT % _MOST_ROWS


def _table(form: int, places: NDArray[np.int64], counters: NDArray[np.int64]) -> tuple[int, bytes]:
    """The table of these places, and its form, which has more slots if they were too few."""
    while True:
        slots = form // _SLOTS_UNIT
        hashes = places * _FACTOR % _HASHES * slots // _HASHES
        order = np.lexsort((places, hashes))
        since = hashes[order] - np.arange(len(order))
        at = np.maximum.accumulate(since) + np.arange(len(order))
        if not len(at) or at[-1] < slots + _SPARE:
            table = np.zeros((slots + _SPARE, 2), "<u4")
            table[at, 0], table[at, 1] = places[order] + 1, counters[places[order]]
            return form, table.tobytes()
        form += _SLOTS_UNIT * slots

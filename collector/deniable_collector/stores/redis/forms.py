"""A tally in Redis: one string, which is all of one moment.

It is a header (u64 stamp of the last commit; u32 kind, and u32 lengths of two parts; little-endian)
and the parts: of what is open a block and the increments that `fold.lua` appends, of what is SEALED
a block alone, of a SUM a record and a block.
"""

from __future__ import annotations

import struct

from deniable_collector.stores.commits import TallyKey, new_stamp
from deniable_collector.stores.contract import Head
from deniable_collector.stores.errors import StoreError
from deniable_collector.stores.increments import NEAR_TOP, OPEN, SEALED, Held

HEADER = struct.Struct("<QIII")
SUM = 4

_STAMP = 8


def value_of(stamp: bytes, kind: int, first: bytes, second: bytes = b"") -> bytes:
    """The string of a tally with these parts."""
    lengths = struct.pack("<III", kind, len(first), len(second))
    return stamp + lengths + first + second


def fresh_stamp() -> bytes:
    """A stamp that no tally had."""
    return new_stamp().to_bytes(_STAMP, "little")


def held_in(value: bytes | None, tally: TallyKey) -> Held:
    """The block and the increments in a tally's string; nothing, if there is none.

    Raises:
        StoreError: its kind is not known.
    """
    if value is None:
        return Held(b"")
    _, kind, first, second = HEADER.unpack_from(value)
    if kind not in (OPEN, NEAR_TOP, SEALED, SUM):
        raise StoreError(
            f"metric {tally.metric}, window {tally.window} cannot be read: another version of "
            "deniable has written it, or something else"
        )
    middle = HEADER.size + first
    parts = value[HEADER.size : middle], value[middle : middle + second]
    return Held(parts[1]) if kind == SUM else Held(*parts)


def head_of(value: bytes) -> Head | None:
    """The head of a tally whose string has this beginning; None if the record of a sum is not all
    there."""
    stamp, (_, kind, first, _) = value[:_STAMP].hex(), HEADER.unpack_from(value)
    if kind != SUM:
        return Head(stamp, kind == SEALED)
    record = value[HEADER.size : HEADER.size + first]
    return Head(stamp, True, record) if len(record) == first else None

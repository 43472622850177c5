"""How stores remember batch ids: eight bytes for each, packed into slots of a generation.

A generation is a period of about four days. Ids that arrive in it are put into its slots,
and are looked for in its slots and in those of the two generations before and after it,
since a clock may have jumped; older ones are dropped as a whole. An id has one slot for each
level; a generation begins with 4,096 slots, and when these hold enough, new ids go to 16
times as many, one level deeper. So beyond the first 30,000, whose slots are half a megabyte,
ids cost 9 to 15 bytes each, and nothing tells when one came but its generation.

Two ids are taken for one, and the second batch lost, if 64 bits of their hash are the same
and they share a slot. Of 10**8 ids in a generation all but 4 million lie in a million slots
or more, so that the chance is 1.3e-9 for all of them together.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from hashlib import shake_128
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deniable_collector.stores.base import ID_LIFETIME

__all__ = [
    "DEEPEST",
    "FIRST_LEVEL",
    "KEPT",
    "PERIOD",
    "SEED_BYTES",
    "TAG",
    "Names",
    "generation_at",
    "generations_at",
    "level_of",
    "lifetime_at",
    "name",
]

PERIOD = (ID_LIFETIME + 86_400.0) / 2
"""Seconds of a generation: two of them are longer than any window takes reports, so that at
two moments, however a clock jumps in between, at which a batch can be accepted, the other's
generation is among the two before or after."""

KEPT = 4
"""Generations before the present one that are not dropped: a clock that jumps ahead by the
time that a window takes reports must not drop what is needed when it jumps back."""

TAG = 8
"""Bytes of an id's hash that are kept in its slot."""

SEED_BYTES = 16
"""Bytes of the key of that hash, a secret of the store: nobody who chooses ids can heap them
up in one slot."""

_BYTES = 16
"""Bytes of an id."""

_OFFSETS = 256 * np.arange(_BYTES)

DEEPEST = 5
"""Levels below the first: 2**32 slots, enough for 10**11 ids in a generation."""

FIRST_LEVEL = 64 * 16**3
"""Ids in the first level after which the next one takes new ids: 64 in a slot."""


class Names(NamedTuple):
    """What ids are called inside: `slots` are 8 hexadecimal digits for each id, of which the
    first 3 + level name its slot; `tags` are TAG bytes for each."""

    slots: str
    tags: bytes


def generation_at(now: float) -> int:
    """The generation that takes the ids of this moment (POSIX seconds)."""
    return int(now // PERIOD)


def generations_at(now: float) -> list[int]:
    """The generations in which an id may be, that of new ids first."""
    mine = generation_at(now)
    return [mine, mine - 1, mine - 2, mine + 1, mine + 2]


def lifetime_at(now: float) -> float:
    """Seconds after which nobody looks into the present generation any more."""
    return (generation_at(now) + 1 + KEPT) * PERIOD - now


def level_of(count: int) -> int:
    """The level to which a generation of `count` ids adds the next; all levels up to it
    may hold ids."""
    level, limit = 0, FIRST_LEVEL
    while count >= limit and level < DEEPEST:
        level, limit = level + 1, 16 * limit
    return level


def name(ids: Sequence[str], seed: bytes) -> Names:
    """Names for batch ids (32 hexadecimal digits each)."""
    if not ids:
        return Names("", b"")
    slots, tags = _tables(seed)
    chosen = np.frombuffer(bytes.fromhex("".join(ids)), np.uint8).reshape(-1, _BYTES) + _OFFSETS
    slot = np.bitwise_xor.reduce(slots[chosen], axis=1)
    return Names(slot.tobytes().hex(), np.bitwise_xor.reduce(tags[chosen], axis=1).tobytes())


@lru_cache(maxsize=16)
def _tables(seed: bytes) -> tuple[NDArray[np.uint32], NDArray[np.uint64]]:
    """Simple tabulation: for each byte of an id and each value of it a random number, all of
    which are xored. Any two ids, however alike, share a hash no more often than random ones."""
    random = shake_128(seed).digest(_BYTES * 256 * 12)
    split = _BYTES * 256 * 4
    return np.frombuffer(random[:split], "<u4"), np.frombuffer(random[split:], "<u8")

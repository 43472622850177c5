"""How stores remember batch ids: eight bytes for each, packed into slots of a generation.

A generation is a period of about four days. Ids that arrive in it are put into its slots,
and are looked for in the slots of three generations; the fourth is dropped as a whole. An
id has one slot for each level; a generation begins with 256 slots, and when these hold
enough, new ids go to 16 times as many, one level deeper. So an id costs 9 to 15 bytes,
however many there are, and nothing tells when it came but its generation.

Two ids are taken for one, and the second batch lost, if 64 bits of their hash are the same
and they share a slot. Of 10**8 ids in a generation all but 4 million lie in a million slots
or more, so that the chance is 1.3e-9 for all of them together.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import NamedTuple

from hearsay_collector.stores.base import ID_LIFETIME

__all__ = [
    "DEEPEST",
    "FIRST_LEVEL",
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

_DAY = 86_400.0

PERIOD = (ID_LIFETIME + _DAY) / 2
"""Seconds of a generation. With the two before, it covers the lifetime of an id even for a
collector whose clock is a day ahead of the one that wrote the id."""

TAG = 8
"""Bytes of an id's hash that are kept in its slot."""

SEED_BYTES = 16
"""Bytes of the key of that hash, a secret of the store: nobody who chooses ids can heap them
up in one slot."""

DEEPEST = 6
"""Levels below the first: 2**32 slots, enough for 10**11 ids in a generation."""

FIRST_LEVEL = 64 * 256
"""Ids in the first level after which the next one takes new ids: 64 in a slot."""


class Names(NamedTuple):
    """What ids are called inside: `slots` are 8 hexadecimal digits for each id, of which the
    first 2 + level name its slot; `tags` are TAG bytes for each."""

    slots: str
    tags: bytes


def generation_at(now: float) -> int:
    """The generation that takes the ids of this moment (POSIX seconds)."""
    return int(now // PERIOD)


def generations_at(now: float) -> list[int]:
    """The generations in which an id may be, that of new ids first."""
    mine, ahead = generation_at(now), generation_at(now + _DAY)
    # A collector whose clock is ahead may already write to the next one.
    return [mine, mine - 1, mine - 2, *range(mine + 1, ahead + 1)]


def lifetime_at(now: float) -> float:
    """Seconds after which nobody looks into the present generation any more."""
    return (generation_at(now) + 3) * PERIOD + _DAY - now


def level_of(count: int) -> int:
    """The level to which a generation of `count` ids adds the next; all levels up to it
    may hold ids."""
    level, limit = 0, FIRST_LEVEL
    while count >= limit and level < DEEPEST:
        level, limit = level + 1, 16 * limit
    return level


def name(ids: Sequence[str], seed: bytes) -> Names:
    """Names for batch ids (32 hexadecimal digits each)."""
    keyed, digests = blake2b(digest_size=4 + TAG, key=seed), []
    for each in ids:
        digest = keyed.copy()
        digest.update(bytes.fromhex(each))
        digests.append(digest.digest())
    slots = b"".join([digest[:4] for digest in digests]).hex()
    return Names(slots, b"".join([digest[4:] for digest in digests]))

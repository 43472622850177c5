"""How stores remember batch ids: eight bytes for each, packed into slots of a generation.

An id is remembered for one of three terms, by how long its batch may be accepted (`TERMS`). Each
term has its own generations, which are periods of half a term: about four days in the shortest.
New ids are put into the slots of the current generation of their term. An id is searched in all
terms, because an edit of the registry may have changed its own: in the slots of the current
generation and of the two before and after, because a clock may have jumped. Older generations are
dropped as a whole.

An id has one slot at each level. A generation starts with 4,096 slots; when these are full, new
ids go to the next level, with 16 times as many slots. So beyond the first 30,000, whose slots
need half a megabyte, an id costs 9 to 15 bytes, for four to five generations. Only its generation
says when it arrived.

Two ids are confused, and the second batch is lost, if 64 bits of their hash are equal and they
share a slot. Of 10**8 ids in a generation, all but 4 million are in a million slots or more,
so the probability is 1.3e-9 for all of them together.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from functools import lru_cache
from hashlib import shake_128
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deniable_collector.stores.commits import COMMIT_SECONDS, ID_RETENTION, Commit

TERMS = (ID_RETENTION, 14 * 86_400.0, 38 * 86_400.0)
"""Seconds for which ids are remembered, in three classes. A metric that is answered at once accepts
reports for 7 days longer than its window lasts: for 8 days, 14 days, or at most 38 days."""

PERIODS = tuple((term + COMMIT_SECONDS) / 2 for term in TERMS)
"""Seconds of a generation of each term. Let a batch be accepted at the moments s and t, with
|t - s| <= term. Two periods are as long as the term and the hour between reading and committing:
|t - s| + COMMIT_SECONDS <= 2 * period, so that |t // period - s // period| <= 2. So the generation
of one moment is at most two away from the other's, even if a clock jumps in between."""

KEPT = 4
"""How many generations before the current one are kept: a clock that jumps ahead by the time that
a window accepts reports must not drop what is needed when it jumps back."""

TAG = 8
"""Bytes of an id's hash that are stored in its slot."""

SEED_BYTES = 16
"""Bytes of the key of that hash, which is a secret of the store, so that nobody can choose ids
that all fall into one slot."""

_BYTES = 16
"""Bytes of an id."""

_OFFSETS = 256 * np.arange(_BYTES)

DEEPEST = 5
"""Levels below the first: 2**32 slots, enough for 10**11 ids in a generation."""

FIRST_LEVEL = 64 * 16**3
"""Ids in the first level after which new ids go to the next one: 64 in a slot."""


class Names(NamedTuple):
    """Where ids are stored: `slots` are 8 hexadecimal digits for each id, of which the first
    3 + level name its slot; `tags` are TAG bytes for each."""

    slots: str
    tags: bytes


def terms_of(commit: Commit) -> list[int]:
    """The number of the term of each id of a commit: the shortest that is long enough."""
    return [bisect_left(TERMS, commit.remember.get(each, 0.0)) for each in commit.ids]


def generation_at(now: float, term: int = 0) -> int:
    """The generation for new ids of a term at this moment (POSIX seconds)."""
    return int(now // PERIODS[term])


def generations_at(now: float, term: int = 0) -> list[int]:
    """The generations of a term in which an id may be; the one for new ids first."""
    mine = generation_at(now, term)
    return [mine, mine - 1, mine - 2, mine + 1, mine + 2]


def lifetime_at(now: float, term: int = 0) -> float:
    """Seconds after which the current generation of a term is no longer searched."""
    return (generation_at(now, term) + 1 + KEPT) * PERIODS[term] - now


def level_of(count: int) -> int:
    """The level to which a generation of `count` ids adds the next one; all levels up to it may
    contain ids."""
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
    """Simple tabulation hashing: a random number for each byte of an id and each value of it, all
    xored. Any two ids, however similar, collide no more often than random ones."""
    random = shake_128(seed).digest(_BYTES * 256 * 12)
    split = _BYTES * 256 * 4
    return np.frombuffer(random[:split], "<u4"), np.frombuffer(random[split:], "<u8")

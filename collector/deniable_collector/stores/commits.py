"""What is written into a store: names of tallies, commits, and published schemes, which
every store saves as the canonical JSON of their definition."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deniable import Scheme, SchemeError
from deniable_collector.stores.errors import StoreError

ID_RETENTION = 8 * 86_400.0
"""Seconds for which a store is guaranteed to remember a batch id, unless `Commit.remember` asks
for more: as long as a window of one day accepts reports of a metric that is answered at once."""

COMMIT_SECONDS = 3_600.0
"""Seconds for which a store remembers an id longer than that, for the time between reading a batch
and committing it."""

MAX_CELL = 2**53 - 1
"""The largest value of a counter and of a row's number of reports. Scripts in Redis calculate in
doubles, which are exact up to this value; a sum above it is still recognized as too large."""


class TallyKey(NamedTuple):
    """The name of one tally."""

    metric: str
    scheme: str
    window: str


@dataclass(frozen=True, eq=False)
class Addition:
    """What a commit adds to a tally, as the vector that it is (`vectors.py`): `counts[i]` to the
    counter at `places[i]`. It sums up so many `reports`.

    Places are distinct and ascend; counts are positive. Both have dtype int64.
    """

    places: NDArray[np.int64]
    counts: NDArray[np.int64]
    reports: int


@dataclass(frozen=True)
class Commit:
    """A set of batches, with what all of them add.

    All `ids` (hexadecimal, from `deniable.protocol.wire.new_batch_id`) belong to one shard, so that
    one atomic call can both check the ids and add to the tallies. `remember` says for how many
    seconds an id must be remembered, if that is longer than ID_RETENTION.
    """

    ids: tuple[str, ...]
    additions: Mapping[TallyKey, Addition]
    shard: int = 0
    remember: Mapping[str, float] = field(default_factory=dict)


def shard_of(batch_id: str, shards: int) -> int:
    """The shard that stores a batch id; ids are random, so the shards fill evenly."""
    return int(batch_id[-8:], 16) % shards if shards > 1 else 0


def new_stamp() -> int:
    """A random number below 2**63, which SQLite can store."""
    return secrets.randbits(63)


def version_of(metric: str, scheme: str, stamps: Iterable[tuple[object, ...]]) -> bytes:
    """The version of the tallies with these windows and stamps, in any order."""
    # By their texts: stamps of a store may be numbers, and those of its sums are texts.
    content = repr((metric, scheme, sorted(map(repr, stamps))))
    return hashlib.blake2b(content.encode(), digest_size=20).digest()


@lru_cache(maxsize=4096)
def read_scheme(canonical: bytes) -> Scheme:
    """The scheme that `Scheme.canonical()` wrote. Those read last are kept: readers ask for all
    schemes of a store again and again, and to build them takes long.

    Raises:
        StoreError: this version of deniable cannot read it.
    """
    try:
        return Scheme.from_definition(json.loads(canonical))
    except (SchemeError, ValueError) as error:
        raise StoreError(
            f"the store has a scheme that cannot be read: {error}. Another version of deniable has "
            "published it"
        ) from error

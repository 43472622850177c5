"""The store contract: what intake may ask of a store, and what every store must keep."""

from __future__ import annotations

import hashlib
import secrets
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from deniable import DeniableError, Scheme
from deniable_collector.tally import Tally

__all__ = [
    "ID_LIFETIME",
    "ID_RETENTION",
    "MAX_CELL",
    "Commit",
    "Increment",
    "Numbers",
    "Store",
    "StoreError",
    "StoreUnavailable",
    "TallyKey",
    "TallyRowKey",
    "new_stamp",
    "shard_of",
    "version_of",
]

ID_RETENTION = 7 * 86_400.0
"""Seconds for which intake may rely on a store to remember a batch id."""

ID_LIFETIME = ID_RETENTION + 3_600.0
"""Seconds for which a store does remember it, at least: the hour on top covers the time
that passes between reading a batch and folding it."""

MAX_CELL = 2**53 - 1
"""The most that a counter or a row's number of reports may hold. Scripts in Redis calculate
in doubles, which are exact up to here, and every sum beyond is still seen to be beyond."""


class StoreError(DeniableError):
    """The store refused: what it was asked cannot be done, now or later."""


class StoreUnavailable(StoreError):
    """The store cannot be reached or is not ready; `retry_after` says when to ask again (s)."""

    def __init__(self, message: str, retry_after: float = 5.0) -> None:
        self.retry_after = retry_after
        super().__init__(message)


class TallyKey(NamedTuple):
    """The name of one tally."""

    metric: str
    scheme: str
    window: str


class TallyRowKey(NamedTuple):
    """The name of one row of one tally."""

    tally: TallyKey
    row: int


Numbers: TypeAlias = Sequence[int] | NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Increment:
    """What a commit adds to one row: `counts[i]` to column `columns[i]`.

    `width` is the row's full width; `reports` the number of reports summed here. Columns
    are distinct, counts positive; where most columns of a stretch are added to, `columns` is
    a `range` of step 1 and `counts` an array that may hold zeros.
    """

    width: int
    reports: int
    columns: Numbers
    counts: Numbers


@dataclass(frozen=True)
class Commit:
    """A set of batches, folded into the increments of all of them.

    All `ids` (hexadecimal, as `deniable.wire.new_batch_id` makes them) belong to one shard,
    so that one atomic call can both look at the ids and add to the rows.
    """

    ids: tuple[str, ...]
    increments: Mapping[TallyRowKey, Increment]
    shard: int = 0


def shard_of(batch_id: str, shards: int) -> int:
    """The shard that remembers a batch id; ids are random, so the shards fill evenly."""
    return int(batch_id[-8:], 16) % shards if shards > 1 else 0


def new_stamp() -> int:
    """A random number that SQLite can hold, below 2**63."""
    return secrets.randbits(63)


def version_of(metric: str, scheme: str, stamps: Iterable[tuple[object, ...]]) -> bytes:
    """The version of tallies whose windows and stamps these are, in any order."""
    content = repr((metric, scheme, sorted(stamps)))
    return hashlib.blake2b(content.encode(), digest_size=20).digest()


class Store(ABC):
    """Tallies, and the ids of the batches that are in them.

    Exactly once: across retries, races and crashes, the increments of a batch id are
    added once within the retention of ids. Every method raises `StoreUnavailable` when
    the store cannot answer, and then has changed nothing that a retry would change again.
    """

    @property
    def shards(self) -> int:
        """How many shards share the batch ids (`shard_of`); fixed for the life of the store."""
        return 1

    @abstractmethod
    def fold(self, commit: Commit, now: float) -> frozenset[str]:
        """Add all increments and remember all ids, or, if some ids were seen, do neither.

        `now` is POSIX time in seconds. Returns the ids that were already in the store:
        empty means that the whole commit is in it, durably.

        Raises:
            StoreError: a cell would exceed what the store can hold, or a row is none of a
                published scheme's; nothing was added.
        """

    @abstractmethod
    def publish(self, schemes: Mapping[str, Iterable[Scheme]]) -> None:
        """Remember the schemes of each metric, so that their tallies stay readable."""

    @abstractmethod
    def schemes(self) -> dict[str, dict[str, Scheme]]:
        """All published schemes: metric -> fingerprint -> scheme."""

    @abstractmethod
    def scheme(self, metric: str, fingerprint: str) -> Scheme:
        """One published scheme.

        Raises:
            StoreError: it was never published.
        """

    @abstractmethod
    def windows(self, metric: str, scheme: str) -> list[str]:
        """The windows that hold reports of this metric and scheme, oldest first."""

    @abstractmethod
    def tally(self, metric: str, scheme: str, windows: Iterable[str]) -> Tally:
        """The exact sum over these windows; windows without reports count as empty.

        Raises:
            StoreError: the scheme was never published.
        """

    def reports(self, metric: str, scheme: str, windows: Iterable[str]) -> dict[str, int]:
        """How many reports each of these windows holds, in the order given.

        Raises:
            StoreError: the scheme was never published.
        """
        return {label: self.tally(metric, scheme, [label]).reports for label in windows}

    @abstractmethod
    def version(self, metric: str, scheme: str, windows: Iterable[str]) -> bytes:
        """What `tally` over the same windows would find, in 20 bytes, without reading it.

        Each commit gives each tally that it adds to a new random stamp, and the digest of the
        stamps is the version. So equal versions mean equal tallies, also when one was dropped
        and begun again or the store went back to a copy; the other way round it need not be.
        Read it before the tally: what is calculated in between is then known under a version
        that is asked for no more.
        """

    @abstractmethod
    def drop(self, before: float) -> int:
        """Forget every window that had ended by `before` (POSIX seconds); how many tallies went."""

    @abstractmethod
    def ping(self) -> None:
        """Return if the store can take a commit now, which it finds out by writing; else raise
        StoreUnavailable. Nothing of what it writes stays."""

    def clear_journal(self, older_than: float) -> float | None:
        """Clear the store's journal if single commits have been in it for `older_than` seconds.

        A journal (SQLite's write-ahead log, Redis's append-only file) holds commits one by one
        until it is cleared. Call this regularly: Redis clears in the background. Returns for how
        many seconds commits may have been in the journal, or None if it holds none of this
        process.

        Raises:
            StoreUnavailable: it is due, and cannot be done now.
            StoreError: this process may not do it.
        """
        return None

    @abstractmethod
    def close(self) -> None:
        """Release connections. The store cannot be used afterwards."""

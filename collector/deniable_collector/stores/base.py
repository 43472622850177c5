"""The store contract: the methods of a store, and what every store must guarantee."""

from __future__ import annotations

import hashlib
import secrets
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from deniable import DeniableError, Scheme
from deniable_collector.tally import Tally

__all__ = [
    "COMMIT_SECONDS",
    "ID_RETENTION",
    "MAX_CELL",
    "Commit",
    "Increment",
    "Numbers",
    "Sealing",
    "Store",
    "StoreError",
    "StoreUnavailable",
    "TallyKey",
    "TallyRowKey",
    "new_stamp",
    "shard_of",
    "version_of",
]

ID_RETENTION = 8 * 86_400.0
"""Seconds for which a store is guaranteed to remember a batch id, unless `Commit.remember` asks
for more: as long as a window of one day accepts reports of a metric that is answered at once."""

COMMIT_SECONDS = 3_600.0
"""Seconds for which a store remembers an id longer than that, for the time between reading a batch
and committing it."""

MAX_CELL = 2**53 - 1
"""The largest value of a counter and of a row's number of reports. Scripts in Redis calculate in
doubles, which are exact up to this value; a sum above it is still recognized as too large."""


class StoreError(DeniableError):
    """The store refused the call, and would refuse it later too."""


class StoreUnavailable(StoreError):
    """The store cannot be reached or is not ready; `retry_after` is the wait in seconds."""

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

    `width` is the row's full width, `reports` the number of reports summed here. Columns are
    distinct, and counts positive. If most columns of a range change, `columns` is a `range`
    of step 1 and `counts` an array that may contain zeros.
    """

    width: int
    reports: int
    columns: Numbers
    counts: Numbers


@dataclass(frozen=True)
class Commit:
    """A set of batches, with the increments of all of them.

    All `ids` (hexadecimal, from `deniable.wire.new_batch_id`) belong to one shard, so that one
    atomic call can both check the ids and add to the rows. `remember` says for how many seconds
    an id must be remembered, if that is longer than ID_RETENTION.
    """

    ids: tuple[str, ...]
    increments: Mapping[TallyRowKey, Increment]
    shard: int = 0
    remember: Mapping[str, float] = field(default_factory=dict)


class Sealing(NamedTuple):
    """What sealing has made of a tally: its bytes in the store before and after, without keys."""

    before: int
    after: int


def shard_of(batch_id: str, shards: int) -> int:
    """The shard that stores a batch id; ids are random, so the shards fill evenly."""
    return int(batch_id[-8:], 16) % shards if shards > 1 else 0


def new_stamp() -> int:
    """A random number below 2**63, which SQLite can store."""
    return secrets.randbits(63)


def version_of(metric: str, scheme: str, stamps: Iterable[tuple[object, ...]]) -> bytes:
    """The version of the tallies with these windows and stamps, in any order."""
    content = repr((metric, scheme, sorted(stamps)))
    return hashlib.blake2b(content.encode(), digest_size=20).digest()


class Store(ABC):
    """Tallies, and the ids of the batches that are in them.

    Exactly once: across retries, races and crashes, the increments of a batch id are added
    once for as long as its id is remembered. Every method raises `StoreUnavailable` when the store
    cannot answer. Then a retry changes nothing twice.
    """

    @property
    def shards(self) -> int:
        """How many shards share the batch ids (`shard_of`); fixed for the life of the store."""
        return 1

    @abstractmethod
    def fold(self, commit: Commit, now: float) -> frozenset[str]:
        """Add all increments and store all ids; or, if some ids were seen before, do neither.

        `now` is POSIX time in seconds. Returns the ids that were already in the store: if it is
        empty, the whole commit is durably in the store.

        Raises:
            StoreError: a cell would exceed the maximum, or a row does not belong to a published
                scheme; nothing was added.
        """

    @abstractmethod
    def publish(self, schemes: Mapping[str, Iterable[Scheme]]) -> None:
        """Store the schemes of each metric, so that their tallies stay readable."""

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
        """The windows with reports of this metric and scheme, oldest first."""

    @abstractmethod
    def tally(self, metric: str, scheme: str, windows: Iterable[str]) -> Tally:
        """The exact sum over these windows; windows without reports count as empty.

        Raises:
            StoreError: the scheme was never published.
        """

    def reports(self, metric: str, scheme: str, windows: Iterable[str]) -> dict[str, int]:
        """The number of reports in each of these windows, in the order given.

        Raises:
            StoreError: the scheme was never published.
        """
        found = self.row_reports(metric, scheme, windows)
        return {label: int(rows.sum()) for label, rows in found.items()}

    def row_reports(
        self, metric: str, scheme: str, windows: Iterable[str]
    ) -> dict[str, NDArray[np.int64]]:
        """The number of reports in each row, shape (rows,), for each of these windows, in the
        order given.

        Raises:
            StoreError: the scheme was never published.
        """
        return {
            label: np.array([row.reports for row in self.tally(metric, scheme, [label]).rows])
            for label in windows
        }

    @abstractmethod
    def version(self, metric: str, scheme: str, windows: Iterable[str]) -> bytes:
        """The version of the tallies over these windows: 20 bytes that change with them.

        Each commit gives each tally that it changes a new random stamp, and the digest of the
        stamps is the version. So equal versions mean equal tallies, even if a tally was dropped
        and started again, or the store was restored from a copy. Equal tallies may have
        different versions. Read the version before the tally: if the tally changes in between,
        the result is then cached under an outdated version, which nobody asks for.
        """

    def each_version(self, metric: str, scheme: str, windows: Iterable[str]) -> dict[str, bytes]:
        """The version of each of these windows alone, all read at once."""
        return {label: self.version(metric, scheme, (label,)) for label in windows}

    def versions(self, asked: Mapping[str, Iterable[str]]) -> dict[str, bytes]:
        """The same for many metrics at once: metric -> the version of its tallies, of all its
        schemes, over the windows asked for. Metrics without any of them are left out.
        """
        found = {}
        for metric, schemes in self.schemes().items():
            labels = set(asked.get(metric, ()))
            stamps = [
                (scheme, self.version(metric, scheme, labels.intersection(there)))
                for scheme in schemes
                if labels.intersection(there := self.windows(metric, scheme))
            ]
            if stamps:
                found[metric] = version_of(metric, "", stamps)
        return found

    def sealed(self, metric: str, scheme: str, windows: Iterable[str]) -> frozenset[str]:
        """Which of these windows are sealed: nothing of them is in open form."""
        return frozenset()

    def seal(self, tally: TallyKey) -> Sealing | None:
        """Turn a tally into a sealed block: compressed, with a digest, and with the same sums.

        The block is written, read back and compared before the open form goes, and one atomic
        step changes one for the other. A commit to a sealed tally opens it again, so seal tallies
        that accept no more reports (`deniable_collector.upkeep.retention.SETTLED`). Several
        processes may seal the same tally at once.

        Returns None if nothing of it is open, or somebody has changed it meanwhile.

        Raises:
            StoreError: the scheme was never published, or the block did not read back as the
                same counts; the open form stays.
        """
        return None

    def block_files(self) -> frozenset[str]:
        """The names of the files that have the blocks of this store's sealed tallies."""
        return frozenset()

    @abstractmethod
    def drop(self, before: float) -> int:
        """Delete every window that had ended by `before` (POSIX seconds).

        Returns how many tallies were deleted.

        Raises:
            StoreError: the file of a sealed one could not be deleted; nothing was deleted.
        """

    @abstractmethod
    def ping(self) -> None:
        """Return if the store can take a commit now, which it finds out by writing; else raise
        StoreUnavailable. Nothing of what it writes stays."""

    def clear_journal(self, older_than: float) -> float | None:
        """Clear the store's journal if single commits have been in it for `older_than` seconds.

        A journal (SQLite's write-ahead log, Redis's append-only file) contains commits one by
        one until it is cleared. Call this regularly, because Redis clears in the background.
        Returns for how many seconds commits may have been in the journal, or None if it
        contains none of this process.

        Raises:
            StoreUnavailable: clearing is due, but impossible now.
            StoreError: this process lacks the right to do it.
        """
        return None

    @abstractmethod
    def close(self) -> None:
        """Release connections. The store cannot be used afterwards."""

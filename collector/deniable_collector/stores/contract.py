"""The store contract: what each kind of store does, and what it must guarantee.

`base.Store` has what is made of these few methods, `life.py` what happens to a window.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from deniable import Scheme
from deniable_collector.stores.commits import MAX_CELL, Commit, TallyKey
from deniable_collector.stores.errors import StoreError
from deniable_collector.stores.increments import Held
from deniable_collector.stores.vectors import Shape, full, shape_of


class Head(NamedTuple):
    """What a store says of a tally without reading its counters."""

    stamp: str
    """Of its last change, in hexadecimal; sealing keeps it."""
    sealed: bool
    record: bytes = b""
    """What was put with a sum."""


Of: TypeAlias = tuple[str, str]
"""A metric and a scheme."""

Heads: TypeAlias = dict[Of, dict[str, Head]]

Take: TypeAlias = Callable[[TallyKey, Held], None]
"""Called with what is in a tally."""


class Found(NamedTuple):
    """A tally that was read: its stamp, and how many bytes of the store it takes."""

    stamp: str
    size: int


@dataclass(frozen=True)
class Change:
    """One atomic step. It is refused unless the tallies have the `expected` stamps ("": there is
    none)."""

    expected: Mapping[str, str] = field(default_factory=dict)
    dropped: Collection[str] = ()
    """Tallies that go; whatever their stamps are, if they are not among the expected."""
    sealed: Mapping[str, bytes] = field(default_factory=dict)
    """Windows that get a block in place of their open form, and keep their stamp. They are among
    the expected."""
    put: Mapping[str, tuple[bytes, bytes]] = field(default_factory=dict)
    """Sums that are written, each as its record and its block, with a new stamp."""


class StoreContract(ABC):
    """Tallies, and the ids of the batches that are in them.

    Exactly once: across retries, races and crashes, the increments of a batch id are added
    once for as long as its id is remembered. Every method raises `StoreUnavailable` when the store
    cannot answer. Then a retry changes nothing twice.

    A tally is that of one window, or a sum of windows (`sums.py`), which takes no commits
    and has a record beside its counters. Its name, `TallyKey.window`, says which; the methods treat
    both alike. Each shard has a part of each tally.
    """

    def __init__(self) -> None:
        self._shapes: dict[Of, Shape] = {}

    def scheme(self, metric: str, fingerprint: str) -> Scheme:
        """One published scheme.

        Raises:
            StoreError: it was never published.
        """
        try:
            return self.schemes()[metric, fingerprint]
        except KeyError:
            raise StoreError(
                f"scheme {fingerprint} of metric {metric} was never published to this store: "
                "start the collector with the registry that declares it"
            ) from None

    def shape(self, of: Of) -> Shape:
        """The shape of the tallies of a published scheme, which never changes.

        Raises:
            StoreError: it was never published.
        """
        if of not in self._shapes:
            self._shapes |= {each: shape_of(scheme) for each, scheme in self.schemes().items()}
        return self._shapes[of] if of in self._shapes else shape_of(self.scheme(*of))

    def check(self, commit: Commit) -> None:
        """Refuse what no tally of its scheme can take.

        Raises:
            StoreError: as `fold` does.
        """
        for tally, addition in commit.additions.items():
            if addition.places.max(initial=0) >= self.shape(tally[:2]).size:
                raise StoreError(
                    f"metric {tally.metric} has fewer counters in its scheme {tally.scheme}"
                )
            if addition.counts.max(initial=0) > MAX_CELL:
                raise full(tally)

    @property
    @abstractmethod
    def shards(self) -> int:
        """How many shards share the batch ids (`shard_of`); fixed for the life of the store."""

    @abstractmethod
    def identity(self) -> str:
        """A name for this store that no other has, and that stays; empty before its first
        publish. Files that it exports call it their origin."""

    @abstractmethod
    def publish(self, schemes: Iterable[tuple[str, Scheme]]) -> None:
        """Store schemes, each with its metric, so that their tallies stay readable."""

    @abstractmethod
    def schemes(self) -> dict[Of, Scheme]:
        """All published schemes, by metric and fingerprint."""

    @abstractmethod
    def fold(self, commit: Commit, now: float) -> frozenset[str]:
        """Add all increments and store all ids; or, if some ids were seen before, do neither.

        `now` is POSIX time in seconds. Returns the ids that were already in the store: if it is
        empty, the whole commit is durably in the store. A sealed tally is opened by a commit.

        Raises:
            StoreError: a counter would exceed the maximum, or the scheme was never published or has
                no such counter; nothing was added.
        """

    @abstractmethod
    def names(self, shard: int, of: Of) -> list[str]:
        """The names of all tallies of a shard, in any order."""

    @abstractmethod
    def heads(self, shard: int, asked: Mapping[Of, Sequence[str]]) -> Heads:
        """For each of these metrics and schemes the heads of those of these tallies that exist.
        They may be of different moments, but are read in the order given."""

    @abstractmethod
    def read(self, shard: int, of: Of, names: Iterable[str], take: Take) -> dict[str, Found]:
        """Have what is in each of these tallies taken, one after the other; returns those that
        exist. Each is of one moment, together they may be of several."""

    def add(self, shard: int, of: Of, totals: Mapping[str, NDArray[np.int64]]) -> dict[str, Found]:
        """Add each of these tallies to its vector; some may have the same vector. Returns those
        that exist.

        Raises:
            DamagedBlock: one cannot be read; the vectors are of no use then.
        """

        def take(tally: TallyKey, held: Held) -> None:
            held.add_to(tally, totals[tally.window])

        return self.read(shard, of, totals, take)

    @abstractmethod
    def change(self, shard: int, of: Of, change: Change) -> bool:
        """Make a change, and return whether it was made and not refused.

        Raises:
            StoreUnavailable: what was written did not read back the same; nothing changed.
        """

    @abstractmethod
    def ping(self) -> None:
        """Return if the store can take a commit now, which it finds out by writing; else raise
        StoreUnavailable. Nothing of what it writes stays."""

    @abstractmethod
    def merge(self) -> None:
        """Merge the increments that tallies have beside their blocks, so that the store has sums
        and no commits. What changes meanwhile may be left.

        Raises:
            DamagedBlock: one cannot be read; the others were merged.
        """

    @abstractmethod
    def clear_journal(self, older_than: float) -> float | None:
        """Merge increments and clear its journal if single commits have been in it for `older_than`
        seconds.

        A journal (SQLite's write-ahead log, Redis's append-only file) contains commits one by
        one until it is cleared. Call this regularly, because Redis clears in the background.
        Returns for how many seconds commits may have been in the journal, or None if it
        contains none of this process.

        Raises:
            StoreUnavailable: clearing is due, but impossible now.
            StoreError: this process lacks the right to do it.
        """

    @abstractmethod
    def close(self) -> None:
        """Release connections. The store cannot be used afterwards."""

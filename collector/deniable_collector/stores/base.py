"""The store contract: the methods of a store, and what every store must guarantee."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deniable import Scheme
from deniable.windows import start
from deniable_collector.stores.commits import Commit, TallyKey, version_of
from deniable_collector.tally import Tally

if TYPE_CHECKING:
    from deniable_collector.stores.summed.summing import Sums


class Sealing(NamedTuple):
    """What sealing has made of a tally: its bytes in the store before and after, without keys."""

    before: int
    after: int


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
        """The windows with a tally of their own of this metric and scheme, oldest first.

        `dropped` has those whose reports are only in sums.
        """

    @property
    def sums(self) -> Sums:
        """The sums over weeks, months and quarters."""
        from deniable_collector.stores.summed.summing import Sums  # it needs this file

        return Sums()

    def dropped(self, metric: str, scheme: str) -> list[str]:
        """The windows that were dropped and whose reports are in kept sums, oldest first."""
        return self.sums.dropped(metric, scheme)

    def all_windows(self, metric: str, scheme: str) -> list[str]:
        """The windows with reports, oldest first: those with a tally of their own, and dropped
        ones."""
        own, gone = self.windows(metric, scheme), self.dropped(metric, scheme)
        # Sorting a long list costs more than most metrics need.
        return sorted({*own, *gone}, key=start) if gone else own

    @abstractmethod
    def tally(self, metric: str, scheme: str, windows: Iterable[str]) -> Tally:
        """The exact sum over these windows; windows without reports count as empty.

        Where sums over calendars save reads, they are read instead of the windows.

        Raises:
            StoreError: the scheme was never published.
            NotKept: windows were dropped, and the sum that has them has others too.
        """

    def own_tally(self, tally: TallyKey) -> Tally:
        """What the tally of one window has, without what sums have of this window.

        Raises:
            StoreError: the scheme was never published.
        """
        return self.tally(tally.metric, tally.scheme, [tally.window])

    def each_tally(self, metric: str, scheme: str, windows: Iterable[str]) -> dict[str, Tally]:
        """The tally of each of these windows alone, in the order given. All of them are in memory
        at once, so ask for few where tallies are large.

        Raises:
            StoreError: the scheme was never published.
            NotKept: a window was dropped, and the sum that has it has others too.
        """
        found = self._own_tallies(metric, scheme, list(dict.fromkeys(windows)))
        # Asked afterwards, so that a window that was dropped meanwhile is not read as empty.
        for label in self.dropped(metric, scheme):
            if label in found:
                found[label] = self.tally(metric, scheme, [label])
        return found

    def _own_tallies(self, metric: str, scheme: str, windows: Sequence[str]) -> dict[str, Tally]:
        """What `own_tally` says of each of these windows."""
        return {label: self.own_tally(TallyKey(metric, scheme, label)) for label in windows}

    def reports(self, metric: str, scheme: str, windows: Iterable[str]) -> dict[str, int]:
        """The number of reports in each of these windows, in the order given.

        Raises:
            StoreError: the scheme was never published.
        """
        found = self.segment_reports(metric, scheme, windows)
        if not found:
            return {}
        # All together, because numpy takes longer for the call than for the sum.
        counts: list[int] = np.array(list(found.values())).sum(axis=1).tolist()
        return dict(zip(found, counts, strict=True))

    def segment_reports(
        self, metric: str, scheme: str, windows: Iterable[str]
    ) -> dict[str, NDArray[np.int64]]:
        """The number of reports of each combination of segments, shape (combinations,), for each
        of these windows, in the order given; of dropped ones too.

        Raises:
            StoreError: the scheme was never published.
        """
        labels = list(windows)
        groups = len(self.scheme(metric, scheme).combinations)
        known, left = self.sums.reports(metric, scheme, labels)
        found = {label: known.get(label, np.zeros(groups, np.int64)) for label in labels}
        if left:
            rows = self.row_reports(metric, scheme, left)
            sums = np.array(list(rows.values())).reshape(len(rows), groups, -1).sum(axis=2)
            for label, each in zip(rows, sums, strict=True):
                found[label] = found[label] + each
        return found

    def row_reports(
        self, metric: str, scheme: str, windows: Iterable[str]
    ) -> dict[str, NDArray[np.int64]]:
        """The number of reports in each row, shape (rows,), for each of these windows, in the
        order given; zeros for dropped ones.

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
        that accept no more reports (`deniable_collector.upkeep.keeper.SETTLED`). Several
        processes may seal the same tally at once.

        Returns None if nothing of it is open, or somebody has changed it meanwhile.

        Raises:
            StoreError: the scheme was never published, or the block did not read back as the
                same counts; the open form stays.
        """
        return None

    def identity(self) -> str:
        """A name for this store that no other has, and that stays; empty before its first
        publish. Files that it exports call it their origin."""
        return ""

    @abstractmethod
    def drop(self, before: float, metrics: Collection[str] | None = None) -> int:
        """Delete every window of these metrics (None: of all) that had ended by `before` (POSIX
        seconds). Copies of it go too, and kept sums whose whole period had ended.

        Returns how many tallies and kept sums were deleted.
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

"""A store as one request sees it: read-only, and its lists are read once.

A page asks for the schemes and windows of every metric many times over; rebuilding the
schemes each time would cost more than all of the estimates.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from deniable import Scheme, windows
from deniable_collector.stores.base import Store
from deniable_collector.stores.commits import Commit
from deniable_collector.stores.errors import StoreError
from deniable_collector.stores.summed.summing import Sums
from deniable_collector.tally import Tally
from deniable_estimator.asking.partial_store import PartialStore

_KEPT_COUNTERS = 1 << 20
"""Counters of single windows that are kept for a request: 8 MB."""

_SIZE = 20
"""Bytes of a version."""


class Snapshot(Store):
    """Forwards to another store, and caches its schemes and windows."""

    def __init__(self, store: Store) -> None:
        # A snapshot of a snapshot is one of the store behind it, as it is now.
        self._store: Store = store._store if isinstance(store, Snapshot) else store
        self._schemes: dict[str, dict[str, Scheme]] | None = None
        self._windows: dict[tuple[str, str], list[str]] = {}
        self._dropped: dict[tuple[str, str], list[str]] = {}
        self._tallies: dict[tuple[str, str], dict[str, Tally]] = {}
        self._room = _KEPT_COUNTERS
        self._versions: dict[tuple[str, str], dict[str, bytes]] = {}
        self.left_out: dict[str, set[str]] = {}
        """The windows that were asked for and cannot be read, by metric."""

    def renewed(self) -> Snapshot:
        """The same view of the store, as the store is now."""
        return Snapshot(self)

    def schemes(self) -> dict[str, dict[str, Scheme]]:
        if self._schemes is None:
            self._schemes = self._store.schemes()
        return self._schemes

    def scheme(self, metric: str, fingerprint: str) -> Scheme:
        return self._store.scheme(metric, fingerprint)

    def windows(self, metric: str, scheme: str) -> list[str]:
        key = (metric, scheme)
        if key not in self._windows:
            self._windows[key] = self._store.windows(metric, scheme)
        return self._windows[key]

    def tally(self, metric: str, scheme: str, windows: Iterable[str]) -> Tally:
        asked = (metric, scheme, tuple(windows))
        found = self._store.tally(*asked)
        self._note(*asked)
        return found

    def each_tally(self, metric: str, scheme: str, windows: Iterable[str]) -> dict[str, Tally]:
        labels, known = tuple(windows), self._tallies.setdefault((metric, scheme), {})
        asked = [label for label in labels if label not in known]
        found = self._store.each_tally(metric, scheme, asked) if asked else {}
        self._note(metric, scheme, asked)
        # A page looks at each window, and its trend has each of them.
        for label, tally in found.items():
            size = sum(len(row.cells) + 1 for row in tally.rows)
            if size <= self._room and not tally.unreadable:
                known[label] = tally
                self._room -= size
        return {label: known.get(label) or found[label] for label in labels}

    def row_reports(
        self, metric: str, scheme: str, windows: Iterable[str]
    ) -> dict[str, NDArray[np.int64]]:
        asked = (metric, scheme, tuple(windows))
        found = self._store.row_reports(*asked)
        self._note(*asked)
        return found

    def segment_reports(
        self, metric: str, scheme: str, windows: Iterable[str]
    ) -> dict[str, NDArray[np.int64]]:
        asked = (metric, scheme, tuple(windows))
        found = self._store.segment_reports(*asked)
        self._note(*asked)
        return found

    @property
    def sums(self) -> Sums:
        return self._store.sums

    def dropped(self, metric: str, scheme: str) -> list[str]:
        key = (metric, scheme)
        if key not in self._dropped:
            self._dropped[key] = self._store.dropped(metric, scheme)
        return self._dropped[key]

    def version(self, metric: str, scheme: str, windows: Iterable[str]) -> bytes:
        # Made of those of single windows, which are read once: a trend asks for hundreds of ranges.
        each = self.each_version(metric, scheme, windows)
        return hashlib.blake2b(b"".join(each.values()), digest_size=_SIZE).digest()

    def _note(self, metric: str, scheme: str, labels: Iterable[str]) -> None:
        if isinstance(self._store, PartialStore):
            found = self._store.unreadable(metric, scheme, labels)
            if found:
                self.left_out.setdefault(metric, set()).update(found)

    def note_touched(self, metric: str, touches: Callable[[str], bool]) -> None:
        """Note the windows of a metric that cannot be read and are asked for, of an answer that was
        kept and not read again."""
        if isinstance(self._store, PartialStore):
            found = [label for label in self._store.left_out().get(metric, ()) if touches(label)]
            if found:
                self.left_out.setdefault(metric, set()).update(found)

    def each_version(self, metric: str, scheme: str, windows: Iterable[str]) -> dict[str, bytes]:
        labels, known = tuple(windows), self._versions.setdefault((metric, scheme), {})
        asked = [label for label in labels if label not in known]
        if asked:
            known.update(self._store.each_version(metric, scheme, asked))
            self._note(metric, scheme, asked)
        return {label: known[label] for label in labels}

    def versions(self, asked: Mapping[str, Iterable[str]]) -> dict[str, bytes]:
        return self._store.versions(asked)

    def ping(self) -> None:
        self._store.ping()

    def fold(self, commit: Commit, now: float) -> frozenset[str]:
        raise self._refusal()

    def publish(self, schemes: Mapping[str, Iterable[Scheme]]) -> None:
        raise self._refusal()

    def drop(self, before: float, metrics: Collection[str] | None = None) -> int:
        raise self._refusal()

    def close(self) -> None:
        """Does nothing: the store outlives its snapshots."""

    @staticmethod
    def _refusal() -> StoreError:
        return StoreError("the dashboard only reads: write through the collector")


class EndedWindows(Snapshot):
    """A snapshot that does not have the windows that had not ended at `until`, a POSIX time.

    Whoever reads the sums of a window while it grows can subtract two readings, and is left with
    the sum of the few reports that came in between. A window takes late reports after its end, so
    for everybody's eyes `until` lies `SETTLED` seconds ago.
    """

    def __init__(self, store: Store, until: float) -> None:
        super().__init__(store)
        self._until = until

    def renewed(self) -> EndedWindows:
        return EndedWindows(self, self._until)

    def windows(self, metric: str, scheme: str) -> list[str]:
        labels = super().windows(metric, scheme)
        return [label for label in labels if windows.end(label) <= self._until]

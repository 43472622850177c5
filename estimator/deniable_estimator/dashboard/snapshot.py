"""A store as one request sees it: read-only, and its lists are read once.

A page asks for the schemes and windows of every metric many times over; rebuilding the
schemes each time would cost more than all of the estimates.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from deniable import Scheme, windows
from deniable_collector.stores.base import Commit, Store, StoreError
from deniable_collector.tally import Tally

__all__ = ["EndedWindows", "Snapshot"]


class Snapshot(Store):
    """Forwards to another store, and caches its schemes and windows."""

    def __init__(self, store: Store) -> None:
        # A snapshot of a snapshot is one of the store behind it, as it is now.
        self._store: Store = store._store if isinstance(store, Snapshot) else store
        self._schemes: dict[str, dict[str, Scheme]] | None = None
        self._windows: dict[tuple[str, str], list[str]] = {}
        self._versions: dict[tuple[str, str, tuple[str, ...]], bytes] = {}

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
        return self._store.tally(metric, scheme, windows)

    def row_reports(
        self, metric: str, scheme: str, windows: Iterable[str]
    ) -> dict[str, NDArray[np.int64]]:
        return self._store.row_reports(metric, scheme, windows)

    def version(self, metric: str, scheme: str, windows: Iterable[str]) -> bytes:
        asked = (metric, scheme, tuple(windows))
        if asked not in self._versions:
            self._versions[asked] = self._store.version(*asked)
        return self._versions[asked]

    def each_version(self, metric: str, scheme: str, windows: Iterable[str]) -> dict[str, bytes]:
        asked = [label for label in windows if (metric, scheme, (label,)) not in self._versions]
        for label, version in self._store.each_version(metric, scheme, asked).items():
            self._versions[metric, scheme, (label,)] = version
        return {label: self._versions[metric, scheme, (label,)] for label in windows}

    def versions(self, asked: Mapping[str, Iterable[str]]) -> dict[str, bytes]:
        return self._store.versions(asked)

    def ping(self) -> None:
        self._store.ping()

    def fold(self, commit: Commit, now: float) -> frozenset[str]:
        raise self._refusal()

    def publish(self, schemes: Mapping[str, Iterable[Scheme]]) -> None:
        raise self._refusal()

    def drop(self, before: float) -> int:
        raise self._refusal()

    def close(self) -> None:
        """Does nothing: the store outlives its snapshots."""

    @staticmethod
    def _refusal() -> StoreError:
        return StoreError("the dashboard only reads: write through the collector")


class EndedWindows(Snapshot):
    """A snapshot that does not have the windows that have not ended at a POSIX time.

    Whoever reads the sums of a window while it grows can subtract two readings, and is left with
    the sum of the few reports that came in between.
    """

    def __init__(self, store: Store, now: float) -> None:
        super().__init__(store)
        self._now = now

    def windows(self, metric: str, scheme: str) -> list[str]:
        labels = super().windows(metric, scheme)
        return [label for label in labels if windows.end(label) <= self._now]

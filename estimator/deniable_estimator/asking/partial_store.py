"""A store of which all windows are read that can be: one that is damaged is left out, and named,
instead of keeping all others from the reader.

Answers are kept under the version of what they were read from. A window that cannot be read changes
no stamp in the store, so its name has a mark of its own in the version: it changes when the window
is first found unreadable, when it is tried again, and when it can be read.
"""

from __future__ import annotations

import hashlib
import logging
import secrets
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from deniable import Scheme
from deniable_collector.stores.base import Store
from deniable_collector.stores.commits import Commit, TallyKey
from deniable_collector.stores.errors import StoreError
from deniable_collector.stores.sealed.blocks import DamagedBlock
from deniable_collector.stores.summed.summing import Sums
from deniable_collector.tally import Tally

_log = logging.getLogger("deniable.estimator")

_AGAIN_SECONDS = 60.0
"""After so long an unreadable window is tried again."""

_MARK_BYTES = 8

_NO_WINDOW = "0001-01-01"
"""A day that no device has reported for."""


@dataclass
class _Readability:
    """What is known of a window that was unreadable once."""

    unreadable: bool
    until: float
    mark: bytes


class PartialStore(Store):
    """Reads `store`, and leaves out what cannot be read. As thread-safe as that store is.

    `clock` returns seconds that only grow.
    """

    def __init__(self, store: Store, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._clock = clock
        self._lock = threading.Lock()
        self._marks: dict[tuple[str, str, str], _Readability] = {}

    def unreadable(self, metric: str, scheme: str, windows: Iterable[str]) -> tuple[str, ...]:
        """Which of these windows could not be read when that was last tried."""
        if not self._marks:
            return ()
        with self._lock:
            found = ((label, self._marks.get((metric, scheme, label))) for label in windows)
            return tuple(label for label, mark in found if mark is not None and mark.unreadable)

    def tally(self, metric: str, scheme: str, windows: Iterable[str]) -> Tally:
        labels = tuple(dict.fromkeys(windows))
        try:
            whole = self._store.tally(metric, scheme, labels)
        except DamagedBlock as error:
            bad = self._look(metric, scheme, labels)
            if not bad:
                return self._one_by_one(metric, scheme, labels, error)
            rest = tuple(label for label in labels if label not in bad)
            read = self._store.tally(metric, scheme, rest)
            return replace(read, unreadable=bad)
        self._note(metric, scheme, labels, {})
        return whole

    def _look(self, metric: str, scheme: str, labels: Sequence[str]) -> tuple[str, ...]:
        """Which of these windows cannot be read: each is tried by itself."""
        found: dict[str, StoreError] = {}
        for label in labels:
            try:
                self._store.own_tally(TallyKey(metric, scheme, label))
            except DamagedBlock as error:
                found[label] = error
        self._note(metric, scheme, labels, found)
        return tuple(found)

    def _one_by_one(
        self, metric: str, scheme: str, labels: Sequence[str], error: StoreError
    ) -> Tally:
        """The sum of windows of which each can be read: it is a sum over a calendar that cannot.

        Raises:
            StoreError: that sum has windows that were dropped.
        """
        _log.warning("read without sums: %s", error)
        if set(labels).intersection(self._store.dropped(metric, scheme)):
            raise error
        own = [self._store.own_tally(TallyKey(metric, scheme, label)) for label in labels]
        rows = tuple(
            sum(same[1:], same[0]) for same in zip(*(each.rows for each in own), strict=True)
        )
        return Tally(metric, scheme, tuple(labels), rows)

    def own_tally(self, tally: TallyKey) -> Tally:
        return self._store.own_tally(tally)

    def each_tally(self, metric: str, scheme: str, windows: Iterable[str]) -> dict[str, Tally]:
        labels = tuple(dict.fromkeys(windows))
        try:
            found = self._store.each_tally(metric, scheme, labels)
        except DamagedBlock:
            return {label: self.tally(metric, scheme, [label]) for label in labels}
        self._note(metric, scheme, labels, {})
        return found

    def row_reports(
        self, metric: str, scheme: str, windows: Iterable[str]
    ) -> dict[str, NDArray[np.int64]]:
        return self._reports(self._store.row_reports, metric, scheme, tuple(windows))

    def segment_reports(
        self, metric: str, scheme: str, windows: Iterable[str]
    ) -> dict[str, NDArray[np.int64]]:
        return self._reports(self._store.segment_reports, metric, scheme, tuple(windows))

    def _reports(
        self,
        read: Callable[[str, str, Iterable[str]], dict[str, NDArray[np.int64]]],
        metric: str,
        scheme: str,
        labels: tuple[str, ...],
    ) -> dict[str, NDArray[np.int64]]:
        """The reports of these windows, in the order given; zeros for those that cannot be read."""
        try:
            found = read(metric, scheme, labels)
        except DamagedBlock:
            bad = self._look(metric, scheme, labels)
            if not bad:
                raise
            kept = read(metric, scheme, [label for label in labels if label not in bad])
            # Of a window without a tally, as many zeros as of any other.
            nothing = read(metric, scheme, [_NO_WINDOW])[_NO_WINDOW]
            return {label: kept.get(label, nothing) for label in labels}
        self._note(metric, scheme, labels, {})
        return found

    def _note(
        self, metric: str, scheme: str, labels: Sequence[str], found: Mapping[str, StoreError]
    ) -> None:
        """Remember which of these windows were read, and which were not."""
        if not found and not self._marks:
            return
        now = self._clock()
        with self._lock:
            for label in labels:
                key, mark = (metric, scheme, label), self._marks.get((metric, scheme, label))
                if label in found:
                    if mark is None or not mark.unreadable:
                        self._marks[key] = _new_mark(True, now)
                        _log.warning("left out: %s", found[label])
                elif mark is not None and mark.unreadable:
                    self._marks[key] = _new_mark(False, now)

    def version(self, metric: str, scheme: str, windows: Iterable[str]) -> bytes:
        labels = tuple(windows)
        found = self._store.version(metric, scheme, labels)
        return _marked(found, self._marks_of(metric, scheme, labels))

    def each_version(self, metric: str, scheme: str, windows: Iterable[str]) -> dict[str, bytes]:
        found = self._store.each_version(metric, scheme, windows)
        return {
            label: _marked(version, self._marks_of(metric, scheme, (label,)))
            for label, version in found.items()
        }

    def versions(self, asked: Mapping[str, Iterable[str]]) -> dict[str, bytes]:
        wished = {metric: tuple(labels) for metric, labels in asked.items()}
        found = self._store.versions(wished)
        with self._lock:
            known = {key[:2] for key in self._marks}
        for metric, scheme in sorted(known):
            if metric in found:
                marks = self._marks_of(metric, scheme, wished[metric])
                found[metric] = _marked(found[metric], marks)
        return found

    def _marks_of(self, metric: str, scheme: str, labels: Iterable[str]) -> list[bytes]:
        if not self._marks:
            return []
        now, found = self._clock(), []
        with self._lock:
            for label in sorted(labels):
                mark = self._marks.get((metric, scheme, label))
                if mark is None:
                    continue
                if mark.unreadable and now >= mark.until:
                    # What is kept of it is forgotten, so that it is read again.
                    mark.mark, mark.until = _new_mark(True, now).mark, now + _AGAIN_SECONDS
                found.append(label.encode() + mark.mark)
        return found

    @property
    def shards(self) -> int:
        return self._store.shards

    def schemes(self) -> dict[str, dict[str, Scheme]]:
        return self._store.schemes()

    def scheme(self, metric: str, fingerprint: str) -> Scheme:
        return self._store.scheme(metric, fingerprint)

    def windows(self, metric: str, scheme: str) -> list[str]:
        return self._store.windows(metric, scheme)

    @property
    def sums(self) -> Sums:
        return self._store.sums

    def dropped(self, metric: str, scheme: str) -> list[str]:
        return self._store.dropped(metric, scheme)

    def sealed(self, metric: str, scheme: str, windows: Iterable[str]) -> frozenset[str]:
        return self._store.sealed(metric, scheme, windows)

    def ping(self) -> None:
        self._store.ping()

    def fold(self, commit: Commit, now: float) -> frozenset[str]:
        raise _refusal()

    def publish(self, schemes: Mapping[str, Iterable[Scheme]]) -> None:
        raise _refusal()

    def drop(self, before: float, metrics: Collection[str] | None = None) -> int:
        raise _refusal()

    def close(self) -> None:
        self._store.close()

    def left_out(self) -> dict[str, tuple[str, ...]]:
        """All windows that could not be read, by metric."""
        found: dict[str, set[str]] = {}
        with self._lock:
            for (metric, _, label), mark in self._marks.items():
                if mark.unreadable:
                    found.setdefault(metric, set()).add(label)
        return {metric: tuple(sorted(labels)) for metric, labels in sorted(found.items())}


def _new_mark(unreadable: bool, now: float) -> _Readability:
    return _Readability(unreadable, now + _AGAIN_SECONDS, secrets.token_bytes(_MARK_BYTES))


def _marked(version: bytes, marks: Sequence[bytes]) -> bytes:
    if not marks:
        return version
    return hashlib.blake2b(b"".join((version, *marks)), digest_size=len(version)).digest()


def _refusal() -> StoreError:
    return StoreError("estimates only read: write through the collector")

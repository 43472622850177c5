"""What questions read of a store, as it is for one page or one command.

Schemes, windows and versions are read once: a page asks for those of each metric many times over,
and what arrives meanwhile must not make it contradict itself. A window that is damaged is left out,
and named, instead of keeping all others from people.

Answers are kept under the version of what they were read from. A window that cannot be read changes
no stamp in the store, so its name has a mark of its own in the version: since when it is unreadable
or readable again, and for how many minutes it has been unreadable, so that it is tried again.
"""

from __future__ import annotations

import hashlib
import logging
import math
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

from deniable import Scheme
from deniable.protocol import windows
from deniable_collector.stores.base import Store
from deniable_collector.stores.errors import NotKept, StoreError
from deniable_collector.stores.sealed import DamagedBlock
from deniable_collector.stores.sums import cover
from deniable_collector.tally import Tally
from deniable_estimator.asking.query import Days, telling_longer

_log = logging.getLogger("deniable.estimator")

_AGAIN_SECONDS = 60.0
"""After so long an unreadable window is tried again."""

_VERSION_BYTES = 20

_NO_WINDOW = "0001-01-01"
"""A day that no device has reported for."""

_KEPT_COUNTERS = 1 << 20
"""Counters of single windows that a reader keeps: 8 MB."""


class Unreadable:
    """The windows of a store that could not be read, which all of its readers know. `clock`
    returns seconds that only grow."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self._lock = threading.Lock()
        self._changes: dict[tuple[str, str, str], tuple[bool, float]] = {}
        """Whether a window is unreadable, and since when it is or no longer is."""

    def tried(
        self, metric: str, scheme: str, labels: Iterable[str], found: Mapping[str, StoreError]
    ) -> None:
        """Remember that these windows were read, but for those that were `found` unreadable."""
        if not found and not self._changes:
            return
        with self._lock:
            for label in labels:
                key, bad = (metric, scheme, label), label in found
                if bad != (key in self._changes and self._changes[key][0]):
                    self._changes[key] = bad, self.clock()
                    if bad:
                        _log.warning("left out: %s", found[label])

    def of_metric(self, metric: str) -> list[tuple[str, str]]:
        """All windows of a metric that could not be read when that was last tried, each with its
        scheme before it."""
        with self._lock:
            return [
                (scheme, label)
                for (name, scheme, label), (bad, _) in self._changes.items()
                if name == metric and bad
            ]

    def schemes(self) -> list[tuple[str, str]]:
        """The metrics and schemes that ever had such windows."""
        with self._lock:
            return sorted({(metric, scheme) for metric, scheme, _ in self._changes})

    def marked(self, version: bytes, metric: str, scheme: str, labels: Iterable[str]) -> bytes:
        """The version of these windows, with the marks of those among them that have one."""
        if not self._changes:
            return version
        found = []
        with self._lock:
            for label in sorted(labels):
                if known := self._changes.get((metric, scheme, label)):
                    bad, since = known
                    tried = (self.clock() - since) // _AGAIN_SECONDS if bad else 0
                    found.append(f"{label}/{bad}/{since}/{tried:.0f} ".encode())
        return _hash(version, *found) if found else version


class Reader:
    """A store as it was when it was first asked for something. It never writes.

    Windows that had not ended at `until`, a POSIX time, are not there. Whoever reads the sums of a
    window while it grows can subtract two readings, and is left with the sum of the few reports
    that came in between. A window takes late reports after its end, so for everybody's eyes `until`
    lies `SETTLED` seconds ago.
    """

    def __init__(
        self, store: Store, unreadable: Unreadable | None = None, until: float = math.inf
    ) -> None:
        self._store, self._until = store, until
        self.unreadable = unreadable or Unreadable()
        self.asked: set[tuple[str, Days]] = set()
        """Metrics, each with days that were asked for; more may be read, to compare with."""
        self.counted: set[tuple[str, str, str]] = set()
        """Metrics and schemes, each with a window that is in a sum over several, which may be
        readable where the window alone is not."""
        self.dropped: Callable[[str, str], list[str]] = cache(store.dropped)
        """The windows of a metric and scheme that were dropped and whose reports are in kept sums,
        oldest first."""
        self._windows: dict[tuple[str, str], list[str]] = {}
        self._tallies: dict[tuple[str, str], dict[str, Tally]] = {}
        self._room = _KEPT_COUNTERS
        self._versions: dict[tuple[str, str], dict[str, bytes]] = {}

    def renewed(self, until: float | None = None) -> Reader:
        """A reader of the store as it is now."""
        return Reader(self._store, self.unreadable, self._until if until is None else until)

    @cached_property
    def _schemes(self) -> dict[str, dict[str, Scheme]]:
        found: dict[str, dict[str, Scheme]] = {}
        for (metric, fingerprint), scheme in self._store.schemes().items():
            found.setdefault(metric, {})[fingerprint] = scheme
        return found

    @property
    def left_out(self) -> dict[str, list[str]]:
        """The windows that were asked for and cannot be read, by metric, the oldest first: also
        where an answer was kept and is not read again."""
        found: dict[str, set[str]] = {}
        # A copy, because work in other threads may ask for more meanwhile.
        for metric, days in tuple(self.asked):
            for _, label in self.unreadable.of_metric(metric):
                if days.holds(label):
                    found.setdefault(metric, set()).add(label)
        return {metric: sorted(found[metric], key=windows.start) for metric in sorted(found)}

    def uncounted(self, metric: str) -> set[str]:
        """The windows of a metric that cannot be read, and that no sum has counted."""
        bad = self.unreadable.of_metric(metric)
        return {label for scheme, label in bad if (metric, scheme, label) not in self.counted}

    def schemes_of(self, metric: str) -> dict[str, Scheme]:
        """The published schemes of a metric, by fingerprint."""
        return self._schemes.get(metric, {})

    def windows(self, metric: str, scheme: str) -> list[str]:
        """The windows with a tally of their own, oldest first."""
        key = (metric, scheme)
        if key not in self._windows:
            found = self._store.windows(metric, scheme)
            if self._until < math.inf:
                found = [label for label in found if windows.end(label) <= self._until]
            self._windows[key] = found
        return self._windows[key]

    def all_windows(self, metric: str, scheme: str) -> list[str]:
        """The windows with reports, dropped or not, oldest first."""
        own, gone = self.windows(metric, scheme), self.dropped(metric, scheme)
        # Sorting a long list costs more than most metrics need.
        return sorted({*own, *gone}, key=windows.start) if gone else own

    def kept_sums(self, metric: str, scheme: str) -> list[str]:
        """The weeks, months and quarters whose sums are kept for good."""
        return [each.period for each in self._store.sums.names((metric, scheme)) if each.kept]

    def can_sum(self, metric: str, scheme: str, labels: Iterable[str]) -> bool:
        """Whether there is a way to the sum over these windows; no tally is read for that."""
        asked = tuple(labels)
        try:
            for part in self._store.sums.parts((metric, scheme)):
                cover(asked, part.around(asked, part.names()))
        except NotKept:
            return False
        return True

    def tally(self, metric: str, scheme: str, labels: Iterable[str]) -> Tally:
        """The sum over those of these windows that can be read; it names the others.

        Raises:
            OnlyLongerError: windows were dropped, and the sum that has them has others too.
            StoreUnavailable: the store cannot answer now.
        """
        labels = tuple(dict.fromkeys(labels))
        if known := self._known(metric, scheme, labels):
            return _sum_of(metric, scheme, known)
        with telling_longer(metric):
            try:
                whole = self._store.tally(metric, scheme, labels)
            except DamagedBlock as error:
                bad = self._look(metric, scheme, labels)
                if not bad:
                    return self._one_by_one(metric, scheme, labels, error)
                rest = tuple(label for label in labels if label not in bad)
                return replace(self._store.tally(metric, scheme, rest), unreadable=bad)
        self.unreadable.tried(metric, scheme, labels, {})
        if len(labels) > 1:
            self.counted.update((metric, scheme, label) for label in labels)
        return whole

    def each_tally(self, metric: str, scheme: str, labels: Iterable[str]) -> dict[str, Tally]:
        """The tally of each of these windows alone, in the order given, with the same errors."""
        labels, known = tuple(labels), self._tallies.setdefault((metric, scheme), {})
        asked = list(dict.fromkeys(label for label in labels if label not in known))
        found: dict[str, Tally] = {}
        if asked:
            try:
                with telling_longer(metric):
                    found = self._store.each_tally(metric, scheme, asked)
            except DamagedBlock:
                found = {label: self.tally(metric, scheme, [label]) for label in asked}
            else:
                self.unreadable.tried(metric, scheme, asked, {})
        # A page looks at each window, and its trend has each of them.
        for label, tally in found.items():
            size = sum(len(row.cells) + 1 for row in tally.rows)
            if size <= self._room and not tally.unreadable:
                known[label] = tally
                self._room -= size
        return {label: known.get(label) or found[label] for label in labels}

    def segment_reports(
        self, metric: str, scheme: str, labels: Iterable[str]
    ) -> dict[str, NDArray[np.int64]]:
        """The reports of each combination of segments, shape (combinations,), in each of these
        windows, in the order given; zeros for windows that cannot be read."""
        labels, read = tuple(labels), self._store.segment_reports
        if known := self._known(metric, scheme, labels):
            rows = len(self.schemes_of(metric)[scheme].mechanism.rows)
            counts = [[row.reports for row in tally.rows] for tally in known.values()]
            sums = np.array(counts, np.int64).reshape(len(known), -1, rows).sum(axis=2)
            return dict(zip(known, sums, strict=True))
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
        self.unreadable.tried(metric, scheme, labels, {})
        return found

    def version(self, metric: str, scheme: str, labels: Iterable[str]) -> bytes:
        """20 bytes that change when the tallies of these windows do. Ask for it before them."""
        # Made of those of single windows, which are read once: a trend asks for hundreds of ranges.
        return _hash(*self.each_version(metric, scheme, labels).values())

    def each_version(self, metric: str, scheme: str, labels: Iterable[str]) -> dict[str, bytes]:
        """The version of each of these windows alone."""
        labels, known = tuple(labels), self._versions.setdefault((metric, scheme), {})
        asked = [label for label in labels if label not in known]
        if asked:
            for label, version in self._store.each_version(metric, scheme, asked).items():
                known[label] = self.unreadable.marked(version, metric, scheme, (label,))
        return {label: known[label] for label in labels}

    def versions(self, asked: Mapping[str, Iterable[str]]) -> dict[str, bytes]:
        """metric -> the version of its tallies of all schemes over the windows asked for; metrics
        without any of them are left out. They are those of now."""
        wished = {metric: tuple(labels) for metric, labels in asked.items()}
        found = self._store.versions(wished)
        for metric, scheme in self.unreadable.schemes():
            if metric in found:
                found[metric] = self.unreadable.marked(
                    found[metric], metric, scheme, wished[metric]
                )
        return found

    def _look(self, metric: str, scheme: str, labels: Sequence[str]) -> tuple[str, ...]:
        """Which of these windows cannot be read: each is tried by itself."""
        found: dict[str, StoreError] = {}
        for label in labels:
            try:
                self._store.own_tallies(metric, scheme, [label])
            except DamagedBlock as error:
                found[label] = error
        self.unreadable.tried(metric, scheme, labels, found)
        return tuple(found)

    def _one_by_one(
        self, metric: str, scheme: str, labels: Sequence[str], error: StoreError
    ) -> Tally:
        """The sum of windows of which each can be read: it is a sum over a calendar that cannot.

        Raises:
            StoreError: that sum has windows that were dropped.
        """
        _log.warning("read without sums: %s", error)
        if set(labels).intersection(self.dropped(metric, scheme)):
            raise error
        return _sum_of(metric, scheme, self._store.own_tallies(metric, scheme, labels))

    def _known(self, metric: str, scheme: str, labels: Sequence[str]) -> dict[str, Tally]:
        """The tallies of these windows, if all were read before; else none."""
        known = self._tallies.get((metric, scheme), {})
        if not known.keys() >= set(labels):
            return {}
        return {label: known[label] for label in labels}


def _sum_of(metric: str, scheme: str, each: Mapping[str, Tally]) -> Tally:
    """The sum of the tallies of single windows."""
    rows = zip(*(tally.rows for tally in each.values()), strict=True)
    return Tally(metric, scheme, tuple(each), tuple(sum(same[1:], same[0]) for same in rows))


def _hash(*parts: bytes) -> bytes:
    return hashlib.blake2b(b"".join(parts), digest_size=_VERSION_BYTES).digest()

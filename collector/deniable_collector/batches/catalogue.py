"""Which tally a report adds to, by the registry, the published schemes and the calendar.

The checks are in the order of `batch.REASONS`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache

from deniable import Metric, Registry, Scheme, WindowError
from deniable.protocol import windows
from deniable.protocol.wire import LATEST
from deniable_collector.batches.bodies import reader
from deniable_collector.batches.folding import RowPlace
from deniable_collector.stores.base import Store
from deniable_collector.stores.commits import ID_RETENTION, TallyKey
from deniable_collector.stores.contract import Of
from deniable_collector.stores.errors import StoreUnavailable
from deniable_collector.stores.vectors import shape_of

SKEW = 86_400.0
"""Seconds by which a device's clock may run ahead of ours."""

_LONGEST: dict[windows.Kind, int] = {"day": 1, "week": 7, "month": 31}
"""Days of the longest window of each kind."""

_REFRESH_SECONDS = 60.0
_OPEN_TALLIES = 10_000
"""How many tallies are cached; the cache is emptied when there are so many."""


class Refused(Exception):
    """A report cannot be counted, for this reason."""

    def __init__(self, reason: str, detail: str) -> None:
        self.reason = reason
        super().__init__(detail)


class MustWait(Exception):
    """What was asked for needs a call of the store."""


@dataclass(frozen=True)
class OpenTally:
    """A tally that accepts reports from `opens` to `closes` (POSIX seconds). `places` are where
    reports of each row are added up."""

    places: tuple[RowPlace, ...]
    opens: float
    closes: float


class Catalogue:
    """A cache of what store and registry know; safe to use from several threads.

    `clock` returns POSIX time in seconds.
    """

    def __init__(
        self, registry: Registry, store: Store, clock: Callable[[], float] = time.time
    ) -> None:
        self._registry = registry
        self._store = store
        self._clock = clock
        self._lock = threading.Lock()
        self._failure: StoreUnavailable | None = None
        self._schemes: Mapping[Of, Scheme] | None = None
        self._refreshed = 0.0
        self._published = 0.0
        self._open_tallies: dict[tuple[str, str, str], OpenTally] = {}
        self.remember = {
            metric.name: accepted
            for metric in registry
            if (accepted := _longest_acceptance(metric)) > ID_RETENTION
        }
        """Metrics whose windows accept reports for longer than ID_RETENTION, and for how many
        seconds at most: so long must a store remember the ids of batches with their reports."""

    def prepare(self) -> None:
        """Publish the registry's schemes and read those of earlier registries, once.

        All of them are published again about once a minute. Otherwise a store that has lost its
        data would accept commits without the schemes that are needed to read them.

        Raises:
            StoreUnavailable: the store cannot be reached; the next call tries again.
        """
        known = self._known()
        if abs(self._clock() - self._published) >= _REFRESH_SECONDS:
            with self._lock:
                if abs(self._clock() - self._published) < _REFRESH_SECONDS:
                    return
                self._published = self._clock()
            # Known schemes need not wait for a shard that is away; the commit will fail then.
            with suppress(StoreUnavailable):
                self._store.publish((metric, each) for (metric, _), each in known.items())

    def find(
        self, name: str, fingerprint: str, window: str, now: float, wait: bool = True
    ) -> OpenTally:
        """The tally of that name; without `wait`, if that needs no call of the store.

        Raises:
            Refused: there is none, or it accepts no reports now.
            MustWait: it is not cached.
            StoreUnavailable: the published schemes cannot be read.
        """
        tally = self._open_tallies.get((name, fingerprint, window))
        if tally is not None and tally.opens <= now <= tally.closes:
            return tally
        if not wait:
            raise MustWait
        metric = self._registry.metrics.get(name)
        if metric is None:
            raise Refused("unknown_metric", "the registry declares no metric of that name")
        opens, closes = _check_window(metric, window, now)
        scheme = self._scheme((name, fingerprint))
        if scheme is None:
            raise Refused("unknown_scheme", "the metric has never had a scheme of that name")
        key = TallyKey(name, fingerprint, window)
        starts = shape_of(scheme).starts
        places = tuple(
            RowPlace(key, number, start, row, reader(row))
            for number, (start, row) in enumerate(zip(starts, scheme.rows, strict=True))
        )
        tally = OpenTally(places, opens, closes)
        if len(self._open_tallies) >= _OPEN_TALLIES:
            self._open_tallies = {}
        self._open_tallies[key] = tally
        return tally

    def _scheme(self, of: Of) -> Scheme | None:
        if of not in self._known():
            # Another collector with a newer registry may have published it meanwhile.
            with self._asking():
                if abs(self._clock() - self._refreshed) >= _REFRESH_SECONDS:
                    self._refresh()
        return self._known().get(of)

    @contextmanager
    def _asking(self) -> Iterator[None]:
        """Only one thread calls the store at a time, and its failure counts for all that waited
        meanwhile. Otherwise each would wait for its own timeout, one after the other."""
        before = self._failure
        with self._lock:
            failure = self._failure
            if failure is not None and failure is not before:
                raise StoreUnavailable(str(failure), failure.retry_after)
            try:
                yield
            except StoreUnavailable as error:
                self._failure = error
                raise

    def _known(self) -> Mapping[Of, Scheme]:
        if self._schemes is None:
            with self._asking():
                if self._schemes is None:
                    # A scheme is published before the first tally of it exists.
                    self._store.publish((each.name, each.scheme) for each in self._registry)
                    self._published = self._clock()
                    self._refresh()
        assert self._schemes is not None
        return self._schemes

    def _refresh(self) -> None:
        declared = {(each.name, each.scheme.fingerprint): each.scheme for each in self._registry}
        # A scheme that was published once stays known, even if the store has lost it.
        self._schemes = {**(self._schemes or {}), **self._store.schemes(), **declared}
        self._refreshed = self._clock()


def _longest_acceptance(metric: Metric) -> float:
    """For how many seconds any window of the metric accepts reports, at most."""
    lasts = 86_400.0 * _LONGEST[metric.window] if metric.answer == "at_once" else 0.0
    return lasts + SKEW + LATEST


def _check_window(metric: Metric, label: str, now: float) -> tuple[float, float]:
    """From when to when the window is accepted (POSIX seconds).

    A report is accepted from `opens` to `closes`: `opens` is end - SKEW, or start - SKEW if the
    metric is answered at once, and `closes` is end + LATEST. Let a batch be committed at s, and
    sent again at t. If one of its reports was counted at s and would be counted again at t, then
    both moments are between `opens` and `closes` of its window:

        |t - s| <= closes - opens <= `_longest_acceptance(metric)`

    For so long a store remembers the id of the batch (ID_RETENTION, or `Catalogue.remember` if that
    is longer), so the retry is recognized. Once the id may be forgotten, each report that was
    counted is refused: a retry is never counted twice.

    Edits of `answer` keep this. What an `at_close` metric accepts, it also accepts at once, and
    the store searches an id as long as it was told when the id arrived. After an edit from
    `at_once`, s and t are still within the bound that held at s. After an edit to `at_once`, s was
    within SKEW + LATEST = 7 days before `closes`, and so is each later t; a clock may then be set
    back by one day more, as ID_RETENTION is 8 days.

    Raises:
        Refused: the window is of another kind, too early, too late, or after the expiry.
    """
    try:
        kind, first, last = _span(label)
    except WindowError as error:
        raise Refused("bad_window", f"the window is not the label of a {metric.window}") from error
    if kind != metric.window:
        raise Refused("bad_window", f"the metric has windows of a {metric.window}, not a {kind}")
    if datetime.fromtimestamp(first, UTC).date() > metric.expires:
        raise Refused("expired_metric", f"the metric has expired on {metric.expires}")
    at_once = metric.answer == "at_once"
    opens, closes = (first if at_once else last) - SKEW, last + LATEST
    if now < opens:
        raise Refused(
            "window_not_closed", f"the window has not {'begun' if at_once else 'ended'} yet"
        )
    if now > closes:
        raise Refused("window_too_old", "the window ended too long ago")
    return opens, closes


@lru_cache(maxsize=4096)
def _span(label: str) -> tuple[windows.Kind, float, float]:
    return windows.kind_of(label), windows.start(label), windows.end(label)

"""Keeps the summaries of the overview, and brings those up to date whose tallies have changed.

A page of 500 metrics that calculated them all would take half a minute. So each summary is kept
with the version of the tallies that it rests on. A page asks the store once which versions there
are, and what has changed is calculated by a thread in the background, what the page shows first.
The page waits for that a little, and otherwise shows the summaries that there are.

The versions are those of the windows that still take reports. Older windows change only when an
operator imports or drops tallies, so a summary is also made anew once it is `_OLD` seconds old.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date

from cachetools import LRUCache

from deniable import Metric
from deniable.protocol import windows
from deniable_collector.stores.commits import ID_RETENTION
from deniable_estimator.dashboard.data import PAGE_PATIENCE, DataSource
from deniable_estimator.dashboard.overview.summary import MetricSummary, summarize
from deniable_estimator.dashboard.ranges import DayRange, read_range

MOST_KEPT = 4_000
"""So many summaries are kept, or four for each metric if that is more; each takes 6 to 12 KB."""

_OLD = 600.0
"""Seconds after which a summary is made anew although nothing has changed that a page looks at."""

_REST = 4.0
"""After a round of calculations that took more CPU than a page waits, the next one begins after so
many times as long: while reports arrive, they take a fifth of a core at most. What cannot be shown
yet is not kept waiting."""

_FRESH = 50
"""After so many summaries a round looks anew at which schemes and windows there are."""

_OPEN_DAYS = int(ID_RETENTION // 86_400)
"""A window that ended longer ago takes no report any more."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A metric over some days."""

    metric: Metric
    days: DayRange
    latest: bool
    """Whether these are the latest days."""
    behind: float = 0.0
    """So many seconds ago a window must have ended for the reader to see it."""

    @property
    def key(self) -> tuple[str, str, DayRange, float]:
        return self.metric.name, self.metric.scheme.fingerprint, self.days, self.behind


@dataclass(slots=True)
class _CachedSummary:
    summary: MetricSummary
    version: object
    made: float


@dataclass(eq=False)
class _Round:
    """Calculations that are under way; `urgent` is done once what the page shows is."""

    of: int
    begun: float
    done: int = 0
    urgent: Future[None] = field(default_factory=Future)
    all: Future[None] = field(default_factory=Future)


def latest_days(source: DataSource, kind: windows.Kind) -> DayRange:
    """The days that the overview shows of metrics with such windows unless others are asked
    for."""
    return read_range({}, source.seen_until, kind)


class SummaryCache:
    """The summaries that were calculated."""

    def __init__(
        self,
        metrics: int,
        clock: Callable[[], float] = time.monotonic,
        cpu: Callable[[], float] = time.thread_time,
    ) -> None:
        self._clock, self._cpu = clock, cpu
        self._lock = threading.Lock()
        self._kept: LRUCache[tuple[str, str, DayRange, float], _CachedSummary] = LRUCache(
            max(MOST_KEPT, 4 * metrics)
        )
        self._round: _Round | None = None
        self._rests_until = 0.0
        self.made = 0
        """How many summaries were ever made."""

    def known(self, asked: Asked) -> MetricSummary | None:
        """The summary that is kept, however old; None if there is none."""
        with self._lock:
            kept = self._kept.get(asked.key)
        return None if kept is None else kept.summary

    def bring(
        self,
        source: DataSource,
        asked: Sequence[Asked],
        urgent: int,
        patience: float,
        *,
        every: bool = False,
    ) -> tuple[int, int]:
        """Bring summaries up to date, and wait up to `patience` seconds for the first `urgent` of
        them, or for `every` one. Returns how many of them are not up to date after that, and
        how many of these cannot be shown yet.

        Raises:
            StoreUnavailable: the store cannot answer now.
        """
        current = _versions(source, asked)
        deadline = self._clock() + patience
        first = {each.key for each in asked[:urgent]}
        old, changed = self._outdated(asked, current)
        while old:
            running, mine = self._begin(source, old, current, sum(e.key in first for e in old))
            left = deadline - self._clock()
            if running is None or not changed or left <= 0:
                break
            with suppress(TimeoutError):
                (running.urgent if mine and not every else running.all).result(
                    None if left == math.inf else left
                )
            old, changed = self._outdated(asked, current)
            if mine:
                break
        _note_unreadable(source, asked)
        with self._lock:
            return len(changed), self._blank(old)

    @property
    def progress(self) -> tuple[int, int, float]:
        """How many summaries of how many the round under way has made, and its seconds."""
        found = self._round
        return (0, 0, 0.0) if found is None else (found.done, found.of, self._clock() - found.begun)

    def _outdated(
        self, asked: Sequence[Asked], current: Mapping[str, object]
    ) -> tuple[list[Asked], list[Asked]]:
        """What is to be calculated, and of it what has changed or is not known."""
        now, old, changed = self._clock(), [], []
        with self._lock:
            for each in asked:
                kept = self._kept.get(each.key)
                if kept is None or kept.version != current[each.metric.name]:
                    changed.append(each)
                    old.append(each)
                elif kept.summary.decoding or now - kept.made > _OLD:
                    old.append(each)
        return old, changed

    def _blank(self, asked: Sequence[Asked]) -> int:
        """How many of them cannot be shown yet."""
        found = (self._kept.get(each.key) for each in asked)
        return sum(kept is None or kept.summary.decoding for kept in found)

    def _begin(
        self, source: DataSource, old: Sequence[Asked], current: Mapping[str, object], urgent: int
    ) -> tuple[_Round | None, bool]:
        """Begin a round, or join the one that is under way, and which of both; None if it is too
        early for another."""
        with self._lock:
            if self._round is not None:
                return self._round, False
            if not self._blank(old) and self._clock() < self._rests_until:
                return None, False
            running = self._round = _Round(len(old), self._clock())
        threading.Thread(
            target=self._run, args=(running, source, list(old), current, urgent), daemon=True
        ).start()
        return running, True

    def _keep(self, asked: Asked, found: MetricSummary, version: object) -> None:
        with self._lock:
            self.made += 1
            before = self._kept.get(asked.key)
            # What is known but out of date says more than that it is being calculated.
            if not found.decoding or before is None or before.summary.decoding:
                self._kept[asked.key] = _CachedSummary(found, version, self._clock())

    def _run(
        self,
        running: _Round,
        source: DataSource,
        old: list[Asked],
        current: Mapping[str, object],
        urgent: int,
    ) -> None:
        family = max(1, len(source.registry.metrics))
        strings = sum(each.metric.needs_candidates for each in old)
        # However many of them have strings to decode, the round waits no longer than a page does.
        quick = replace(source, patience=PAGE_PATIENCE / max(1, strings))
        error: BaseException | None = None
        started = self._cpu()
        try:
            for place, each in enumerate(old):
                if place == urgent:
                    running.urgent.set_result(None)
                if place % _FRESH == 0:
                    quick = replace(quick, reader=source.reader.renewed())
                found = summarize(quick, each.metric, each.days, family, latest=each.latest)
                self._keep(each, found, current[each.metric.name])
                running.done = place + 1
        except BaseException as caught:
            error = caught
        took = self._cpu() - started
        with self._lock:
            self._round = None
            if took > PAGE_PATIENCE:
                self._rests_until = self._clock() + _REST * took
        for future in (running.urgent, running.all):
            if future.done():
                continue
            if error is None:
                future.set_result(None)
            else:
                future.set_exception(error)


def _note_unreadable(source: DataSource, asked: Sequence[Asked]) -> None:
    """Let the page name the windows that its summaries lack."""
    for each in asked:
        pair = source.registry.unasked.get(each.metric.name)
        for metric in (each.metric, *((pair,) if pair else ())):
            source.reader.note_touched(metric.name, each.days.touches)


def _versions(source: DataSource, asked: Sequence[Asked]) -> dict[str, object]:
    """metric -> what differs when its summary does: the versions of the windows that still take
    reports, the day, and the operator's list of strings."""
    today = source.today
    labels = {kind: _open_windows(kind, today) for kind in ("day", "week", "month")}
    # A metric that is not reported by itself changes with its pair.
    pairs = source.registry.unasked
    told = [*(each.metric for each in asked), *pairs.values()]
    found = source.reader.versions({each.name: labels[each.window] for each in told})
    return {
        each.metric.name: (
            found.get(each.metric.name),
            found.get(pairs[each.metric.name].name) if each.metric.name in pairs else None,
            today,
            source.list_version(each.metric) if each.metric.needs_candidates else None,
        )
        for each in asked
    }


def _open_windows(kind: windows.Kind, today: date) -> list[str]:
    """The windows that may still take reports; the clocks of devices run ahead by a day at most."""
    first = max(date.min.toordinal(), today.toordinal() - _OPEN_DAYS)
    last = min(date.max.toordinal(), today.toordinal() + 1)
    return windows.span(kind, date.fromordinal(first), date.fromordinal(last))

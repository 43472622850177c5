"""Work that a process does again and again in a thread beside its requests, and the first of it:
the collector deletes windows that ended long ago, and keeps their sums.

`keep` of a metric says how long its windows and the sums of each calendar are kept; where it says
nothing of windows, DENIABLE_KEEP_DAYS does. A sum of a calendar that `keep` does not name is not
made, and one that was made before stays until `deniable store drop`.

Each process does this about once a day. Deleting twice does no harm, so the processes need not
coordinate.
"""

from __future__ import annotations

import random
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from itertools import chain
from typing import NamedTuple

from deniable import DeniableError, Metric
from deniable.protocol.coded_message import counted
from deniable.protocol.keep import CALENDARS
from deniable.protocol.wire import LATEST
from deniable_collector.batches.catalogue import SKEW
from deniable_collector.operation.events import tell
from deniable_collector.stores.base import Store
from deniable_collector.stores.commits import TallyKey
from deniable_collector.stores.errors import StoreUnavailable
from deniable_collector.stores.life import Dropped


class Upkeep(ABC):
    """Work on a store that says itself when it is due again.

    `clock` returns POSIX time in seconds.
    """

    name: str
    """Of the thread."""
    first_seconds = 300.0
    """It is done for the first time within so many seconds, at random, so that processes that start
    together do not work at the same time."""

    def __init__(self, store: Store, clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._clock = clock
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._told: set[TallyKey] = set()

    def tell_failed(self, event: str, failed: Iterable[tuple[TallyKey, str]]) -> None:
        """Tell why something could not be done with tallies; of each once, as it is tried again."""
        for tally, why in failed:
            if tally not in self._told:
                self._told.add(tally)
                tell("error", event, why, metric=tally.metric, window=tally.window)

    @abstractmethod
    def apply(self) -> float:
        """Do it once. Returns after how many seconds to do so again."""

    def start(self) -> None:
        """Run from now on until `stop`."""
        self._thread = threading.Thread(target=self._run, name=self.name, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop, after waiting for what is being done, which needs the store."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        wait = random.uniform(0, self.first_seconds)  # noqa: S311  (nobody gains by guessing it)
        while not self._ended.wait(wait):
            wait = self.apply()


SETTLED = LATEST + SKEW
"""Seconds after its end from which a window accepts no reports, however wrong the clocks are."""

_DAY = 86_400.0
_RETRY_SECONDS = 600.0


class KeepRule(NamedTuple):
    """How long the windows of one metric are kept, and their sums."""

    windows: int
    """Days for which windows are kept; 0 for ever."""
    calendars: tuple[str, ...]
    """The calendars whose sums stay when windows go."""
    sums: list[tuple[str, int]]
    """Those whose sums go too, each after so many days; finer ones first."""


def rules_of(metrics: Iterable[Metric], days: int) -> dict[str, KeepRule]:
    """The rules of the metrics that declare one; `days` is that of DENIABLE_KEEP_DAYS."""
    known = {each for calendars in CALENDARS.values() for each in calendars}
    found = {}
    for metric in metrics:
        if metric.keep:
            own = dict(metric.keep).get(metric.window, days)
            # The sums of a month metric's windows are quarters, and not its months.
            sums = [each for each in metric.keep if each[0] != metric.window and each[0] in known]
            going = [(calendar, kept) for calendar, kept in sums if kept]
            rule = KeepRule(own or 0, tuple(calendar for calendar, _ in sums), going)
            found[metric.name] = rule
    return found


class Keeper(Upkeep):
    """Keeps each window of `store` for `days` after its end (0: for ever), and those of metrics
    that have a rule by that."""

    name = "retention"

    def __init__(
        self,
        store: Store,
        days: int,
        clock: Callable[[], float] = time.time,
        metrics: Iterable[Metric] = (),
    ) -> None:
        super().__init__(store, clock)
        self._days = days
        self._rules = rules_of(metrics, days)

    def start(self) -> None:
        # Where nothing is ever dropped, there is nothing to do.
        if self._days or self._rules:
            super().start()

    def apply(self) -> float:
        """Drop what is too old. Returns after how many seconds to do so again."""
        now = self._clock()
        try:
            published = self._store.schemes()
            plain = [metric for metric in published if metric not in self._rules]
            if self._days and plain:
                gone = self._store.drop(now - self._days * _DAY, plain)
                if gone:
                    tell("info", "retention",
                         f"dropped {counted(gone, 'tally', 'tallies')} that ended "
                         f"{counted(self._days, 'day')} ago or earlier", tallies=gone)  # fmt: skip
            for metric, rule in self._rules.items():
                if self._ended.is_set():
                    return _RETRY_SECONDS
                self._apply(metric, rule, now, published.get(metric, {}))
        except DeniableError as error:
            tell("error", "retention-failed", f"windows that are too old stay: {error}")
            return _RETRY_SECONDS if isinstance(error, StoreUnavailable) else _DAY
        return _DAY

    def _apply(self, metric: str, rule: KeepRule, now: float, schemes: Iterable[str]) -> None:
        """Drop what the rule of one metric says."""
        sums, found = self._store.sums, list[Dropped]()
        for scheme in schemes:
            of = metric, scheme
            if rule.windows:
                before = min(now - rule.windows * _DAY, now - SETTLED)
                found.append(sums.drop_windows(*of, before, rule.calendars))
            for calendar, days in rule.sums:
                found.append(sums.drop_sums(*of, calendar, now - days * _DAY, rule.calendars))
        self.tell_failed("retention-failed", chain.from_iterable(each.failed for each in found))
        if gone := sum(each.tallies for each in found):
            tell("info", "retention", f"dropped {gone} tallies and sums of {metric}, as "
                 "its `keep` says", tallies=gone, metric=metric)  # fmt: skip

"""Work that a process does again and again in a thread beside its requests: the collector deletes
windows that ended long ago, and keeps their sums; and it seals tallies that accept no more reports.

`keep` of a metric says how long its windows and the sums of each calendar are kept; where it says
nothing of windows, DENIABLE_KEEP_DAYS does. A sum of a calendar that `keep` does not name is not
made, and one that was made before stays until `deniable store drop`.

A sealed tally is compressed, exactly and for ever. When all windows of a week, month or quarter are
sealed, their sum is added, as a copy, so that readers of a year need a dozen blocks
(`stores/sums.py`).

Each process deletes about once a day and seals about once an hour, one tally at a time. Deleting
twice does no harm, and whoever comes second finds a tally sealed, so the processes need not
coordinate.
"""

from __future__ import annotations

import random
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from deniable import DeniableError, Metric
from deniable.protocol import windows
from deniable.protocol.coded_message import counted
from deniable.protocol.wire import LATEST
from deniable_collector.batches.catalogue import SKEW
from deniable_collector.operation.events import tell
from deniable_collector.stores.base import Store
from deniable_collector.stores.commits import TallyKey
from deniable_collector.stores.contract import Of
from deniable_collector.stores.errors import StoreUnavailable
from deniable_collector.stores.sums import SumName


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

    def tell_failed(self, event: str, outcomes: Mapping[TallyKey, str]) -> None:
        """Tell why something could not be done with tallies, unless that is empty; of each once, as
        it is tried again."""
        for tally, why in outcomes.items():
            if why and tally not in self._told:
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


class Keeper(Upkeep):
    """Keeps each window of `store` for `days` after its end (0: for ever), and what `keep` of one
    of the `metrics` names by that."""

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
        self._ruled = {metric.name: metric for metric in metrics if metric.keep}

    def start(self) -> None:
        # Where nothing is ever dropped, there is nothing to do.
        if self._days or self._ruled:
            super().start()

    def apply(self) -> float:
        """Drop what is too old. Returns after how many seconds to do so again."""
        now = self._clock()
        try:
            published = self._store.schemes()
            plain = {metric for metric, _ in published} - self._ruled.keys()
            if self._days and plain:
                gone = self._store.drop(now - self._days * _DAY, plain)
                if gone:
                    tell("info", "retention",
                         f"dropped {counted(gone, 'tally', 'tallies')} that ended "
                         f"{counted(self._days, 'day')} ago or earlier", tallies=gone)  # fmt: skip
            for name, metric in self._ruled.items():
                if self._ended.is_set():
                    return _RETRY_SECONDS
                self._apply(metric, now, [of for of in published if of[0] == name])
        except DeniableError as error:
            tell("error", "retention-failed", f"windows that are too old stay: {error}")
            return _RETRY_SECONDS if isinstance(error, StoreUnavailable) else _DAY
        return _DAY

    def _apply(self, metric: Metric, now: float, schemes: Iterable[Of]) -> None:
        """Drop what `keep` of one metric says: its windows, and sums, finer ones first."""
        sums, found = self._store.sums, dict[TallyKey, str]()
        calendars = dict(metric.keep)
        own = calendars.pop(metric.window, self._days)
        for of in schemes:
            if own:
                before = min(now - own * _DAY, now - SETTLED)
                found |= sums.drop_windows(of, before, [*calendars])
            for calendar, days in calendars.items():
                if days:
                    before = now - days * _DAY
                    found |= sums.drop_sums(of, calendar, before, [*calendars])
        self.tell_failed("retention-failed", found)
        if gone := list(found.values()).count(""):
            tell("info", "retention", f"dropped {gone} tallies and sums of {metric.name}, as "
                 "its `keep` says", tallies=gone, metric=metric.name)  # fmt: skip


_AGAIN_SECONDS = 3_600.0

_REST = 9.0
"""The thread rests so many times as long as it has worked: it takes a tenth of a core at most."""

_LEAST_REST = 0.02


@dataclass
class Outcome:
    """What one run has made: sealed tallies with their bytes before and after, and sums.

    `failed` says of each tally and sum that could not be made why; the tallies stay open.
    """

    tallies: int = 0
    before: int = 0
    after: int = 0
    sums: int = 0
    sum_bytes: int = 0
    failed: dict[TallyKey, str] = field(default_factory=dict)


def seal_all(
    store: Store, now: float, rest: Callable[[float], bool] = lambda seconds: False
) -> Outcome:
    """Seal all tallies that accept no more reports at `now` (POSIX seconds), one after the other,
    and bring the copies of their weeks, months and quarters up to date.

    `rest` is called with the seconds that each has taken, and ends the run by returning True. What
    fails does not keep the others from it.

    Raises:
        StoreUnavailable: the store cannot be reached; what was done before stays.
    """
    outcome = Outcome()

    def seal(of: Of, label: str) -> None:
        sealing = store.seal(TallyKey(*of, label))
        if sealing is not None:
            outcome.tallies += 1
            outcome.before += sealing.before
            outcome.after += sealing.after

    def add_up(of: Of, period: str, kind: str) -> None:
        written = store.sums.add_up(of, kind, period)
        outcome.sums += written > 0
        outcome.sum_bytes += written

    steps: list[tuple[Callable[..., None], Callable[[Store, Of, float], list[tuple[str, ...]]]]]
    steps = [(seal, _open_windows), (add_up, _settled_periods)]
    for work, due in steps:
        items = [(of, each) for of in store.schemes() for each in due(store, of, now)]
        # Processes that begin at the same moment would otherwise all take the same one.
        random.shuffle(items)
        for of, each in items:
            began = time.perf_counter()
            try:
                work(of, *each)
            except StoreUnavailable:
                raise
            except DeniableError as error:
                outcome.failed[TallyKey(*of, each[0])] = str(error)
            if rest(time.perf_counter() - began):
                return outcome
    return outcome


def _open_windows(store: Store, of: Of, now: float) -> list[tuple[str, ...]]:
    """The windows that accept no more reports at `now` and are not sealed."""
    labels = store.windows(*of)
    ended = [label for label in labels if windows.end(label) + SETTLED <= now]
    sealed = store.sealed(*of, ended)
    return [(label,) for label in ended if label not in sealed]


def _settled_periods(store: Store, of: Of, now: float) -> list[tuple[str, ...]]:
    """Each week, month and quarter that accepts no more reports at `now`, whose windows are sealed,
    and whose copy is missing, old or of no use; and the kind of these windows."""
    labels, parts = store.windows(*of), store.sums.parts(of)
    sealed = store.sealed(*of, labels)
    due = set[SumName]().union(*(part.copies_due(now - SETTLED) for part in parts))
    return [
        (copy.period, copy.kind)
        for copy in due
        if sealed.issuperset(label for label in labels if copy.covers(label))
    ]


class Sealer(Upkeep):
    """Seals the tallies of its store in the background, about once an hour."""

    name = "sealing"

    def apply(self) -> float:
        """Seal what can be sealed. Returns after how many seconds to do so again."""
        try:
            outcome = seal_all(self._store, self._clock(), self._rest)
        except DeniableError as error:
            tell("error", "sealing-failed", f"windows stay open, with all of their counts: {error}")
            return _RETRY_SECONDS
        self.tell_failed("sealing-failed", outcome.failed)
        if outcome.tallies:
            tell("info", "sealed",
                 f"sealed {counted(outcome.tallies, 'tally', 'tallies')}: {outcome.before:,} bytes "
                 f"are now {outcome.after:,}", tallies=outcome.tallies, before=outcome.before,
                 after=outcome.after)  # fmt: skip
        if outcome.sums:
            tell("info", "sums",
                 f"made {counted(outcome.sums, 'sum')} of weeks, months or quarters: "
                 f"{outcome.sum_bytes:,} bytes", tallies=outcome.sums,
                 after=outcome.sum_bytes)  # fmt: skip
        return _AGAIN_SECONDS

    def _rest(self, seconds: float) -> bool:
        return self._ended.wait(max(_LEAST_REST, _REST * seconds))

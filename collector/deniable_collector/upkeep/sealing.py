"""Sealing: tallies that accept no more reports are compressed, exactly and for ever.

When all windows of a week, month or quarter are sealed, their sum is added, as a copy, so that
readers of a year need a dozen blocks (`stores/summed/sums.py`).

Each collector process does this in its own thread, one tally at a time. Several processes may do so
at once: whoever comes second finds the tally sealed.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from deniable import DeniableError, windows
from deniable.keeping import CALENDARS
from deniable.told import counted
from deniable_collector.operation.events import tell
from deniable_collector.stores.base import Store
from deniable_collector.stores.commits import TallyKey
from deniable_collector.stores.errors import StoreUnavailable
from deniable_collector.stores.sealed.blocks import UNREADABLE
from deniable_collector.stores.summed.calendars import bounds, period_of
from deniable_collector.upkeep.archive import EVERYTHING, Advance, TallySelection
from deniable_collector.upkeep.retention import SETTLED

__all__ = ["Outcome", "Sealer", "add_up_all", "open_tallies", "seal_all", "settled_periods"]

_FIRST_SECONDS = 300.0
_AGAIN_SECONDS = 3_600.0
_RETRY_SECONDS = 600.0

_REST = 9.0
"""The thread rests so many times as long as it has worked: it takes a tenth of a core at most."""

_LEAST_REST = 0.02


@dataclass
class Outcome:
    """What one run has sealed: tallies, and their bytes before and after.

    `failed` says for each tally that could not be sealed why; those are whole, and stay open.
    """

    tallies: int = 0
    before: int = 0
    after: int = 0
    failed: tuple[tuple[TallyKey, str], ...] = ()


def open_tallies(
    store: Store, now: float, selection: TallySelection = EVERYTHING
) -> list[TallyKey]:
    """The selected tallies that accept no more reports at `now` (POSIX seconds) and are not sealed.

    Raises:
        StoreError: the store cannot be read.
    """
    found = []
    for metric, schemes in sorted(store.schemes().items()):
        for scheme in sorted(schemes):
            settled = [
                label
                for label in store.windows(metric, scheme)
                if windows.end(label) + SETTLED <= now and selection.takes(metric, label)
            ]
            sealed = store.sealed(metric, scheme, settled) if settled else frozenset()
            found += [TallyKey(metric, scheme, label) for label in settled if label not in sealed]
    return found


def seal_all(
    store: Store,
    tallies: list[TallyKey],
    *,
    advance: Advance = lambda share: None,
    rest: Callable[[float], bool] = lambda seconds: False,
) -> Outcome:
    """Seal these tallies, one after the other.

    `rest` is called with the seconds that each has taken, and ends the run by returning True. A
    tally that cannot be sealed does not keep the others from it.

    Raises:
        StoreUnavailable: the store cannot be reached; what was sealed before stays so.
    """
    outcome = Outcome()
    for number, tally in enumerate(tallies, 1):
        began = time.perf_counter()
        try:
            sealing = store.seal(tally)
        except StoreUnavailable:
            raise
        except DeniableError as error:
            outcome.failed += ((tally, str(error)),)
        else:
            if sealing is not None:
                outcome.tallies += 1
                outcome.before += sealing.before
                outcome.after += sealing.after
        advance(number / len(tallies))
        if rest(time.perf_counter() - began):
            break
    return outcome


def settled_periods(
    store: Store, now: float, selection: TallySelection = EVERYTHING
) -> list[tuple[str, str, str, str]]:
    """Metric, scheme, kind of window and period of each week, month and quarter that accepts no
    more reports at `now`, whose windows are sealed, and whose copy is missing, old or of no use.

    Raises:
        StoreError: the store cannot be read.
    """
    found = []
    for metric, schemes in sorted(store.schemes().items()):
        for scheme in sorted(schemes):
            labels = [
                label for label in store.windows(metric, scheme) if selection.takes(metric, label)
            ]
            sealed = store.sealed(metric, scheme, labels) if labels else frozenset()
            periods: dict[tuple[str, str], list[str]] = {
                (name.kind, name.period): []
                for name in store.sums.names(metric, scheme)
                if not name.kept
            }
            for label in labels:
                kind = windows.kind_of(label)
                for calendar in CALENDARS[kind]:
                    periods.setdefault((kind, period_of(calendar, label)), []).append(label)
            settled = [
                each
                for each, members in periods.items()
                if bounds(each[1])[1] + SETTLED <= now and sealed.issuperset(members)
            ]
            due = store.sums.to_add_up(metric, scheme, settled) if settled else []
            found += [(metric, scheme, *each) for each in due]
    return found


def add_up_all(
    store: Store,
    periods: list[tuple[str, str, str, str]],
    *,
    advance: Advance = lambda share: None,
    rest: Callable[[float], bool] = lambda seconds: False,
) -> Outcome:
    """Make the copies of these periods, or bring them up to date; see `seal_all`. Of the outcome,
    `tallies` and `after` are the copies that were made and their bytes.

    Raises:
        StoreUnavailable: the store cannot be reached; what was made before stays.
    """
    outcome = Outcome()
    for number, period in enumerate(periods, 1):
        began = time.perf_counter()
        try:
            written = store.sums.add_up(*period)
        except DeniableError as error:
            # A file that cannot be read keeps back the sums of its window alone.
            if isinstance(error, StoreUnavailable) and not isinstance(error, UNREADABLE):
                raise
            outcome.failed += ((TallyKey(*period[:2], period[3]), str(error)),)
        else:
            outcome.tallies += written > 0
            outcome.after += written
        advance(number / len(periods))
        if rest(time.perf_counter() - began):
            break
    return outcome


class Sealer:
    """Seals the tallies of `store` in the background, about once an hour, if it is `on`.

    `clock` returns POSIX time in seconds.
    """

    def __init__(
        self, store: Store, *, on: bool = True, clock: Callable[[], float] = time.time
    ) -> None:
        self._store = store
        self._on = on
        self._clock = clock
        self._ended = threading.Event()
        self._told: set[TallyKey] = set()
        self._thread: threading.Thread | None = None

    def apply(self) -> float:
        """Seal what can be sealed. Returns after how many seconds to do so again."""
        try:
            tallies = open_tallies(self._store, self._clock())
            # Processes that begin at the same moment would otherwise all take the same one.
            random.shuffle(tallies)
            outcome = seal_all(self._store, tallies, rest=self._rest)
            periods = settled_periods(self._store, self._clock())
            random.shuffle(periods)
            sums = add_up_all(self._store, periods, rest=self._rest)
        except DeniableError as error:
            tell("error", "sealing-failed", f"windows stay open, with all of their counts: {error}")
            return _RETRY_SECONDS
        for tally, why in outcome.failed + sums.failed:
            # Each once: it is tried again every hour.
            if tally not in self._told:
                self._told.add(tally)
                tell("error", "sealing-failed", why, metric=tally.metric, window=tally.window)
        if outcome.tallies:
            tell("info", "sealed",
                 f"sealed {counted(outcome.tallies, 'tally', 'tallies')}: {outcome.before:,} bytes "
                 f"are now {outcome.after:,}", tallies=outcome.tallies, before=outcome.before,
                 after=outcome.after)  # fmt: skip
        if sums.tallies:
            tell("info", "sums",
                 f"made {counted(sums.tallies, 'sum')} of weeks, months or quarters: "
                 f"{sums.after:,} bytes", tallies=sums.tallies, after=sums.after)  # fmt: skip
        return _AGAIN_SECONDS

    def start(self) -> None:
        """Run from now on until `stop`, the first time within five minutes."""
        if self._on:
            self._thread = threading.Thread(target=self._run, name="sealing", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Stop, after waiting for the tally that is being sealed, which needs the store."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()

    def _rest(self, seconds: float) -> bool:
        return self._ended.wait(max(_LEAST_REST, _REST * seconds))

    def _run(self) -> None:
        wait = random.uniform(0, _FIRST_SECONDS)  # noqa: S311  (nobody gains by guessing it)
        while not self._ended.wait(wait):
            wait = self.apply()

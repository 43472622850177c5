"""Sealing: tallies that accept no more reports are compressed, exactly and for ever.

When all windows of a week, month or quarter are sealed, their sum is added, as a copy, so that
readers of a year need a dozen blocks (`stores/sums.py`).

Each collector process does this in its own thread, one tally at a time. Several processes may do so
at once: whoever comes second finds the tally sealed.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from deniable import DeniableError
from deniable.protocol import windows
from deniable.protocol.coded_message import counted
from deniable_collector.operation.events import tell
from deniable_collector.stores.base import Store
from deniable_collector.stores.commits import TallyKey
from deniable_collector.stores.errors import StoreUnavailable
from deniable_collector.stores.sums import SumName
from deniable_collector.upkeep.keeper import SETTLED, Upkeep

_AGAIN_SECONDS = 3_600.0
_RETRY_SECONDS = 600.0

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
    failed: tuple[tuple[TallyKey, str], ...] = ()


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

    def each(items: list[tuple[str, ...]], work: Callable[[tuple[str, ...]], None]) -> None:
        # Processes that begin at the same moment would otherwise all take the same one.
        random.shuffle(items)
        for item in items:
            began = time.perf_counter()
            try:
                work(item)
            except StoreUnavailable:
                raise
            except DeniableError as error:
                outcome.failed += ((TallyKey(item[0], item[1], item[-1]), str(error)),)
            if rest(time.perf_counter() - began):
                return

    def seal(tally: tuple[str, ...]) -> None:
        sealing = store.seal(TallyKey(*tally))
        if sealing is not None:
            outcome.tallies += 1
            outcome.before += sealing.before
            outcome.after += sealing.after

    def add_up(period: tuple[str, ...]) -> None:
        written = store.sums.add_up(*period)
        outcome.sums += written > 0
        outcome.sum_bytes += written

    each(_open_tallies(store, now), seal)
    each(_settled_periods(store, now), add_up)
    return outcome


def _each_scheme(store: Store) -> Iterator[tuple[str, str, list[str], frozenset[str]]]:
    """Each metric and scheme with its windows, and those of them that are sealed."""
    for metric, scheme in store.each_scheme():
        labels = store.windows(metric, scheme)
        sealed = store.sealed(metric, scheme, labels) if labels else frozenset[str]()
        yield metric, scheme, labels, sealed


def _open_tallies(store: Store, now: float) -> list[tuple[str, ...]]:
    """The tallies that accept no more reports at `now` and are not sealed."""
    return [
        (metric, scheme, label)
        for metric, scheme, labels, sealed in _each_scheme(store)
        for label in labels
        if label not in sealed and windows.end(label) + SETTLED <= now
    ]


def _settled_periods(store: Store, now: float) -> list[tuple[str, ...]]:
    """Metric, scheme, kind of window and period of each week, month and quarter that accepts no
    more reports at `now`, whose windows are sealed, and whose copy is missing, old or of no use."""
    found = list[tuple[str, ...]]()
    for metric, scheme, labels, sealed in _each_scheme(store):
        parts = store.sums.parts(metric, scheme)
        found += [
            (metric, scheme, copy.kind, copy.period)
            for copy in set[SumName]().union(*(part.copies_due(now - SETTLED) for part in parts))
            if sealed.issuperset(label for label in labels if copy.covers(label))
        ]
    return found


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

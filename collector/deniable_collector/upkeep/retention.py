"""Retention: the collector deletes windows that ended long ago, and keeps their sums.

`keep` of a metric says how long its windows and the sums of each calendar are kept; where it says
nothing of windows, DENIABLE_KEEP_DAYS does. A sum of a calendar that `keep` does not name is not
made, and one that was made before stays until `deniable store drop`.

Each process does this about once a day, in its own thread. Deleting twice does no harm, so the
processes need not coordinate.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial

from deniable import DeniableError, Metric
from deniable.keeping import CALENDARS, Keep
from deniable.told import counted
from deniable.wire import LATEST
from deniable_collector.batches.catalogue import SKEW
from deniable_collector.operation.events import tell
from deniable_collector.stores.base import Store
from deniable_collector.stores.commits import TallyKey
from deniable_collector.stores.errors import StoreUnavailable
from deniable_collector.stores.summed.place import Dropped

__all__ = ["SETTLED", "KeepRule", "Retention", "RuleOutcome", "apply_rule", "keep", "rules_of"]

SETTLED = LATEST + SKEW
"""Seconds after its end from which a window accepts no reports, however wrong the clocks are."""

_DAY = 86_400.0
_FIRST_SECONDS = 300.0
_RETRY_SECONDS = 600.0

_NAMED, _REASONS = 10, 3
"""How many metrics, and how many reasons, a line of the log names at most."""


@dataclass(frozen=True)
class KeepRule:
    """How long the windows of one metric are kept, and their sums."""

    metric: str
    keep: Keep
    windows: int
    """Days for which windows are kept; 0 for ever."""

    @property
    def calendars(self) -> tuple[str, ...]:
        """The calendars whose sums stay when windows go."""
        known = {each for calendars in CALENDARS.values() for each in calendars}
        return tuple(calendar for calendar, _ in self.keep if calendar in known)

    @property
    def sums(self) -> list[tuple[str, int]]:
        """The calendars whose sums go too, each after so many days; finer ones first."""
        found = [(calendar, days) for calendar, days in self.keep if days]
        return [each for each in found if each[0] in self.calendars]


def rules_of(metrics: Iterable[Metric], days: int) -> dict[str, KeepRule]:
    """The rules of the metrics that declare one; `days` is that of DENIABLE_KEEP_DAYS."""
    found = {}
    for metric in metrics:
        if metric.keep:
            kept = dict(metric.keep)
            own = kept.get(metric.window, days)
            # The sums of a month metric's windows are quarters, and not its months.
            sums = tuple(each for each in metric.keep if each[0] != metric.window)
            found[metric.name] = KeepRule(metric.name, sums, own or 0)
    return found


@dataclass
class RuleOutcome:
    """What was dropped of one metric: `tallies` counts tallies and sums. `failed` says of single
    tallies why they stay, `errors` why a whole step was refused."""

    tallies: int = 0
    failed: tuple[tuple[TallyKey, str], ...] = ()
    errors: tuple[DeniableError, ...] = ()


def apply_rule(store: Store, rule: KeepRule, now: float, schemes: Iterable[str]) -> RuleOutcome:
    """Drop what is too old of one metric, which has these schemes. Every step is tried, even if an
    earlier one fails."""
    outcome, sums = RuleOutcome(), store.sums
    steps = list[Callable[[], Dropped]]()
    for scheme in schemes:
        of = rule.metric, scheme
        if rule.windows:
            before = min(now - rule.windows * _DAY, now - SETTLED)
            steps.append(partial(sums.drop_windows, *of, before, rule.calendars))
        steps += [
            partial(sums.drop_sums, *of, calendar, now - days * _DAY, rule.calendars)
            for calendar, days in rule.sums
        ]
    for step in steps:
        try:
            dropped = step()
        except DeniableError as error:
            outcome.errors += (error,)
        else:
            outcome.tallies += dropped.tallies
            outcome.failed += dropped.failed
    return outcome


class _Ending(Exception):
    """The process ends while metrics are left."""


class Retention:
    """Keeps each window of `store` for `days` after its end (0: for ever), and those of metrics
    that have a rule by that.

    `clock` returns POSIX time in seconds.
    """

    def __init__(
        self,
        store: Store,
        days: int,
        clock: Callable[[], float] = time.time,
        metrics: Iterable[Metric] = (),
    ) -> None:
        self._store = store
        self._days = days
        self._clock = clock
        self._rules = rules_of(metrics, days)
        self._told: set[TallyKey] = set()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def needed(self) -> bool:
        """Whether anything is ever dropped."""
        return bool(self._days or self._rules)

    def apply(self) -> float:
        """Drop what is too old. Returns after how many seconds to do so again."""
        now, failed = self._clock(), dict[str, DeniableError]()
        errors = []
        try:
            published = self._store.schemes()
            self._drop_old(now, [each for each in published if each not in self._rules], failed)
            for metric, rule in self._rules.items():
                self._check(failed)
                self._apply(rule, now, published.get(metric, {}), failed)
        except _Ending:
            return _RETRY_SECONDS
        except DeniableError as error:
            errors = [error]
            tell("error", "retention-failed", f"not every metric was tried: {error}")
        if failed:
            tell("error", "retention-failed", _in_words(failed), metrics=[*failed])
        errors += failed.values()
        soon = any(isinstance(each, StoreUnavailable) for each in errors)
        return _RETRY_SECONDS if soon else _DAY

    def _drop_old(self, now: float, metrics: list[str], failed: dict[str, DeniableError]) -> None:
        """Drop the old windows of these metrics, which have no rule of their own."""
        if not (self._days and metrics):
            return
        before, gone = now - self._days * _DAY, 0
        try:
            gone = self._store.drop(before, metrics)
        except DeniableError as error:
            # One metric's files may keep all from going, so each is tried alone.
            if metrics[1:]:
                for metric in metrics:
                    self._check(failed)
                    try:
                        gone += self._store.drop(before, (metric,))
                    except DeniableError as its_own:
                        failed[metric] = its_own
            else:
                failed[metrics[0]] = error
        if gone:
            tell("info", "retention",
                 f"dropped {counted(gone, 'tally', 'tallies')} that ended "
                 f"{counted(self._days, 'day')} ago or earlier", tallies=gone)  # fmt: skip

    def _apply(
        self, rule: KeepRule, now: float, schemes: Iterable[str], failed: dict[str, DeniableError]
    ) -> None:
        """Drop what the rule of one metric says."""
        outcome = apply_rule(self._store, rule, now, schemes)
        for error in outcome.errors[:1]:
            failed[rule.metric] = error
        for tally, why in outcome.failed:
            if tally not in self._told:
                self._told.add(tally)
                tell("error", "retention-failed", why, metric=rule.metric, window=tally.window)
        if gone := outcome.tallies:
            tell("info", "retention", f"dropped {gone} tallies and sums of {rule.metric}, as "
                 "its `keep` says", tallies=gone, metric=rule.metric)  # fmt: skip

    def _check(self, failed: Mapping[str, DeniableError]) -> None:
        """Return if the next metric is to be tried.

        Raises:
            _Ending: the process ends.
            StoreUnavailable: the store does not answer. Each metric that is left would wait for it.
        """
        if self._ended.is_set():
            raise _Ending
        if any(isinstance(each, StoreUnavailable) for each in failed.values()):
            self._store.ping()

    def start(self) -> None:
        """Run from now on until `stop`, the first time within five minutes."""
        self._thread = threading.Thread(target=self._run, name="retention", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop, after waiting for a running deletion, which needs the store."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        # Random, so that processes that start together do not delete at the same time.
        wait = random.uniform(0, _FIRST_SECONDS)  # noqa: S311  (nobody gains by guessing it)
        while not self._ended.wait(wait):
            wait = self.apply()


def _in_words(failed: Mapping[str, DeniableError]) -> str:
    """Which metrics keep windows that are too old, and why."""
    names = ", ".join(list(failed)[:_NAMED]) + ", ..." * (len(failed) > _NAMED)
    reasons = dict.fromkeys(map(str, failed.values()))
    why = "; ".join(list(reasons)[:_REASONS]) + "; ..." * (len(reasons) > _REASONS)
    return f"windows that are too old stay, of {counted(len(failed), 'metric')} ({names}): {why}"


def keep(store: Store, days: int, metrics: Iterable[Metric] = ()) -> None:
    """Start retention in this process, if windows are not kept for ever."""
    retention = Retention(store, days, metrics=metrics)
    if retention.needed:
        retention.start()

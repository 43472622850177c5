"""Sealing: tallies that accept no more reports are compressed, exactly and for ever.

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
from deniable_collector.operation.events import tell
from deniable_collector.stores.base import Store, StoreUnavailable, TallyKey
from deniable_collector.upkeep.archive import EVERYTHING, Advance, TallySelection
from deniable_collector.upkeep.retention import SETTLED

__all__ = ["Outcome", "Sealer", "open_tallies", "seal_all"]

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
        except DeniableError as error:
            tell("error", "sealing-failed", f"windows stay open, with all of their counts: {error}")
            return _RETRY_SECONDS
        for tally, why in outcome.failed:
            # Each once: it is tried again every hour.
            if tally not in self._told:
                self._told.add(tally)
                tell("error", "sealing-failed", why, metric=tally.metric, window=tally.window)
        if outcome.tallies:
            tell("info", "sealed",
                 f"sealed {outcome.tallies} tallies: {outcome.before:,} bytes are now "
                 f"{outcome.after:,}", tallies=outcome.tallies, before=outcome.before,
                 after=outcome.after)  # fmt: skip
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

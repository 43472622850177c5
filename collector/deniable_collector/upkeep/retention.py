"""Retention: the collector deletes windows that ended long ago.

Each process does this about once a day, in its own thread. Deleting twice does no harm, so the
processes need not coordinate.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable

from deniable import DeniableError
from deniable.wire import LATEST
from deniable_collector.batches.catalogue import SKEW
from deniable_collector.operation.events import tell
from deniable_collector.stores.base import Store, StoreUnavailable

__all__ = ["SETTLED", "Retention", "keep"]

SETTLED = LATEST + SKEW
"""Seconds after its end from which a window accepts no reports, however wrong the clocks are."""

_DAY = 86_400.0
_FIRST_SECONDS = 300.0
_RETRY_SECONDS = 600.0


class Retention:
    """Keeps each window of `store` for `days` after its end.

    `clock` returns POSIX time in seconds.
    """

    def __init__(self, store: Store, days: int, clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._days = days
        self._clock = clock
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def apply(self) -> float:
        """Drop what is too old. Returns after how many seconds to do so again."""
        try:
            gone = self._store.drop(self._clock() - self._days * _DAY)
        except DeniableError as error:
            tell("error", "retention-failed", f"nothing was dropped: {error}")
            return _RETRY_SECONDS if isinstance(error, StoreUnavailable) else _DAY
        if gone:
            tell("info", "retention", f"dropped {gone} tallies that ended {self._days} days ago or "
                 "earlier", tallies=gone)  # fmt: skip
        return _DAY

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


def keep(store: Store, days: int) -> None:
    """Start retention in this process, if windows are not kept for ever."""
    if days:
        Retention(store, days).start()

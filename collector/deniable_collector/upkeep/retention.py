"""Retention: windows that ended long ago are forgotten, by the collector itself.

Each process does it about once a day, in a thread of its own. Dropping what is dropped
already does nothing, so they need not agree on who does it.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable

from deniable import DeniableError
from deniable_collector.operation.events import tell
from deniable_collector.stores.base import ID_RETENTION, Store, StoreUnavailable

__all__ = ["SETTLED", "Retention", "keep"]

SETTLED = ID_RETENTION
"""Seconds after its end from which a window takes no reports any more, whatever the clocks."""

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
        """Drop what is too old; how many seconds later to do so again."""
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
        """Apply it from now on, the first time within five minutes, until `stop`."""
        self._thread = threading.Thread(target=self._run, name="retention", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Do nothing any more; what is under way is waited for, as it needs the store."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        # Processes that start together need not drop together.
        wait = random.uniform(0, _FIRST_SECONDS)  # noqa: S311  (nobody gains by guessing it)
        while not self._ended.wait(wait):
            wait = self.apply()


def keep(store: Store, days: int) -> None:
    """Start the retention of this process, if windows are not kept for ever."""
    if days:
        Retention(store, days).start()

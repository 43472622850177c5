"""The store's journal: cleared often enough that no single commit stays in it for long.

Each process sees to it, in a thread of its own: what another one has cleared already costs a
look. The last time is when the process ends.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from deniable import DeniableError
from deniable_collector.operation.events import tell
from deniable_collector.operation.metrics import JOURNAL
from deniable_collector.stores.base import Store, StoreUnavailable

__all__ = ["JournalKeeper"]

_DUE = 3 / 4
"""The part of the time that is let pass before the journal is cleared; the rest is for doing so."""

_LOOKS = 12
"""Looks at the journal in that time."""

_STOP_SECONDS, _TROUBLE_SECONDS = 10.0, 2.0
"""How long the end of a process waits for its last commits to be cleared, and for readers, or a
store that is away, to make way for that."""

_STOP_STEP = 0.05


class JournalKeeper:
    """Lets single commits stay in the journal of `store` for `seconds` at most; 0 leaves it alone.

    `clock` returns seconds that never jump.
    """

    def __init__(
        self, store: Store, seconds: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._store = store
        self._seconds = seconds
        self._clock = clock
        self._clear_at = clock()
        self._trouble: DeniableError | None = None
        self._told = False
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def apply(self, older_than: float) -> bool:
        """Clear what has been in the journal for so many seconds; whether nothing is left in it.

        If commits stay in it for longer than they may, that is told, once, and so is its end.
        """
        clear = False
        try:
            found = self._store.clear_journal(older_than)
        except DeniableError as error:
            self._trouble = error
        else:
            clear, self._trouble = found is None, None
            self._clear_at = self._clock() - (found or 0.0)
        age = self._clock() - self._clear_at
        JOURNAL.set(age)
        if self._refused:
            self._tell_once(str(self._trouble))
        elif age > self._seconds:
            why = self._trouble or "clearing takes so long, and DENIABLE_JOURNAL_SECONDS is less"
            self._tell_once(f"commits of the last {age:.0f} s can be told apart in the store's "
                            f"files: {why}")  # fmt: skip
        elif self._told and self._trouble is None:
            tell("info", "journal-cleared", "older commits are in the store's files as sums alone")
            self._told = False
        return clear

    def start(self) -> None:
        """Keep it from now on, until `stop`. What a crash has left in the journal goes at once."""
        if self._seconds:
            self._thread = threading.Thread(target=self._run, name="journal", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Clear the journal for the last time, and close the store."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
            self._finish()
        self._store.close()

    @property
    def _refused(self) -> bool:
        """Whether trying again would change nothing."""
        return self._trouble is not None and not isinstance(self._trouble, StoreUnavailable)

    def _run(self) -> None:
        while True:
            self.apply(_DUE * self._seconds)
            if self._ended.wait(self._seconds / _LOOKS):
                return

    def _finish(self) -> None:
        began = self._clock()
        while not self.apply(0.0):
            spent = self._clock() - began
            if self._refused or spent > (_TROUBLE_SECONDS if self._trouble else _STOP_SECONDS):
                why = self._trouble or "clearing takes too long to be waited for"
                self._tell_once(f"the last commits can be told apart in the store's files: {why}")
                return
            time.sleep(_STOP_STEP)

    def _tell_once(self, message: str) -> None:
        if not self._told:
            tell("warning", "journal-kept", message)
        self._told = True

"""Clears the store's journal, so that no single commit can be read in it for long.

Each process does this in its own thread, and once more when it stops. If another process has
just cleared the journal, it costs only a check.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress

from deniable import DeniableError
from deniable_collector.operation.events import tell
from deniable_collector.operation.prometheus import JOURNAL
from deniable_collector.stores.base import Store
from deniable_collector.stores.errors import StoreUnavailable
from deniable_collector.upkeep.keeper import Upkeep

_DUE = 3 / 4
"""Fraction of the time after which the journal is cleared. The rest is for clearing it."""

_LOOKS = 12
"""How often the journal is checked within the time."""

_STOP_SECONDS, _TROUBLE_SECONDS = 10.0, 2.0
"""How long a stopping process waits until its last commits are cleared; the second is for the case
that a reader prevents it or the store is away."""

_STOP_STEP = 0.05

_MERGE_SECONDS = 45.0
"""After how long increments are merged where this process is not to clear the journal."""


class JournalKeeper(Upkeep):
    """Clears single commits from the journal of `store` within `seconds`; 0: never clears it, but
    has the store merge its increments.

    `clock` returns seconds that never jump.
    """

    name = "journal"
    first_seconds = 0.0
    """A crash may have left commits in it."""

    def __init__(
        self, store: Store, seconds: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(store, clock)
        self._seconds = seconds
        self._clear_at = clock()
        self._trouble: DeniableError | None = None
        self._told_once = False

    def apply(self) -> float:
        """Clear the journal if that is due. Returns after how many seconds to look again."""
        if not self._seconds:
            self._merge()
            return _MERGE_SECONDS
        self.clear(_DUE * self._seconds)
        return self._seconds / _LOOKS

    def clear(self, older_than: float) -> bool:
        """Clear the journal if commits have been in it for `older_than` seconds; True if none are.

        Logs once when commits stay for longer than allowed, and once when that is over.
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
            why = self._trouble or "clearing takes too long: set DENIABLE_JOURNAL_SECONDS higher"
            self._tell_once(
                f"single commits of the last {age:.0f} s can be read in the store's files: {why}"
            )
        elif self._told_once and self._trouble is None:
            tell("info", "journal-cleared", "older commits can no longer be read in the files")
            self._told_once = False
        return clear

    def _merge(self) -> None:
        # What cannot be merged now is tried again, and a damaged block is told by who reads it.
        with suppress(DeniableError):
            self._store.merge()

    def stop(self) -> None:
        """Clear the journal for the last time, and close the store."""
        super().stop()
        if self._thread is not None:
            if self._seconds:
                self._finish()
            else:
                self._merge()
        self._store.close()

    @property
    def _refused(self) -> bool:
        """Whether trying again is pointless."""
        return self._trouble is not None and not isinstance(self._trouble, StoreUnavailable)

    def _finish(self) -> None:
        began = self._clock()
        while not self.clear(0.0):
            spent = self._clock() - began
            if self._refused or spent > (_TROUBLE_SECONDS if self._trouble else _STOP_SECONDS):
                why = self._trouble or "clearing takes too long to wait for"
                self._tell_once(f"the last commits can still be read in the store's files: {why}")
                return
            time.sleep(_STOP_STEP)

    def _tell_once(self, message: str) -> None:
        if not self._told_once:
            tell("warning", "journal-kept", message)
        self._told_once = True

"""A lock that never waits for a call which waits for it.

A signal's handler runs in the main thread, in the middle of whatever that thread was doing.
If the handler closes a client, and the call that it has interrupted holds the client's lock,
an ordinary lock would wait for ever.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["Lock"]


class Lock:
    """One thread at a time, and not even that thread a second time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holder: int | None = None

    @contextmanager
    def held(self, patience: float) -> Iterator[None]:
        """Hold it; `patience` is how many seconds to wait for another thread.

        Raises:
            BlockingIOError: another thread did not let go in time, or this one holds it.
        """
        if self._holder == threading.get_ident():
            raise BlockingIOError("the state is in use by a call that this one has interrupted")
        if not self._lock.acquire(timeout=max(0.0, patience)):
            raise BlockingIOError("the state is in use by another thread")
        self._holder = threading.get_ident()
        try:
            yield
        finally:
            self._holder = None
            self._lock.release()

    def acquire(self) -> None:
        """Hold it across a fork, until `release` in both processes."""
        self._lock.acquire()

    def release(self) -> None:
        """Let go after a fork."""
        self._lock.release()

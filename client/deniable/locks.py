"""A lock that does not deadlock in signal handlers.

A signal handler runs in the main thread and interrupts whatever that thread was doing. If the
handler closes a client, and the interrupted call holds the client's lock, an ordinary lock
would wait for ever.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

PATIENCE = 2.0
"""Seconds that a transaction waits for another process or thread that uses the state's file."""


class Lock:
    """A lock for one thread at a time, which the same thread cannot take a second time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holder: int | None = None

    @contextmanager
    def held(self, patience: float) -> Iterator[None]:
        """Hold the lock; `patience` is how many seconds to wait for another thread.

        Raises:
            BlockingIOError: another thread did not release it in time, or this one holds it.
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
        """Hold the lock across a fork, until `release` in both processes."""
        self._lock.acquire()

    def release(self) -> None:
        """Release the lock after a fork."""
        self._lock.release()

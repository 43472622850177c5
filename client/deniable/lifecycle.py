"""What happens to every client when the process forks or ends."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from typing import Protocol
from weakref import WeakSet

__all__ = ["Living", "follow", "leave"]

_EXIT_SECONDS = 1.0


class Living(Protocol):
    """Something that has to be told."""

    def before_fork(self) -> None:
        """Hold still: no thread may be inside the state until `after_fork`."""

    def after_fork(self, *, child: bool) -> None:
        """Go on, in the parent and in the child."""

    def close(self, timeout: float | None = ...) -> None:
        """The process ends."""


_living: WeakSet[Living] = WeakSet()
_lock = threading.RLock()
"""Reentrant: a signal's handler may close a client while another one begins."""
_held: list[Living] = []
"""Those that a fork in progress has told to hold still."""


def follow(living: Living) -> None:
    """From now on it is told."""
    with _lock:
        _living.add(living)
    _close_with_multiprocessing()


def leave(living: Living) -> None:
    """It need not be told any more."""
    with _lock:
        _living.discard(living)


def _before_fork() -> None:
    _lock.acquire()
    _held.extend(_living)
    for living in _held:
        living.before_fork()


def _after_fork(*, child: bool) -> None:
    for living in _held:
        living.after_fork(child=child)
    _held.clear()
    _lock.release()
    if child and "multiprocessing.util" in sys.modules:
        # A worker of multiprocessing drops all finalizers when it begins, and then calls these.
        from multiprocessing.util import register_after_fork

        register_after_fork(_forked, lambda _: _close_with_multiprocessing())


class _Forked:
    """multiprocessing keeps what is registered for as long as this lives."""


_forked = _Forked()


def _close_with_multiprocessing() -> None:
    """Workers of multiprocessing end without running what `atexit` holds."""
    if "multiprocessing.util" in sys.modules:
        from multiprocessing.util import Finalize

        Finalize(None, _close_all, exitpriority=0)


def _close_all() -> None:
    with _lock:
        open_ones = list(_living)
    for living in open_ones:
        living.close(_EXIT_SECONDS)


atexit.register(_close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=lambda: _after_fork(child=False),
        after_in_child=lambda: _after_fork(child=True),
    )

"""What holds for every client of a process: the environment's switches, forks and the end."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from collections.abc import Mapping
from typing import Protocol
from weakref import WeakSet

SWITCHES = ("DO_NOT_TRACK", "DENIABLE_DISABLED")
"""Variables of the environment that stop every client."""

_EXIT_SECONDS = 1.0


class Living(Protocol):
    """An object that is notified of forks and of the end of the process."""

    def before_fork(self) -> None:
        """No thread may use the state from now until `after_fork`."""

    def after_fork(self, *, child: bool) -> None:
        """Continue, in the parent and in the child."""

    def close(self, timeout: float | None = ...) -> None:
        """The process ends."""


_living: WeakSet[Living] = WeakSet()
_lock = threading.RLock()
"""Reentrant: a signal handler may close a client while another one starts."""
_held: list[Living] = []
"""The objects whose `before_fork` was called for a fork in progress."""


def follow(living: Living) -> None:
    """Notify the object from now on."""
    with _lock:
        _living.add(living)
    _close_with_multiprocessing()


def leave(living: Living) -> None:
    """Do not notify the object any more."""
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
        # A multiprocessing worker drops all finalizers when it starts, and then calls these.
        from multiprocessing.util import register_after_fork

        register_after_fork(_forked, lambda _: _close_with_multiprocessing())


class _Forked:
    """multiprocessing keeps a registered callback for as long as this object lives."""


_forked = _Forked()


def _close_with_multiprocessing() -> None:
    """multiprocessing workers end without running `atexit` handlers."""
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


def is_set(name: str, environ: Mapping[str, str]) -> bool:
    """Whether a switch of the environment is on."""
    return environ.get(name, "").strip().lower() not in ("", "0", "false", "no")

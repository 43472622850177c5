"""The background thread: it runs a step when work arrives, is due, or is asked for.

It starts with the first work, never before, so that a process can fork safely until then. A
forked child starts its own thread.

Also what holds for every client of a process: the environment's switches, forks and the end.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar
from weakref import WeakSet, ref

_Owner = TypeVar("_Owner")


class _StepRequest:
    """A caller that waits for a step."""

    def __init__(self, urgent: bool) -> None:
        self.urgent = urgent
        self.done = threading.Event()
        self.result = False


class Worker(Generic[_Owner]):
    """Runs `step(owner, urgent)` in a daemon thread, and again after `idle(owner)` seconds at the
    latest.

    After work arrives, the thread waits `linger` seconds for more, so that one step handles all
    of it. The thread keeps the owner alive during a step, but not while it waits; it ends when
    the owner is collected. `finish` runs when the thread ends: for this reason, because it is
    stopped, or because `step` raises.
    """

    def __init__(
        self,
        owner: _Owner,
        step: Callable[[_Owner, bool], bool],
        idle: Callable[[_Owner], float],
        finish: Callable[[], None],
        linger: float,
    ) -> None:
        self._owner = ref(owner)
        self._step = step
        self._idle = idle
        self._finish = finish
        self._linger = linger
        self.reset()

    def reset(self) -> None:
        """Start again without a thread, as in a forked child."""
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._requests: deque[_StepRequest] = deque()
        self._stopping = False
        # A step follows every token that is taken out. A token says whether that step must not
        # wait for more work. A SimpleQueue's put() may interrupt itself (in a signal handler); an
        # Event would deadlock there.
        self._tokens: SimpleQueue[bool] = SimpleQueue()

    @property
    def started(self) -> bool:
        """Whether the thread was ever needed."""
        return self._thread is not None

    def wake(self) -> None:
        """There is work: run a step soon. Does not block."""
        if self._tokens.empty():  # the step after a token that waits does this work as well
            self._tokens.put(False)
        if self._thread is None:
            self._start()

    def run(self, timeout: float | None, *, urgent: bool = True) -> bool:
        """Run a step now and wait for its result; False if it takes too long."""
        request = _StepRequest(urgent)
        self._requests.append(request)
        self._tokens.put(True)
        self._start()
        if self._thread is None or self._stopping:
            return False
        return request.done.wait(timeout) and request.result

    def stop(self, timeout: float | None) -> None:
        """End the thread after its current step; wait for that at most `timeout` seconds."""
        self._stopping = True
        self._tokens.put(True)
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout)

    def _start(self) -> None:
        if not self._starting.acquire(blocking=False):
            return  # another thread starts it, or the interrupted call does
        try:
            if self._thread is None and not self._stopping:
                thread = threading.Thread(target=self._run, name="deniable", daemon=True)
                self._thread = thread
                try:
                    thread.start()
                except RuntimeError:  # the interpreter is shutting down
                    self._thread = None
        finally:
            self._starting.release()

    def _run(self) -> None:
        try:
            # What an earlier run left is handled before the first wait.
            idle = 0.0
            while not self._stopping:
                with suppress(Empty):
                    urgent = self._tokens.get(timeout=idle)
                    gathered = time.monotonic() + self._linger
                    while not urgent and (left := gathered - time.monotonic()) > 0:
                        urgent = self._tokens.get(timeout=left)
                found = self._take_step()
                if found is None:
                    break
                idle = found
        finally:
            # If a step has raised, the next work starts another thread.
            self._thread = None
            while self._requests:
                self._requests.popleft().done.set()
            self._finish()

    def _take_step(self) -> float | None:
        """One step; the seconds until the next, or None if the owner is gone."""
        owner = self._owner()
        if owner is None:
            return None
        requests = [self._requests.popleft() for _ in range(len(self._requests))]
        try:
            result = self._step(owner, any(request.urgent for request in requests))
            for request in requests:
                request.result = result
        finally:
            for request in requests:
                request.done.set()
        return self._idle(owner)


SWITCHES = ("DO_NOT_TRACK", "DENIABLE_DISABLED")
"""Variables of the environment that stop every client."""

_EXIT_SECONDS = 1.0

_living: WeakSet[Any] = WeakSet()
_living_lock = threading.RLock()
"""Reentrant: a signal handler may close a client while another one starts."""
_held: list[Any] = []
"""Those whose `before_fork` was called for a fork in progress."""


def follow(living: Any) -> None:
    """Notify a client of forks, by `before_fork` and `after_fork`, and of the end of the process,
    by `close`."""
    with _living_lock:
        _living.add(living)
    _close_with_multiprocessing()


def leave(living: Any) -> None:
    """Do not notify it any more."""
    with _living_lock:
        _living.discard(living)


def _before_fork() -> None:
    _living_lock.acquire()
    _held.extend(_living)
    for living in _held:
        living.before_fork()


def _after_fork(*, child: bool) -> None:
    for living in _held:
        living.after_fork(child=child)
    _held.clear()
    _living_lock.release()
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
    with _living_lock:
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

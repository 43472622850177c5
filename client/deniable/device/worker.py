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
from collections.abc import Callable, Mapping
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, TypeAlias
from weakref import WeakMethod, WeakSet

_Request: TypeAlias = tuple[bool, SimpleQueue[bool]]


class Worker:
    """Runs `step(urgent)`, a method, in a daemon thread. A step returns whether nothing is left to
    do, and in how many seconds the next one follows at the latest.

    After work arrives, the thread waits `linger` seconds for more, so that one step handles all
    of it. The thread keeps the method's owner alive during a step, but not while it waits; it ends
    when the owner is collected. `finish` runs when the thread ends: for this reason, because it is
    stopped, or because `step` raises. Without `threaded`, whoever asks for a step runs it, and
    nobody else does.
    """

    def __init__(
        self,
        step: Callable[[bool], tuple[bool, float]],
        finish: Callable[[], None],
        linger: float,
        *,
        threaded: bool = True,
    ) -> None:
        self._step = WeakMethod(step)
        self._finish = finish
        self._linger = linger
        self._threaded = threaded
        self.reset()

    def reset(self) -> None:
        """Start again without a thread, as in a forked child."""
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._stopping = False
        # A step follows each that is taken out. None: there is work, and more may come. Else
        # somebody waits for a step: whether it is urgent, and where its result goes. A
        # SimpleQueue's put() may interrupt itself (in a signal handler); an Event would deadlock
        # there.
        self._asked: SimpleQueue[_Request | None] = SimpleQueue()

    @property
    def started(self) -> bool:
        """Whether the thread was ever needed, or there is none."""
        return self._thread is not None or not self._threaded

    def wake(self) -> None:
        """There is work: run a step soon. Does not block."""
        if not self._threaded:
            return
        if self._asked.empty():  # the step after one that waits does this work as well
            self._asked.put(None)
        if self._thread is None:
            self._start()

    def run(self, deadline: float | None, *, urgent: bool = True) -> bool:
        """Run a step now and return its result; False if that takes until a `time.monotonic`."""
        if not self._threaded:
            step = self._step()
            return step is not None and step(urgent)[0]
        result: SimpleQueue[bool] = SimpleQueue()
        self._asked.put((urgent, result))
        self._start()
        if self._thread is None or self._stopping:
            return False
        try:
            return result.get(timeout=_left(deadline))
        except Empty:
            return False

    def stop(self, deadline: float | None) -> None:
        """End the thread after its current step; wait for that until a `time.monotonic`."""
        self._stopping = True
        self._asked.put((False, SimpleQueue()))
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(_left(deadline))

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
                request = None
                with suppress(Empty):
                    request = self._asked.get(timeout=idle)
                    gathered = time.monotonic() + self._linger
                    while request is None and (left := gathered - time.monotonic()) > 0:
                        request = self._asked.get(timeout=left)
                step, done = self._step(), False
                if step is None:
                    break
                try:
                    done, idle = step(request is not None and request[0])
                finally:
                    if request is not None:
                        request[1].put(done)
                del step  # its owner
        finally:
            # If a step has raised, the next work starts another thread.
            self._thread = None
            with suppress(Empty):
                while True:
                    if request := self._asked.get_nowait():
                        request[1].put(False)
            self._finish()


def _left(deadline: float | None) -> float | None:
    return None if deadline is None else max(0.0, deadline - time.monotonic())


_EXIT_SECONDS = 1.0

_living: WeakSet[Any] = WeakSet()
_living_lock = threading.RLock()
"""Reentrant: a signal handler may close a client while another one starts."""
_held: list[Any] = []
"""Those that were paused for a fork in progress."""


def follow(living: Any) -> None:
    """Notify a client of forks, by `pause_writing`, `before_fork` and `after_fork`, and of the end
    of the process, by `close`."""
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
        living.pause_writing()
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

        register_after_fork(_living, lambda _: _close_with_multiprocessing())


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


def switches(environ: Mapping[str, str]) -> list[str]:
    """The variables of the environment that are set and stop every client."""
    known = ("DO_NOT_TRACK", "DENIABLE_DISABLED")
    off = ("", "0", "false", "no")
    return [name for name in known if environ.get(name, "").strip().lower() not in off]

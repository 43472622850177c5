"""The background thread: it runs a step when work arrives, is due, or is asked for.

It starts with the first work, never before, so that a process can fork safely until then. A
forked child starts its own thread.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Generic, TypeVar
from weakref import ref

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

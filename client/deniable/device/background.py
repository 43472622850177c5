"""What a client does between the calls of an app: it writes records to the disk, sends reports, and
deletes what was taken back.

Every trouble on the way is kept from the app (`deniable.device.diagnostics`).
"""

from __future__ import annotations

import math
import os
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, TypeAlias

from deniable.device.worker import Worker, follow, leave, switches

if TYPE_CHECKING:
    from deniable.device.device import Device
    from deniable.device.diagnostics import Diagnostics
    from deniable.device.open_windows import Record

Status: TypeAlias = Literal["on", "no_consent", "disabled", "failed", "closed"]

_LINGER = 0.2
_SHORTEST_IDLE = 1.0
_RETRY_DISK = 60.0
_LONGEST_IDLE = 600.0
_DAY = 86_400.0


class Background:
    """The work of one client, in two threads or in the thread that calls it.

    Args:
        device: what carries out each step.
        troubles: counts what goes wrong.
        consent: whether the person has agreed.
        threads: if False, nothing happens but in calls.
        owns_state: whether the device's state is used by nobody else, so that it is written and
            closed when the client is collected.
    """

    def __init__(
        self,
        device: Device,
        troubles: Diagnostics,
        *,
        consent: bool,
        threads: bool,
        owns_state: bool,
    ) -> None:
        # Most programs that import Client do not need these yet.
        from deniable.device.state import Lock

        self._device = device
        self._state = device.state
        self._troubles = troubles
        self._consent = consent
        self._disabled = bool(switches(os.environ))
        self._switched_off = self._state.switched_off
        self._closing = self._closed = False
        self._records: deque[Record] = deque()
        # Held from taking records out of the queue until they are written.
        self._writing = Lock()
        self._deletion: Callable[[], None] | None = None
        """The deletion that the owner has asked for and that is not on the disk yet."""
        # Two threads, so that a slow collector does not delay writing values to the disk.
        finish = self._state.close
        self._writer = Worker(self._write_step, finish, _LINGER, threaded=threads)
        self._sender = Worker(self._send_step, finish, 0.0, threaded=threads)
        self._owns_state = owns_state

    def _begin(self) -> None:
        """Delete what an earlier run has left without consent, or let the writer begin with it."""
        follow(self)
        if self.status in ("disabled", "no_consent"):
            self._delete(self._state.withdraw)
        self._resume()

    @property
    def status(self) -> Status:
        """Whether records are kept, and if not, why. "failed": the state cannot be trusted.
        "no_consent": the app's consent is missing, or the owner of the device has switched
        reporting off with `deniable sent --switch-off`, or a deletion could not be written to
        the disk yet."""
        if self._closed:
            return "closed"
        if self._disabled:
            return "disabled"
        if self._state.failure is not None:
            return "failed"
        agreed = self._consent and not self._switched_off and self._deletion is None
        return "on" if agreed else "no_consent"

    def _work(self, deadline: float | None, *, urgent: bool) -> bool:
        """Write, then send, until a `time.monotonic`. Returns whether nothing is left."""
        return self._writer.run(deadline, urgent=urgent) and self._sender.run(
            deadline, urgent=urgent
        )

    def close(self, timeout: float | None = 2.0) -> None:
        """Write all records, send what is due, and stop. May be called twice.

        A finished report that is not due yet waits for the app's next run, because sending it
        now would reveal when the app ended. `flush` sends it now. Reports that are answered at
        once are sent now in any case, because a tool may run only once.
        """
        if self._closed:
            return
        self._closing = True
        deadline = time.monotonic() + (_LONGEST_IDLE if timeout is None else timeout)
        self._state.until = deadline
        try:
            if not self._disabled and self._writer.started:
                self._work(deadline, urgent=False)
            self._end(deadline)
        finally:
            self._state.until = None  # others may use it
        leave(self)

    def _end(self, deadline: float) -> None:
        """Write what the threads did not come to, and stop them until a `time.monotonic`."""
        if self._records or self._deletion is not None:
            self._write()
        self._closed = True
        for worker in (self._writer, self._sender):
            worker.stop(deadline)
        self._state.close()

    def pause_writing(self) -> None:
        """Called by `deniable.device.worker` before a fork, for all clients before any state is
        taken: the writer of one waits for a state that it shares with another."""
        self._writing.lock.acquire()

    def before_fork(self) -> None:
        """Called by `deniable.device.worker` before a fork: use no state until `after_fork`."""
        self._state.before_fork()

    def after_fork(self, *, child: bool) -> None:
        """Called by `deniable.device.worker` after a fork, in the parent and in the child."""
        if child:
            # The parent still has these records and will write them.
            self._records.clear()
            self._writer.reset()
            self._sender.reset()
        self._state.after_fork(child=child)
        self._writing.lock.release()

    def __del__(self) -> None:
        # A client without references, for example after a notebook cell ran again, writes its
        # records and ends its threads. A State that was passed in may be in use elsewhere.
        if getattr(self, "_owns_state", False) and not self._closed:
            self._end(0.0)

    def _write_step(self, urgent: bool) -> tuple[bool, float]:
        """Write everything to the disk. Returns whether that succeeded, and when to do it again:
        at the latest when windows end, which they all do at midnight (UTC)."""
        done = self._write()
        if self._records or self._deletion is not None:  # the disk did not work
            return done, _RETRY_DISK
        return done, _idle(-self._device.clock() % _DAY)

    def _send_step(self, urgent: bool) -> tuple[bool, float]:
        """Send the reports that are due, or all finished ones. Returns whether none is left, and
        when the next one is due."""
        if not self._may_send() or not self._state.exists():
            return self.status != "failed", _LONGEST_IDLE
        while self._may_send():
            batch = self._troubles.guard(self._device.take, urgent=urgent, ending=self._closing)
            if batch is None or not self._may_send():  # to take it may have waited for the switch
                break
            refused = self._troubles.guard(self._device.deliver, batch)
            if refused is None:  # it waits
                break
            for each in refused:
                self._troubles.note(each)
        due = self._troubles.guard(self._device.seconds_to_send)
        if due is None or self._device.transport is None:
            return due == math.inf, _LONGEST_IDLE
        return due == math.inf, _idle(due)

    def _may_send(self) -> bool:
        """Whether a report may be sent now. The owner may have switched off since the last
        write."""
        if self._state.switched_off:
            self._writer.wake()  # which deletes what waits
            return False
        return self.status == "on"

    def _delete(self, deletion: Callable[[], None]) -> None:
        """Delete what was recorded, in memory and on the disk; what fails is left to the writer."""
        self._deletion = deletion
        self._troubles.guard(self._carry_out)
        self._resume()

    def _carry_out(self) -> None:
        """Do the deletion that is pending, if any. In a state that cannot be trusted nothing is
        deleted."""
        with self._writing.held(self._state.patience):
            deletion = self._deletion
            if deletion is not None:
                self._records.clear()
                if self._state.exists():
                    deletion()
                if self._deletion is deletion:  # not another one that was asked for meanwhile
                    self._deletion = None

    def _write(self) -> bool:
        """Bring to the disk what is in memory. Returns whether that succeeded."""
        return self._troubles.guard(self._write_all) is True

    def _write_all(self) -> bool:
        """Carry out a deletion that is pending; then write the records, and seal the windows that
        have ended. If the disk does not work, nothing is kept or sent until the deletion has
        succeeded."""
        before, self._switched_off = self._switched_off, self._state.switched_off
        if self._switched_off and not before:  # also what another process wrote in between
            self._deletion = self._deletion or self._state.withdraw
        self._carry_out()
        with self._writing.held(self._state.patience):
            if self.status != "on" or not (self._records or self._state.exists()):
                return self._deletion is None and self.status != "failed"
            records = [self._records.popleft() for _ in range(len(self._records))]
            try:
                dropped, waiting = self._device.write(records)
            except BaseException:
                # The disk may work again later. If the state has failed, they are not kept.
                self._records.extendleft(reversed(records))
                raise
        if dropped:
            self._troubles.counters["dropped"] += dropped
        if waiting:
            self._sender.wake()
        return True

    def _resume(self) -> None:
        """Let the writer begin with what is left: by an earlier run, or by a deletion that has
        failed."""
        left = self._deletion is not None and self._state.failure is None
        if left or (self.status == "on" and self._state.exists()):
            self._writer.wake()


def _idle(seconds: float) -> float:
    """How long to wait for something that is due: clocks are set, machines sleep, and other
    processes share the state."""
    return min(_LONGEST_IDLE, max(_SHORTEST_IDLE, seconds))

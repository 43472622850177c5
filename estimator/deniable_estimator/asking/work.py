"""The processes that do long calculations, so that the server's threads stay free to answer.

Python runs one thread at a time: a long calculation in the server's own process would hold up
every other answer. Each worker process has a bounded memory, a bounded time for each task, and is
replaced after some tasks, or when it dies; the others do not notice. All of them end with the
server, however it ends.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import queue
import resource
import signal
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import TypeVar

from deniable import DeniableError
from deniable_estimator.messages import message

_T = TypeVar("_T")

_TASKS = 50
"""Tasks after which a process is replaced: what it has not given back by then is given back."""
_NICE = 5
"""So much lower is their priority than the server's, which has little to do and should do it at
once."""


class TooHeavy(DeniableError):
    """A calculation needed more memory or time than one may have."""

    def __init__(self, memory: int, seconds: int) -> None:
        super().__init__(
            message(
                "This calculation needs more than the {memory:,} MiB of memory or the {seconds:,} "
                "s that one may have. Ask for fewer values, strings or days, or raise "
                "DENIABLE_DASHBOARD_MEMORY or DENIABLE_DASHBOARD_SECONDS.",
                memory=memory >> 20,
                seconds=seconds,
            )
        )


class WorkersClosed(DeniableError):
    """The server is being stopped: ask again after `retry_after` seconds."""

    retry_after = 10

    def __init__(self) -> None:
        super().__init__(message("The dashboard is being stopped. Ask again in a moment."))


class Workers:
    """`count` processes, each with `memory` bytes and `seconds` of CPU time for one task.
    `preloaded` is the module that they need most: it is imported once and shared by all of them.

    The processes are started when they are first needed: so they belong to the process that
    uses them, even if it was forked after this was made.
    """

    def __init__(self, count: int, memory: int, seconds: int, preloaded: str = __name__) -> None:
        self.memory = memory
        self.seconds = seconds
        self._preloaded = preloaded
        self._lock = threading.Lock()
        self._closed = False
        self._slots = [_Slot() for _ in range(count)]
        # The one that was used last comes first, so that a single reader starts one process.
        self._free: queue.LifoQueue[_Slot] = queue.LifoQueue()
        for slot in self._slots:
            self._free.put(slot)

    def run(self, function: Callable[..., _T], *arguments: object) -> _T:
        """What the function returns, in another process; waits for one that is free. The function
        and what it takes and returns are pickled.

        Raises:
            TooHeavy: it needed more memory or time than a task may have.
            WorkersClosed: the processes are being ended.
        """
        slot = self._free.get()
        try:
            sent = pickle.dumps((function, arguments))
            if slot.process is not None and not slot.process.is_alive():
                # It has died since its last task: that is not this one's fault.
                self._end(slot)
            if slot.process is None:
                self._start(slot)
            slot.tasks += 1
            try:
                slot.connection.send_bytes(sent)
                failed, told = slot.connection.recv()
            except (EOFError, OSError):
                self._end(slot)
                raise (
                    WorkersClosed() if self._closed else TooHeavy(self.memory, self.seconds)
                ) from None
            if slot.tasks >= _TASKS:
                self._end(slot)
            # Only what this program itself has sent through its own pipe.
            found = pickle.loads(told)  # noqa: S301
            if failed:
                error, texts, members = found
                raised: Exception = error.__new__(error, *texts)
                raised.args = texts
                vars(raised).update(members)
                raise raised
            result: _T = found
            return result
        finally:
            self._free.put(slot)

    def close(self) -> None:
        """End the processes, also those that calculate: whoever waits is given `WorkersClosed`."""
        with self._lock:
            self._closed = True
            for slot in self._slots:
                if slot.process is not None:
                    slot.process.kill()
        for slot in [self._free.get() for _ in self._slots]:
            self._end(slot)
            self._free.put(slot)

    def _start(self, slot: _Slot) -> None:
        # Not a plain fork: a thread of this process may hold a lock that the child would need.
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload([self._preloaded])
        with self._lock:
            if self._closed:
                raise WorkersClosed
            slot.connection, theirs = context.Pipe()
            # Only the process itself may hold the other end: so it is closed when the process dies,
            # in the middle of a result too, and whoever waits for that is told.
            with theirs:
                process = context.Process(target=_work, args=(theirs, self.memory, self.seconds))
                process.daemon = True
                process.start()
            # One that could not be started is none.
            slot.process = process

    def _end(self, slot: _Slot) -> None:
        with self._lock:
            if slot.process is not None:
                slot.process.kill()
                slot.process.join()
                slot.connection.close()
            slot.process, slot.tasks = None, 0


class _Slot:
    """The place of one process: where it dies, no other is harmed."""

    process: BaseProcess | None = None
    connection: Connection
    tasks = 0


def _work(connection: Connection, memory: int, seconds: int) -> None:
    """What a worker process does, task by task."""
    # Ctrl-C in a terminal reaches it too; it ends when the server does.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    # A sandbox may forbid these calls (systemd's @resources), and macOS does not keep RLIMIT_AS.
    with suppress(OSError):
        os.nice(_NICE)
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_AS, memory)
    tasks: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(connection, tasks), daemon=True).start()
    while True:
        connection.send(_task(seconds, tasks.get()))


def _limit(what: int, most: int) -> None:
    """Let this process have no more of something than that, as far as the system lets us say so."""
    _, hard = resource.getrlimit(what)
    with suppress(ValueError, OSError):
        resource.setrlimit(
            what, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard)
        )


def _listen(connection: Connection, tasks: queue.SimpleQueue[bytes]) -> None:
    """Take tasks, also while one is calculated: so this process ends in the middle of it when the
    server closes the connection, or dies, of which the connection tells too."""
    try:
        while True:
            tasks.put(connection.recv_bytes())
    finally:
        os._exit(0)


def _task(seconds: int, sent: bytes) -> tuple[bool, bytes]:
    """One task: whether it failed, and what to raise then, or its result."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    spent = used.ru_utime + used.ru_stime
    # What takes longer is ended by the system (SIGXCPU).
    _limit(resource.RLIMIT_CPU, int(spent) + seconds + 1)
    try:
        function, arguments = pickle.loads(sent)  # noqa: S301
        return False, pickle.dumps(function(*arguments))
    except MemoryError:
        # What it has taken is given back with the process.
        os._exit(1)
    except Exception as error:
        if not isinstance(error, DeniableError):
            error.add_note(traceback.format_exc())
        # Not every error can be pickled as it is: some take other arguments than they keep.
        return True, pickle.dumps((type(error), error.args, vars(error)))

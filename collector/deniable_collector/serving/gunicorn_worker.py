"""gunicorn's worker for our servers: their event loop, its heartbeat, and its end; and gunicorn's
log."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
from collections.abc import Callable
from typing import Any

from gunicorn.glogging import Logger  # type: ignore[import-untyped]
from gunicorn.workers.base import Worker  # type: ignore[import-untyped]

from deniable_collector.operation.events import listen, tell_unexpected
from deniable_collector.serving.connection import serve
from deniable_collector.serving.gunicorn import ENDING, release
from deniable_collector.serving.http import HttpHandler
from deniable_collector.settings import Settings

_YOUNG = 20_000
"""How many objects must be allocated (minus those freed) before the garbage collector runs."""


def collect_seldom() -> None:
    """Never scan again what there is now, and scan what is new after more of it: the objects of a
    server live for ever, and requests leave hardly any cycles. Call it once in each process of a
    server, when all that stays has been made."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG, 10, 10)


_HEARTBEAT_SECONDS = 1.0
_SWITCH_SECONDS = 0.001
"""How long a thread may calculate while another one waits."""


def new_event_loop() -> asyncio.AbstractEventLoop:
    """uvloop's where it is installed, which the extra `collector` does."""
    try:
        from uvloop import new_event_loop as make
    except ImportError:
        return asyncio.new_event_loop()
    made: Callable[[], asyncio.AbstractEventLoop] = make
    return made()


class HttpWorker(Worker):  # type: ignore[misc]  # gunicorn brings no types
    """Serves the handler that the app is; `handler` says otherwise."""

    _ended: asyncio.Event | None = None
    """Set at the end; None before there is an event loop."""

    def handler(self) -> HttpHandler:
        """What answers requests. The app has been loaded."""
        made: HttpHandler = self.wsgi
        return made

    def run(self) -> None:
        """Serve until a signal."""
        # A mistake before the first request ends gunicorn; else it would try again for ever.
        self.booted = False
        collect_seldom()
        # While another thread holds the interpreter's lock, the event loop would wait 5 ms each
        # time that it wants it back, many times for one request.
        sys.setswitchinterval(_SWITCH_SECONDS)
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            runner.run(self._serve())

    def init_signals(self) -> None:
        """Listen to signals; those that came since the fork have waited."""
        super().init_signals()
        release()

    def handle_exit(self, sig: Any, frame: Any) -> None:
        """Called for each signal that ends the worker, at first by Python and then on the loop."""
        super().handle_exit(sig, frame)
        if self._ended is not None:
            self._ended.set()

    async def _serve(self) -> None:
        loop = asyncio.get_running_loop()
        ended = self._ended = asyncio.Event()
        for number in ENDING:
            loop.add_signal_handler(number, self.handle_exit, number, None)
        loop.set_exception_handler(_tell)
        sockets = [each.sock for each in self.sockets]
        grace, backlog = self.cfg.graceful_timeout, self.cfg.backlog
        await serve(self.handler(), sockets, self._live(ended), grace, backlog)

    async def _live(self, ended: asyncio.Event) -> None:
        """Tell the master that this worker lives, until it is to end."""
        self.booted = True
        # If the master was killed, nobody supervises this worker any more, and it would keep the
        # port from the next master.
        while self.alive and os.getppid() == self.ppid:
            self.notify()
            try:
                await asyncio.wait_for(ended.wait(), _HEARTBEAT_SECONDS)
            except TimeoutError:
                continue


def _tell(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log what no callback has caught: its type and place, as its text may be of a client."""
    error = context.get("exception")
    tell_unexpected(error if isinstance(error, Exception) else RuntimeError("event loop"))


class EventLogger(Logger):  # type: ignore[misc]  # gunicorn brings no types
    """gunicorn's log, which is about processes. What it would say of requests is said by its own
    workers, which are not ours."""

    def setup(self, cfg: Any) -> None:
        """One handler for its lines and for ours."""
        super().setup(cfg)
        self.error_log.handlers = [listen(Settings.from_env().log_format)]

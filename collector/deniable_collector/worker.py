"""The gunicorn workers: uvicorn's event loop, without what it would log or believe of clients; and
gunicorn's own threads, which refuse what the event loop refuses, in the same words."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from typing import Any, ClassVar

from gunicorn import util  # type: ignore[import-untyped]
from gunicorn.http.errors import (  # type: ignore[import-untyped]
    LimitRequestHeaders,
    LimitRequestLine,
    ParseException,
)
from gunicorn.workers.gthread import (  # type: ignore[import-untyped]
    ThreadWorker as GunicornThreads,
)
from uvicorn_worker import UvicornWorker  # type: ignore[import-untyped]

from deniable_collector.connection import Connection
from deniable_collector.garbage import collect_seldom
from deniable_collector.serving.framing import check_framing
from deniable_collector.serving.problems import problem_of
from deniable_collector.serving.refusals import header_too_large, not_http
from deniable_collector.serving.responses import wire

__all__ = ["EventLoopWorker", "ThreadWorker"]

_SWITCH_SECONDS = 0.001
"""How long a thread may calculate while another one waits."""


class EventLoopWorker(UvicornWorker):  # type: ignore[misc]  # it brings no types
    """uvloop and httptools, no access log, and no forwarded headers, which the app handles."""

    CONFIG_KWARGS: ClassVar[dict[str, Any]] = {
        "loop": "uvloop",
        "http": Connection,
        "ws": "none",
        "lifespan": "on",
        "access_log": False,
        "proxy_headers": False,
        "server_header": False,
        # Seconds between heartbeats to the master, and between checks that it is alive.
        "timeout_notify": 1,
    }

    def run(self) -> None:
        collect_seldom()
        # A large body is read in a thread. While it holds the interpreter's lock, commits and the
        # event loop would wait 5 ms each time that they want it back, many times for one batch.
        sys.setswitchinterval(_SWITCH_SECONDS)
        super().run()

    async def callback_notify(self) -> None:
        await super().callback_notify()
        if os.getppid() != self.ppid:
            # The master was killed. Nobody supervises this worker any more, and it would keep
            # the port from the next master.
            os.kill(os.getpid(), signal.SIGTERM)


class ThreadWorker(GunicornThreads):  # type: ignore[misc]  # it brings no types
    """gunicorn's threads, for `wsgi:app`."""

    def handle_request(self, req: Any, conn: Any) -> Any:
        headers = [(name.lower().encode("latin-1"), text.encode("latin-1", "replace"))
                   for name, text in req.headers]  # fmt: skip
        check_framing(".".join(map(str, req.version)), headers)
        return super().handle_request(req, conn)

    def handle_error(self, req: Any, client: Any, addr: Any, exc: Exception) -> None:
        # gunicorn's own page repeats what was sent, and its log names who sent it.
        if isinstance(exc, LimitRequestHeaders | LimitRequestLine):
            exc = header_too_large(self.cfg.limit_request_fields, self.cfg.limit_request_line)
        elif isinstance(exc, ParseException):
            exc = not_http()
        with suppress(OSError):
            util.write_nonblock(client, wire(problem_of(exc), keep_alive=False))

"""The gunicorn worker: uvicorn's event loop, without what it would log or believe of clients."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any, ClassVar

from uvicorn_worker import UvicornWorker  # type: ignore[import-untyped]

from deniable_collector.connection import Connection
from deniable_collector.garbage import collect_seldom

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

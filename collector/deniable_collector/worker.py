"""The gunicorn worker: uvicorn's event loop, without what it would log or believe of clients."""

from __future__ import annotations

import gc
import os
import signal
from typing import Any, ClassVar

from uvicorn_worker import UvicornWorker  # type: ignore[import-untyped]

from deniable_collector.connection import Connection

__all__ = ["EventLoopWorker"]

_YOUNG = 20_000
"""How many objects must be allocated (minus those freed) before the garbage collector runs."""


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
        # The app's objects live for ever, and requests leave hardly any cycles, so the garbage
        # collector need not scan them often.
        gc.collect()
        gc.freeze()
        gc.set_threshold(_YOUNG, 10, 10)
        super().run()

    async def callback_notify(self) -> None:
        await super().callback_notify()
        if os.getppid() != self.ppid:
            # The master was killed. Nobody supervises this worker any more, and it would keep
            # the port from the next master.
            os.kill(os.getpid(), signal.SIGTERM)

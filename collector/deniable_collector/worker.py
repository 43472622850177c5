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
"""New objects, beyond those that went, after which garbage is looked for among them."""


class EventLoopWorker(UvicornWorker):  # type: ignore[misc]  # it brings no types
    """uvloop and httptools, no access log, and no forwarded headers: the app has its own rule."""

    CONFIG_KWARGS: ClassVar[dict[str, Any]] = {
        "loop": "uvloop",
        "http": Connection,
        "ws": "none",
        "lifespan": "on",
        "access_log": False,
        "proxy_headers": False,
        "server_header": False,
        # Seconds between two signs of life to the master, and looks for one from it.
        "timeout_notify": 1,
    }

    def run(self) -> None:
        # What the app is made of stays for ever, and requests leave hardly any cycles: both
        # need not be looked at again and again.
        gc.collect()
        gc.freeze()
        gc.set_threshold(_YOUNG, 10, 10)
        super().run()

    async def callback_notify(self) -> None:
        await super().callback_notify()
        if os.getppid() != self.ppid:
            # The master was killed. Nobody watches this worker any more, and it would keep
            # the port from the master's successor.
            os.kill(os.getpid(), signal.SIGTERM)

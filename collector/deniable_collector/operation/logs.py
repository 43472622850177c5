"""gunicorn's log, without what it would say about clients, in the form of all events."""

from __future__ import annotations

import sys
from typing import Any

from gunicorn.glogging import Logger  # type: ignore[import-untyped]

from deniable_collector.operation.events import listen
from deniable_collector.settings import Settings


class DiscreetLogger(Logger):  # type: ignore[misc]  # gunicorn brings no types
    """Keeps the lines about processes and drops the parts about requests.

    gunicorn names the address of a client and quotes its header when a request is not
    HTTP, and its path when a worker fails.
    """

    def setup(self, cfg: Any) -> None:
        """One handler for its lines and for ours."""
        super().setup(cfg)
        handler = listen(Settings.from_env().log_format)
        handler._gunicorn = True  # type: ignore[attr-defined]  # so that a second setup drops it
        self.error_log.handlers = [handler]

    def warning(self, msg: str, *args: Any, **kwargs: Any) -> None:
        if msg.startswith("Invalid request from"):
            msg, args = "Invalid request", ()
        super().warning(msg, *args, **kwargs)

    def exception(self, msg: str, *args: Any, **kwargs: Any) -> None:
        if "request" in str(msg):
            kind = sys.exc_info()[0]
            self.error("Error handling a request: %s", kind.__name__ if kind else "unknown")
        else:
            super().exception(msg, *args, **kwargs)

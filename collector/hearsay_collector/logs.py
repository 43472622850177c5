"""gunicorn's log, without what it would say about clients."""

from __future__ import annotations

import sys
from typing import Any

from gunicorn.glogging import Logger  # type: ignore[import-untyped]

__all__ = ["DiscreetLogger"]


class DiscreetLogger(Logger):  # type: ignore[misc]  # gunicorn brings no types
    """Keeps the lines about processes and drops the parts about requests.

    gunicorn names the address of a client and quotes its header when a request is not
    HTTP, and its path when a worker fails.
    """

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

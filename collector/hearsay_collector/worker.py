"""The gunicorn worker: uvicorn's event loop, without what it would log or believe of clients."""

from __future__ import annotations

from typing import Any, ClassVar

from uvicorn_worker import UvicornWorker  # type: ignore[import-untyped]

__all__ = ["EventLoopWorker"]


class EventLoopWorker(UvicornWorker):  # type: ignore[misc]  # it brings no types
    """uvloop and httptools, no access log, and no forwarded headers: the app has its own rule."""

    CONFIG_KWARGS: ClassVar[dict[str, Any]] = {
        "loop": "uvloop",
        "http": "httptools",
        "ws": "none",
        "lifespan": "on",
        "access_log": False,
        "proxy_headers": False,
        "server_header": False,
    }

"""gunicorn's settings, from ours.

gunicorn -c python:hearsay_collector.gunicorn_conf 'hearsay_collector.asgi:app()'
"""

from __future__ import annotations

from typing import Any

from hearsay_collector.logs import DiscreetLogger
from hearsay_collector.settings import Settings

_settings = Settings.from_env()

bind = _settings.bind
workers = _settings.workers
threads = _settings.threads
worker_class = "hearsay_collector.worker.EventLoopWorker"
logger_class = DiscreetLogger
accesslog = None
errorlog = "-"
loglevel = "warning"
keepalive = 15
timeout = 60
graceful_timeout = 30
proc_name = "hearsay-collector"
# A second way in, and a file in the home directory, that nobody here asked for.
control_socket_disable = True


def when_ready(server: Any) -> None:
    """Say where it listens, once it does: with port 0 nobody could know before."""
    places = ", ".join(str(listener) for listener in server.LISTENERS)
    print(f"hearsay collector listening at {places}", flush=True)

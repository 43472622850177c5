"""gunicorn's settings for the dashboard, from ours.

gunicorn -c python:hearsay_estimator.dashboard.gunicorn_conf \
    "hearsay_estimator.dashboard:create_app()"
"""

from __future__ import annotations

from typing import Any

from hearsay_collector.logs import DiscreetLogger
from hearsay_estimator.dashboard.settings import Settings

bind = Settings.from_env().dashboard_bind
# One process: a login link works once, and it alone remembers that.
workers = 1
threads = 8
worker_class = "gthread"
logger_class = DiscreetLogger
accesslog = None
errorlog = "-"
loglevel = "warning"
timeout = 60
graceful_timeout = 5
proc_name = "hearsay-dashboard"
control_socket_disable = True


def when_ready(server: Any) -> None:
    """Say where it listens, once it does: with port 0 nobody could know before."""
    places = ", ".join(str(listener) for listener in server.LISTENERS)
    print(f"hearsay dashboard listening at {places}", flush=True)

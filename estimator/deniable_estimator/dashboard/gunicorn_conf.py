"""gunicorn's settings for the dashboard, from ours.

gunicorn -c python:deniable_estimator.dashboard.gunicorn_conf \
    "deniable_estimator.dashboard:create_app()"
"""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import replace
from typing import Any

from deniable_collector.operation.logs import DiscreetLogger
from deniable_collector.stores import StoreError
from deniable_estimator.dashboard.overview import cards, read_filters
from deniable_estimator.dashboard.settings import Settings
from deniable_estimator.dashboard.snapshot import Snapshot
from deniable_estimator.dashboard.source import Source

bind = Settings.from_env().dashboard_bind
# One process: a login link works once, and it alone remembers that; what is being decoded is
# known to it alone, so that a page that looks again finds its own progress; and there is one
# cache. Numpy and SQLite calculate outside of Python's lock, so threads do run side by side.
workers = 1
threads = 8
worker_class = "gthread"
logger_class = DiscreetLogger
accesslog = None
errorlog = "-"
loglevel = "warning"
timeout = 60
graceful_timeout = 5
proc_name = "deniable-dashboard"
control_socket_disable = True


def when_ready(server: Any) -> None:
    """Print the address once it listens: with port 0 it is not known before."""
    places = ", ".join(str(listener) for listener in server.LISTENERS)
    print(f"deniable dashboard listening at {places}", flush=True)


def post_worker_init(worker: Any) -> None:
    """Compile the templates now, rather than while the first person waits, and look at the windows
    of the overview in the meantime: what has not changed is not looked at again."""
    application = worker.app.wsgi()
    source = application.extensions["deniable_source"]
    threading.Thread(target=_overview, args=(source,), daemon=True).start()
    templates = application.jinja_env
    for name in templates.list_templates():
        templates.get_template(name)


def _overview(source: Source) -> None:
    # A dashboard may be up before its store.
    with suppress(StoreError):
        cards(replace(source, store=Snapshot(source.store)), read_filters({}, source.registry))

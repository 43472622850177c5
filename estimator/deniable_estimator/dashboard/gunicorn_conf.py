"""gunicorn's settings for the dashboard, from ours.

gunicorn -c python:deniable_estimator.dashboard.gunicorn_conf \
    "deniable_estimator.dashboard:create_app()"
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from dataclasses import replace
from typing import Any

from flask import Flask

from deniable_collector.serving.gunicorn import COMMON, open_files
from deniable_collector.serving.gunicorn_worker import HttpWorker
from deniable_collector.serving.http import HttpHandler
from deniable_collector.serving.wsgi import WsgiHandler
from deniable_collector.stores import StoreError
from deniable_estimator.asking.work import WorkersClosed
from deniable_estimator.dashboard.app import body_limits, close_app
from deniable_estimator.dashboard.data import DataSource
from deniable_estimator.dashboard.overview.listing import list_metrics, read_overview
from deniable_estimator.dashboard.privacy_label import sums_label
from deniable_estimator.dashboard.settings import DashboardSettings
from deniable_estimator.files import DATA_FOLDER, DATA_SETTING

_settings = DashboardSettings.from_env()
# `deniable dashboard` names the folder; whoever starts gunicorn without it has the same default.
os.environ[DATA_SETTING] = _settings.data or DATA_FOLDER

bind = _settings.dashboard_bind
# One process: a login link works once, and it alone remembers that; what is being decoded is
# known to it alone, so that a page that looks again finds its own progress; and there is one
# cache. What takes long is calculated by processes of its own (`asking/work.py`). Of the threads
# eight at most wait for them, and four of these long (`asking/results.py`), so that the others
# always answer at once.
workers = 1
_THREADS = 16
_OF_ONE = 4
_HOUR = 3_600.0


class DashboardWorker(HttpWorker):
    """At SIGTERM it also ends the processes that calculate: whoever waits for one is told to ask
    again, rather than cut off after the grace period."""

    def handler(self) -> HttpHandler:
        """Of the app, in threads."""
        limits, rate = body_limits(_settings), _settings.dashboard_rate
        person = _settings.dashboard_user_header
        return WsgiHandler(self.wsgi, _settings, _THREADS, _OF_ONE, limits, rate, person)

    def handle_exit(self, sig: Any, frame: Any) -> None:
        threading.Thread(target=worker_exit, args=(None, self)).start()
        super().handle_exit(sig, frame)


globals().update(COMMON)
worker_class = DashboardWorker
proc_name = "deniable-dashboard"


def on_starting(server: Any) -> None:
    """Raise the limit of open files for the connections; here, because the log is open now."""
    open_files(_settings.max_connections)


def when_ready(server: Any) -> None:
    """Print the address once it listens: with port 0 it is not known before."""
    places = ", ".join(str(listener) for listener in server.LISTENERS)
    print(f"deniable dashboard listening at {places}", flush=True)


def post_worker_init(worker: Any) -> None:
    """Compile the templates now, rather than while the first person waits, and summarize all
    metrics and what their sums reveal in the meantime: what has not changed is not calculated
    again."""
    application = worker.app.wsgi()
    threading.Thread(target=_overview, args=(application,), daemon=True).start()
    templates = application.jinja_env
    for name in templates.list_templates():
        templates.get_template(name)


def _overview(application: Flask) -> None:
    source: DataSource = application.extensions["deniable_source"]
    view = read_overview({}, source.clock())
    # A dashboard may be up before its store, and may end at once.
    with suppress(StoreError, WorkersClosed):
        list_metrics(replace(source, reader=source.reader.renewed()), view, _HOUR, whole=True)
    with suppress(WorkersClosed):
        for metric in source.registry:
            sums_label(source, metric)


def worker_exit(server: Any, worker: Any) -> None:
    """End the processes that calculate: at its exit Python would wait for them."""
    if worker.app.callable is not None:
        close_app(worker.app.callable)

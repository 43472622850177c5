"""The entry point for any WSGI server: `hearsay_collector.wsgi:app`, set by the environment.

gunicorn -c python:hearsay_collector.gunicorn_conf -k gthread hearsay_collector.wsgi:app
"""

from __future__ import annotations

from hearsay_collector.app import create_app
from hearsay_collector.settings import Settings

__all__ = ["app"]

app = create_app(Settings.from_env())

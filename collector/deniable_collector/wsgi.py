r"""The entry point for any WSGI server: `deniable_collector.wsgi:app`, set by the environment.

gunicorn -c python:deniable_collector.gunicorn_conf -k deniable_collector.worker.ThreadWorker \
    deniable_collector.wsgi:app
"""

from __future__ import annotations

import atexit

from deniable_collector.app import JOURNAL, create_app
from deniable_collector.inherited import inherited

__all__ = ["app"]

_held = inherited()
app = create_app(_held.settings, registry=_held.registry, mistakes=_held.mistakes, keys=_held.keys)
app.extensions[JOURNAL].start()
atexit.register(app.extensions[JOURNAL].stop)

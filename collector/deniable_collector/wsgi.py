r"""The entry point for any WSGI server: `deniable_collector.wsgi:app`, set by the environment.

gunicorn -c python:deniable_collector.gunicorn_conf -k deniable_collector.worker.ThreadWorker \
    deniable_collector.wsgi:app
"""

from __future__ import annotations

import atexit

from deniable_collector.app import JOURNAL, SEALER, create_app
from deniable_collector.inherited import inherited

__all__ = ["app"]

_held = inherited()
app = create_app(_held.settings, registry=_held.registry, mistakes=_held.mistakes, keys=_held.keys)
app.extensions[JOURNAL].start()
app.extensions[SEALER].start()
# What is registered last ends first: sealing needs the store, which the journal's keeper closes.
atexit.register(app.extensions[JOURNAL].stop)
atexit.register(app.extensions[SEALER].stop)

"""gunicorn's settings for a collector, from ours.

gunicorn -c python:deniable_collector.gunicorn_conf 'deniable_collector.collector:app()'
"""

from __future__ import annotations

import sys
from typing import Any

from deniable import DeniableError
from deniable_collector import inherited
from deniable_collector.operation.events import tell
from deniable_collector.serving.gunicorn import end_metrics, shared
from deniable_collector.settings import Settings

_settings = Settings.from_env()


def _check() -> None:
    """Read what the workers inherit; with a mistake in it the collector cannot start."""
    try:
        inherited.read()
    except DeniableError as error:
        mistakes = inherited.mistakes_of(error)
        told = f"the collector cannot start: {'; '.join(mistakes)}"
        tell("error", "not-started", told, mistakes=list(mistakes))
        end_metrics()
        sys.exit(1)


globals().update(shared(_settings, "collector", "deniable", _settings.max_connections, _check))


def on_reload(server: Any) -> None:
    """Read what the new workers inherit. A mistake in it does not end the collector."""
    inherited.read_again()

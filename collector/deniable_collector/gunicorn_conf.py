"""gunicorn's settings for a collector, from ours.

gunicorn -c python:deniable_collector.gunicorn_conf 'deniable_collector.collector:app()'
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from deniable import DeniableError
from deniable_collector import inherited
from deniable_collector.operation import metrics_folder
from deniable_collector.operation.events import tell
from deniable_collector.serving.gunicorn import cannot_listen, open_files, shared
from deniable_collector.settings import Settings

_settings = Settings.from_env()
globals().update(shared(_settings, "collector", "deniable"))


def on_starting(server: Any) -> None:
    """Raise the limit of open files for the connections; here, because the log is open now."""
    open_files(_settings.max_connections)
    if problems := cannot_listen(_settings.addresses):
        _leave(problems)
    for told in Settings.strangers():
        tell("warning", "unknown-setting", told)
    try:
        inherited.read()
    except DeniableError as error:
        _leave(inherited.mistakes_of(error))


def _leave(mistakes: Sequence[str]) -> NoReturn:
    told = "; ".join(mistakes)
    tell("error", "not-started", f"the collector cannot start: {told}", mistakes=list(mistakes))
    metrics_folder.end()
    sys.exit(1)


def on_reload(server: Any) -> None:
    """Read what the new workers inherit. A mistake in it does not end the collector."""
    inherited.read_again()

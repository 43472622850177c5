"""gunicorn's settings, from ours.

gunicorn -c python:deniable_collector.gunicorn_conf 'deniable_collector.collector:app()'
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import deniable
from deniable import DeniableError
from deniable_collector import inherited
from deniable_collector.listening import cannot_listen
from deniable_collector.operation import metrics_folder
from deniable_collector.operation.events import announce, tell
from deniable_collector.operation.logs import DiscreetLogger
from deniable_collector.settings import Settings

_settings = Settings.from_env()
if _settings.metrics_bind:
    # Before gunicorn imports the worker, which imports prometheus_client.
    metrics_folder.begin()

bind = [_settings.bind, *([_settings.metrics_bind] if _settings.metrics_bind else [])]
workers = _settings.workers
worker_class = "deniable_collector.serving.worker.HttpWorker"
logger_class = DiscreetLogger
accesslog = None
errorlog = "-"
loglevel = "warning"
timeout = 60
graceful_timeout = 30
proc_name = "deniable-collector"
# gunicorn's control socket would be a second entrance, and a file in the home directory.
control_socket_disable = True


def on_starting(server: Any) -> None:
    """Raise the limit of open files for the connections; here, because the log is open now."""
    # Imported here, because it imports prometheus_client, which needs the folder above.
    from deniable_collector.serving.limits import open_files

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


def when_ready(server: Any) -> None:
    """Print the address once it listens: with port 0 it is not known before."""
    # Not in the log, so that a search for any address in the log finds nothing.
    in_force = {
        name: value for name, value in _settings.in_force().items() if not name.endswith("_BIND")
    }
    listed = " ".join(f"{name}={value}" for name, value in in_force.items())
    version = deniable.__version__
    tell("info", "started", f"deniable {version}: {listed}", version=version, settings=in_force)
    for place, address in zip(("collector", "metrics"), map(str, server.LISTENERS), strict=False):
        announce(
            _settings.log_format,
            "listening",
            f"deniable {place} listening at {address}",
            place=place,
            address=address,
        )


def child_exit(server: Any, worker: Any) -> None:
    """Remove the gauges of a worker that has ended."""
    metrics_folder.end_process(worker.pid)


def on_exit(server: Any) -> None:
    """Remove the folder that the processes shared, and log the end."""
    metrics_folder.end()
    tell("info", "stopped", "the collector has stopped")

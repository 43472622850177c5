"""gunicorn's settings for a relay, from ours.

`deniable relay` runs `deniable_collector.oblivious.relay:app()` with them.
"""

from __future__ import annotations

from typing import Any

import deniable
from deniable_collector.oblivious.relay_settings import RelaySettings
from deniable_collector.operation import metrics_folder
from deniable_collector.operation.events import announce, tell
from deniable_collector.operation.logs import DiscreetLogger

_settings = RelaySettings.from_env()

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
proc_name = "deniable-relay"
control_socket_disable = True


def on_starting(server: Any) -> None:
    """Raise the limit of open files: each capsule may need a connection on both sides."""
    from deniable_collector.serving.limits import open_files

    open_files(2 * _settings.max_connections)
    for told in RelaySettings.strangers():
        tell("warning", "unknown-setting", told)


def when_ready(server: Any) -> None:
    """Print the address once it listens: with port 0 it is not known before."""
    in_force = {
        name: value for name, value in _settings.in_force().items() if not name.endswith("_BIND")
    }
    listed = " ".join(f"{name}={value}" for name, value in in_force.items())
    version = deniable.__version__
    tell(
        "info", "started", f"deniable relay {version}: {listed}", version=version, settings=in_force
    )
    for place, address in zip(("relay", "metrics"), map(str, server.LISTENERS), strict=False):
        told = f"deniable {place} listening at {address}"
        announce(_settings.log_format, "listening", told, place=place, address=address)


def child_exit(server: Any, worker: Any) -> None:
    """Remove the gauges of a worker that has ended."""
    metrics_folder.end_process(worker.pid)


def on_exit(server: Any) -> None:
    """Remove the folder that the processes shared, and log the end."""
    metrics_folder.end()
    tell("info", "stopped", "the relay has stopped")

"""gunicorn's settings for a relay, from ours.

`deniable relay` runs `deniable_collector.oblivious.relay:app()` with them.
"""

from __future__ import annotations

from typing import Any

import deniable
from deniable_collector.oblivious.relay_settings import RelaySettings
from deniable_collector.operation.events import announce, tell
from deniable_collector.operation.logs import DiscreetLogger

_settings = RelaySettings.from_env()

bind = [_settings.bind]
workers = _settings.workers
worker_class = "deniable_collector.worker.EventLoopWorker"
logger_class = DiscreetLogger
accesslog = None
errorlog = "-"
loglevel = "warning"
backlog = _settings.backlog
keepalive = _settings.keep_alive
timeout = 60
graceful_timeout = 30
proc_name = "deniable-relay"
control_socket_disable = True


def on_starting(server: Any) -> None:
    """Raise the limit of open files: each capsule may need a connection on both sides."""
    from deniable_collector.serving.guard import open_files

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
    for address in map(str, server.LISTENERS):
        told = f"deniable relay listening at {address}"
        announce(_settings.log_format, "listening", told, place="relay", address=address)


def on_exit(server: Any) -> None:
    """Log the end."""
    tell("info", "stopped", "the relay has stopped")

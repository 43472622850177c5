"""How collector, relay and dashboard become gunicorn, and what collector and relay tell it.

gunicorn reads its settings from the names of a module: `deniable_collector.gunicorn_conf`, and
`deniable_collector.oblivious.relay_conf` for a relay.
"""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Mapping
from typing import Any, NoReturn

import deniable
from deniable_collector.operation import metrics_folder
from deniable_collector.operation.events import announce, tell
from deniable_collector.serving.http import ROOM
from deniable_collector.serving.signals import pre_fork
from deniable_collector.settings import Settings

_SPARE = 3 * ROOM
"""Open files that are needed in addition to the connections."""


def open_files(connections: int) -> None:
    """Raise the limit of open files of this process and its children, if the system allows it.

    Without it, a server that reaches the system's limit (often 1,024) stops accepting.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + _SPARE
    if soft != resource.RLIM_INFINITY and soft < wanted:
        allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, allowed), hard))
        if allowed < wanted:
            tell(
                "warning",
                "few-files",
                f"the system allows {hard} open files, too few for {connections} connections: "
                f"lower DENIABLE_MAX_CONNECTIONS to {max(1, hard - _SPARE)}, or raise the limit",
            )


def environment(**options: str | None) -> dict[str, str]:
    """The environment, in which the options of a command override the settings of these names."""
    environ = dict(os.environ)
    for name, value in options.items():
        if value is not None:
            environ[f"DENIABLE_{name.upper()}"] = value
            environ.pop(f"DENIABLE_{name.upper()}_FILE", None)
    return environ


def become(conf: str, app: str, environ: Mapping[str, str]) -> NoReturn:
    """Replace this process by gunicorn, with the settings of a module."""
    sys.stdout.flush()
    os.execve(  # noqa: S606  (this very interpreter, and arguments of ours alone)
        sys.executable,
        [sys.executable, "-m", "gunicorn", "-c", f"python:{conf}", app],
        environ,
    )


def shared(settings: Settings, place: str, title: str) -> dict[str, Any]:
    """gunicorn's settings and hooks, by name.

    Args:
        settings: those of the collector or the relay.
        place: which of the two it is.
        title: how it names itself when it has started.
    """
    # Not for the commands, which need no gunicorn.
    from deniable_collector.operation.logs import DiscreetLogger

    if settings.metrics_bind:
        # Before gunicorn imports the worker, which imports prometheus_client.
        metrics_folder.begin()

    def when_ready(server: Any) -> None:
        """Print the address once it listens: with port 0 it is not known before."""
        # Not in the log, so that a search for any address in the log finds nothing.
        in_force = {
            name: value for name, value in settings.in_force().items() if not name.endswith("_BIND")
        }
        listed = " ".join(f"{name}={value}" for name, value in in_force.items())
        version = deniable.__version__
        tell("info", "started", f"{title} {version}: {listed}", version=version, settings=in_force)
        for name, address in zip((place, "metrics"), map(str, server.LISTENERS), strict=False):
            told = f"deniable {name} listening at {address}"
            announce(settings.log_format, "listening", told, place=name, address=address)

    def child_exit(server: Any, worker: Any) -> None:
        """Remove the gauges of a worker that has ended."""
        metrics_folder.end_process(worker.pid)

    def on_exit(server: Any) -> None:
        """Remove the folder that the processes shared, and log the end."""
        metrics_folder.end()
        tell("info", "stopped", f"the {place} has stopped")

    return {
        "bind": [settings.bind, *([settings.metrics_bind] if settings.metrics_bind else [])],
        "workers": settings.workers,
        "worker_class": "deniable_collector.serving.worker.HttpWorker",
        "logger_class": DiscreetLogger,
        "accesslog": None,
        "errorlog": "-",
        "loglevel": "warning",
        "timeout": 60,
        "graceful_timeout": 30,
        "proc_name": f"deniable-{place}",
        # gunicorn's control socket would be a second entrance, and a file in the home directory.
        "control_socket_disable": True,
        "when_ready": when_ready,
        "pre_fork": pre_fork,
        "child_exit": child_exit,
        "on_exit": on_exit,
    }

"""How collector, relay and dashboard become gunicorn, and what collector and relay tell it.

gunicorn reads its settings from the names of a module: `deniable_collector.gunicorn_conf`, and
`deniable_collector.oblivious.relay_conf` for a relay.

Until a new worker listens to signals, it has the master's handler for them, which would swallow
one. So they are held back from the fork until then (`pre_fork`, `release`).
"""

from __future__ import annotations

import errno
import os
import resource
import shutil
import socket
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from signal import SIG_BLOCK, SIG_UNBLOCK, SIGINT, SIGQUIT, SIGTERM, pthread_sigmask
from typing import Any, NoReturn

import deniable
from deniable_collector.operation.events import announce, tell
from deniable_collector.settings import ROOM, Settings, SettingsError

ENDING = (SIGTERM, SIGINT, SIGQUIT)


def pre_fork(server: Any, worker: Any) -> None:
    """gunicorn's hook: hold them back."""
    pthread_sigmask(SIG_BLOCK, ENDING)


def release() -> None:
    """Let those come that were held back."""
    pthread_sigmask(SIG_UNBLOCK, ENDING)


os.register_at_fork(after_in_parent=release)

COMMON: dict[str, Any] = {
    "worker_class": "deniable_collector.serving.gunicorn_worker.HttpWorker",
    "logger_class": "deniable_collector.serving.gunicorn_worker.EventLogger",
    "accesslog": None,
    "errorlog": "-",
    "loglevel": "warning",
    "timeout": 60,
    "graceful_timeout": 30,
    # gunicorn's control socket would be a second entrance, and a file in the home directory.
    "control_socket_disable": True,
    "pre_fork": pre_fork,
}
"""gunicorn's settings that every server has."""

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
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
        if allowed < wanted:
            tell(
                "warning",
                "few-files",
                f"the system allows {hard} open files, too few for {connections} connections: "
                f"lower DENIABLE_MAX_CONNECTIONS to {max(1, hard - _SPARE)}, or raise the limit",
            )


METRICS_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
"""The variable in which prometheus_client looks for the folder in which the processes of a server
share their metrics: once, when it is first imported. So this file imports it as late as possible.
"""


def begin_metrics() -> None:
    """Create a new folder, before the first process is forked, and name it to all of them.

    Raises:
        RuntimeError: prometheus_client was imported before, and would count only this process.
    """
    if "prometheus_client" in sys.modules:
        raise RuntimeError("begin_metrics() must run before prometheus_client is imported")
    os.environ[METRICS_FOLDER] = tempfile.mkdtemp(prefix="deniable-metrics-")


def end_gauges(pid: int) -> None:
    """Remove the gauges of a process that has ended; its counters stay in the sums."""
    if METRICS_FOLDER in os.environ:
        from prometheus_client.multiprocess import mark_process_dead

        mark_process_dead(pid)  # type: ignore[no-untyped-call]


def end_metrics() -> None:
    """Remove the folder, after the last process has ended."""
    folder = os.environ.pop(METRICS_FOLDER, None)
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)


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


def shared(
    settings: Settings,
    place: str,
    title: str,
    connections: int,
    check: Callable[[], None] = lambda: None,
) -> dict[str, Any]:
    """gunicorn's settings and hooks, by name.

    Args:
        settings: those of the collector or the relay.
        place: which of the two it is.
        title: how it names itself when it has started.
        connections: how many files it may have open for them.
        check: called before it starts.
    """
    if settings.metrics_bind:
        # Before gunicorn imports the app, which imports prometheus_client.
        begin_metrics()

    def on_starting(server: Any) -> None:
        """Raise the limit of open files; here, because the log is open now."""
        open_files(connections)
        for told in settings.strangers():
            tell("warning", "unknown-setting", told)
        check()

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
        end_gauges(worker.pid)

    def on_exit(server: Any) -> None:
        end_metrics()
        tell("info", "stopped", f"the {place} has stopped")

    return COMMON | {
        "bind": [settings.bind, *([settings.metrics_bind] if settings.metrics_bind else [])],
        "workers": settings.workers,
        "proc_name": f"deniable-{place}",
        "on_starting": on_starting,
        "when_ready": when_ready,
        "child_exit": child_exit,
        "on_exit": on_exit,
    }


_INHERITED = ("LISTEN_FDS", "GUNICORN_FD")
"""Variables of a server that gets its sockets from systemd, or from its predecessor."""


def check_addresses(addresses: Mapping[str, str]) -> None:
    """Return if a server can listen at these addresses (`settings.parse_bind`), by the name of
    their setting. Port 0 and an empty address are fine.

    Raises:
        SettingsError: it cannot at some of them; all of these are listed.
    """
    if any(name in os.environ for name in _INHERITED):
        return
    asked = addresses.items()
    problems = [f"{name} {why}" for name, address in asked if address and (why := _why(address))]
    if problems:
        raise SettingsError(problems)


def _why(address: str) -> str:
    if address.startswith("unix:"):
        folder = Path(address.removeprefix("unix:")).parent
        return "" if folder.is_dir() else "names a socket in a folder that is not there"
    host, _, port = address.rpartition(":")
    try:
        family, kind, _, _, place = socket.getaddrinfo(
            host.strip("[]"), int(port), type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind) as probe:
            # As gunicorn binds: connections that have just ended are in nobody's way.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(place)
    except socket.gaierror:
        return "names a host that is not known"
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            return f"names port {port}, where another program listens: end it, or take another port"
        if error.errno == errno.EADDRNOTAVAIL:
            return "names an address that this machine does not have"
        if error.errno == errno.EACCES:
            return f"names port {port}, where this user may not listen"
        return f"cannot be listened at: {os.strerror(error.errno or 0).lower()}"
    return ""

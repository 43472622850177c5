"""The demo's collector and dashboard: child processes on loopback that end with it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TextIO

from deniable import DeniableError

_LISTENING = " listening at "
_PATIENCE = 10.0
_EVERYDAY = re.compile(r"\S+ info ")


class ServiceError(DeniableError):
    """A service did not start, or ended too early."""


@contextmanager
def collector(registry: Path, store: str, origin: str | None) -> Iterator[str]:
    """A collector at a free port, for devices and for the pages of an origin; its address."""
    # One relay sends for all devices.
    settings = {"DENIABLE_WORKERS": "1", "DENIABLE_RATE": "off"}
    if origin is not None:
        settings["DENIABLE_CORS_ORIGINS"] = origin
    with _service("collect", "127.0.0.1:0", registry, store, settings) as address:
        yield address


@contextmanager
def dashboard(
    registry: Path, store: str, port: int, token: str, demo: str | None, data: Path
) -> Iterator[str]:
    """A dashboard at that port (0: any free one), whose header links to `demo`; its address."""
    settings = {
        "DENIABLE_DASHBOARD_TOKEN": token,
        "DENIABLE_DASHBOARD_LOGIN_LINK": "1",
        "DENIABLE_DATA": str(data),
        "DENIABLE_BOARDS": str(Path(__file__).with_name("boards")),
    }
    if demo is not None:
        settings["DENIABLE_DASHBOARD_DEMO"] = demo
    with _service("dashboard", f"127.0.0.1:{port}", registry, store, settings) as address:
        yield address


@contextmanager
def _service(
    command: str, bind: str, registry: Path, store: str, settings: Mapping[str, str]
) -> Iterator[str]:
    # DENIABLE_* settings of the user's own services do not apply to the demo's.
    environ = {name: text for name, text in os.environ.items() if not name.startswith("DENIABLE_")}
    arguments = [command, "--registry", str(registry), "--store", store, "--bind", bind]
    with ExitStack() as stack:
        log = stack.enter_context(tempfile.TemporaryFile("w+"))
        stack.callback(_tell, log)
        child = stack.enter_context(
            subprocess.Popen(  # noqa: S603  (this very interpreter, and arguments of ours)
                [sys.executable, "-c", "from deniable.cli import main; main()", *arguments],
                env={**environ, **settings},
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                # Ctrl-C is for the demo, which ends its children in order.
                process_group=0,
            )
        )
        stack.callback(_end, child)
        yield _address(child, command)


def _address(child: subprocess.Popen[str], command: str) -> str:
    """The address at which the service says it listens."""
    assert child.stdout is not None
    for line in child.stdout:
        if _LISTENING in line:
            return line.partition(_LISTENING)[2].strip()
    raise ServiceError(f"`deniable {command}` did not start; its message stands above")


def _tell(log: TextIO) -> None:
    """What a service has logged, but for the events of every day: they would bury the demo."""
    log.seek(0)
    sys.stderr.writelines(line for line in log if not _EVERYDAY.match(line))


def _end(child: subprocess.Popen[str]) -> None:
    child.terminate()
    try:
        child.wait(_PATIENCE)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)

"""`deniable dev`: see the reports of an app while you write it."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType
from typing import NoReturn

import click
from rich.console import Console

from deniable import DeniableError
from deniable.protocol.coded_message import counted
from deniable.tools.command_line import command, registry_argument
from deniable.tools.starting.new_metric import example_of
from deniable_collector.serving.connection import serve
from deniable_collector.serving.wsgi import WsgiHandler
from deniable_estimator.development.server import HOST, DevelopmentApp
from deniable_estimator.development.state import RegistryFile

# SIGHUP comes when the terminal is closed; Windows has none.
_SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)
_LOOK_SECONDS = 0.3
"""How often the registry is looked at."""

_USUAL_PORT = 8099
"""Where it listens if no port is named and no other program is there."""

_THREADS = 8
_END_SECONDS = 2.0
"""How long its end waits for answers."""


@command("deniable dev metrics.toml")
@registry_argument
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    help="Where to listen; 0 takes any free port. By default 8099, or any if that is taken.",
)
@click.option(
    "--crowd",
    metavar="N",
    type=click.IntRange(0, 1_000_000),
    default=0,
    help="Add N simulated devices with made-up values, up to 1,000,000.",
)
@click.option(
    "--origin",
    "origins",
    metavar="ORIGIN",
    multiple=True,
    help="A page's origin that may send, like https://app.test. Those of this machine always may.",
)
@click.option(
    "--candidates",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="FOLDER",
    help="METRIC.txt files with the strings to look for, one on each line.",
)
def dev(
    path: Path, port: int | None, crowd: int, origins: tuple[str, ...], candidates: Path | None
) -> None:
    """Run a collector, a dashboard and a live page for the registry PATH (metrics.toml).

    Set DENIABLE_DEV to the address that it prints, and run your app: each report is on the live
    page within a second, with what it says and what is wrong. It listens on this machine alone.
    Nothing counts, and everything is deleted when it ends. An edit of PATH is loaded at once.
    """
    console = Console(highlight=False, soft_wrap=True)
    if path.is_dir():
        raise click.ClickException(f"{path} is a folder: name its file, {path / 'metrics.toml'}")
    if not path.is_file():
        raise click.ClickException(
            f"there is no {path}: `deniable init` writes one, with an app that records"
        )
    for each in origins:
        _check_origin(each)
    for number in _SIGNALS:
        signal.signal(number, _interrupt)
    try:
        _run(console, path, port, crowd, origins, candidates)
    except KeyboardInterrupt:
        console.print("\n[dim]Everything is deleted.")


def _run(
    console: Console,
    path: Path,
    port: int | None,
    crowd: int,
    origins: Sequence[str],
    candidates: Path | None,
) -> None:
    file = RegistryFile(path)
    file.look()
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="deniable-dev-"))
        # What the dashboard and its processes put into temporary files goes with it.
        os.environ["TMPDIR"] = tempfile.tempdir = folder
        stack.callback(setattr, tempfile, "tempdir", None)
        app = DevelopmentApp(file, Path(folder), origins, candidates, crowd)
        stack.callback(app.close)
        address = stack.enter_context(_serving(app, port))
        if port is None and not address.endswith(f":{_USUAL_PORT}"):
            console.print(
                f"Port {_USUAL_PORT} is taken by another program, so this run has another: devices "
                f"need DENIABLE_DEV={address}. --port chooses one.",
                markup=False,
                style="yellow",
            )
        _print_registry(console, file)
        _print_next(console, address, file)
        _add_crowd(console, app, file)
        ended = threading.Event()
        while not ended.wait(_LOOK_SECONDS):
            if file.look():
                if not file.mistakes:
                    app.reload()
                app.arrivals.changed()
                _print_registry(console, file)
                _add_crowd(console, app, file)


def _add_crowd(console: Console, app: DevelopmentApp, file: RegistryFile) -> None:
    """Let the simulated devices report what they have not reported yet."""
    crowd = app.crowd
    for place, name in enumerate(crowd.add(app.store, file.registry)):
        app.arrivals.changed()
        if not place:
            console.print(
                f"[dim]{counted(crowd.devices, 'simulated device')} reported, as tallies that are "
                "drawn from their exact distribution. Their values are made up:"
            )
        console.print(f"[dim]  {name}: {crowd.shares[name]}")


def _print_registry(console: Console, file: RegistryFile) -> None:
    """What the registry says now, or what is wrong with it."""
    for each in file.mistakes or file.warnings:
        console.print(
            each.describe(str(file.path)), markup=False, style="red" if file.mistakes else ""
        )
    if file.mistakes:
        kept = "The last version without mistakes stays in force." if file.registry.metrics else ""
        console.print(f"{file.path} was not loaded. {kept}", markup=False, style="red")
    else:
        console.print(f"{file.path}: {counted(len(file.registry), 'metric')}", markup=False)


def _print_next(console: Console, address: str, file: RegistryFile) -> None:
    call = example_of(file.registry)
    console.print(
        f"\nLive page: {address}/live\n\n"
        "In a Python app:\n"
        f"  export DENIABLE_DEV={address}\n"
        "  python3 app.py                     # as it is: the variable is all that it needs\n\n"
        "or at a Python prompt:\n"
        f'  client = deniable.Client("{file.path}", development="{address}", consent=True)\n'
        f"  client.{call.python}\n\n"
        "In a web page:\n"
        f'  <script src="{address}/deniable.min.js"></script>\n'
        "  <script>\n"
        "    const client = new deniable.Client(deniable.metrics,\n"
        f'      {{consent: true, development: "{address}"}});\n'
        f"    client.{call.script};\n"
        "  </script>\n\n"
        "Nothing counts, and nothing leaves this machine. Ctrl-C ends it and deletes everything.",
        markup=False,
    )


@contextmanager
def _serving(app: DevelopmentApp, port: int | None) -> Iterator[str]:
    """Serve at a port of loopback (None: the usual one, or else any that is free); the address."""
    with _listening(port) as listener:
        handler = WsgiHandler(app, app.settings, _THREADS, _THREADS, {b"": app.settings.max_body})
        loop, ended = asyncio.new_event_loop(), asyncio.Event()
        work = serve(handler, [listener], ended.wait(), _END_SECONDS)
        thread = threading.Thread(
            target=loop.run_until_complete, args=(work,), name="deniable-dev", daemon=True
        )
        thread.start()
        try:
            yield f"http://{HOST}:{listener.getsockname()[1]}"
        finally:
            loop.call_soon_threadsafe(ended.set)
            thread.join()
            loop.close()


def _listening(port: int | None) -> socket.socket:
    tried = (_USUAL_PORT, 0) if port is None else (port,)
    for each in tried:
        try:
            return socket.create_server((HOST, each))
        except OSError as error:
            reason = error.strerror
    raise DeniableError(f"port {port} of {HOST} cannot be used ({reason}): name another --port")


def _check_origin(text: str) -> None:
    if not re.fullmatch(r"https?://[a-z0-9.-]+(:[0-9]{1,5})?", text):
        raise click.BadParameter(
            f"{text!r} is no origin: write scheme and host, like https://app.test",
            param_hint="--origin",
        )


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    # Cleaning up takes a moment; a second Ctrl-C must not interrupt it.
    for each in _SIGNALS:
        signal.signal(each, signal.SIG_IGN)
    raise KeyboardInterrupt

"""`deniable demo`: a collector, a dashboard and a crowd of made-up devices on this machine."""

from __future__ import annotations

import json
import multiprocessing
import os
import secrets
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from deniable import DeniableError, Registry
from deniable_collector.stores import open_store
from deniable_demo import fleet, services
from deniable_demo.made_up import CRASHES, USAGE
from deniable_demo.population import DISCOVERED, PERCENTILES, POPULARITIES, Population, draw
from deniable_demo.results import compare, compare_shares, tables
from deniable_demo.try_it import try_it
from deniable_estimator.annotations.editing import add_annotation

_REGISTRY = Path(__file__).with_name("metrics.toml")
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_CHUNK = 500
"""Devices per task of a worker: enough that passing tasks costs nothing."""


@click.command()
@click.option("--once", is_flag=True, help="End after the table.")
@click.option("--json", "as_json", is_flag=True, help="With --once: print the numbers as JSON.")
@click.option(
    "--devices", metavar="N", type=click.IntRange(min=1), default=50_000, show_default=True
)
@click.option(
    "--port",
    type=click.IntRange(0, 65_534),
    default=8090,
    show_default=True,
    help="Where the dashboard listens, and on the next port the page to try it; 0 takes any free "
    "ports.",
)
def demo(once: bool, as_json: bool, devices: int, port: int) -> None:
    """Let simulated devices report, and see how close the estimates are.

    Each device runs the real SDK, and sends over real HTTP to a real collector on 127.0.0.1.
    Everything is deleted when the demo ends.
    """
    if as_json and not once:
        raise click.UsageError("--json needs --once: a demo that stays up has no end to print")
    for each in _SIGNALS:
        signal.signal(each, _interrupt)
    try:
        _run(once, as_json, devices, port)
    except KeyboardInterrupt:
        if once:
            raise click.Abort from None
    except DeniableError as error:
        raise click.ClickException(str(error)) from error


def _run(once: bool, as_json: bool, devices: int, port: int) -> None:
    console = Console(stderr=as_json, highlight=False)
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="deniable-demo-"))
        store_url = f"sqlite:///{folder}/tallies.db"
        tried = None if once else stack.enter_context(try_it(port and port + 1))
        origin = None if tried is None else tried.address
        endpoint = stack.enter_context(services.collector(_REGISTRY, store_url, origin))
        token = secrets.token_urlsafe(32)
        page = None
        if tried is not None:
            page = stack.enter_context(
                services.dashboard(
                    _REGISTRY, store_url, port, token, tried.address, _annotations(Path(folder))
                )
            )
        population = draw(devices)
        _report(population, endpoint, console)
        store = stack.enter_context(closing(open_store(store_url)))
        registry = Registry.load(_REGISTRY)
        compared = compare(store, registry, population)
        if as_json:
            click.echo(json.dumps({"metrics": compared}))
        else:
            _print(console, compared)
        if tried is not None and page is not None:
            tried.open(
                registry,
                endpoint,
                page,
                fleet.DAY,
                devices,
                lambda metric: compare_shares(store, registry, population, metric),
            )
            console.print(f"\nDashboard  [bold link={page}]{page}/login?token={token}[/]")
            console.print(f"[dim]The link works once; after that the token is {token}")
            console.print(f"Try it     [bold link={tried.address}]{tried.address}[/]")
            console.print("[dim]There you answer as one more device, and see what was sent.")
            console.print("[dim]Ctrl-C ends the demo and removes all it has made.")
            signal.pause()


def _annotations(folder: Path) -> Path:
    """A folder of the dashboard's data, with annotations: what the devices do on which day."""
    path = folder / "annotations.toml"
    today = datetime.now(UTC).date()
    add_annotation(path, "Made-up devices record their values", today - timedelta(days=1))
    add_annotation(path, "They report what they recorded", today)
    return folder


def _report(population: Population, endpoint: str, console: Console) -> None:
    """Let every device report, on all processors, with a progress bar."""
    columns = (
        TextColumn("Devices reporting"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    now = time.time()
    # Spawned, not forked: a device's state must not be forked.
    processes = multiprocessing.get_context("spawn")
    with (
        Progress(*columns, console=console) as progress,
        processes.Pool(os.cpu_count(), fleet.prepare_worker) as pool,
    ):
        task = progress.add_task("", total=population.size)
        jobs = [
            pool.apply_async(fleet.report_from, (str(_REGISTRY), endpoint, chunk, now))
            for chunk in _chunks(population)
        ]
        for job in jobs:
            progress.advance(task, job.get())


def _chunks(population: Population) -> Iterator[list[fleet.Device]]:
    for first in range(0, population.size, _CHUNK):
        yield [
            (
                {segment: groups[device] for segment, groups in population.segments.items()},
                {metric: values[device] for metric, values in population.values.items()},
            )
            for device in range(first, min(first + _CHUNK, population.size))
        ]


def _print(console: Console, compared: list[dict[str, Any]]) -> None:
    for table in tables(compared):
        console.print()
        console.print(table)
    console.print("\n[dim]The true shares and numbers follow[/]")
    for each in (*POPULARITIES, *PERCENTILES, DISCOVERED, CRASHES, USAGE):
        console.print(f"[dim]  {each.metric}: {each.source}[/]")


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    # Cleaning up takes a moment; a second Ctrl-C must not interrupt it.
    for each in _SIGNALS:
        signal.signal(each, signal.SIG_IGN)
    raise KeyboardInterrupt

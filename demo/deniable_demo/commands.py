"""`deniable demo`: a collector, a dashboard and a crowd of made-up devices on this machine."""

from __future__ import annotations

import json
import multiprocessing
import os
import secrets
import shlex
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn
from urllib.parse import urlencode

import click
import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from deniable import Registry
from deniable.tools.command_line import command
from deniable_collector.settings import Settings
from deniable_collector.stores import Store, open_store
from deniable_demo import fleet, services
from deniable_demo.history import DAYS, write_history, write_weeks
from deniable_demo.population import (
    ANNOTATIONS,
    CRASHES,
    DISCOVERED,
    LEAVING,
    PERCENTILES,
    POPULARITIES,
    RELEASED,
    USAGE,
    Population,
    draw,
)
from deniable_demo.results import compare, compare_planted, compare_shares, planted_table, table_of
from deniable_demo.services import try_it
from deniable_estimator.annotations import add_annotation
from deniable_estimator.asking.reader import Reader

_REGISTRY = Path(__file__).with_name("metrics.toml")
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_DAYS_TO_COME = 45
"""Ten reports of a device, each in one of twelve days, last for the DAYS before and these."""

_CHUNK = 500
"""Devices per task of a worker: enough that passing tasks costs nothing."""


@command("deniable demo --once --devices 1000")
@click.option("--once", is_flag=True, help="End after the table.")
@click.option("--json", "as_json", is_flag=True, help="With --once: print the numbers as JSON.")
@click.option(
    "--devices",
    metavar="N",
    type=click.IntRange(min=1),
    default=50_000,
    show_default=True,
    help="How many report the newest complete day.",
)
@click.option(
    "--read-only",
    is_flag=True,
    help="Without devices and without a collector: the dashboard alone, over drawn tallies.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65_534),
    default=8090,
    show_default=True,
    help="Where the dashboard listens, and on the next port the page to try it; 0 takes any free "
    "ports.",
)
def demo(once: bool, as_json: bool, devices: int, read_only: bool, port: int) -> None:
    """Let simulated devices report, and see how close the estimates are.

    The newest complete day is reported by devices that run the real SDK, over real HTTP, to a real
    collector on 127.0.0.1. The tallies of the weeks before, in which some things change, are drawn
    from their exact distribution, with the noise that these devices keep. Everything is deleted
    when the demo ends.
    """
    if as_json and not once:
        raise click.UsageError("--json needs --once: a demo that stays up has no end to print")
    if read_only and once:
        raise click.UsageError("--read-only has no devices whose numbers --once could print")
    for each in _SIGNALS:
        signal.signal(each, _interrupt)
    try:
        with ExitStack() as stack:
            _run(stack, once, as_json, devices, read_only, port)
    except KeyboardInterrupt:
        if once:
            raise click.Abort from None


def _run(
    stack: ExitStack, once: bool, as_json: bool, devices: int, read_only: bool, port: int
) -> None:
    console = Console(stderr=as_json, highlight=False)
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="deniable-demo-")))
    newest = datetime.now(UTC).date() - timedelta(days=1)
    path = _registry(folder, newest)
    store_url, registry = f"sqlite:///{folder}/tallies.db", Registry.load(path)
    store = stack.enter_context(closing(open_store(Settings(store=store_url))))
    store.publish((metric.name, metric.scheme) for metric in registry)
    population = draw(devices, np.random.default_rng())
    _draw_weeks(store, registry, population, newest, read_only, console)
    tried = None if once or read_only else stack.enter_context(try_it(port and port + 1))
    token, page = secrets.token_urlsafe(32), ""
    if not once:
        page = stack.enter_context(
            services.dashboard(
                path,
                store_url,
                port,
                token,
                tried.address if tried else None,
                _annotations(folder, newest + timedelta(days=1)),
            )
        )
    if not read_only:
        origin = None if tried is None else tried.address
        endpoint = stack.enter_context(services.collector(path, store_url, origin))
        _report(population, path, endpoint, console)
        compared = compare(Reader(store), registry, population, newest)
        changes = compare_planted(Reader(store), registry, newest)
        if as_json:
            click.echo(json.dumps({"metrics": compared, "changes": changes}))
            return
        _print(console, compared)
        console.print()
        console.print(planted_table(changes))
        if tried is not None:
            tried.open(
                registry,
                endpoint,
                page,
                fleet.DAY,
                devices,
                lambda metric: compare_shares(Reader(store), registry, population, metric, newest),
            )
    else:
        console.print(planted_table(compare_planted(Reader(store), registry, newest)))
    if once:
        return
    # The first page that is seen says what changed since the release.
    since = urlencode({"next": f"/?{urlencode({'since': RELEASED})}"})
    link = f"{page}/login?{since}&token={token}"
    console.print(f"\nDashboard  [bold link={link}]{link}[/]", soft_wrap=True)
    console.print(f"[dim]The link works once; after that the token is {token}")
    if tried is not None:
        console.print(f"Try it     [bold link={tried.address}]{tried.address}[/]")
        console.print("[dim]There you answer as one more device, and see what was sent.")
    found = shutil.which(sys.argv[0])
    here = str(Path(found).absolute()) if found else "deniable"
    settings = {"STORE": store_url, "REGISTRY": path, "DATA": folder}
    console.print("Commands   in another terminal:")
    for line in (
        ["export", *(f"DENIABLE_{name}={told}" for name, told in settings.items())],
        [here, "estimate", "crashed", "--since", RELEASED],
    ):
        console.print(f"           [bold]{shlex.join(line)}[/]", soft_wrap=True)
    console.print("[dim]Ctrl-C ends the demo and removes all it has made.")
    signal.pause()


def _draw_weeks(
    store: Store,
    registry: Registry,
    population: Population,
    newest: date,
    whole: bool,
    console: Console,
) -> None:
    """Draw the tallies of the weeks before the newest day, with a progress bar."""
    days = range(DAYS, -1 if whole else 0, -1)
    with _progress("Drawing the weeks before, from the exact distribution", console) as progress:
        task = progress.add_task("", total=len(days))
        rng = np.random.default_rng()
        write_weeks(store, registry, population.size, newest, rng)
        for _ in write_history(store, registry, population, newest, rng, days=days):
            progress.advance(task)


def _progress(text: str, console: Console) -> Progress:
    columns = (TextColumn(text), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=console)


def _registry(folder: Path, newest: date) -> Path:
    """The demo's metrics.toml, whose metrics expire when their devices' budgets are spent."""
    path = folder / "metrics.toml"
    expires = newest + timedelta(days=_DAYS_TO_COME)
    text = _REGISTRY.read_text(encoding="utf-8").replace("2099-12-31", expires.isoformat())
    path.write_text(text, encoding="utf-8")
    return path


def _annotations(folder: Path, today: date) -> Path:
    """A folder of the dashboard's data, with annotations: what happened in these weeks."""
    path = folder / "annotations.toml"
    for ago, text in ANNOTATIONS.items():
        add_annotation(path, text, today - timedelta(days=ago))
    return folder


def _report(population: Population, path: Path, endpoint: str, console: Console) -> None:
    """Let every device report, on all processors, with a progress bar."""
    now = time.time()
    # Spawned, not forked: a device's state must not be forked.
    processes = multiprocessing.get_context("spawn")
    with (
        _progress("Devices reporting", console) as progress,
        processes.Pool(os.cpu_count(), fleet.prepare_worker) as pool,
    ):
        task = progress.add_task("", total=population.size)
        jobs = [
            pool.apply_async(fleet.report_from, (str(path), endpoint, chunk, now))
            for chunk in chunks(population)
        ]
        for job in jobs:
            progress.advance(task, job.get())


def chunks(population: Population) -> Iterator[list[fleet.Device]]:
    """The devices, so many at a time as one task of a worker takes."""
    for first in range(0, population.size, _CHUNK):
        yield [
            (
                {segment: groups[device] for segment, groups in population.segments.items()},
                {metric: values[device] for metric, values in population.values.items()},
                population.secrets[device],
            )
            for device in range(first, min(first + _CHUNK, population.size))
        ]


def _print(console: Console, compared: list[dict[str, Any]]) -> None:
    for metric in compared:
        console.print()
        console.print(table_of(metric))
    console.print("\n[dim]The true shares and numbers follow[/]")
    for each in (*POPULARITIES, *PERCENTILES, DISCOVERED, CRASHES, USAGE, LEAVING):
        console.print(f"[dim]  {each.metric}: {each.source}[/]")


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    # Cleaning up takes a moment; a second Ctrl-C must not interrupt it.
    for each in _SIGNALS:
        signal.signal(each, signal.SIG_IGN)
    raise KeyboardInterrupt

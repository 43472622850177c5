"""`deniable bench ingest`: how many requests a collector handles, and its response times."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from typing import Any
from urllib.parse import urlsplit

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from deniable import DeniableError, Registry
from deniable_collector.bench.load import Load, Outcome, run
from deniable_collector.bench.reports import PREFIX, MadeUp, choose
from deniable_collector.numeric import Real

__all__ = ["bench"]

_KEY = "DENIABLE_INGEST_KEY"


@click.group()
def bench() -> None:
    """Measure a collector under load."""


@bench.command()
@click.option("--url", required=True, metavar="URL", help="The collector: http(s)://host[:port].")
@click.option(
    "--registry",
    metavar="PATH",
    default="metrics.toml",
    envvar="DENIABLE_REGISTRY",
    show_default=True,
    help="The collector's registry.",
)
@click.option(
    "--metric", "names", multiple=True, help=f"Metrics to report; default: those named {PREFIX}*."
)
@click.option("--seconds", type=Real(0.1, 3600), default=10, show_default=True)
@click.option(
    "--requests",
    type=click.IntRange(1, 10_000_000),
    default=1_000_000,
    show_default=True,
    help="Requests to send at most.",
)
@click.option("--connections", type=click.IntRange(1, 1024), default=32, show_default=True)
@click.option(
    "--rate",
    type=Real(0, 1_000_000),
    default=0,
    metavar="N",
    help="Requests per second in all; without it, as many as the connections can.",
)
@click.option(
    "--reports",
    type=click.IntRange(1, 1000),
    default=10,
    show_default=True,
    help="Reports in each batch.",
)
@click.option("--yes", is_flag=True, help="Do not ask: the tallies may hold made-up reports.")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
def ingest(
    url: str, registry: str, names: tuple[str, ...], reports: int, yes: bool, as_json: bool,
    **load: Any,
) -> None:  # fmt: skip
    """Send made-up reports to a collector, and measure its answers.

    Made-up reports are counted like any others and cannot be removed from a tally. So the
    command uses metrics whose names begin with bench_, and others only if you name them and
    confirm. The key for the collector comes from DENIABLE_INGEST_KEY.
    """
    console = Console(stderr=True, highlight=False)
    address = urlsplit(url)
    if address.scheme not in ("http", "https") or not address.hostname or address.query:
        raise click.BadParameter("must be http://host[:port] or https://host[:port]",
                                 param_hint="--url")  # fmt: skip
    try:
        metrics = choose(Registry.load(registry), names)
        real = [each.name for each in metrics if not each.name.startswith(PREFIX)]
        if real and not yes:
            _agree(real, url)
        bodies = MadeUp(metrics, reports, time.time())
    except DeniableError as error:
        raise click.ClickException(str(error)) from error
    headers = {"X-Deniable-Key": os.environ[_KEY]} if os.environ.get(_KEY) else {}
    asked = Load(url.rstrip("/") + "/v1/reports", headers=headers, **load)
    outcome = Outcome()
    try:
        asyncio.run(_watched(asked, bodies, outcome, console))
    except KeyboardInterrupt:
        console.print("stopped early")
    if as_json:
        click.echo(json.dumps(outcome.to_dict()))
    else:
        _print(outcome)
    if not outcome.statuses[202]:
        raise click.ClickException("no batch was acknowledged")


def _agree(real: list[str], url: str) -> None:
    warning = (
        f"This adds made-up reports to the tallies of {', '.join(real)} at {url}. They bias every "
        "estimate of these windows, and cannot be removed again."
    )
    if not sys.stdin.isatty():
        raise click.UsageError(f"{warning} If that is what you want, say --yes.")
    click.echo(warning, err=True)
    click.confirm("Send them?", abort=True, err=True)


async def _watched(load: Load, bodies: MadeUp, outcome: Outcome, console: Console) -> None:
    columns = (BarColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=load.seconds)
        running = asyncio.ensure_future(run(load, bodies, outcome))
        while not running.done():
            await asyncio.wait([running], timeout=0.25)
            rate = outcome.answered / outcome.seconds if outcome.seconds else 0.0
            failed = outcome.errors.total()
            words = f"{outcome.answered:,} answers, {rate:,.0f}/s, {failed:,} failed"
            progress.update(task, completed=outcome.seconds, description=words)
        await running


def _print(outcome: Outcome) -> None:
    figures: Any = outcome.to_dict()
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_row("requests", f"{figures['requests']:,} in {figures['seconds']:.1f} s")
    table.add_row("answers", f"{figures['answered_per_second']:,.0f} per second")
    for name, wait in figures["latency_ms"].items():
        table.add_row(f"{name} wait", "-" if wait is None else f"{wait:,.1f} ms")
    for status, number in figures["statuses"].items():
        table.add_row(f"status {status}", f"{number:,}")
    for error, number in figures["errors"].items():
        table.add_row(error, f"{number:,}")
    for fate, number in figures["reports"].items():
        table.add_row(f"reports {fate}", f"{number:,}")
    Console(highlight=False).print(table)

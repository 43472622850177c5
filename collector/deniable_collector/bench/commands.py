"""`deniable bench ingest`: how many requests a collector handles, and its response times."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from deniable import DeniableError, Registry
from deniable_collector.bench.load import Load, LoadResult, run
from deniable_collector.bench.ramp import FIRST, MOST, Limit, RampStep, climb, send
from deniable_collector.bench.reports import PREFIX, MadeUp, choose
from deniable_collector.numeric import Real
from deniable_collector.options import SettingOption

__all__ = ["bench"]

_KEY = "DENIABLE_INGEST_KEY"

_STEP_SECONDS = 2.0
"""How long each step of the search for the limit takes."""


@click.group()
def bench() -> None:
    """Measure a collector under load."""


@bench.command()
@click.option("--url", required=True, metavar="URL", help="The collector: http(s)://host[:port].")
@click.option(
    "--registry",
    cls=SettingOption,
    metavar="PATH",
    default="metrics.toml",
    envvar="DENIABLE_REGISTRY",
    show_default=True,
    help="The collector's registry.",
)
@click.option(
    "--metric", "names", multiple=True, help=f"Metrics to report; default: those named {PREFIX}*."
)
@click.option(
    "--seconds",
    type=Real(0.1, 3600),
    default=10,
    show_default=True,
    help="How long to measure, once the limit is found.",
)
@click.option(
    "--requests",
    type=click.IntRange(1, 10_000_000),
    default=1_000_000,
    show_default=True,
    help="Requests to send at most.",
)
@click.option(
    "--connections",
    type=click.IntRange(1, MOST),
    help="Connections; without it, and without --rate, they are raised until a limit is met.",
)
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
    connections: int | None, rate: float, **load: Any,
) -> None:  # fmt: skip
    """Send made-up reports to a collector, measure its responses, and say what limits them.

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
    asked = Load(
        *(url.rstrip("/") + "/v1/reports",),
        connections=connections or FIRST, rate=rate, headers=headers, **load,
    )  # fmt: skip
    outcome, found = LoadResult(), None
    try:
        if connections is None and not rate:
            outcome, found = asyncio.run(_climbed(asked, bodies, console))
        else:
            asyncio.run(_watched(asked, bodies, outcome, console))
    except KeyboardInterrupt:
        console.print("stopped early")
    if as_json:
        click.echo(json.dumps({**outcome.to_dict(), **(found.to_dict() if found else {})}))
    else:
        _print(outcome)
        if found is not None:
            Console(highlight=False).print(found.describe())
        elif outcome.problems:
            Console(highlight=False).print(f"refused by         {_refused(outcome)}")
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


@dataclass(frozen=True)
class _LimitSearch:
    """The steps of a search for the limit, and the limit."""

    steps: list[RampStep]
    limit: Limit

    def to_dict(self) -> dict[str, object]:
        return {
            "limit": self.limit,
            "limit_detail": self.words,
            "steps": [
                {
                    "connections": each.connections,
                    "processes": each.processes,
                    "acknowledged_per_second": each.rate,
                }
                for each in self.steps
            ],
        }

    def describe(self) -> str:
        steps = ", ".join(f"{each.connections}: {each.rate:,.0f}/s" for each in self.steps)
        return f"connections tried  {steps}\nlimit              {self.words}"

    @property
    def words(self) -> str:
        last = self.steps[-1]
        if self.limit == "refusals":
            return _refused(last.outcome)
        if self.limit == "failures":
            ((error, _),) = last.outcome.errors.most_common(1)
            return _FAILURES.get(error, f"requests fail: {error}")
        return _LIMITS[self.limit].format(each=last)


_LIMITS = {
    "collector": "the collector: more connections brought no more responses (where it runs on this "
    "machine, it shares the processors with this command)",
    "sender": "this command: its processes ({each.processes}) have no time left; send from several "
    "machines",
    "requests": "the number of requests (--requests), before any other limit was met",
    "connections": "this command's connections ({each.connections})",
}
_REFUSALS = {
    "too-many-requests": "the rate of a network (DENIABLE_RATE): run the collector with "
    "DENIABLE_RATE=off to measure more",
    "queue-full": "the collector: its queue is full (DENIABLE_QUEUE)",
    "too-many-connections": "the collector's connections (DENIABLE_MAX_CONNECTIONS)",
    "no-ingest-key": "the collector's keys: set DENIABLE_INGEST_KEY to one of them",
    "store-unavailable": "the collector's store, which takes no commit: see its log",
}
_FAILURES = {
    "ClientConnectorError": "nothing can be reached at this address: does the collector listen "
    "there (DENIABLE_BIND)?"
}


def _processes(number: int) -> str:
    return f"{number} process" + "es" * (number != 1)


def _refused(outcome: LoadResult) -> str:
    """What most of the refusals come from."""
    ((code, _),) = outcome.problems.most_common(1)
    return _REFUSALS.get(code, f"the collector refuses batches: {code}")


async def _climbed(load: Load, bodies: MadeUp, console: Console) -> tuple[LoadResult, _LimitSearch]:
    """Find the limit in short steps, and measure there for as long as was asked."""
    short = min(load.seconds, _STEP_SECONDS)

    async def step(connections: int, processes: int, requests: int) -> LoadResult:
        console.print(f"{connections} connections from {_processes(processes)} for {short:g} s")
        asked = replace(load, connections=connections, requests=requests, seconds=short)
        return await send(asked, bodies, processes)

    steps, limit = await climb(step, load.requests)
    good = steps[:-1] if limit in ("refusals", "failures") else steps
    sent = sum(each.outcome.answered + each.outcome.errors.total() for each in steps)
    left = load.requests - sent
    if left <= 0 or not good:
        return LoadResult.of([each.outcome for each in steps]), _LimitSearch(steps, limit)
    best = max(good, key=lambda each: each.rate)
    console.print(f"{best.connections} connections for {load.seconds:g} s, to measure")
    asked = replace(load, connections=best.connections, requests=left)
    return await send(asked, bodies, best.processes), _LimitSearch(steps, limit)


async def _watched(load: Load, bodies: MadeUp, outcome: LoadResult, console: Console) -> None:
    columns = (BarColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=load.seconds)
        running = asyncio.ensure_future(run(load, bodies, outcome))
        while not running.done():
            await asyncio.wait([running], timeout=0.25)
            rate = outcome.answered / outcome.seconds if outcome.seconds else 0.0
            failed = outcome.errors.total()
            words = f"{outcome.answered:,} responses, {rate:,.0f}/s, {failed:,} failed"
            progress.update(task, completed=outcome.seconds, description=words)
        await running


def _print(outcome: LoadResult) -> None:
    figures: Any = outcome.to_dict()
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_row("requests", f"{figures['requests']:,} in {figures['seconds']:.1f} s")
    table.add_row("responses", f"{figures['answered_per_second']:,.0f} per second")
    for name, wait in figures["latency_ms"].items():
        table.add_row(f"{name} wait", "-" if wait is None else f"{wait:,.1f} ms")
    for status, number in figures["statuses"].items():
        table.add_row(f"status {status}", f"{number:,}")
    for error, number in figures["errors"].items():
        table.add_row(error, f"{number:,}")
    for fate, number in figures["reports"].items():
        table.add_row(f"reports {fate}", f"{number:,}")
    Console(highlight=False).print(table)

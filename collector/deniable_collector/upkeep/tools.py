"""Shared by the commands on stores: opening one, errors in one line, and printing."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from deniable.protocol.coded_message import counted

if TYPE_CHECKING:
    from deniable_collector.stores import Store
    from deniable_collector.upkeep.archive import Contents, TallySelection
    from deniable_collector.upkeep.importing import ImportResult

# numpy and rich take longer to import than `deniable --help` should.


@contextmanager
def opened_store(address: str | None, again: str = "") -> Iterator[tuple[Store, str]]:
    """The store at that address, or of the environment, with its kind. `again` is what to know for
    another try, if the store is away."""
    from deniable_collector.settings import Settings
    from deniable_collector.stores import StoreUnavailable, store_of

    settings = Settings.from_env()
    settings = dataclasses.replace(settings, store=address or settings.store)
    opened = store_of(settings)
    try:
        yield opened, settings.store.partition(":")[0]
    except StoreUnavailable as error:
        raise click.ClickException(f"{error}: try again later{again}") from error
    finally:
        opened.close()


@contextmanager
def progress(text: str, quiet: bool) -> Iterator[Callable[[float], None]]:
    """A progress bar in a terminal, which disappears at the end; nothing elsewhere."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield lambda share: None
        return
    with Progress(console=console, transient=True) as bar:
        task = bar.add_task(text, total=1.0)
        yield lambda share: bar.update(task, completed=share)


def check_metrics(selection: TallySelection, known: dict[str, Any]) -> None:
    """Refuse metrics that do not exist."""
    if unknown := sorted(selection.metrics - known.keys()):
        listed = ", ".join(sorted(known)) or "none"
        raise click.ClickException(f"no metric {', '.join(unknown)} here; there is: {listed}")


def readable(store: Store, metric: str, scheme: str, labels: list[str]) -> tuple[int, list[str]]:
    """The reports of these windows that can be read, and what is wrong with the others and with
    kept sums."""
    from deniable_collector.stores.sealed import DamagedBlock

    damaged = []
    try:
        # Without the cells, which the digest covers as well.
        store.row_reports(metric, scheme, labels)
    except DamagedBlock:
        whole = []
        for label in labels:
            try:
                store.row_reports(metric, scheme, [label])
                whole.append(label)
            except DamagedBlock as error:
                damaged.append(str(error))
        labels = whole
    for name in store.sums.names(metric, scheme):
        try:
            store.sums.kept_sum(metric, scheme, name)
        except DamagedBlock as error:
            damaged.append(str(error))
    return sum(store.reports(metric, scheme, labels).values()), damaged


def facts(contents: Contents) -> dict[str, Any]:
    """What a file contains, for JSON."""
    return {
        "origin": contents.origin,
        "schemes": len(contents.schemes),
        "tallies": contents.tallies,
        "rows": contents.rows,
        "reports": contents.reports,
        "sums": contents.sums,
        "sha256": contents.digest,
    }


def summary(contents: Contents) -> str:
    """What a file contains, in words."""
    return (
        f"{counted(contents.reports, 'report')} in "
        f"{counted(contents.tallies, 'tally', 'tallies')} of "
        f"{counted(len(contents.schemes), 'scheme')}{_and_sums(contents.sums)}"
    )


def _and_sums(count: int) -> str:
    return f", and {counted(count, 'sum')} of dropped windows" if count else ""


def print_outcome(outcome: ImportResult, source: str, as_json: bool) -> None:
    """Print what an import has added, and what was there already."""
    added, known = outcome.added, outcome.known
    words = [f"{counted(each.reports, 'report')}{_and_sums(each.sums)}" for each in (added, known)]
    if as_json:
        source_facts = facts(outcome.contents)
        print_json({"added": vars(added), "known": vars(known), "source": source_facts})
    elif not (known.rows or known.sums):
        click.echo(f"added {words[0]} of {source}")
    elif not (added.rows or added.sums):
        # Not "is there": windows that were dropped since are known for eight days.
        click.echo(f"nothing was added: all of {source} had been added before")
    else:
        click.echo(f"added {words[0]} of {source}; {words[1]} had been added before")


def print_json(document: dict[str, Any]) -> None:
    """Print a document as JSON."""
    click.echo(json.dumps(document, indent=2, ensure_ascii=False))


def midnight(day: datetime) -> float:
    """The POSIX time at which a day (UTC) begins."""
    return day.replace(tzinfo=UTC).timestamp()

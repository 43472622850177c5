"""`deniable store`: look into a store, drop old windows, and move tallies between stores."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from deniable.protocol import windows
from deniable.protocol.coded_message import counted
from deniable.tools.command_line import command, json_option, print_json, writing
from deniable_collector.options import store_option
from deniable_collector.settings import Settings

if TYPE_CHECKING:
    from deniable_collector.stores import Store
    from deniable_collector.stores.commits import TallyKey
    from deniable_collector.stores.increments import Held
    from deniable_collector.upkeep.archive import Contents, TallySelection
    from deniable_collector.upkeep.importing import ImportResult

# Stores need numpy, and tables need rich: `--help` waits for neither.

_day = click.DateTime(["%Y-%m-%d"])
_file = click.Path(path_type=Path, dir_okay=False)


_metric = click.option("--metric", multiple=True, metavar="NAME", help="Only this metric.")
_since = click.option("--since", type=_day, help="Only windows that end on this day or later.")
_before = click.option(
    "--before", type=_day, help="Only windows that had ended when this day began."
)
"""The options that select tallies, for `_selection`."""


def _selection(
    metric: tuple[str, ...], since: datetime | None, before: datetime | None
) -> TallySelection:
    if since is not None and before is not None and since >= before:
        raise click.UsageError(
            f"no window ends on {since:%Y-%m-%d} or later and had ended when "
            f"{before:%Y-%m-%d} began: --since must be the earlier day"
        )
    from deniable_collector.upkeep.archive import TallySelection

    first, last = (None if day is None else windows.midnight(day) for day in (since, before))
    return TallySelection(frozenset(metric), first, last)


@contextmanager
def _opened_store(address: str | None, again: str = "") -> Iterator[tuple[Store, str]]:
    """The store at that address, or of the environment, with its kind. `again` is what to know for
    another try, if the store is away."""
    from deniable_collector.stores import StoreUnavailable, open_store

    settings = Settings.from_env()
    settings = dataclasses.replace(settings, store=address or settings.store)
    with closing(open_store(settings)) as opened:
        try:
            yield opened, settings.store.partition(":")[0]
        except StoreUnavailable as error:
            raise click.ClickException(f"{error}: try again later{again}") from error


@contextmanager
def _progress(text: str, quiet: bool) -> Iterator[Callable[[float], None]]:
    """A progress bar in a terminal, which disappears at the end; nothing elsewhere."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    hidden = quiet or not console.is_terminal
    with Progress(console=console, transient=True, disable=hidden) as bar:
        task = bar.add_task(text, total=1.0)
        yield lambda share: bar.update(task, completed=share)


@command("deniable store info")
@store_option
@json_option
def info(store: str | None, as_json: bool) -> None:
    """Show what a store holds: its metrics with their schemes, windows, reports and counters.

    Checks the digest of each sealed window and kept sum. Exits with 1 if one is damaged, and names
    it.
    """
    with _opened_store(store) as (opened, kind), _progress("reading", as_json) as advance:
        metrics: list[dict[str, Any]] = []
        damaged: list[str] = []
        published = opened.schemes()
        for number, (metric, fingerprint) in enumerate(sorted(published), 1):
            scheme = published[metric, fingerprint]
            labels = opened.windows(metric, fingerprint)
            sums = opened.sums.names((metric, fingerprint))
            names = [*labels, *map(str, sums)]
            reports, unreadable = _readable(opened, (metric, fingerprint), names)
            damaged += unreadable
            metrics.append({
                "metric": metric,
                "scheme": fingerprint,
                "mechanism": scheme.mechanism.name,
                "windows": len(labels),
                "sealed": len(opened.sealed(metric, fingerprint, labels)),
                "first": labels[0] if labels else None,
                "last": labels[-1] if labels else None,
                "reports": reports,
                "sums": {
                    "copies": sum(not name.kept for name in sums),
                    "kept": [name.period for name in sums if name.kept],
                    "dropped_windows": len(opened.dropped(metric, fingerprint)),
                },
                "counters": sum(row.width for row in scheme.rows) * len(labels),
            })  # fmt: skip
            advance(number / len(published))
        document = {"kind": kind, "shards": opened.shards, "schemes": metrics}
    for why in damaged:
        click.echo(f"warning: {why}", err=True)
    if as_json:
        print_json(document)
    else:
        _print(document)
    if damaged:
        raise SystemExit(1)


def _readable(store: Store, of: tuple[str, str], names: list[str]) -> tuple[int, list[str]]:
    """The reports of those of these windows that can be read; and what is wrong with the others and
    with sums."""
    from deniable_collector.stores.sealed import DamagedBlock
    from deniable_collector.stores.sums import is_sum

    rows, reports, damaged = len(store.shape(of).widths), 0, list[str]()

    def take(tally: TallyKey, held: Held) -> None:
        nonlocal reports
        try:
            # Without the cells, which the digest covers as well.
            found = int(held.reports(tally, rows).sum())
        except DamagedBlock as error:
            damaged.append(str(error))
        else:
            reports += 0 if is_sum(tally.window) else found

    for shard in range(store.shards):
        store.read(shard, of, names, take)
    return reports, damaged


def _print(document: dict[str, Any]) -> None:
    """What `info` shows in a terminal."""
    from rich.console import Console
    from rich.table import Table

    metrics = document["schemes"]
    sealed, tallies = (sum(each[name] for each in metrics) for name in ("sealed", "windows"))
    click.echo(
        f"{document['kind']}, {counted(document['shards'], 'shard')}; {sealed:,} of "
        f"{counted(tallies, 'tally', 'tallies')} sealed"
    )
    table = Table(box=None, pad_edge=False)
    for heading in ("metric", "scheme", "windows", "from", "reports", "counters"):
        right = heading in ("windows", "reports", "counters")
        table.add_column(heading, justify="right" if right else "left", overflow="fold")
    for each in metrics:
        labels = f"{each['first']} to {each['last']}" if each["windows"] else ""
        count, reports, counters = (f"{each[of]:,}" for of in ("windows", "reports", "counters"))
        table.add_row(each["metric"], each["scheme"], count, labels, reports, counters)
    Console().print(table)
    for each in metrics:
        if kept := each["sums"]["kept"]:
            count = counted(each["sums"]["dropped_windows"], "window")
            click.echo(
                f"{each['metric']}: {count} dropped, whose sums are in {kept[0]} to {kept[-1]} "
                f"({counted(len(kept), 'sum')})"
            )


@command("deniable store drop --before 2026-10-01 --dry-run")
@click.option("--before", type=_day, required=True, help="The day before which they had ended.")
@click.option("--dry-run", is_flag=True, help="Say what would go, and change nothing.")
@store_option
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
def drop(before: datetime, dry_run: bool, store: str | None, yes: bool, as_json: bool) -> None:
    """Delete every window that had ended when a day (UTC) began. It cannot be undone.

    So are the sums of windows that were dropped before, if their week, month or quarter had ended.
    """
    from deniable_collector.upkeep.keeper import SETTLED

    moment = windows.midnight(before)
    with _opened_store(store) as (opened, _):
        schemes = sorted(opened.schemes())
        found = [
            (*of, label)
            for of in schemes
            for label in opened.windows(*of)
            if windows.end(label) <= moment
        ]
        sums = [
            (*of, name)
            for of in schemes
            for name in opened.sums.names(of)
            if name.kept and name.ended(moment)
        ]
        metrics = sorted({metric for metric, _, _ in found})
        text = f"{counted(len(found), 'tally', 'tallies')} of {counted(len(metrics), 'metric')}"
        if sums:
            text += f" and {counted(len(sums), 'sum')} of dropped windows"
        if found and moment > time.time() - SETTLED:
            click.echo(
                "warning: windows that have not ended, or ended in the last seven days, may "
                "still accept reports, and would start again at zero",
                err=True,
            )
        if not dry_run and (found or sums):
            if not yes:
                question = f"Drop {text} that had ended by {before:%Y-%m-%d}, for ever?"
                try:
                    sure = click.confirm(question, err=True)
                except click.Abort:
                    told = "nothing was dropped: answer the question, or confirm with --yes"
                    raise click.ClickException(told) from None
                if not sure:
                    raise click.Abort
            opened.drop(moment)
    if as_json:
        tallies = [dict(zip(("metric", "scheme", "window"), each, strict=True)) for each in found]
        print_json({
            "dropped": not dry_run,
            "before": f"{before:%Y-%m-%d}",
            "tallies": tallies,
            "sums": [
                {"metric": metric, "scheme": scheme, "period": name.period}
                for metric, scheme, name in sums
            ],
        })  # fmt: skip
        return
    for metric in metrics:
        labels = sorted({label for name, _, label in found if name == metric}, key=windows.start)
        click.echo(f"{metric}: {labels[0]} to {labels[-1]}, {counted(len(labels), 'window')}")
    click.echo(f"{text} {'would go' if dry_run else 'dropped'}")


@command("deniable store export sums.jsonl --metric browser --since 2026-11-16")
@click.argument("file", type=_file)
@_metric
@_since
@_before
@click.option("--force", is_flag=True, help="Replace a file that is there.")
@store_option
@json_option
def export_tallies(
    file: Path, force: bool, store: str | None, as_json: bool, **chosen: Any
) -> None:
    """Write tallies to FILE: their exact sums, with the schemes that read them.

    The file names its store as the origin, so that files of several stores can be added up, and
    nothing of one store is added twice.

    Reports may arrive during an export. Select windows that accept no more reports (--before a
    week ago), or later reports will be missing in the file.
    """
    from deniable_collector.upkeep.archive import export

    selection = _selection(**chosen)
    if file.exists() and not force:
        raise click.ClickException(f"{file} is there already: name another file, or --force")
    with _opened_store(store) as (opened, _), _progress("exporting", as_json) as advance:
        _check_metrics(selection, {metric for metric, _ in opened.schemes()})
        with writing(file):
            contents = export(opened, file, selection, advance=advance)
    if as_json:
        print_json({"file": str(file), "bytes": file.stat().st_size, **_facts(contents)})
    else:
        click.echo(f"{file}: {_summary(contents)}")


@command("deniable store import sums.jsonl --dry-run")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False, exists=True))
@_metric
@_since
@_before
@click.option("--dry-run", is_flag=True, help="Check the whole file, and change nothing.")
@store_option
@json_option
def import_tallies(
    file: Path, dry_run: bool, store: str | None, as_json: bool, **chosen: Any
) -> None:
    """Add the tallies of FILE to a store.

    The whole file is checked before anything is added. Tallies that were added from the same
    file in the last eight days are not added again. So run the same command again to complete
    an import that was interrupted.
    """
    from deniable_collector.upkeep.archive import check
    from deniable_collector.upkeep.importing import load

    selection = _selection(**chosen)
    with _progress("importing", as_json) as advance:
        if dry_run:
            contents, outcome = check(file, advance=advance), None
            _check_metrics(selection, {metric for metric, _ in contents.schemes})
        else:
            again = "; what this command has added is not added twice"
            with _opened_store(store, again) as (opened, _):
                outcome = load(file, opened, time.time(), selection, advance=advance)
            contents = outcome.contents
    if outcome is not None:
        _print_outcome(outcome, str(file), as_json)
    elif as_json:
        print_json({"file": str(file), **_facts(contents)})
    else:
        click.echo(f"{file} is sound: {_summary(contents)}")


def _check_metrics(selection: TallySelection, known: set[str]) -> None:
    """Refuse metrics that do not exist."""
    if unknown := sorted(selection.metrics - known):
        listed = ", ".join(sorted(known)) or "none"
        raise click.ClickException(f"no metric {', '.join(unknown)} here; there is: {listed}")


def _facts(contents: Contents) -> dict[str, Any]:
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


def _summary(contents: Contents) -> str:
    """What a file contains, in words."""
    return (
        f"{counted(contents.reports, 'report')} in "
        f"{counted(contents.tallies, 'tally', 'tallies')} of "
        f"{counted(len(contents.schemes), 'scheme')}{_and_sums(contents.sums)}"
    )


def _and_sums(count: int) -> str:
    return f", and {counted(count, 'sum')} of dropped windows" if count else ""


def _print_outcome(outcome: ImportResult, source: str, as_json: bool) -> None:
    """Print what an import has added, and what was there already."""
    added, known = outcome.added, outcome.known
    words = [f"{counted(each.reports, 'report')}{_and_sums(each.sums)}" for each in (added, known)]
    if as_json:
        source_facts = _facts(outcome.contents)
        print_json({"added": vars(added), "known": vars(known), "source": source_facts})
    elif not (known.rows or known.sums):
        click.echo(f"added {words[0]} of {source}")
    elif not (added.rows or added.sums):
        click.echo(f"nothing was added: all of {source} had been added before")
    else:
        click.echo(f"added {words[0]} of {source}; {words[1]} had been added before")
    if outcome.dropped:
        click.echo(
            f"warning: {counted(outcome.dropped, 'window')} of {source} had been added before and "
            "then dropped, and a store knows for up to 13 days what it has added: import the file "
            "again after that, or into another store",
            err=True,
        )

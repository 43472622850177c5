"""`deniable store`: look into a store, drop old windows, and move tallies between stores."""

from __future__ import annotations

import time
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from deniable.protocol import windows
from deniable.protocol.coded_message import counted
from deniable.tools.command_line import command, json_option
from deniable_collector.options import store_option
from deniable_collector.upkeep.tools import (
    check_metrics,
    facts,
    midnight,
    opened_store,
    print_json,
    print_outcome,
    progress,
    readable,
    summary,
)

if TYPE_CHECKING:
    from deniable_collector.upkeep.archive import TallySelection

# numpy and rich take longer to import than `deniable --help` should.


_day = click.DateTime(["%Y-%m-%d"])
_file = click.Path(path_type=Path, dir_okay=False)


_metric = click.option("--metric", multiple=True, metavar="NAME", help="Only this metric.")
_since = click.option("--since", type=_day, help="Only windows that begin on this day or later.")
_before = click.option(
    "--before", type=_day, help="Only windows that had ended when this day began."
)
"""The options that select tallies, for `_selection`."""


def _selection(
    metric: tuple[str, ...], since: datetime | None, before: datetime | None
) -> TallySelection:
    from deniable_collector.upkeep.archive import TallySelection

    if since is not None and before is not None and since >= before:
        raise click.UsageError(
            f"no window begins on {since:%Y-%m-%d} or later and had ended when "
            f"{before:%Y-%m-%d} began: --since must be the earlier day"
        )
    first, last = (None if day is None else midnight(day) for day in (since, before))
    return TallySelection(frozenset(metric), first, last)


@command("deniable store info")
@store_option
@json_option
def info(store: str | None, as_json: bool) -> None:
    """Show what a store holds: its metrics with their schemes, windows, reports and counters.

    Checks the digest of each sealed window and kept sum. Exits with 1 if one is damaged, and names
    it.
    """
    with opened_store(store) as (opened, kind), progress("reading", as_json) as advance:
        metrics: list[dict[str, Any]] = []
        damaged: list[str] = []
        published = opened.schemes()
        for number, (metric, schemes) in enumerate(sorted(published.items()), 1):
            for fingerprint, scheme in sorted(schemes.items()):
                labels = opened.windows(metric, fingerprint)
                width = sum(row.width for row in scheme.rows)
                reports, unreadable = readable(opened, metric, fingerprint, labels)
                sums = opened.sums.names(metric, fingerprint)
                dropped = opened.dropped(metric, fingerprint)
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
                        "dropped_windows": len(dropped),
                    },
                    "counters": width * len(labels),
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

    moment = midnight(before)
    with opened_store(store) as (opened, _):
        schemes = [
            (metric, fingerprint)
            for metric, published in sorted(opened.schemes().items())
            for fingerprint in sorted(published)
        ]
        found = [
            (*of, label)
            for of in schemes
            for label in opened.windows(*of)
            if windows.end(label) <= moment
        ]
        sums = [
            (*of, name)
            for of in schemes
            for name in opened.sums.names(*of)
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
                click.confirm(question, abort=True, err=True)
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
    with opened_store(store) as (opened, _), progress("exporting", as_json) as advance:
        check_metrics(selection, opened.schemes())
        contents = export(opened, file, selection, advance=advance)
    if as_json:
        print_json({"file": str(file), "bytes": file.stat().st_size, **facts(contents)})
    else:
        click.echo(f"{file}: {summary(contents)}")


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
    from deniable_collector.upkeep.archive_reading import check
    from deniable_collector.upkeep.importing import load

    selection = _selection(**chosen)
    with progress("importing", as_json) as advance:
        if dry_run:
            contents, outcome = check(file, advance=advance), None
            check_metrics(selection, dict(contents.schemes))
        else:
            again = "; what this command has added is not added twice"
            with opened_store(store, again) as (opened, _):
                outcome = load(file, opened, time.time(), selection, advance=advance)
            contents = outcome.contents
    if outcome is not None:
        print_outcome(outcome, str(file), as_json)
    elif as_json:
        print_json({"file": str(file), **facts(contents)})
    else:
        click.echo(f"{file} is sound: {summary(contents)}")

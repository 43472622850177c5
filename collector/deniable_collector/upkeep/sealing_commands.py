"""`deniable store seal` and `verify`: compress windows that have closed, and check all blocks."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from deniable_collector.upkeep.choosing import address_option, as_json_option, chosen
from deniable_collector.upkeep.tools import (
    check_metrics,
    many,
    opened_store,
    print_json,
    progress,
    settings_of,
)

if TYPE_CHECKING:
    from deniable_collector.upkeep.archive import TallySelection

# numpy and rich take longer to import than `deniable --help` should.

__all__ = ["seal", "verify"]


@click.command()
@chosen
@click.option("--dry-run", is_flag=True, help="Say what would be sealed, and change nothing.")
@address_option
@as_json_option
def seal(selection: TallySelection, dry_run: bool, address: str | None, as_json: bool) -> None:
    """Compress the windows that accept no more reports, and show what was saved.

    Sums stay exact: a sealed tally is read, exported and merged as before. Each one is written,
    read back and compared before its open form goes, so the command can be ended at any moment.
    The collector does the same by itself, slowly, unless DENIABLE_SEAL is off. DENIABLE_ARCHIVE
    names a folder for what is sealed.
    """
    from deniable_collector.upkeep.sealing import Outcome, open_tallies, seal_all

    with opened_store(address) as (opened, _), progress("sealing", as_json) as advance:
        check_metrics(selection, opened.schemes())
        tallies = open_tallies(opened, time.time(), selection)
        outcome = Outcome() if dry_run else seal_all(opened, tallies, advance=advance)
    failed = [{**tally._asdict(), "error": why} for tally, why in outcome.failed]
    if as_json:
        print_json({
            "sealed": not dry_run,
            "tallies": len(tallies) if dry_run else outcome.tallies,
            "bytes": {"before": outcome.before, "after": outcome.after},
            "failed": failed,
        })  # fmt: skip
    elif dry_run:
        click.echo(f"{many(len(tallies), 'tally', 'tallies')} would be sealed")
    elif outcome.tallies:
        times = outcome.before / max(1, outcome.after)
        click.echo(
            f"sealed {many(outcome.tallies, 'tally', 'tallies')}: {outcome.before:,} bytes are now "
            f"{outcome.after:,} (1/{times:.1f})"
        )
    else:
        click.echo("nothing to seal: each window is sealed, or may still accept reports")
    if failed:
        why = "; ".join(each["error"] for each in failed[:3])
        raise click.ClickException(
            f"{many(len(failed), 'tally', 'tallies')} could not be sealed, and stay open: {why}"
        )


@click.command()
@chosen
@address_option
@as_json_option
def verify(selection: TallySelection, address: str | None, as_json: bool) -> None:
    """Read every tally, and check the digest of each that is sealed.

    Exits with 1 if any cannot be read, and names it. Lists the files of DENIABLE_ARCHIVE that
    this store does not use, too: a crash or an import into a sealed window may leave one. They can
    be deleted if they are older than a day and no other store uses this folder.
    """
    from deniable_collector.stores import StoreError, StoreUnavailable
    from deniable_collector.stores.blocks import UnreadableFile, files_in

    damaged = []
    with opened_store(address) as (opened, _), progress("reading", as_json) as advance:
        published = opened.schemes()
        check_metrics(selection, published)
        plan = [
            (metric, scheme, label)
            for metric, schemes in sorted(published.items())
            for scheme in sorted(schemes)
            for label in opened.windows(metric, scheme)
            if selection.takes(metric, label)
        ]
        for number, (metric, scheme, label) in enumerate(plan, 1):
            try:
                opened.tally(metric, scheme, [label])
            except StoreError as error:
                if isinstance(error, StoreUnavailable) and not isinstance(error, UnreadableFile):
                    raise
                damaged.append(
                    {"metric": metric, "scheme": scheme, "window": label, "error": str(error)}
                )
            advance(number / len(plan))
        folder = settings_of(address, None).archive
        # Read before those in use, or one that is sealed meanwhile would be listed.
        there = files_in(Path(folder)) if folder else []
        used = opened.block_files()
        unused = [name for name in there if name not in used]
    if as_json:
        print_json({"tallies": len(plan), "damaged": damaged, "unused_files": unused})
    else:
        for name in unused:
            click.echo(f"not used by this store: {name}")
        for each in damaged:
            click.echo(each["error"])
        sound = len(plan) - len(damaged)
        click.echo(f"{many(sound, 'tally', 'tallies')} can be read, {len(damaged)} cannot")
    if damaged:
        raise SystemExit(1)

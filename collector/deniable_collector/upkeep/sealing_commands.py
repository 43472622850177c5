"""`deniable store seal`, `verify` and `move`: compress windows that have closed, check all blocks,
and bring them elsewhere."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from deniable.told import counted
from deniable_collector.upkeep.choosing import address_option, as_json_option, chosen
from deniable_collector.upkeep.tools import (
    check_metrics,
    opened_store,
    print_json,
    progress,
    settings_of,
)

if TYPE_CHECKING:
    from deniable_collector.upkeep.archive import TallySelection

# numpy and rich take longer to import than `deniable --help` should.

__all__ = ["move", "seal", "verify"]


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
    names a folder or a bucket for what is sealed.

    Where all windows of a week, month or quarter are sealed, their sum is added, so that a year is
    read from a dozen blocks.
    """
    from deniable_collector.upkeep.sealing import (
        Outcome,
        add_up_all,
        open_tallies,
        seal_all,
        settled_periods,
    )

    with opened_store(address) as (opened, _), progress("sealing", as_json) as advance:
        check_metrics(selection, opened.schemes())
        tallies = open_tallies(opened, time.time(), selection)
        outcome, sums = Outcome(), Outcome()
        if not dry_run:
            outcome = seal_all(opened, tallies, advance=lambda share: advance(share / 2))
            periods = settled_periods(opened, time.time(), selection)
            sums = add_up_all(opened, periods, advance=lambda share: advance(0.5 + share / 2))
    failed = [{**tally._asdict(), "error": why} for tally, why in outcome.failed + sums.failed]
    if as_json:
        print_json({
            "sealed": not dry_run,
            "tallies": len(tallies) if dry_run else outcome.tallies,
            "bytes": {"before": outcome.before, "after": outcome.after},
            "sums": {"made": sums.tallies, "bytes": sums.after},
            "failed": failed,
        })  # fmt: skip
    elif dry_run:
        click.echo(f"{counted(len(tallies), 'tally', 'tallies')} would be sealed")
    elif outcome.tallies:
        times = outcome.before / max(1, outcome.after)
        click.echo(
            f"sealed {counted(outcome.tallies, 'tally', 'tallies')}: {outcome.before:,} bytes are "
            f"now {outcome.after:,} (1/{times:.1f})"
        )
    elif not sums.tallies:
        click.echo("nothing to seal: each window is sealed, or may still accept reports")
    if sums.tallies and not as_json:
        click.echo(
            f"added {counted(sums.tallies, 'sum')} of weeks, months or quarters: "
            f"{sums.after:,} bytes"
        )
    if failed:
        why = "; ".join(each["error"] for each in failed[:3])
        raise click.ClickException(
            f"{counted(len(failed), 'tally', 'tallies')} could not be sealed, and stay open: {why}"
        )


@click.command()
@chosen
@address_option
@as_json_option
def verify(selection: TallySelection, address: str | None, as_json: bool) -> None:
    """Read every tally, and check the digest of each that is sealed.

    Sums over weeks, months and quarters are compared with their windows, as far as these are there.

    Exits with 1 if any cannot be read, and names it. Lists the files of DENIABLE_ARCHIVE that
    this store does not use, too: a crash or an import into a sealed window may leave one. They can
    be deleted if they are older than a day and no other store uses this folder.
    """
    from deniable_collector.stores import StoreError, StoreUnavailable
    from deniable_collector.stores.commits import TallyKey
    from deniable_collector.stores.sealed.archive import place_of
    from deniable_collector.stores.sealed.blocks import UnreadableFile
    from deniable_collector.stores.sealed.places import PlaceTrouble

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
                opened.own_tally(TallyKey(metric, scheme, label))
            except StoreError as error:
                if isinstance(error, StoreUnavailable) and not isinstance(error, UnreadableFile):
                    raise
                damaged.append(
                    {"metric": metric, "scheme": scheme, "window": label, "error": str(error)}
                )
            advance(number / len(plan))
        wrong = [
            {"metric": metric, "scheme": scheme, "error": why}
            for metric, schemes in sorted(published.items())
            if not selection.metrics or metric in selection.metrics
            for scheme in sorted(schemes)
            for why in opened.sums.check(metric, scheme)
        ]
        place = place_of(settings_of(address, None).archive)
        there: list[str] = []
        if place is not None:
            try:
                # Read before those in use, or one that is sealed meanwhile would be listed.
                there = place.names()
            except PlaceTrouble as error:
                raise StoreUnavailable(f"{place.what} cannot be read ({error})") from error
        used = opened.block_files()
        unused = [name for name in there if name not in used]
    if as_json:
        print_json({
            "tallies": len(plan),
            "damaged": damaged,
            "sums": wrong,
            "unused_files": unused,
        })  # fmt: skip
    else:
        for name in unused:
            click.echo(f"not used by this store: {name}")
        if unused and len(unused) == len(there):
            click.echo(
                "none of the files in DENIABLE_ARCHIVE is used by this store. If they are those of "
                "a store that was lost, restore it (docs/backup.md) before you delete any"
            )
        for each in damaged + wrong:
            click.echo(each["error"])
        sound = len(plan) - len(damaged)
        click.echo(f"{counted(sound, 'tally', 'tallies')} can be read, {len(damaged)} cannot")
    if damaged or wrong:
        raise SystemExit(1)


_STORE = "store"


@click.command()
@click.argument("place")
@address_option
@as_json_option
def move(place: str, address: str | None, as_json: bool) -> None:
    """Bring the blocks of all sealed windows to PLACE: a folder, s3://bucket/prefix, or `store` for
    the store itself.

    Collectors and dashboards can run meanwhile. To another folder or bucket, first copy:
    run this, set DENIABLE_ARCHIVE to PLACE for all processes, and run it again for what was sealed
    meanwhile or lies in the store. Nothing is deleted; what was moved before is not moved again.
    """
    from deniable_collector.stores.sealed.archive import Archive
    from deniable_collector.upkeep.moving import move_blocks

    if not place:
        raise click.UsageError(
            f"PLACE is empty: name a folder or a bucket, or `{_STORE}` for the store itself"
        )
    with opened_store(address) as (opened, _), progress("moving", as_json) as advance:
        here = Archive(settings_of(address, None).archive)
        to = "" if place == _STORE else place
        moved = move_blocks(opened, here, to, advance=advance)
    failed = [{**tally._asdict(), "error": why} for tally, why in moved.failed]
    if as_json:
        print_json({
            "moved": moved.blocks,
            "bytes": moved.bytes,
            "there": moved.there,
            "in_store": moved.waiting,
            "failed": failed,
        })  # fmt: skip
    else:
        click.echo(
            f"moved {counted(moved.blocks, 'block')} of {moved.bytes:,} bytes; {moved.there:,} "
            f"{'was' if moved.there == 1 else 'were'} there already"
        )
        if to != here.address:
            said = "unset DENIABLE_ARCHIVE" if not to else "set DENIABLE_ARCHIVE to it"
            rest = f": {counted(moved.waiting, 'block')} in the store will follow" * bool(
                moved.waiting
            )
            click.echo(f"next: {said} for all processes, then run this again{rest}")
    if failed:
        why = "; ".join(each["error"] for each in failed[:3])
        raise click.ClickException(
            f"{counted(len(failed), 'block')} could not be moved, and stay where they are: {why}"
        )

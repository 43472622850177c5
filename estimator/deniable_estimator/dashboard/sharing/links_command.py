"""`deniable links`: list and revoke the read-only links of a dashboard."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

import click

from deniable_estimator.dashboard.sharing.links import SharedLink, SharedLinks

__all__ = ["links"]

_T = TypeVar("_T")


@click.group()
def links() -> None:
    """Read-only links to single views of the dashboard, which people make with "Share"."""


_file = click.option(
    "--file",
    "path",
    envvar="DENIABLE_DASHBOARD_LINKS",
    show_envvar=True,
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="The dashboard's file of links.",
)
_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")


@links.command("list")
@click.option("--by", metavar="NAME", help="Only those that NAME has made.")
@_file
@_json
def list_links(by: str | None, path: Path, as_json: bool) -> None:
    """List links, the newest first: id, last day, who has made it, view and note.

    Links that have ended stay in the list for 30 days. No list shows what opens a link: it is not
    kept.
    """
    today = datetime.now(UTC).date()
    found = _asked(path, lambda kept: kept.listed(by))
    if as_json:
        told = [
            asdict(each)
            | {"made": str(each.made), "until": str(each.until), "open": each.until >= today}
            for each in found
        ]
        click.echo(json.dumps({"links": told}))
        return
    for each in found:
        ended = "" if each.until >= today else "  (ended)"
        note = f"  {each.note}" if each.note else ""
        click.echo(f"{each.id}  {each.until}{ended}  {_maker(each)}  {each.address}{note}")
    if not found:
        click.echo("There are no links.", err=True)


@links.command()
@click.argument("ids", nargs=-1, metavar="ID...")
@click.option("--by", metavar="NAME", help="All that NAME has made.")
@click.option("--all", "everything", is_flag=True, help="All links.")
@_file
@_json
def revoke(
    ids: tuple[str, ...], by: str | None, everything: bool, path: Path, as_json: bool
) -> None:
    """End links at once: those with these IDs, or all of NAME, or all."""
    if (bool(ids), by is not None, everything).count(True) != 1:
        raise click.UsageError("give the IDs of links, or --by NAME, or --all")

    def work(kept: SharedLinks) -> list[SharedLink]:
        found = kept.listed(by)
        if unknown := {*ids} - {each.id for each in found}:
            raise click.ClickException(
                f"there is no link {min(unknown)}, so nothing was revoked: `deniable links list` "
                "shows those that there are"
            )
        gone = [each for each in found if not ids or each.id in ids]
        for each in gone:
            kept.revoke(each.id)
        return gone

    gone = _asked(path, work)
    if as_json:
        click.echo(json.dumps({"revoked": [each.id for each in gone]}))
        return
    for each in gone:
        click.echo(f"{each.id} is revoked: {each.address}")
    if not gone:
        click.echo("There was no link to revoke.", err=True)


def _maker(link: SharedLink) -> str:
    return link.maker or "(dashboard's token)"


def _asked(path: Path, work: Callable[[SharedLinks], _T]) -> _T:
    if not path.is_file():
        raise click.ClickException(
            f"there is no file {path}: name the one in the dashboard's DENIABLE_DASHBOARD_LINKS. "
            "Without that setting links end when the dashboard stops"
        )
    try:
        return work(SharedLinks(str(path)))
    except (sqlite3.Error, OSError) as error:
        raise click.ClickException(f"{path} cannot be used: {error}") from None

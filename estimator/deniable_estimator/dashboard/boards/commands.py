"""`deniable boards`: lists the boards of a folder, and checks them."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import click

from deniable import DeniableError, Registry
from deniable_collector.options import registry_option

__all__ = ["boards"]


@click.command()
@click.argument(
    "folder",
    envvar="DENIABLE_BOARDS",
    default="boards",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
)
@registry_option
@click.option("--check", is_flag=True, help="Check every board; exit 1 if one has mistakes.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON and nothing else.")
def boards(folder: Path, registry: Path, check: bool, as_json: bool) -> None:
    """List the boards of FOLDER (DENIABLE_BOARDS, else ./boards) with their charts.

    Each board is a file NAME.toml, and the dashboard shows it at /boards/NAME.
    """
    from deniable_estimator.dashboard.boards.folder import BoardFolder

    # Each mistake is told below. Without a handler, the log would tell it on standard error too.
    logging.getLogger("deniable.dashboard").addHandler(logging.NullHandler())
    try:
        kept = BoardFolder(folder, Registry.load(registry))
    except DeniableError as error:
        raise click.ClickException(str(error)) from error
    rows: list[dict[str, object]] = []
    mistakes: list[str] = []
    for name, board, wrong in kept.all():
        told = (
            [each.describe(str(folder / f"{name}.toml")) for each in wrong.problems]
            if wrong
            else []
        )
        mistakes += told
        rows.append(
            {
                "name": name,
                "title": board.title if board else None,
                "charts": len(board.charts) if board else None,
                "mistakes": told,
            }
        )
    for name in kept.refused:
        line = (
            f"{folder / name}: error: is no board: a name has up to 64 of a-z, 0-9, _ and -, and a "
            "folder up to 100 boards"
        )
        mistakes.append(line)
        rows.append({"name": name, "title": None, "charts": None, "mistakes": [line]})
    if as_json:
        click.echo(json.dumps({"boards": rows}, ensure_ascii=False))
    elif check:
        for line in mistakes:
            click.echo(line, err=True)
        if not mistakes:
            click.echo(f"{folder}: {_counted(len(rows))}, no mistakes")
    else:
        _print(rows, folder)
    if check and mistakes:
        raise SystemExit(1)


def _print(rows: list[dict[str, object]], folder: Path) -> None:
    if not rows:
        click.echo(f"{folder} has no boards: docs/boards.md shows how to write one")
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from deniable_estimator.isolation import isolated

    table = Table(box=None, padding=(0, 2, 0, 0))
    for heading in ("name", "title", "charts", "mistakes"):
        table.add_column(heading, overflow="fold")
    for row in rows:
        wrong = row["mistakes"]
        assert isinstance(wrong, list)
        cells = (row["name"], isolated(str(row["title"] or "")), row["charts"], len(wrong) or "")
        table.add_row(*(Text("" if each is None else str(each)) for each in cells))
    Console(highlight=False).print(table)


def _counted(count: int) -> str:
    return "1 board" if count == 1 else f"{count} boards"

"""`deniable annotate`: adds, lists and removes the annotations that charts show."""

from __future__ import annotations

import json
import sys
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from deniable import Registry
from deniable_collector.options import SettingOption
from deniable_estimator.terminal.options import registry_option, reported

if TYPE_CHECKING:
    from deniable_estimator.annotations import Annotation

__all__ = ["annotate"]


class _When(click.ParamType[date]):
    name = "date"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> date:
        if isinstance(value, date):
            return value
        text = str(value)
        try:
            return date.fromisoformat(text)
        except ValueError:
            pass
        try:
            found = datetime.fromisoformat(text)
            return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
        except (ValueError, OverflowError):
            self.fail(
                "must be a day like 2026-11-20, or a time like 2026-11-20T14:30Z (UTC unless it "
                "has an offset)",
                param,
                ctx,
            )


@click.command()
@click.argument("text", required=False)
@click.option("--date", "when", type=_When(), help="Day, or time, of it; today (UTC) by default.")
@click.option("--link", help="A page about it, https or http.")
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    metavar="NAME",
    help="A metric or a pattern like 'checkout_*' that it concerns; may be given several times. "
    "Without any it concerns all.",
)
@click.option("--list", "listing", is_flag=True, help="List the annotations, the earliest first.")
@click.option("--remove", type=click.IntRange(1), metavar="N", help="Remove the N-th of the file.")
@click.option("--check", is_flag=True, help="Check the file, and say what may not be meant.")
@click.option(
    "--file",
    "path",
    cls=SettingOption,
    envvar="DENIABLE_ANNOTATIONS",
    default="annotations.toml",
    show_default=True,
    show_envvar=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="The file of annotations.",
)
@registry_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON and nothing else.")
@reported
def annotate(
    text: str | None,
    when: date | None,
    link: str | None,
    metrics: tuple[str, ...],
    listing: bool,
    remove: int | None,
    check: bool,
    path: Path,
    registry: Path,
    as_json: bool,
) -> None:
    """Note what happened on a day, like a release: charts show it beside the metrics.

    \b
      deniable annotate "Release 4.2" --date 2026-11-20 --metric browser
      deniable annotate --list
      deniable annotate --remove 3

    The file keeps its comments and its order. A dashboard with DENIABLE_ANNOTATIONS set to the file
    shows a change with the next page.
    """
    from deniable_estimator.annotations.editing import add_annotation, remove_annotation

    asked = [text is not None, listing, remove is not None, check]
    if sum(asked) != 1:
        raise click.UsageError("give either a TEXT to add, or --list, or --remove N, or --check")
    if text is None and (when or link or metrics):
        raise click.UsageError("--date, --link and --metric belong to a TEXT that is added")
    if listing:
        _list(path, as_json)
    elif check:
        _check(path, registry, as_json)
    elif remove is not None:
        gone = remove_annotation(path, remove)
        _tell(f"removed {remove}: {gone.told()}", gone, path, as_json)
    elif text is not None:
        _check_metrics(metrics, registry)
        made = add_annotation(path, text, when or datetime.now(UTC).date(), link, metrics)
        _tell(f"added {made.number}: {made.told()}", made, path, as_json)


def _tell(text: str, annotation: Annotation, path: Path, as_json: bool) -> None:
    click.echo(_json(annotation.to_dict()) if as_json else f"{path}: {text}")


def _list(path: Path, as_json: bool) -> None:
    from deniable_estimator.annotations import load_annotations

    found = load_annotations(path)
    if as_json:
        click.echo(_json({"annotations": [each.to_dict() for each in found]}))
        return
    if not found:
        click.echo(f'{path} has no annotations: add one with `deniable annotate "Release 4.2"`')
        return
    if not sys.stdout.isatty():
        # Whoever reads a pipe wants an address whole: one line each, columns apart by a tab.
        for each in found:
            about = ", ".join(each.metrics) or "all"
            cells = (str(each.number), str(each.when), each.text, about, each.link or "")
            click.echo("\t".join(cells))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from deniable_estimator.isolation import isolated

    table = Table(box=None, padding=(0, 2, 0, 0))
    for heading in ("N", "date", "text", "metrics", "link"):
        table.add_column(heading, overflow="fold")
    for each in found:
        about = ", ".join(each.metrics) or "all"
        cells = (str(each.number), each.when, isolated(each.text), about, each.link or "")
        # As text, not as markup: an entry may hold brackets.
        table.add_row(*map(Text, cells))
    Console(highlight=False).print(table)


def _check(path: Path, registry: Path, as_json: bool) -> None:
    from deniable_estimator.annotations import load_annotations
    from deniable_estimator.annotations.file import warnings_of

    found = load_annotations(path)
    declared = Registry.load(registry) if registry.exists() else None
    warnings = warnings_of(found, declared.metrics) if declared else ()
    if as_json:
        told = [each.describe(str(path)) for each in warnings]
        click.echo(_json({"annotations": len(found), "warnings": told}))
        return
    for each in warnings:
        click.echo(each.describe(str(path)), err=True)
    if declared is None:
        click.echo(f"names of metrics were not checked: there is no {registry}", err=True)
    count = "1 annotation" if len(found) == 1 else f"{len(found)} annotations"
    click.echo(f"{path}: {count}, no mistakes")


def _check_metrics(metrics: tuple[str, ...], registry: Path) -> None:
    """Refuse a name that no metric has, where the registry is at hand."""
    if not metrics:
        return
    if not registry.exists():
        click.echo(f"the metrics were not checked: there is no {registry}", err=True)
        return
    from fnmatch import fnmatchcase

    from deniable_estimator.annotations.file import no_metric

    declared = Registry.load(registry).metrics
    for each in metrics:
        if not any(fnmatchcase(name, each) for name in declared):
            raise click.BadParameter(f"{no_metric(each, declared)}", param_hint="--metric")


def _json(document: object) -> str:
    return json.dumps(document, ensure_ascii=False, allow_nan=False)

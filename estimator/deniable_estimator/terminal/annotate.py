"""`deniable annotate`: adds an annotation that charts show, as an app's release job does."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import UTC, date, datetime
from pathlib import Path

import click

from deniable import Registry
from deniable.tools.command_line import command, json_option
from deniable_collector.options import registry_option
from deniable_estimator.annotations import add_annotation, no_metric
from deniable_estimator.files import ANNOTATIONS, file_in_folder
from deniable_estimator.terminal.options import Parsed


def _when(text: str) -> date:
    """A day, or a time in UTC."""
    with suppress(ValueError):
        return date.fromisoformat(text)
    try:
        found = datetime.fromisoformat(text)
        return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        raise ValueError(
            "must be a day like 2026-11-20, or a time like 2026-11-20T14:30Z (UTC unless it has an "
            "offset)"
        ) from None


@command('deniable annotate "Release 4.3" --date 2026-11-20 --metric browser')
@click.argument("text")
@click.option(
    "--date",
    "when",
    type=Parsed("date", _when),
    help="Day, or time, of it; today (UTC) by default.",
)
@click.option("--link", help="A page about it, https or http.")
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    metavar="NAME",
    help="A metric or a pattern like 'checkout_*' that it concerns; may be given several times. "
    "Without any it concerns all.",
)
@click.option(
    "--file",
    "path",
    default=lambda: file_in_folder(ANNOTATIONS),
    show_default="annotations.toml in DENIABLE_DATA",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The file of annotations.",
)
@registry_option
@json_option
def annotate(
    text: str,
    when: date | None,
    link: str | None,
    metrics: tuple[str, ...],
    path: Path,
    registry: Path,
    as_json: bool,
) -> None:
    """Note what happened on a day, like a release: charts show it beside the metrics.

    The file keeps its comments and its order. A dashboard that keeps its data in that folder
    shows a change with the next page. To change or remove an entry, edit the file; `deniable lint`
    checks it.
    """
    _check_metrics(metrics, registry)
    made = add_annotation(path, text, when or datetime.now(UTC).date(), link, metrics)
    if as_json:
        click.echo(json.dumps(made.to_dict(), ensure_ascii=False, allow_nan=False))
    else:
        click.echo(f"{path}: added {made.number}: {made.told()}")


def _check_metrics(metrics: tuple[str, ...], registry: Path) -> None:
    """Refuse a name that no metric has, where the registry is at hand."""
    if not metrics:
        return
    if not registry.exists():
        click.echo(f"the metrics were not checked: there is no {registry}", err=True)
        return
    declared = Registry.load(registry).metrics
    for each in metrics:
        if wrong := no_metric(each, declared):
            raise click.BadParameter(wrong, param_hint="--metric")

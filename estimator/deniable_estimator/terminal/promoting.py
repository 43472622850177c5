"""How found strings become followed ones.

Found strings become candidates of a string metric, or values of a category. A candidates file keeps
its lines, and is replaced as a whole: a dashboard that reads it meanwhile sees the old one or the
new one. The registry is never written: a category's new values are a proposal, because they change
its scheme.
"""

from __future__ import annotations

import json
from pathlib import Path

import click

from deniable import Registry
from deniable.protocol.value_list import read_values, value_text
from deniable.tools.command_line import writing
from deniable_estimator.asking.query import find_metric
from deniable_estimator.files import replace_file
from deniable_estimator.kinds.discovery.finds import Finds


def check_target(registry: Registry, target: str, folder: Path | None) -> None:
    """Refuse what strings cannot be promoted to, before anything is calculated.

    Raises:
        MetricError: the registry declares no such metric.
        click.UsageError: it follows no strings, or no folder of them is named.
    """
    kind = find_metric(registry, target).type.name
    if kind not in ("string", "category"):
        raise click.UsageError(
            f"{target!r} is a {kind} metric: promote to a string metric or to a category"
        )
    if kind == "string" and folder is None:
        raise click.UsageError(
            f"name the folder of {target}.txt, whose strings it follows: --candidates-dir FOLDER"
        )


def promote(registry: Registry, target: str, finds: Finds, folder: Path | None) -> None:
    """Follow the finds in that metric from now on, and say on standard error what was done.

    Raises:
        ValueListError: the candidates file has a mistake.
        click.ClickException: it cannot be written.
    """
    metric = find_metric(registry, target)
    whole, left = _whole(finds)
    if metric.type.name == "category":
        known = list(metric.values)
        new = [each for each in whole if each not in set(known)]
        if new:
            click.echo(f"# Proposed for [metrics.{target}]; it changes the scheme.", err=True)
            click.echo(_toml_list([*known, *new]), err=True)
        where = target
    else:
        path = (folder or Path()) / f"{target}.txt"
        known = read_values(path) if path.is_file() else []
        new = [each for each in whole if each not in set(known)]
        if new:
            with writing(path):
                replace_file(path, "".join(f"{each}\n" for each in (*known, *new)), 0o644)
        where = str(path)
    what = "proposed for" if metric.type.name == "category" else "added to"
    click.echo(f"{len(new):,} {what} {where}, {len(whole) - len(new):,} known.", err=True)
    if left:
        click.echo(
            f"{left:,} left out: they fill the declared length, so they may be only the beginning "
            "of longer strings, or they hold a control character. Add the whole strings by hand.",
            err=True,
        )


def _whole(finds: Finds) -> tuple[list[str], int]:
    """The finds that can be values of a list, and how many cannot."""
    whole: list[str] = []
    for each in finds.finds:
        try:
            text = value_text(each.text)
        except ValueError:
            continue
        if not each.cut:
            whole.append(text)
    return list(dict.fromkeys(whole)), len(finds.finds) - len(whole)


def _toml_list(values: list[str]) -> str:
    """The key of a category, with its strings as TOML and JSON both write them. All but ASCII is
    escaped, as these lines are copied from a terminal."""
    lines = "".join(f'    "{"".join(map(_escaped, each))}",\n' for each in values)
    return f"values = [\n{lines}]"


def _escaped(letter: str) -> str:
    """TOML has no surrogate pairs: large letters have eight digits."""
    return f"\\U{ord(letter):08x}" if letter > "\uffff" else json.dumps(letter)[1:-1]

"""`deniable add`: one more metric in a `metrics.toml`, after showing what the crowd will see."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

import click

from deniable.device.owner import certainty
from deniable.protocol.lasting import lasting, today
from deniable.protocol.mechanisms import Memoizing
from deniable.protocol.metric import Metric
from deniable.protocol.registry import Registry
from deniable.protocol.toml_lines import line_of
from deniable.tools.command_line import MISSING, command, forecasts, writing
from deniable.tools.starting.new_metric import (
    Draft,
    draft,
    expiry,
    is_interactive,
    metric_keys,
    metric_options,
    refusing,
)
from deniable.whole_files import written


@command("deniable add weather --type boolean --epsilon 1 --yes")
@click.argument("metric")
@click.option(
    "--registry",
    "path",
    default="metrics.toml",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="The file (metrics.toml).",
)
@click.option("--dry-run", is_flag=True, help="Show the metric, and write nothing.")
@click.option("--yes", is_flag=True, help="Ask nothing.")
@metric_options
@click.option("--of", metavar="A,B", help="The two metrics of a pair.")
@click.option(
    "--ask", type=click.Choice(["mean", "distribution"]), help="What to know of a number."
)
@click.option("--epsilon", type=float, help="Limit on what one report reveals.")
@click.option("--lifetime-epsilon", type=float, help="Limit on what all reveal.")
def add(metric: str, path: Path, dry_run: bool, yes: bool, **given: Any) -> None:
    """Add METRIC to a metrics.toml: show what the crowd will and will not see, then write it.

    In a terminal it asks for what no option says. Epsilons that are not given are proposed: the
    smallest with which the expected `devices` see enough. What `deniable lint` refuses is not
    written. The rest of the file stays as it is, byte for byte.
    """
    try:
        before = path.read_bytes()
        text = before.decode("utf-8-sig")
    except FileNotFoundError:
        raise click.ClickException(f"there is no file {path}: `deniable init` writes one") from None
    except UnicodeDecodeError:
        raise click.ClickException(f"{path} is not UTF-8 text") from None
    interactive = is_interactive(yes=yes)
    gap = "\n" if text.endswith("\n") else "\n\n"  # an empty line before the table
    with refusing(str(path)):
        registry = Registry.parse(text, str(path), path.parent)
        if metric in registry.metrics:
            line = line_of(registry.lines, ("metrics", metric))
            raise click.ClickException(
                f"{path}:{line}: the metric {metric} is declared already: choose another name, or "
                "edit it"
            )
        keys = metric_keys(metric, given, interactive=interactive)
        made = draft(text + gap, metric, keys | _missing(text, registry), path)
    show(made)
    if dry_run:
        click.echo("Nothing was written (--dry-run).")
        return
    if interactive and not click.confirm(f"Add it to {path}?", default=True):
        click.echo("Nothing was written.")
        return
    if not os.access(path, os.W_OK):
        raise click.ClickException(f"{path} is read-only: let yourself write to it")
    addition = (gap + made.block).replace("\n", "\r\n" if "\r\n" in text else "\n")
    with writing(path), written(path) as file:
        if path.read_bytes() != before:
            raise click.ClickException(f"{path} has changed meanwhile: try again")
        file.write(before + addition.encode())
    click.echo(f"{metric} is in {path}. Give it to the collector first, and then to the app.")


def show(made: Draft) -> None:
    """The new metric as it will stand in the file, what the crowd sees, and lint's remarks."""
    click.echo(made.block)
    crowd = forecasts()
    seen = [f"{MISSING}."] if crowd is None else crowd.seen(made.metric)
    for sentence in (*seen, *_reveals(made.metric, made.registry)):
        click.echo(f"- {sentence}")
    for problem in made.problems:
        click.echo(f"- {problem.severity}: {problem.message}")
    click.echo()


def _reveals(metric: Metric, registry: Registry) -> Iterator[str]:
    """What one report of the metric reveals, what all of them do, and how long there are some."""
    mechanism = metric.scheme.mechanism
    epsilon = mechanism.epsilon
    yield (
        f"One report reveals at most epsilon {epsilon:.4g}: it makes a 50/50 guess between two "
        f"values right at most {certainty(Fraction(epsilon))}% of the time."
    )
    if isinstance(mechanism, Memoizing):
        yield (
            f"All reports of one value together reveal at most epsilon {metric.memo_limit:g}, "
            "however many they are. When the value changes is not hidden "
            "(docs/explanation/many-reports.md)."
        )
    else:
        yield (
            "All reports of a device together reveal at most epsilon "
            f"{metric.lifetime_epsilon:g}, whatever its values were."
        )
    if told := lasting(registry, today()).get(metric.name):
        yield f"{told.text.capitalize()}, if it uses the app every day."


def _missing(text: str, registry: Registry) -> dict[str, Any]:
    """The keys that a metric needs and [defaults] does not give."""
    defaults = tomllib.loads(text).get("defaults", {})
    keys: dict[str, Any] = {}
    if "owner" not in defaults:
        keys["owner"] = next(iter(registry)).owner
    if defaults.get("expires", date.min) < today():
        keys["expires"] = expiry()
    stated = [each.devices for each in registry if each.devices is not None]
    if stated and "devices" not in defaults:
        keys["devices"] = max(stated)  # one app runs on the same devices
    return keys

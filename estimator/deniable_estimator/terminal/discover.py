"""`deniable discover`: the strings that a discovery metric found, and what to do with them.

Exit codes: 0 for a result, also if nothing was found; 1 for an error, 2 for a wrong call, 3 if
nothing has been reported yet.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from deniable_collector.options import SettingOption, registry_option
from deniable_estimator.terminal.options import (
    as_csv,
    as_json,
    level_option,
    no_data,
    opened,
    range_options,
    reported,
    store_option,
)
from deniable_estimator.terminal.real_numbers import Real

if TYPE_CHECKING:
    from deniable_estimator.answers.finds import Finds
    from deniable_estimator.questions.trend import Trend

# numpy and rich take longer to import than `deniable --help` should.


@click.command()
@click.argument("metric")
@range_options
@click.option(
    "--min-share",
    "minimum_share",
    type=Real(0, 1, max_open=True),
    help="Show only strings with at least this share, like 0.01 for 1%; the registry's "
    "minimum_share holds too.",
)
@click.option(
    "--prior",
    type=click.Path(path_type=Path),
    help="What text usually looks like, a file of make_prior.py; by default the shipped one.",
)
@click.option(
    "--trend",
    "over_time",
    is_flag=True,
    help="Show how common each of the strings was in each period.",
)
@click.option(
    "--by",
    type=click.Choice(["day", "week", "month"]),
    help="With --trend: the period to add windows up to; by default the metric's own window.",
)
@click.option(
    "--promote",
    "target",
    metavar="TARGET",
    help="Follow the strings in the metric TARGET from now on: add them to the candidates file of "
    "a string metric, or propose the values of a category.",
)
@click.option(
    "--candidates",
    type=click.Path(path_type=Path),
    help="The candidates file that --promote adds to; by default TARGET.txt in --candidates-dir.",
)
@click.option(
    "--candidates-dir",
    "folder",
    cls=SettingOption,
    envvar="DENIABLE_CANDIDATES_DIR",
    show_envvar=True,
    type=click.Path(path_type=Path),
    help="The dashboard's folder of METRIC.txt files: strings in them are marked as followed.",
)
@registry_option
@store_option
@level_option
@as_json
@as_csv
@reported
def discover(
    metric: str,
    first: date | None,
    last: date | None,
    without: tuple[str, ...],
    minimum_share: float | None,
    prior: Path | None,
    over_time: bool,
    by: Literal["day", "week", "month"] | None,
    target: str | None,
    candidates: Path | None,
    folder: Path | None,
    registry: Path,
    store: str | None,
    level: float,
    form: str | None,
) -> None:
    """Find the strings that devices report to the discovery metric METRIC, which nobody listed.

    Every window that touches the range counts; without --from and --to, all of them. At most 1%
    of what is found is expected to be a string that no device has.
    """
    if by and not over_time:
        raise click.UsageError("--by needs --trend")
    if over_time and target:
        raise click.UsageError("--trend shows and --promote writes: call them one after the other")
    if candidates and not target:
        raise click.UsageError("--candidates needs --promote")
    from deniable import Registry
    from deniable_estimator.analyses.discovery.prior import read_prior
    from deniable_estimator.questions.discoveries import discover as find
    from deniable_estimator.questions.discoveries import trend_of_finds
    from deniable_estimator.terminal.promoting import check_target, followed_lists, promote

    declared = Registry.load(registry)
    if target:
        check_target(declared, target, candidates, folder)
    days = (first, last)
    with opened(store) as tallies, _row_progress("Decoding") as tell:
        finds = find(
            tallies,
            declared,
            metric,
            *days,
            without=without,
            level=level,
            minimum_share=minimum_share,
            prior=read_prior(prior) if prior else None,
            followed=followed_lists(declared, folder, target, candidates),
            progress=tell,
        )
        trend = None
        if over_time and finds.finds:
            trend = trend_of_finds(
                tallies, declared, finds, *days, by=by, without=without, progress=tell
            )
    if trend is not None:
        _print_trend(trend, form)
    else:
        _print(finds, form)
    if finds.n == 0:
        no_data(metric)
    if target:
        promote(declared, target, finds, candidates, folder)


@contextmanager
def _row_progress(description: str) -> Iterator[Callable[[int, int], None]]:
    """A progress bar on a terminal's standard error, which disappears at the end."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    console = Console(stderr=True)
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as progress:
        task = progress.add_task(description, total=None)
        yield lambda done, of: progress.update(task, completed=done, total=of)


def _print(finds: Finds, form: str | None) -> None:
    if form == "json":
        # ASCII: a stranger's letters must not reach the terminal, whatever reads the JSON.
        click.echo(json.dumps(finds.to_dict(), allow_nan=False))
    elif form == "csv":
        click.echo(finds.to_csv(), nl=False)
    else:
        from rich.console import Console

        from deniable_estimator.terminal.finds_view import finds_view

        Console().print(finds_view(finds))


def _print_trend(trend: Trend, form: str | None) -> None:
    if form == "json":
        click.echo(json.dumps(trend.to_dict(), allow_nan=False))
    elif form == "csv":
        click.echo(trend.to_csv(), nl=False)
    else:
        from rich.console import Console

        from deniable_estimator.terminal.finds_view import trends_view

        Console().print(trends_view(trend))

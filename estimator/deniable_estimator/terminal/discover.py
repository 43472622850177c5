"""`deniable estimate discover`: the strings that a discovery metric found.

Exit codes: 0 for a result, also if nothing was found; 1 for an error, 2 for a wrong call, 3 if
nothing has been reported yet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from functools import partial
from pathlib import Path
from typing import Literal

import click

from deniable.tools.command_line import command
from deniable_collector.options import registry_option, store_option
from deniable_estimator.terminal.options import (
    Real,
    as_csv,
    as_json,
    candidates_folder_option,
    no_data,
    opened,
    range_options,
    reported,
    say,
    without_option,
)

# numpy and rich take longer to import than `deniable --help` should.


@command("deniable estimate discover plugin")
@click.argument("metric")
@range_options
@without_option
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
    "--by",
    type=click.Choice(["day", "week", "month"]),
    help="Show how common each of the strings was in each day, week or month.",
)
@click.option(
    "--promote",
    "target",
    metavar="TARGET",
    help="Follow the strings in the metric TARGET from now on: add them to TARGET.txt in "
    "--candidates-dir for a string metric, or propose the values of a category.",
)
@candidates_folder_option
@registry_option
@store_option
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
    by: Literal["day", "week", "month"] | None,
    target: str | None,
    folder: Path | None,
    registry: Path,
    store: str | None,
    form: str | None,
) -> None:
    """Find the strings that devices report to the discovery metric METRIC, which nobody listed.

    Every window that touches the range counts; without --from and --to, all of them. At most 1%
    of what is found is expected to be a string that no device has.
    """
    if by and target:
        raise click.UsageError("--by shows and --promote writes: call them one after the other")
    from deniable import Registry
    from deniable_estimator.analyses.discovery.prior import read_prior
    from deniable_estimator.answers.words.finds import finds_document
    from deniable_estimator.asking.discoveries import discover as find
    from deniable_estimator.asking.discoveries import trend_of_finds
    from deniable_estimator.document.terminal import MOST_ROWS
    from deniable_estimator.terminal.finds_told import (
        check_target,
        finds_trend_document,
        followed_lists,
        promote,
    )

    declared = Registry.load(registry)
    if target:
        check_target(declared, target, folder)
    days = (first, last)
    with opened(store) as tallies, _row_progress("Decoding") as tell:
        finds = find(
            tallies,
            declared,
            metric,
            *days,
            without=without,
            minimum_share=minimum_share,
            prior=read_prior(prior) if prior else None,
            followed=followed_lists(declared, folder),
            progress=tell,
        )
        trend = None
        if by and finds.finds:
            trend = trend_of_finds(
                tallies, declared, finds, *days, by=by, without=without, progress=tell
            )
    if trend is not None:
        document = partial(finds_trend_document, trend)
        say(form, trend.to_dict, document, trend.to_csv, ascii_only=True)
    else:
        document = partial(finds_document, finds, MOST_ROWS)
        say(form, finds.to_dict, document, finds.to_csv, ascii_only=True)
    if finds.n == 0:
        no_data(metric)
    if target:
        promote(declared, target, finds, folder)


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

"""`deniable estimate discover`: the strings that a discovery metric found.

Exit codes: 0 for a result, also if nothing was found; 1 for an error, 2 for a wrong call, 3 if
nothing has been reported yet.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Literal

import click

from deniable.tools.command_line import command
from deniable_estimator.terminal.call import StoreCall, asks, of_store
from deniable_estimator.terminal.options import Real, candidates_folder_option, opened, progress

# numpy and rich take longer to import than `deniable --help` should.


@command("deniable estimate discover plugin")
@asks("without")
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
@of_store("json", "csv")
def discover(
    call: StoreCall,
    minimum_share: float | None,
    prior: Path | None,
    by: Literal["day", "week", "month"] | None,
    target: str | None,
    folder: Path | None,
) -> None:
    """Find the strings that devices report to the discovery metric METRIC, which nobody listed.

    Every window that touches the range counts; without --from and --to, all of them. At most 1%
    of what is found is expected to be a string that no device has.
    """
    if by and target:
        raise click.UsageError("--by shows and --promote writes: call them one after the other")
    from deniable_estimator.analyses.discovery.prior import read_prior
    from deniable_estimator.answers.words.finds import finds_document
    from deniable_estimator.asking.discoveries import discover as find
    from deniable_estimator.asking.discoveries import trend_of_finds
    from deniable_estimator.document.terminal import MOST_ROWS
    from deniable_estimator.terminal.documents import finds_trend_document
    from deniable_estimator.terminal.promoting import check_target, followed_lists, promote

    if target:
        check_target(call.registry, target, folder)
    with opened(call.store) as reader, progress("Decoding", rows=True) as tell:
        asked = reader, call.registry, call.query
        finds = find(
            *asked,
            minimum_share=minimum_share,
            prior=read_prior(prior) if prior else None,
            followed=followed_lists(call.registry, folder),
            progress=tell,
        )
        trend = trend_of_finds(*asked, finds, by=by, progress=tell) if by and finds.finds else None
    if trend is not None:
        document = partial(finds_trend_document, trend)
        call.say(finds.n, trend.to_dict, document, trend.to_csv, ascii_only=True)
    else:
        document = partial(finds_document, finds, MOST_ROWS)
        call.say(finds.n, finds.to_dict, document, finds.to_csv, ascii_only=True)
    if target:
        promote(call.registry, target, finds, folder)

"""`deniable estimate trend`: a metric over time.

Exit codes: 0 for a result, 1 for an error, 2 for a wrong call, 3 if nothing has been reported
yet.
"""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from deniable.tools.command_line import command
from deniable_collector.options import registry_option, store_option
from deniable_estimator.files import ANNOTATIONS, file_in_folder
from deniable_estimator.terminal.options import (
    as_csv,
    as_json,
    candidates_option,
    no_data,
    opened,
    progress,
    range_options,
    read_candidates,
    reported,
    since_option,
    where_option,
)
from deniable_estimator.terminal.since import (
    asked_since,
    change_since,
    since_document,
    told_since,
)

if TYPE_CHECKING:
    from deniable_estimator.asking.segment_trends import SegmentTrends

# numpy and rich take longer to import than `deniable --help` should.


@command("deniable estimate trend browser --by week --value safari")
@click.argument("metric")
@range_options
@since_option
@click.option(
    "--by",
    type=click.Choice(["day", "week", "month"]),
    help="The period to add windows up to; by default the metric's own window.",
)
@click.option(
    "--value",
    help='The value to show, or the series of a number, like "p95"; by default "true", the '
    "largest in the newest period, the median or the mean.",
)
@click.option(
    "--by-segment",
    "segments",
    multiple=True,
    metavar="SEGMENT",
    help="One trend for each value of this segment, like platform. Without --by, a segment with "
    "too few reports in a day is shown by weeks or months.",
)
@where_option
@registry_option
@store_option
@candidates_option
@as_json
@as_csv
@reported
def trend(
    metric: str,
    first: date | None,
    last: date | None,
    since: str | None,
    by: Literal["day", "week", "month"] | None,
    value: str | None,
    segments: tuple[str, ...],
    where: dict[str, str],
    registry: Path,
    store: str | None,
    candidates: Path | None,
    form: str | None,
) -> None:
    """Show METRIC over time, and which of its changes are more than noise.

    The table shows one value; --json and --csv have all of them. With --since, the days before
    and after are shown, and what changed is said first.
    """
    from deniable import Registry
    from deniable_estimator.asking.query import find_metric
    from deniable_estimator.asking.reading import read
    from deniable_estimator.asking.trend import trend as read_trend

    declared = Registry.load(registry)
    asked = read_candidates(find_metric(declared, metric), candidates)
    moment = asked_since(since, find_metric(declared, metric), first, last)
    if moment:
        first, last = moment.days.before_first, moment.days.last
    if segments:
        from deniable_estimator.asking.segment_trends import trends_by_segment

        with opened(store) as tallies, progress("Estimating"):
            found = trends_by_segment(
                tallies,
                declared,
                metric,
                segments,
                first,
                last,
                asked,
                by=by,
                where=where,
            )
        _print_trends(found, form, value)
        if not found.groups:
            no_data(metric)
        return
    with opened(store) as tallies, progress("Estimating"):
        answer = read_trend(
            tallies,
            declared,
            metric,
            first,
            last,
            asked,
            by=by,
            where=where,
        )
        change = None
        if moment:
            days = moment.days
            before, after = (
                read(
                    *(tallies, declared, metric, *ends, asked),
                    where=where,
                )
                for ends in ((days.before_first, days.before_last), (days.first, days.last))
            )
            change = change_since(before, after)
    from deniable_estimator.annotations import by_period, load_annotations
    from deniable_estimator.asking.stepping import step_asked

    noted = load_annotations(file_in_folder(ANNOTATIONS))
    step = step_asked(answer, (value,) if value else (), noted)
    if moment and form is None:
        click.echo(told_since(moment, change, metric))
    if form == "json":
        more = {"since": since_document(moment, change, metric)} if moment else {}
        document = {**answer.to_dict(), "step": step and step.to_dict(), **more}
        click.echo(json.dumps(document, ensure_ascii=False))
    elif form == "csv":
        column = step.column() if step else {}
        click.echo(answer.to_csv(column, by_period(answer.periods, noted)), nl=False)
    elif answer.reported:
        from rich.console import Console

        from deniable_estimator.terminal.trend_view import trend_view

        Console().print(trend_view(answer, value or answer.leading))
        if step:
            click.echo(step.told())
    if not answer.reported:
        no_data(metric)


def _print_trends(found: SegmentTrends, form: str | None, value: str | None) -> None:
    if form == "json":
        click.echo(json.dumps(found.to_dict(), ensure_ascii=False, allow_nan=False))
    elif form == "csv":
        click.echo(found.to_csv(), nl=False)
    else:
        from rich.console import Console

        from deniable_estimator.terminal.trend_view import trend_view

        console = Console()
        for each in found.groups:
            console.print(f"[bold]{each.name}[/bold]", highlight=False)
            console.print(trend_view(each.trend, value or each.trend.leading))
        for note in found.notes:
            console.print(f"Note: {note}.", style="yellow")

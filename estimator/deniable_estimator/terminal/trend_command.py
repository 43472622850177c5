"""`deniable estimate trend`: a metric over time.

Exit codes: 0 for a result, 1 for an error, 2 for a wrong call, 3 if nothing has been reported
yet.
"""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Literal

import click

from deniable.tools.command_line import command
from deniable_collector.options import registry_option, store_option
from deniable_estimator.files import ANNOTATIONS, file_in_folder
from deniable_estimator.terminal.options import (
    as_csv,
    as_json,
    asked_since,
    candidates_option,
    change_since,
    no_data,
    opened,
    progress,
    range_options,
    read_candidates,
    reported,
    say,
    since_document,
    since_option,
    told_since,
    where_option,
)

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
    from deniable_estimator.terminal.comparing import trend_document, trends_document

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
        say(form, found.to_dict, lambda: trends_document(found, value), found.to_csv)
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
    if form is not None or answer.reported:
        more = {"since": since_document(moment, change, metric)} if moment else {}
        say(
            form,
            lambda: {**answer.to_dict(), "step": step and step.to_dict(), **more},
            lambda: trend_document(answer, value, step.told() if step else ""),
            lambda: answer.to_csv(step.column() if step else {}, by_period(answer.periods, noted)),
        )
    if not answer.reported:
        no_data(metric)

"""`deniable estimate trend`: a metric over time.

Exit codes: 0 for a result, 1 for an error, 2 for a wrong call, 3 if nothing has been reported
yet.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import click

from deniable.tools.command_line import command
from deniable_estimator.files import ANNOTATIONS, file_in_folder
from deniable_estimator.terminal.call import StoreCall, asks, of_store

# numpy and rich take longer to import than `deniable --help` should.


@command("deniable estimate trend browser --by week --value safari")
@asks("since", "where")
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
@of_store("candidates", "json", "csv")
def trend(
    call: StoreCall,
    by: Literal["day", "week", "month"] | None,
    value: str | None,
    segments: tuple[str, ...],
) -> None:
    """Show METRIC over time, and which of its changes are more than noise.

    The table shows one value; --json and --csv have all of them. With --since, the days before
    and after are shown, and what changed is said first.
    """
    from deniable_estimator.annotations import by_period, load_annotations
    from deniable_estimator.answers.files import csv_text
    from deniable_estimator.asking.segments import trends_by_segment
    from deniable_estimator.asking.trend import trend as read_trend
    from deniable_estimator.asking.trend_words import step_asked
    from deniable_estimator.terminal.documents import trend_document, trends_document

    query = replace(call.query, days=call.query.days.around)
    if segments:
        with call.reading("Estimating") as reader:
            found = trends_by_segment(reader, call.registry, query, segments, by=by)
        call.say(
            *(len(found.groups), found.to_dict, lambda: trends_document(found, value)), found.to_csv
        )
        return
    with call.reading("Estimating") as reader:
        answer = read_trend(reader, call.registry, query, by=by)
        change = call.change(reader)
    noted = load_annotations(file_in_folder(ANNOTATIONS))
    step = step_asked(answer, (value,) if value else (), noted)
    more = call.told_since(change)
    if call.form is None:
        call.check(len(answer.reported))
    call.say(
        len(answer.reported),
        lambda: {**answer.to_dict(), "step": step and step.to_dict(), **more},
        lambda: trend_document(answer, value, step.told() if step else ""),
        lambda: csv_text(
            *answer.csv_table(step.column() if step else {}, by_period(answer.periods, noted))
        ),
    )

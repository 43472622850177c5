"""`deniable estimate` and the commands below it: how devices are spread over a metric's values or
numbers, by segments and over time, which windows look dishonest, and which strings were found.

Exit codes: 0 for a result, also if nothing was found; 1 for an error, 2 for a wrong call, 3 if
nothing has been reported yet, 4 if there is an alarm.
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Literal

import click

from deniable.tools.command_line import command
from deniable_estimator.files import ANNOTATIONS, file_in_folder
from deniable_estimator.inputs import AGAINST, DIVIDED, MIN_SHARE, SINCE, WHERE, WITHOUT
from deniable_estimator.terminal.call import StoreCall, asks, of_store
from deniable_estimator.terminal.options import (
    Real,
    alarm_level_in_force,
    assumed_fakes,
    candidates_folder_option,
    click_options,
    opened,
    progress,
)

# numpy and rich take longer to import than `deniable --help` should.

ALARM = 4
"""The exit code if `deniable estimate anomalies` raises an alarm."""

_by = click.Choice(["day", "week", "month"])


@command("deniable estimate browser --from 2026-11-16")
@asks(WITHOUT, SINCE, WHERE)
@click.option(
    "--below",
    "limits",
    multiple=True,
    type=Real(),
    metavar="LIMIT",
    help="Of the distribution of a number: show the share below this limit too, in the metric's "
    "unit; may be given several times.",
)
@click.option(
    "--given",
    metavar="METRIC",
    help="Of a pair: show how its other metric is spread among the devices with each value of this "
    "one; by default of the first.",
)
@of_store("candidates", "json", "csv")
def estimate(call: StoreCall, limits: tuple[float, ...], given: str | None) -> None:
    """Estimate how devices are spread over the values of METRIC, or over its numbers.

    Every window that touches the range counts; without --from and --to, all of them. With
    --since, what changed is said first. DENIABLE_FAKES is the fraction of reports that the
    poisoning budget assumes to be fake, 0.01 if it is not set.
    """
    from deniable_estimator.asking.alarm import alarm_in
    from deniable_estimator.asking.fetch import read
    from deniable_estimator.asking.history import history_in
    from deniable_estimator.terminal.printing import (
        answer_document,
        check_given,
        shares_below,
    )

    if limits and call.form == "csv":
        raise click.UsageError("--csv has the share below every edge: use --json for --below")
    fakes, alarm_level = assumed_fakes(), alarm_level_in_force()
    with call.reading("Estimating") as reader:
        answer = read(reader, call.registry, call.query)
        change = call.change(reader, answer)
        if call.form is None:
            asked = reader, call.registry, call.query, alarm_level
            if alarm := alarm_in(history_in(*asked, answer.verdict.figures, time.time())):
                click.echo(
                    f"{alarm.text} `deniable estimate anomalies {call.metric.name}` says why."
                )
    more = call.told_since(change)
    answer = replace(answer, fakes=fakes, alarm_level=alarm_level)
    check_given(answer, given)
    if limits:
        more["shares_below"] = shares_below(answer, limits)
    call.say(
        answer.n,
        lambda: {**answer.to_dict(), **more},
        lambda: answer_document(answer, limits=limits, given=given),
        answer.to_csv,
    )


@command("deniable estimate segments theme --by platform")
@asks(WITHOUT, SINCE, WHERE)
@click_options((DIVIDED, AGAINST))
@of_store("candidates", "json", "csv")
def segments(call: StoreCall, by: tuple[str, ...], against: dict[str, str]) -> None:
    """Estimate METRIC in each segment, and say which segments differ by more than noise.

    With --since, what changed in all segments together is said first.
    """
    from deniable_estimator.asking.segments import by_segment
    from deniable_estimator.terminal.printing import segments_document

    with call.reading("Estimating") as reader:
        split = by_segment(reader, call.registry, call.query, by, against=against or None)
        change = call.change(reader, split.total)
    more = call.told_since(change)
    call.say(
        split.total.n,
        lambda: {**split.to_dict(), **more},
        lambda: segments_document(split),
        split.to_csv,
    )


@command("deniable estimate trend browser --by week --value safari")
@asks(SINCE, WHERE)
@click.option(
    "--by",
    type=_by,
    help="The period to add windows up to; by default the metric's own window, or a longer one "
    "where that gives more than 400.",
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
    from deniable_estimator.annotations import load_annotations
    from deniable_estimator.asking.segments import trends_by_segment
    from deniable_estimator.asking.trend import trend as read_trend
    from deniable_estimator.asking.trend_words import step_asked
    from deniable_estimator.document.csv_files import csv_text
    from deniable_estimator.terminal.printing import trend_document, trends_document

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
        lambda: csv_text(*answer.csv_table(step.column() if step else {}, noted)),
    )


@command("deniable estimate anomalies browser --from 2026-11-16")
@asks(WITHOUT)
@of_store("json")
def anomalies(call: StoreCall) -> None:
    """Find windows of METRIC that honest reports cannot explain, or with more reports than usual.

    Each is compared with those before it, also with windows before --from; strings are not decoded
    for it. Exits with 4 on an alarm. DENIABLE_ALARM_LEVEL says how often honest reports may raise
    one.
    """
    from deniable_estimator.asking.fetch import read
    from deniable_estimator.asking.history import history_in
    from deniable_estimator.terminal.printing import history_document

    level, metric = alarm_level_in_force(), call.metric
    is_closed = not metric.needs_candidates and metric.type.name != "discovery"
    with call.reading("Looking at each window") as reader:
        whole = read(reader, call.registry, call.query).verdict.figures if is_closed else ()
        found = history_in(reader, call.registry, call.query, level, whole, time.time())
    if call.form is None:
        call.check(len(found.windows))
    call.say(len(found.windows), found.to_dict, lambda: history_document(found))
    if found.anomalous:
        sys.exit(ALARM)


@command("deniable estimate discover plugin")
@asks(WITHOUT)
@click_options((MIN_SHARE,))
@click.option(
    "--prior",
    type=click.Path(path_type=Path),
    help="What text usually looks like, a file of make_prior.py; by default the shipped one.",
)
@click.option(
    "--by",
    type=_by,
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
    min_share: float | None,
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
    from deniable_estimator.asking.discoveries import discover as find
    from deniable_estimator.asking.discoveries import trend_of_finds
    from deniable_estimator.document.terminal import MOST_ROWS
    from deniable_estimator.kinds.discovery.words import finds_document
    from deniable_estimator.terminal.printing import finds_trend_document
    from deniable_estimator.terminal.promoting import check_target, promote

    if target:
        check_target(call.registry, target, folder)
    with opened(call.store) as reader, progress("Decoding", rows=True) as update:

        def tell(done: int, of: int) -> None:
            update(completed=done, total=of)

        asked = reader, call.registry, call.query
        finds = find(
            *asked,
            minimum_share=min_share,
            prior=read_prior(prior) if prior else None,
            folder=folder,
            progress=tell,
        )
        trend = trend_of_finds(*asked, finds, by=by, progress=tell) if by and finds.finds else None
    document = partial(finds_document, finds, MOST_ROWS)
    if trend is not None:
        document = partial(finds_trend_document, trend)
    found = trend or finds
    call.say(finds.n, found.to_dict, document, found.to_csv, ascii_only=True)
    if target:
        promote(call.registry, target, finds, folder)

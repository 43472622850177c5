"""`deniable estimate`: how devices are spread over a metric's values or numbers.

Exit codes: 0 for a result, 1 for an error, 2 for a wrong call, 3 if nothing has been reported
yet.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import click

from deniable.tools.command_line import command
from deniable_collector.options import registry_option, store_option
from deniable_estimator.terminal.options import (
    AnyReal,
    alarm_level_in_force,
    as_csv,
    as_json,
    asked_since,
    assumed_fakes,
    candidates_option,
    change_since,
    no_data,
    opened,
    parse_segments,
    progress,
    range_options,
    read_candidates,
    reported,
    say,
    since_document,
    since_option,
    told_since,
    where_option,
    without_option,
)

# numpy and rich take longer to import than `deniable --help` should.


@command("deniable estimate browser --from 2026-11-16")
@click.argument("metric")
@range_options
@without_option
@since_option
@where_option
@click.option(
    "--below",
    "limits",
    multiple=True,
    type=AnyReal(),
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
@candidates_option
@registry_option
@store_option
@as_json
@as_csv
@reported
def estimate(
    metric: str,
    first: date | None,
    last: date | None,
    without: tuple[str, ...],
    since: str | None,
    where: dict[str, str],
    limits: tuple[float, ...],
    given: str | None,
    candidates: Path | None,
    registry: Path,
    store: str | None,
    form: str | None,
) -> None:
    """Estimate how devices are spread over the values of METRIC, or over its numbers.

    Every window that touches the range counts; without --from and --to, all of them. With
    --since, what changed is said first. DENIABLE_FAKES is the fraction of reports that the
    poisoning budget assumes to be fake, 0.01 if it is not set.
    """
    from deniable import Registry
    from deniable_estimator.asking.query import find_metric
    from deniable_estimator.asking.reading import read
    from deniable_estimator.terminal.answers import (
        answer_document,
        check_given,
        check_limits,
        shares_below,
    )

    if limits and form == "csv":
        raise click.UsageError("--csv has the share below every edge: use --json for --below")
    declared = Registry.load(registry)
    asked = read_candidates(find_metric(declared, metric), candidates)
    moment = asked_since(since, find_metric(declared, metric), first, last)
    if moment:
        first, last = moment.days.first, moment.days.last
    fakes, alarm_level = assumed_fakes(), alarm_level_in_force()
    with opened(store) as tallies, progress("Estimating"):
        answer = read(tallies, declared, metric, first, last, asked, without=without, where=where)
        change = None
        if moment:
            before = read(
                tallies,
                declared,
                metric,
                moment.days.before_first,
                moment.days.before_last,
                asked,
                without=without,
                where=where,
            )
            change = change_since(before, answer)
    more: dict[str, Any] = {}
    if moment:
        more["since"] = since_document(moment, change, metric)
        if form is None:
            click.echo(told_since(moment, change, metric))
    answer = replace(answer, fakes=fakes, alarm_level=alarm_level)
    check_limits(answer, limits)
    check_given(answer, given)
    if limits:
        more["shares_below"] = shares_below(answer, limits)
    say(
        form,
        lambda: {**answer.to_dict(), **more},
        lambda: answer_document(answer, limits=limits, given=given),
        answer.to_csv,
    )
    if answer.n == 0:
        no_data(metric)


@command("deniable estimate segments theme --by platform")
@click.argument("metric")
@click.option(
    "--by",
    "segments",
    multiple=True,
    required=True,
    metavar="SEGMENT",
    help="One estimate for each value of this segment, like platform; may be given twice.",
)
@range_options
@without_option
@where_option
@click.option(
    "--against",
    multiple=True,
    callback=parse_segments,
    metavar="SEGMENT=VALUE",
    help="The segment that the others are compared with; by default the largest.",
)
@click.option(
    "--recent",
    is_flag=True,
    help="Each segment over its newest window, week, month or all windows, whichever first has "
    "enough reports. Then segments are not compared.",
)
@candidates_option
@registry_option
@store_option
@as_json
@as_csv
@reported
def segments(
    metric: str,
    segments: tuple[str, ...],
    first: date | None,
    last: date | None,
    without: tuple[str, ...],
    where: dict[str, str],
    against: dict[str, str],
    recent: bool,
    candidates: Path | None,
    registry: Path,
    store: str | None,
    form: str | None,
) -> None:
    """Estimate METRIC in each segment, and say which segments differ by more than noise."""
    from deniable import Registry
    from deniable_estimator.asking.query import find_metric
    from deniable_estimator.asking.segments import by_segment
    from deniable_estimator.terminal.comparing import segments_document

    if recent and against:
        raise click.UsageError("--recent compares no segments: leave --against out")
    declared = Registry.load(registry)
    asked = read_candidates(find_metric(declared, metric), candidates)
    with opened(store) as tallies, progress("Estimating"):
        split = by_segment(
            tallies,
            declared,
            metric,
            segments,
            first,
            last,
            asked,
            where=where,
            against=against or None,
            recent=recent,
            without=without,
        )
    say(form, split.to_dict, lambda: segments_document(split), split.to_csv)
    if split.total.n == 0:
        no_data(metric)

"""`deniable estimate`, `trend` and `anomalies`: results from the reports in a store.

Exit codes: 0 for a result, 1 for an error, 2 for a wrong call, 3 if nothing has been reported
yet, 4 if `deniable anomalies` raises an alarm.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NoReturn

import click

from deniable_collector.numeric import Real
from deniable_estimator.terminal.options import (
    adjust_option,
    against_option,
    alarm_option,
    as_csv,
    as_json,
    candidates_option,
    fakes_option,
    first_day,
    last_day,
    level_option,
    opened,
    progress,
    read_candidates,
    registry_option,
    reported,
    store_option,
    where_option,
    without_option,
)

if TYPE_CHECKING:
    from deniable_estimator.answers.base import Answer
    from deniable_estimator.answers.segmented import Segmented
    from deniable_estimator.questions.segment_trends import SegmentTrends

# numpy and rich take longer to import than `deniable --help` should.

__all__ = ["ALARM", "NO_DATA", "anomalies", "estimate", "no_data", "trend"]

NO_DATA = 3
"""The exit code if the range has no reports."""

ALARM = 4
"""The exit code if `deniable anomalies` raises an alarm."""


@click.command()
@click.argument("metric")
@first_day
@last_day
@without_option
@registry_option
@store_option
@candidates_option
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
@click.option(
    "--by",
    "segments",
    multiple=True,
    metavar="SEGMENT",
    help="One estimate for each value of this segment, like platform, with differences; may be "
    "given twice.",
)
@where_option
@against_option
@click.option(
    "--recent",
    is_flag=True,
    help="With --by: each segment over its newest window, week, month or all windows, whichever "
    "first has enough reports. Then segments are not compared.",
)
@level_option
@adjust_option
@fakes_option
@alarm_option
@as_json
@as_csv
@reported
def estimate(
    metric: str,
    first: datetime | None,
    last: datetime | None,
    without: tuple[str, ...],
    registry: Path,
    store: str | None,
    candidates: Path | None,
    limits: tuple[float, ...],
    given: str | None,
    segments: tuple[str, ...],
    where: dict[str, str],
    against: dict[str, str],
    recent: bool,
    level: float,
    adjust: Literal["storey", "bonferroni"],
    fakes: float,
    alarm_level: float,
    form: str | None,
) -> None:
    """Estimate how devices are spread over the values of METRIC, or over its numbers.

    Every window that touches the range counts; without --from and --to, all of them.
    """
    from deniable import Registry
    from deniable_estimator.questions.reading import find_metric, read

    if not segments and (against or recent):
        raise click.UsageError("--against and --recent need --by")
    if segments and given:
        raise click.UsageError("--by has no --given: pairs are not counted by segments")
    if segments and limits:
        raise click.UsageError("--by has no --below: use --where for one segment")
    if recent and against:
        raise click.UsageError("--recent compares no segments: leave --against out")
    if limits and form == "csv":
        raise click.UsageError("--csv has the share below every edge: use --json for --below")
    declared = Registry.load(registry)
    asked = read_candidates(find_metric(declared, metric), candidates)
    if segments:
        from deniable_estimator.questions.segments import by_segment

        with opened(store) as tallies, progress("Estimating"):
            split = by_segment(
                tallies,
                declared,
                metric,
                segments,
                first and first.date(),
                last and last.date(),
                asked,
                where=where,
                against=against or None,
                recent=recent,
                without=without,
                level=level,
                adjust=adjust,
            )
        _print_split(split, form)
        if split.total.n == 0:
            no_data(metric)
        return
    with opened(store) as tallies, progress("Estimating"):
        answer = read(
            tallies,
            declared,
            metric,
            first and first.date(),
            last and last.date(),
            asked,
            without=without,
            level=level,
            adjust=adjust,
            where=where,
        )
    _print(replace(answer, fakes=fakes, alarm_level=alarm_level), form, limits, given)
    if answer.n == 0:
        no_data(metric)


@click.command()
@click.argument("metric")
@first_day
@last_day
@without_option
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
@level_option
@as_json
@as_csv
@reported
def trend(
    metric: str,
    first: datetime | None,
    last: datetime | None,
    without: tuple[str, ...],
    by: Literal["day", "week", "month"] | None,
    value: str | None,
    segments: tuple[str, ...],
    where: dict[str, str],
    registry: Path,
    store: str | None,
    candidates: Path | None,
    level: float,
    form: str | None,
) -> None:
    """Show METRIC over time, and which of its changes are more than noise.

    The table shows one value; --json and --csv have all of them.
    """
    from deniable import Registry
    from deniable_estimator.questions.reading import find_metric
    from deniable_estimator.questions.trend import trend as read_trend

    declared = Registry.load(registry)
    asked = read_candidates(find_metric(declared, metric), candidates)
    if segments:
        from deniable_estimator.questions.segment_trends import trends_by_segment

        with opened(store) as tallies, progress("Estimating"):
            found = trends_by_segment(
                tallies,
                declared,
                metric,
                segments,
                first and first.date(),
                last and last.date(),
                asked,
                by=by,
                where=where,
                without=without,
                level=level,
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
            first and first.date(),
            last and last.date(),
            asked,
            by=by,
            without=without,
            level=level,
            where=where,
        )
    if form == "json":
        click.echo(json.dumps(answer.to_dict(), ensure_ascii=False))
    elif form == "csv":
        click.echo(answer.to_csv(), nl=False)
    elif answer.reported:
        from rich.console import Console

        from deniable_estimator.terminal.trend_view import leading_value, trend_view

        Console().print(trend_view(answer, value or leading_value(answer)))
    if not answer.reported:
        no_data(metric)


@click.command()
@click.argument("metric")
@first_day
@last_day
@without_option
@registry_option
@store_option
@candidates_option
@alarm_option
@as_json
@reported
def anomalies(
    metric: str,
    first: datetime | None,
    last: datetime | None,
    without: tuple[str, ...],
    registry: Path,
    store: str | None,
    candidates: Path | None,
    alarm_level: float,
    form: str | None,
) -> None:
    """Find windows of METRIC that honest reports cannot explain, or that differ from earlier ones.

    Exits with 4 on an alarm.
    """
    from deniable import Registry
    from deniable_estimator.questions.discoveries import looks_at_rows
    from deniable_estimator.questions.history import Look, inspect
    from deniable_estimator.questions.reading import find_metric, unfinished
    from deniable_estimator.questions.trend import trend as read_trend

    declared = Registry.load(registry)
    asked = read_candidates(find_metric(declared, metric), candidates)
    days = (first and first.date(), last and last.date())
    with opened(store) as tallies, progress("Looking at each window"):
        if find_metric(declared, metric).type.name == "discovery":
            looks = looks_at_rows(tallies, declared, metric, *days, without)
            running = unfinished([each.label for each in looks], time.time())
        else:
            reported = read_trend(tallies, declared, metric, *days, asked, without=without).reported
            looks = [Look.of(each.label, each.estimate) for each in reported if each.estimate]
            running = tuple(each.label for each in reported if each.unfinished)
        found = inspect(metric, looks, alarm_level, unfinished=running)
    if form == "json":
        click.echo(json.dumps(found.to_dict(), ensure_ascii=False, allow_nan=False))
    elif found.windows:
        from rich.console import Console

        from deniable_estimator.terminal.tables import history_view

        Console().print(history_view(found))
    if not found.windows:
        no_data(metric)
    if found.anomalous:
        sys.exit(ALARM)


def no_data(metric: str) -> NoReturn:
    """Say what to check if nothing has been reported, and exit with NO_DATA."""
    click.echo(
        f"No reports of {metric!r} in that range. Check that --store is the collector's "
        "(DENIABLE_STORE), that the range contains a window that has closed, and that devices "
        "send to the collector: its /v1/registry must show this metric.",
        err=True,
    )
    sys.exit(NO_DATA)


def _print_split(split: Segmented, form: str | None) -> None:
    if form == "json":
        click.echo(json.dumps(split.to_dict(), ensure_ascii=False, allow_nan=False))
    elif form == "csv":
        click.echo(split.to_csv(), nl=False)
    else:
        from rich.console import Console

        from deniable_estimator.terminal.segments_view import segments_view

        Console().print(segments_view(split))


def _print_trends(found: SegmentTrends, form: str | None, value: str | None) -> None:
    if form == "json":
        click.echo(json.dumps(found.to_dict(), ensure_ascii=False, allow_nan=False))
    elif form == "csv":
        click.echo(found.to_csv(), nl=False)
    else:
        from rich.console import Console

        from deniable_estimator.terminal.trend_view import leading_value, trend_view

        console = Console()
        for each in found.groups:
            console.print(f"[bold]{each.name}[/bold]", highlight=False)
            console.print(trend_view(each.trend, value or leading_value(each.trend)))
        for note in found.notes:
            console.print(f"Note: {note}.", style="yellow")


def _print(answer: Answer, form: str | None, limits: Sequence[float], given: str | None) -> None:
    from deniable_estimator.answers.pair import PairAnswer
    from deniable_estimator.terminal.numbers import check_limits, estimate_view, shares_below
    from deniable_estimator.terminal.pairs import direction

    check_limits(answer, limits)
    side = direction(answer, given)
    if form == "json":
        more = {"shares_below": shares_below(answer, limits)} if limits else {}
        click.echo(json.dumps({**answer.to_dict(), **more}, ensure_ascii=False))
    elif form == "csv":
        click.echo(answer.to_csv(), nl=False)
    else:
        from rich.console import Console

        if isinstance(answer, PairAnswer):
            view = estimate_view(answer, given=side)
        else:
            view = estimate_view(answer, limits=limits)
        Console().print(view)

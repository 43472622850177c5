"""`deniable estimate`: how devices are spread over a metric's values or numbers.

Exit codes: 0 for a result, 1 for an error, 2 for a wrong call, 3 if nothing has been reported
yet.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from deniable_collector.options import registry_option
from deniable_estimator.terminal.options import (
    adjust_option,
    against_option,
    alarm_option,
    as_csv,
    as_json,
    candidates_option,
    fakes_option,
    level_option,
    no_data,
    opened,
    progress,
    range_options,
    read_candidates,
    reported,
    store_option,
    where_option,
)
from deniable_estimator.terminal.real_numbers import AnyReal
from deniable_estimator.terminal.since import (
    asked_since,
    change_since,
    since_document,
    since_options,
    told_since,
)

if TYPE_CHECKING:
    from deniable_estimator.answers.base import Answer
    from deniable_estimator.answers.segmented import Segmented

# numpy and rich take longer to import than `deniable --help` should.


@click.command()
@click.argument("metric")
@range_options
@since_options
@registry_option
@store_option
@candidates_option
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
    first: date | None,
    last: date | None,
    without: tuple[str, ...],
    since: str | None,
    annotations: Path,
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

    Every window that touches the range counts; without --from and --to, all of them. With
    --since, what changed is said first.
    """
    from deniable import Registry
    from deniable_estimator.questions.asking import find_metric
    from deniable_estimator.questions.reading import read

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
    moment = asked_since(since, annotations, find_metric(declared, metric), first, last)
    if moment:
        first, last = moment.days.first, moment.days.last
    if segments:
        from deniable_estimator.questions.segments import by_segment

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
            first,
            last,
            asked,
            without=without,
            level=level,
            adjust=adjust,
            where=where,
        )
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
                level=level,
                adjust=adjust,
                where=where,
            )
            change = change_since(before, answer)
    more = {"since": since_document(moment, change, metric)} if moment else {}
    if moment and form is None:
        click.echo(told_since(moment, change, metric))
    _print(replace(answer, fakes=fakes, alarm_level=alarm_level), form, limits, given, more)
    if answer.n == 0:
        no_data(metric)


def _print_split(split: Segmented, form: str | None) -> None:
    if form == "json":
        click.echo(json.dumps(split.to_dict(), ensure_ascii=False, allow_nan=False))
    elif form == "csv":
        click.echo(split.to_csv(), nl=False)
    else:
        from rich.console import Console

        from deniable_estimator.terminal.segments_view import segments_view

        Console().print(segments_view(split))


def _print(
    answer: Answer,
    form: str | None,
    limits: Sequence[float],
    given: str | None,
    more: Mapping[str, Any],
) -> None:
    from deniable_estimator.answers.pair import PairAnswer
    from deniable_estimator.terminal import retention  # noqa: F401  # registers how it is shown
    from deniable_estimator.terminal.numbers import check_limits, shares_below
    from deniable_estimator.terminal.pairs import direction
    from deniable_estimator.terminal.tables import estimate_view

    check_limits(answer, limits)
    side = direction(answer, given)
    if form == "json":
        below = {"shares_below": shares_below(answer, limits)} if limits else {}
        click.echo(json.dumps({**answer.to_dict(), **below, **more}, ensure_ascii=False))
    elif form == "csv":
        click.echo(answer.to_csv(), nl=False)
    else:
        from rich.console import Console

        if isinstance(answer, PairAnswer):
            view = estimate_view(answer, given=side)
        else:
            view = estimate_view(answer, limits=limits)
        Console().print(view)

"""`deniable estimate`: how devices are spread over a metric's values or numbers.

Exit codes: 0 for a result, 1 for an error, 2 for a wrong call, 3 if nothing has been reported
yet.
"""

from __future__ import annotations

from dataclasses import replace

import click

from deniable.tools.command_line import command
from deniable_estimator.terminal.call import StoreCall, asks, of_store, parse_segments
from deniable_estimator.terminal.options import AnyReal, alarm_level_in_force, assumed_fakes

# numpy and rich take longer to import than `deniable --help` should.


@command("deniable estimate browser --from 2026-11-16")
@asks("without", "since", "where")
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
@of_store("candidates", "json", "csv")
def estimate(call: StoreCall, limits: tuple[float, ...], given: str | None) -> None:
    """Estimate how devices are spread over the values of METRIC, or over its numbers.

    Every window that touches the range counts; without --from and --to, all of them. With
    --since, what changed is said first. DENIABLE_FAKES is the fraction of reports that the
    poisoning budget assumes to be fake, 0.01 if it is not set.
    """
    from deniable_estimator.asking.reading import read
    from deniable_estimator.terminal.documents import (
        answer_document,
        check_given,
        check_limits,
        shares_below,
    )

    if limits and call.form == "csv":
        raise click.UsageError("--csv has the share below every edge: use --json for --below")
    fakes, alarm_level = assumed_fakes(), alarm_level_in_force()
    with call.reading("Estimating") as reader:
        answer = read(reader, call.registry, call.query)
        change = call.change(reader, answer)
    more = call.told_since(change)
    answer = replace(answer, fakes=fakes, alarm_level=alarm_level)
    check_limits(answer, limits)
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
@asks("without", "where")
@click.option(
    "--by",
    multiple=True,
    required=True,
    metavar="SEGMENT",
    help="One estimate for each value of this segment, like platform; may be given twice.",
)
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
@of_store("candidates", "json", "csv")
def segments(call: StoreCall, by: tuple[str, ...], against: dict[str, str], recent: bool) -> None:
    """Estimate METRIC in each segment, and say which segments differ by more than noise."""
    from deniable_estimator.asking.segments import by_segment
    from deniable_estimator.terminal.documents import segments_document

    if recent and against:
        raise click.UsageError("--recent compares no segments: leave --against out")
    with call.reading("Estimating") as reader:
        split = by_segment(
            *(reader, call.registry, call.query, by), against=against or None, recent=recent
        )
    call.say(split.total.n, split.to_dict, lambda: segments_document(split), split.to_csv)

"""`deniable estimate` and the commands below it: how devices are spread over a metric's values or
numbers, by segments and over time, and which windows look dishonest; as documents for a terminal.

Exit codes: 0 for a result, also if nothing was found; 1 for an error, 2 for a wrong call, 3 if
nothing has been reported yet, 4 if there is an alarm.
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from functools import partial
from typing import Literal

import click

from deniable.tools.command_line import command
from deniable_estimator.annotations import load_annotations
from deniable_estimator.asking.fetch import read
from deniable_estimator.asking.history import History, history_in
from deniable_estimator.asking.segments import SegmentTrends, by_segment, trends_by_segment
from deniable_estimator.asking.trend import Trend
from deniable_estimator.asking.trend import trend as read_trend
from deniable_estimator.asking.trend_words import step_of, trend_frame
from deniable_estimator.document.csv_files import csv_text
from deniable_estimator.document.document import Column, Document, Frame, Note, Tone
from deniable_estimator.document.terminal import MOST_ROWS, printable
from deniable_estimator.errors import EstimateError
from deniable_estimator.files import ANNOTATIONS, file_in_folder
from deniable_estimator.inputs import AGAINST, DIVIDED, SINCE, WHERE, WITHOUT
from deniable_estimator.kinds.base import Answer
from deniable_estimator.kinds.formats import heading, warned
from deniable_estimator.kinds.kind import Shown
from deniable_estimator.kinds.numbers.distribution import Distribution
from deniable_estimator.kinds.pairs.pair import PairAnswer
from deniable_estimator.kinds.registry import kind_of
from deniable_estimator.kinds.segments import Segmented, shown_series
from deniable_estimator.kinds.segments.words import finding, segment_frames
from deniable_estimator.terminal.call import StoreCall, asks, of_store
from deniable_estimator.terminal.options import (
    Real,
    alarm_level_in_force,
    assumed_fakes,
    click_options,
)

ALARM = 4
"""The exit code if `deniable estimate anomalies` raises an alarm."""


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
    if limits and call.form == "csv":
        raise click.UsageError("--csv has the share below every edge: use --json for --below")
    fakes, alarm_level = assumed_fakes(), alarm_level_in_force()
    with call.reading("Estimating") as reader:
        answer = read(reader, call.registry, call.query)
        if call.form is None:
            asked = reader, call.registry, call.query, alarm_level
            found = history_in(*asked, answer.verdict.figures, time.time())
            if found.strange:
                click.echo(
                    f"{found.text} `deniable estimate anomalies {call.metric.name}` says why."
                )
        more = call.since(reader, answer)
    answer = replace(answer, fakes=fakes, alarm_level=alarm_level)
    if given is not None:
        _check_given(answer, given)
    if limits:
        if not isinstance(answer, Distribution):
            raise EstimateError(
                f"{answer.metric} is not asked for the distribution of a number, so no share below "
                "a limit can be told: leave --below out"
            )
        more["shares_below"] = [answer.share_row(limit) for limit in limits]
    shown = Shown(drawn=False, rows=MOST_ROWS, limits=limits, given=given)
    call.say(
        answer.n,
        lambda: {**answer.to_dict(), **more},
        lambda: kind_of(answer).document(answer, shown),
        answer.to_csv,
    )


def _check_given(answer: Answer, given: str) -> None:
    """Refuse a list that conditionals cannot be given.

    Raises:
        EstimateError: the answer is no pair, or not of that metric.
    """
    if not isinstance(answer, PairAnswer):
        raise EstimateError(f"{answer.metric} is not a pair: leave --given out")
    if given not in answer.names:
        raise EstimateError(
            f"{answer.metric} is a pair of {' and '.join(answer.names)}: give one of them"
        )


@command("deniable estimate segments theme --by platform")
@asks(WITHOUT, SINCE, WHERE)
@click_options((DIVIDED, AGAINST))
@of_store("candidates", "json", "csv")
def segments(call: StoreCall, by: tuple[str, ...], against: dict[str, str]) -> None:
    """Estimate METRIC in each segment, and say which segments differ by more than noise.

    With --since, what changed in all segments together is said first.
    """
    with call.reading("Estimating") as reader:
        split = by_segment(reader, call.registry, call.query, by, against=against or None)
        more = call.since(reader, split.total)
    call.say(
        split.total.n,
        lambda: {**split.to_dict(), **more},
        lambda: _segments_document(split),
        split.to_csv,
    )


@command("deniable estimate trend browser --by week --value safari")
@asks(SINCE, WHERE)
@click.option(
    "--by",
    type=click.Choice(["day", "week", "month"]),
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
    query = replace(call.query, days=call.query.days.around)
    if segments:
        with call.reading("Estimating") as reader:
            found = trends_by_segment(reader, call.registry, query, segments, by=by)
        told = partial(_trends_document, found, value)
        call.say(len(found.groups), found.to_dict, told, found.to_csv)
        return
    with call.reading("Estimating") as reader:
        answer = read_trend(reader, call.registry, query, by=by)
        more = call.since(reader)
    noted = load_annotations(file_in_folder(ANNOTATIONS))
    step = step_of(answer, (value,) if value else (), noted)
    if more:
        more |= query.days.told
    if call.form is None:
        call.check(len(answer.reported))
    call.say(
        len(answer.reported),
        lambda: {**answer.to_dict(), "step": step and step.to_dict(), **more},
        lambda: _trend_document(answer, value, step.told() if step else ""),
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
    level = alarm_level_in_force()
    with call.reading("Looking at each window") as reader:
        found = history_in(reader, call.registry, call.query, level, None, time.time())
    if call.form is None:
        call.check(len(found.windows))
    call.say(len(found.windows), found.to_dict, lambda: _history_document(found))
    if found.strange:
        sys.exit(ALARM)


def _history_document(history: History) -> Document:
    """Each window, what is strange about it, and what to do."""
    rows = []
    tones: list[Tone] = []
    for window in history.windows:
        alarms = window.verdict.alarms(history.alarm_level)
        least = min((each.p_adjusted for each in window.verdict.figures), default=None)
        strange = "; ".join(printable(each.text) for each in alarms)
        if least is None:
            strange = "too little to judge by"
        rows.append((window.label, window.n, "" if least is None else f"{least:.2g}", strange))
        tones.append("alarm" if alarms else "quiet" if least is None else "plain")
    if reasons := history.whole.alarms(history.alarm_level):
        strange = "; ".join(printable(each.text) for each in reasons)
        n = sum(window.n for window in history.windows)
        rows.append((history.strange[-1].when, n, f"{reasons[0].p_adjusted:.2g}", strange))
        tones.append("alarm")
    columns = (
        Column("window", "window", "words"),
        Column("n", "reports", "count"),
        Column("p_adjusted", "smallest\nadjusted p"),
        Column("strange", "what is strange", "words"),
    )
    verdict = Note("Nothing here is unlike honest reports.", "good")
    if history.strange:
        verdict = Note(
            "Leave such windows out of what you decide by (--without), and find out why: fakes, a "
            "faulty app, or an event. Do not correct the estimates.",
            "alarm",
        )
    frame = Frame("windows", "", columns, rows, tones)
    return Document("anomalies", history.metric, verdict, frames=(frame,))


def _trend_document(trend: Trend, value: str | None, step: str) -> Document:
    """One series in every period that has reports, and where it has a step.

    Raises:
        EstimateError: no period knows the value.
    """
    told = value or trend.leading
    title = f"{trend.metric}  {told}  ·  by {trend.by}"
    notes = tuple(warned(trend.notes))
    return Document("trend", title, Note(step), frames=(trend_frame(trend, [told]),), notes=notes)


def _trends_document(found: SegmentTrends, value: str | None) -> Document:
    """The same for each segment; with the same error."""
    frames = []
    for group, trend in found.groups:
        told = value or trend.leading
        title = f"{group.name}  ·  {told}  ·  by {trend.by}"
        frames.append(trend_frame(trend, [told], title=title))
    notes = dict.fromkeys(note for trend in found.trends for note in trend.notes)
    told_notes = tuple(warned((*notes, *found.notes)))
    return Document("trends", found.split.metric, Note(""), frames=tuple(frames), notes=told_notes)


def _segments_document(found: Segmented) -> Document:
    """What was found, and each series by segment, with its difference from the reference."""
    title = heading(found.total, "by " + ", ".join(found.by))
    if not found.total.n:
        return Document("segments", title, Note(""))
    names = shown_series(found, max(1, MOST_ROWS // (len(found.groups) + 2)))
    told = dict.fromkeys((finding(found).rstrip("."), found.verdict))
    verdict = Note(
        "\n".join(f"{each}." for each in told), "good" if found.differs.any() else "quiet"
    )
    notes = tuple(warned(found.notes))
    return Document("segments", title, verdict, frames=segment_frames(found, names), notes=notes)

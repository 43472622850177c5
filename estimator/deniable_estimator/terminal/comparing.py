"""Trends, segments and the history of windows as documents for a terminal: a line for each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from deniable_estimator.answers.base import Answer
from deniable_estimator.answers.segmented import Segmented, shown_series
from deniable_estimator.answers.words.texts import (
    estimate_of,
    estimate_title,
    heading,
    interval_title,
    warned,
)
from deniable_estimator.asking.history import History
from deniable_estimator.asking.segment_trends import SegmentTrends
from deniable_estimator.asking.trend import Period, Trend
from deniable_estimator.document.document import (
    Column,
    Document,
    Estimate,
    Frame,
    Note,
    Tone,
    WordedValue,
)
from deniable_estimator.document.terminal import MOST_ROWS, printable
from deniable_estimator.document.units import Unit, half_width
from deniable_estimator.errors import EstimateError

_FEW = 12
"""The most series that an error names."""


def history_document(history: History) -> Document:
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
    columns = (
        Column("window", "window", "words"),
        Column("n", "reports", "count"),
        Column("p_adjusted", "smallest\nadjusted p"),
        Column("strange", "what is strange", "words"),
    )
    verdict = Note("Nothing here is unlike honest reports.", "good")
    if history.anomalous:
        verdict = Note(
            "Leave such windows out of what you decide by (--without), and find out why: fakes, a "
            "faulty app, or an event. Do not correct the estimates.",
            "alarm",
        )
    frame = Frame("windows", "", columns, rows, tones)
    return Document("anomalies", history.metric, verdict, frames=(frame,))


def trend_document(trend: Trend, value: str | None, step: str) -> Document:
    """One series in every period that has reports, and where it has a step.

    Raises:
        EstimateError: no period knows the value.
    """
    told = value or trend.leading
    title = f"{trend.metric}  {told}  ·  by {trend.by}"
    notes = tuple(warned(trend.notes))
    return Document("trend", title, Note(step), frames=(_trend_frame(trend, told),), notes=notes)


def trends_document(found: SegmentTrends, value: str | None) -> Document:
    """The same for each segment; with the same error."""
    frames = []
    for each in found.groups:
        told = value or each.trend.leading
        title = f"{each.name}  ·  {told}  ·  by {each.trend.by}"
        frames.append(replace(_trend_frame(each.trend, told), title=title))
    notes = dict.fromkeys(note for each in found.groups for note in each.trend.notes)
    told_notes = tuple(warned((*notes, *found.notes)))
    return Document("trends", found.metric, Note(""), frames=tuple(frames), notes=told_notes)


def _trend_frame(trend: Trend, value: str) -> Frame:
    shown = [
        (period, period.estimate)
        for period in trend.reported
        if period.estimate and value in period.estimate.series.names
    ]
    if not shown:
        raise EstimateError(f"{value!r} is not one of the values of {trend.metric}{_known(trend)}")
    unit = trend.unit
    axis = _trend_axis([answer.series.at(value) for _, answer in shown], unit)
    base, top = axis
    least = "0" if base == 0 else unit.full(base, top - base)
    columns = (
        Column("period", "period", "words"),
        Column("n", "reports", "count"),
        Column(
            *("estimate", estimate_title(unit), "estimate"),
            interval=interval_title(trend.level),
            scale=(least, unit.full(top, top - base)),
        ),
        Column(
            "change",
            f"change since {'a week before' if trend.by == 'day' else 'the one before'}",
            "words",
        ),
    )
    rows = [_period_row(*each, value, axis) for each in shown]
    return Frame("periods", "", columns, rows)


def _known(trend: Trend) -> str:
    """The series of a trend as advice, if they are few."""
    newest = next((each.estimate for each in reversed(trend.reported)), None)
    names = newest.series.names if newest else ()
    return f": choose one of {', '.join(names)}" if 0 < len(names) <= _FEW else ""


def _trend_axis(shown: Sequence[tuple[float, float, float]], unit: Unit) -> tuple[float, float]:
    """Where the bars of a series begin and end: from zero, or from below it if need be."""
    top = max((high for *_, high in shown if math.isfinite(high)), default=math.nan)
    if math.isfinite(top) and unit.of_all:
        return 0.0, top
    numbers = [each for value, low, _ in shown for each in (value, low)]
    known = [0.0, *(each for each in (*numbers, top) if math.isfinite(each))]
    return min(known), max(known) if max(known) > min(known) else min(known) + 1


def _period_row(
    period: Period, answer: Answer, value: str, axis: tuple[float, float]
) -> tuple[str, int, Estimate, WordedValue | None]:
    change, told = period.change, None
    if change is not None and value in change.values:
        at = change.values.index(value)
        tone: Tone = "plain" if change.changed[at] else "quiet"
        told = WordedValue(float(change.difference[at]), change.describe(at), tone)
    mark = " (unfinished)" if period.unfinished else " (partial)" if period.partial else ""
    return period.label + mark, period.n, _series_cell(answer, value, axis), told


def _series_cell(answer: Answer, name: str, axis: tuple[float, float]) -> Estimate:
    """The number of a series with its bar; "unknown" without one."""
    numbers = answer.series.at(name)
    if not math.isfinite(numbers[0]):
        return Estimate(None, answer.unit.unknown)
    return estimate_of(answer.unit, *numbers, axis=axis)


def segments_document(found: Segmented) -> Document:
    """The verdict, and each series by segment, with its difference from the reference."""
    title = heading(found.total, "by " + ", ".join(found.by))
    if not found.total.n:
        return Document("segments", title, Note(""))
    lines = len(found.groups) + 1 + (found.rest is not None)
    names = shown_series(found, max(1, MOST_ROWS // lines))
    unit, reference = found.total.unit, found.reference
    compared = "" if reference is None else f"difference from\n{printable(reference.name)}"
    columns = (
        Column("series", "value" if unit.of_all else "series", "words"),
        Column("segment", "segment", "words"),
        Column("n", "reports", "count"),
        Column(
            *("estimate", estimate_title(unit), "estimate"),
            interval=interval_title(found.level),
        ),
        Column("difference", compared, "words"),
    )
    answers: list[tuple[str, Answer]] = [(each.name, each.answer) for each in found.groups]
    if found.rest is not None:
        answers.append((f"rest ({len(found.small)})", found.rest))
    answers.append(("total", found.total))
    rows = []
    for name in names:
        axis = _segments_axis(answers, name)
        mark = " *" if found.differs[found.names.index(name)] else ""
        for number, (segment, answer) in enumerate(answers):
            rows.append(
                (
                    printable(name) + mark if number == 0 else "",
                    printable(segment),
                    answer.n,
                    _series_cell(answer, name, axis),
                    _difference(found, found.groups[number].key, name)
                    if number < len(found.groups)
                    else None,
                )
            )
    more = len(found.names) - len(names)
    differing = any(found.differs[found.names.index(name)] for name in names)
    below = (
        *(("* differs between segments",) if differing else ()),
        *((f"and {more:,} more: --csv or --json shows all",) if more else ()),
    )
    verdict = Note(f"{found.verdict}.", "good" if found.differs.any() else "quiet")
    notes = tuple(warned(each[:1].upper() + each[1:] for each in found.notes))
    frame = Frame("segments", "", columns, rows, notes=below)
    return Document("segments", title, verdict, frames=(frame,), notes=notes)


def _segments_axis(answers: list[tuple[str, Answer]], name: str) -> tuple[float, float]:
    """One scale for all segments of a series."""
    ends = [end for _, answer in answers for end in answer.series.at(name)[1:]]
    known = [0.0, *(each for each in ends if math.isfinite(each))]
    base = 0.0 if answers[0][1].unit.of_all else min(known)
    return base, max(max(known), base + 1e-12)


def _difference(found: Segmented, key: tuple[str, ...], name: str) -> WordedValue | None:
    comparison = found.comparisons.get(key)
    if comparison is None or name not in comparison.values:
        return None
    place = comparison.values.index(name)
    low, high = comparison.ends(place)
    numbers = comparison.at(place)
    difference = numbers[0]
    if not math.isfinite(difference):
        return WordedValue(None, "unknown", "quiet")
    told = f"{found.total.unit.signed(difference, half_width(*numbers))} ({low} to {high})"
    return WordedValue(difference, told, "plain" if comparison.changed[place] else "quiet")

"""Trends, segments and the history of windows as documents for a terminal: a line for each."""

from __future__ import annotations

import math

from deniable_estimator.answers.base import Answer
from deniable_estimator.answers.segmented import Segmented, shown_series
from deniable_estimator.answers.words.texts import (
    estimate_title,
    heading,
    interval_title,
    series_cell,
    warned,
)
from deniable_estimator.asking.history import History
from deniable_estimator.asking.segment_trends import SegmentTrends
from deniable_estimator.asking.trend import Trend
from deniable_estimator.asking.trend_words import trend_frame
from deniable_estimator.document.document import (
    Column,
    Document,
    Frame,
    Note,
    Tone,
    WordedValue,
)
from deniable_estimator.document.terminal import MOST_ROWS, printable
from deniable_estimator.document.units import half_width


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
    return Document("trend", title, Note(step), frames=(trend_frame(trend, [told]),), notes=notes)


def trends_document(found: SegmentTrends, value: str | None) -> Document:
    """The same for each segment; with the same error."""
    frames = []
    for each in found.groups:
        told = value or each.trend.leading
        title = f"{each.name}  ·  {told}  ·  by {each.trend.by}"
        frames.append(trend_frame(each.trend, [told], title=title))
    notes = dict.fromkeys(note for each in found.groups for note in each.trend.notes)
    told_notes = tuple(warned((*notes, *found.notes)))
    return Document("trends", found.metric, Note(""), frames=tuple(frames), notes=told_notes)


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
                    series_cell(answer, name, axis),
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

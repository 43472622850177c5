"""Trends, segments and the history of windows as documents for a terminal: a line for each."""

from __future__ import annotations

from deniable_estimator.answers.segmented import Segmented, shown_series
from deniable_estimator.answers.words.segments import finding, segment_frames
from deniable_estimator.answers.words.texts import (
    heading,
    warned,
)
from deniable_estimator.asking.history import History
from deniable_estimator.asking.segments import SegmentTrends
from deniable_estimator.asking.trend import Trend
from deniable_estimator.asking.trend_words import trend_frame
from deniable_estimator.document.document import (
    Column,
    Document,
    Frame,
    Note,
    Tone,
)
from deniable_estimator.document.terminal import MOST_ROWS, printable


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

"""Answers, trends, segments, the history of windows and found strings over time, as documents for a
terminal; and what its options may ask of answers.

Found strings were written by strangers. Characters that could move the cursor or reorder a line are
shown as replacement characters, and strings that are written from right to left are isolated.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import chain
from typing import Any

from deniable.protocol.coded_message import counted
from deniable_estimator.asking.history import History
from deniable_estimator.asking.segments import SegmentTrends
from deniable_estimator.asking.trend import Trend
from deniable_estimator.asking.trend_words import trend_frame
from deniable_estimator.document.document import Column, Document, Frame, Note, Tone, WordedValue
from deniable_estimator.document.terminal import MOST_ROWS, printable
from deniable_estimator.document.units import SHARES, half_width
from deniable_estimator.errors import EstimateError
from deniable_estimator.kinds.base import Answer
from deniable_estimator.kinds.formats import heading, warned
from deniable_estimator.kinds.kind import Shown
from deniable_estimator.kinds.numbers.distribution import Distribution
from deniable_estimator.kinds.pairs.pair import PairAnswer
from deniable_estimator.kinds.registry import kind_of
from deniable_estimator.kinds.segments.segmented import Segmented, shown_series
from deniable_estimator.kinds.segments.words import finding, segment_frames


def answer_document(
    answer: Answer, truth: Any = None, limits: Sequence[float] = (), given: str | None = None
) -> Document:
    """The answer in words and tables; `truth`, `limits` and `given` are those of `Shown`."""
    shown = Shown(drawn=False, rows=MOST_ROWS, truth=truth, limits=limits, given=given)
    return kind_of(answer).document(answer, shown)


def check_given(answer: Answer, given: str | None) -> None:
    """Refuse a list that conditionals cannot be given.

    Raises:
        EstimateError: the answer is no pair, or not of that metric.
    """
    if given is None:
        return
    if not isinstance(answer, PairAnswer):
        raise EstimateError(f"{answer.metric} is not a pair: leave --given out")
    if given not in answer.names:
        raise EstimateError(
            f"{answer.metric} is a pair of {' and '.join(answer.names)}: give one of them"
        )


def shares_below(answer: Answer, limits: Sequence[float]) -> list[dict[str, Any]]:
    """For JSON: `Distribution.share_row` of each limit.

    Raises:
        EstimateError: the answer is no distribution, or a limit lies outside of its range.
    """
    if not isinstance(answer, Distribution):
        raise EstimateError(
            f"{answer.metric} is not asked for the distribution of a number, so no share below "
            "a limit can be told: leave --below out"
        )
    return [answer.share_row(limit) for limit in limits]


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
    if reasons := history.whole.alarms(history.alarm_level):
        strange, n = (
            "; ".join(printable(each.text) for each in reasons),
            sum(row[1] for row in rows),
        )
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
    for group, trend in found.groups:
        told = value or trend.leading
        title = f"{group.name}  ·  {told}  ·  by {trend.by}"
        frames.append(trend_frame(trend, [told], title=title))
    notes = dict.fromkeys(note for trend in found.trends for note in trend.notes)
    told_notes = tuple(warned((*notes, *found.notes)))
    return Document("trends", found.split.metric, Note(""), frames=tuple(frames), notes=told_notes)


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


_PERIODS = 7
"""As many periods as fit beside the strings."""


def finds_trend_document(trend: Trend) -> Document:
    """The share of each string in each period that has reports; quiet where it is not above 0."""
    reported = trend.reported
    shown = [each for each in reported[-_PERIODS:] if each.estimate]
    # Schemes of other lengths cut elsewhere, so that the newest period may not tell all strings.
    known = (each.estimate.series.names for each in reversed(reported) if each.estimate)
    names = tuple(dict.fromkeys(chain.from_iterable(known)))
    rows = []
    for name in names[:MOST_ROWS]:
        cells: list[WordedValue | None] = []
        for period in shown:
            assert period.estimate is not None
            value, low, high = period.estimate.series.at(name)
            told = SHARES.full(value, half_width(value, low, high))
            tone: Tone = "plain" if low > 0 else "quiet"
            cells.append(WordedValue(value, told, tone) if math.isfinite(value) else None)
        rows.append((name, *cells))
    columns = (
        Column("text", "string", "name"),
        *(Column(each.label, f"{each.label}\n{each.n:,}") for each in shown),
    )
    notes = ["Dim: the interval holds 0. The strings were found in the sum of these periods."]
    if (rest := len(names) - MOST_ROWS) > 0:
        notes.insert(0, f"and {counted(rest, 'more string')}: --csv or --json shows all")
    if len(reported) > _PERIODS:
        notes.insert(0, f"The newest {_PERIODS} periods; --csv or --json has all.")
    frame = Frame("periods", "", columns, rows, notes=tuple(notes))
    return Document(
        "trend", trend.metric, Note(""), frames=(frame,), notes=tuple(warned(trend.notes))
    )

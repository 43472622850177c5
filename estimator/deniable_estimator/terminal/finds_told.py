"""Found strings as documents for a terminal: a table with a bar for each, and what they mean.

The strings were written by strangers. Characters that could move the cursor or reorder a line are
shown as replacement characters, and strings that are written from right to left are isolated.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import chain

from deniable.protocol.coded_message import counted
from deniable_estimator.answers.finds import Explained, Find, Finds
from deniable_estimator.asking.trend import Trend
from deniable_estimator.document.document import Column, Document, Frame, Note, Tone, WordedValue
from deniable_estimator.forecasting.discovery_forecast import Reach
from deniable_estimator.isolation import isolated
from deniable_estimator.terminal.tables import (
    MOST_ROWS,
    heading,
    more_words,
    percent,
    printable,
    share_cell,
    share_column,
    warned,
)

_DOTS = "\N{HORIZONTAL ELLIPSIS}"

_PERIODS = 7
"""As many periods as fit beside the strings."""


def finds_document(finds: Finds) -> Document:
    """The strings, the commonest first, and what the list says and does not say."""
    notes = [Note(*each) for each in _facts(finds)]
    notes += warned(finds.warnings)
    for figure in finds.verdict.alarms(finds.alarm_level):
        notes.append(Note(f"Anomalous: {figure.text} (p = {figure.p_adjusted:.1g}).", "alarm"))
    top = max(*(each.high for each in finds.finds), 1e-12, 0)
    columns = (
        Column("text", "string", "words"),
        share_column(finds.level, percent(top)),
        Column("followed", "followed by", "words"),
    )
    rows = [
        (_shown(each), share_cell((each.share, each.low, each.high), top), ", ".join(each.followed))
        for each in finds.finds[:MOST_ROWS]
    ]
    more = more_words(len(finds.finds) - MOST_ROWS, "string")
    frames = (Frame("finds", "", columns, rows, notes=more),) if rows else ()
    return Document("finds", heading(finds), Note(""), frames=frames, notes=tuple(notes))


def _facts(finds: Finds) -> Iterator[tuple[str, Tone]]:
    """What to know, each line with its tone."""
    count = len(finds.finds)
    if count:
        what = "1 string explains" if count == 1 else f"{count:,} strings explain"
        yield f"{what} {_part(finds.explained)} of all reports.", "plain"
    if any(each.cut for each in finds.finds):
        text = f"{_DOTS} a string that fills the declared length: longer ones are counted in it."
        yield text, "quiet"
    reach = finds.reach
    if reach is not None:
        if not count and not (finds.below or finds.denied):
            yield "Nothing found.", "strong"
        yield _surfacing(reach), "quiet"
        yield (
            f"About {counted(reach.fakes, 'fake device')} could make a string of theirs appear "
            "here.",
            "quiet",
        )
    if finds.withheld.low > 0:
        yield (
            f"{_part(finds.withheld)} of all reports hold no string: it was empty, denied, or had "
            "a letter outside of the alphabet.",
            "quiet",
        )
    if finds.below:
        yield f"Left out: {finds.below:,} below {_share(finds.minimum_share)}.", "quiet"
    if finds.denied:
        yield f"Left out: {finds.denied:,} that the deny list matches.", "quiet"


def _surfacing(reach: Reach) -> str:
    """From which share on strings are on the list; above 1, no share is enough."""
    if reach.sure_text > 1:
        return "This crowd is too small for any string to surface in 95% of cases."
    text = f"With this crowd, strings like ordinary text surface from {_share(reach.sure_text)} on"
    if reach.sure_any > 1:
        return f"{text} in 95% of cases. Rarer ones, and strings of any letters, may be missing."
    return (
        f"{text} in 95% of cases, and strings of any letters from {_share(reach.sure_any)} on. "
        "Rarer ones may be missing."
    )


def finds_trend_document(trend: Trend) -> Document:
    """The share of each string in each period that has reports; quiet where it is not above 0."""
    reported = trend.reported
    shown = [each for each in reported[-_PERIODS:] if each.estimate]
    # Schemes of other lengths cut elsewhere, so that the newest period may not tell all strings.
    told = (each.estimate.series.names for each in reversed(reported) if each.estimate)
    names = tuple(dict.fromkeys(chain.from_iterable(told)))
    rows = []
    for name in names[:MOST_ROWS]:
        cells: list[WordedValue | None] = []
        for period in shown:
            assert period.estimate is not None
            series = period.estimate.series
            at = series.place(name)
            if at is None or not math.isfinite(series.value[at]):
                cells.append(None)
                continue
            value = float(series.value[at])
            cells.append(
                WordedValue(value, percent(value), "plain" if series.low[at] > 0 else "quiet")
            )
        rows.append((isolated(printable(name)), *cells))
    columns = (
        Column("text", "string\nshare in %", "words"),
        *(Column(each.label, f"{each.label}\n{each.n:,}") for each in shown),
    )
    newest = f"The newest {_PERIODS} periods; --csv or --json has all."
    notes = (
        *((newest,) if len(reported) > _PERIODS else ()),
        *more_words(len(names) - MOST_ROWS, "string"),
        "Dim: the interval holds 0. The strings were found in the sum of these periods.",
    )
    frame = Frame("periods", "", columns, rows, notes=notes)
    return Document(
        "trend", trend.metric, Note(""), frames=(frame,), notes=tuple(warned(trend.notes))
    )


def _shown(each: Find) -> str:
    return isolated(printable(each.text)) + (_DOTS if each.cut else "")


def _part(part: Explained) -> str:
    """A share with its interval."""
    return f"{_share(part.share)} ({percent(part.low)} .. {percent(part.high)})"


def _share(share: float) -> str:
    return f"{percent(share)}%"

"""Annotations beside the trends: which a page shows, and what is wrong with their file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from deniable import Metric
from deniable_estimator.annotations import Annotation, between
from deniable_estimator.annotations.annotation import Days
from deniable_estimator.asking.query import LENGTHS
from deniable_estimator.dashboard.access.caller import caller
from deniable_estimator.dashboard.access.roles import Role
from deniable_estimator.dashboard.annotation_file import current_annotations, file_mistakes
from deniable_estimator.dashboard.charts.flags import Flag, flags_of

MOST_LISTED = 50
"""The most annotations of a chart: the latest ones."""


@dataclass(frozen=True, slots=True)
class AnnotatedTrend:
    """What a trend shows of the annotations."""

    listed: tuple[Annotation, ...]
    """The earliest first, numbered from 1 in this order."""
    flags: tuple[Flag, ...]
    later: tuple[Annotation, ...]
    """Those of the days that have no complete window yet."""
    left_out: int
    """How many earlier ones there are besides."""
    mistakes: tuple[str, ...]
    """What is wrong with the file, for those who may correct it; the last version without mistakes
    is in force."""
    command: str | None
    """What makes another one for this metric, to be copied; None for readers."""


def annotated(
    metric: Metric, first: date, last: date, today: date, periods: Sequence[Days] = ()
) -> AnnotatedTrend | None:
    """What a page of these days shows, with flags on the periods of a trend; None where there is
    no file."""
    known = current_annotations()
    if known is None:
        return None
    if periods:
        first, last = periods[0].first, periods[-1].last
    found = between(known, first, last, metric.name)
    listed = found[-MOST_LISTED:]
    person = caller()
    writing = person is not None and person.role >= Role.ANALYST
    fresh = (today - last) <= LENGTHS[metric.window]
    return AnnotatedTrend(
        listed=listed,
        flags=flags_of(periods, listed),
        later=tuple(e for e in between(known, last, today, metric.name) if e.day > last)
        if fresh
        else (),
        left_out=len(found) - len(listed),
        mistakes=file_mistakes() if writing else (),
        # A name has letters, digits and underscores, so a shell takes it as it is.
        command=f'deniable annotate "Release 4.2" --date {today} --metric {metric.name}'
        if writing
        else None,
    )

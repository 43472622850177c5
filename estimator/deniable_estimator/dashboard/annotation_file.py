"""The file of annotations that is in force, what is wrong with it, and what trends show of it.

Flags that would lie over each other become one, which has the numbers of all of them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from flask import Flask, current_app

from deniable import Metric
from deniable_estimator.annotations import Annotation, between, load_annotations
from deniable_estimator.asking.query import LENGTHS, Days
from deniable_estimator.asking.trend import Period
from deniable_estimator.dashboard.access.caller import has_role
from deniable_estimator.dashboard.access.people import Role
from deniable_estimator.document.plot.marks import Flag
from deniable_estimator.files import LastGood
from deniable_estimator.messages import message

_MOST_MISTAKES = 5
"""So many mistakes are shown; the log and `deniable lint` have all."""

_EXTENSION = "deniable_annotations"


def keep_annotations(app: Flask, path: str) -> None:
    """Let the application read the file of annotations, if it is told of one."""
    nothing: tuple[Annotation, ...] = ()
    file = LastGood(Path(path) if path else None, load_annotations, nothing)
    app.extensions[_EXTENSION] = file
    # Mistakes are logged when the dashboard starts, not with the first reader.
    _ = file.value


def current_annotations() -> tuple[Annotation, ...] | None:
    """All annotations that are in force; None without a folder of data."""
    file = _file()
    return None if file.path is None else file.value


def annotations_of(metric: Metric, days: Days) -> tuple[Annotation, ...] | None:
    """Those of a metric in these days; None where there is no file."""
    known = current_annotations()
    return None if known is None else between(known, days.first, days.last, metric.name)


def file_mistakes() -> tuple[str, ...]:
    """What is wrong with the file, a line for each; the name of its folder is not told."""
    error = _file().mistakes
    if error is None:
        return ()
    told = [each.describe(Path(error.source).name) for each in error.problems]
    if (rest := len(told) - _MOST_MISTAKES) > 0:
        told[_MOST_MISTAKES:] = [message("and {count} more", count=rest)]
    return tuple(told)


def _file() -> LastGood[tuple[Annotation, ...]]:
    file: LastGood[tuple[Annotation, ...]] = current_app.extensions[_EXTENSION]
    return file


_ROOM = 6.0
"""Percent of the plot that a flag needs: on a phone this is its width."""

_SIDE = 33.0
"""So many percent from an edge, a text begins or ends at its flag."""

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
    metric: Metric, days: Days, today: date, periods: Sequence[Period] = ()
) -> AnnotatedTrend | None:
    """What a page of these days shows, with flags on the periods of a trend; None where there is
    no file."""
    known = current_annotations()
    if known is None:
        return None
    first, last = days.first, days.last
    if periods:
        first, last = periods[0].first, periods[-1].last
    found = between(known, first, last, metric.name)
    listed = found[-MOST_LISTED:]
    writing = has_role(Role.ANALYST)
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


def flags_of(periods: Sequence[Period], annotations: Sequence[Annotation]) -> tuple[Flag, ...]:
    """The flags of annotations, the earliest first, which are numbered from 1; those outside of the
    periods have none."""
    starts = [each.first for each in periods]
    groups: list[list[tuple[int, float, Annotation]]] = []
    for number, each in enumerate(annotations, 1):
        place = bisect_right(starts, each.day) - 1
        if place < 0 or each.day > periods[place].last:
            continue
        period = periods[place]
        days = (period.last - period.first).days + 1
        passed = ((each.day - period.first).days + each.hours / 24) / days
        at = round((place + passed) * 100 / len(periods), 3)
        if groups and at - groups[-1][0][1] < _ROOM:
            groups[-1].append((number, at, each))
        else:
            groups.append([(number, at, each)])
    return tuple(_flag(group) for group in groups)


def _flag(group: Sequence[tuple[int, float, Annotation]]) -> Flag:
    number, at, first = group[0]
    last, told = group[-1][0], first.told()
    if more := len(group) - 1:
        told = message("{told}, and {more} more", told=told, more=more)
    return Flag(
        text=f"{number}" if number == last else f"{number}–{last}",
        number=number,
        at=at,
        lines=tuple(each for _, each, _ in group),
        told=told,
        anchor="start" if at < _SIDE else "end" if at > 100 - _SIDE else "middle",
    )

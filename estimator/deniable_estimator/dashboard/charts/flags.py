"""The geometry of annotations on a trend: a line where each happened, and numbered flags.

Across, positions are in percent of the plot, as those of the trend. Flags that would lie over each
other become one, which has the numbers of all of them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from deniable_estimator.annotations.annotation import Annotation, Days

_ROOM = 6.0
"""Percent of the plot that a flag needs: on a phone this is its width."""

_SIDE = 33.0
"""So many percent from an edge, a text begins or ends at its flag."""


@dataclass(frozen=True, slots=True)
class Flag:
    """One or several annotations on a chart."""

    text: str
    """The numbers that it shows, like 2 or 3–5."""
    number: int
    """The first of them."""
    at: float
    lines: tuple[float, ...]
    """Where each of them happened."""
    told: str
    """What happened first."""
    more: int
    """How many others the flag stands for."""
    anchor: Literal["start", "middle", "end"]


def flags_of(periods: Sequence[Days], annotations: Sequence[Annotation]) -> tuple[Flag, ...]:
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
    last = group[-1][0]
    return Flag(
        text=f"{number}" if number == last else f"{number}–{last}",
        number=number,
        at=at,
        lines=tuple(each for _, each, _ in group),
        told=first.told(),
        more=len(group) - 1,
        anchor="start" if at < _SIDE else "end" if at > 100 - _SIDE else "middle",
    )

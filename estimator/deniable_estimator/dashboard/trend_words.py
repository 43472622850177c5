"""What a trend says in words: the tooltip of each period, and a description of each series."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import NamedTuple

from deniable_estimator.answers.units import Unit
from deniable_estimator.asking.trend import Period
from deniable_estimator.dashboard.words import window, with_ends
from deniable_estimator.document.plot.lines import Numbers
from deniable_estimator.document.plot.marks import Point
from deniable_estimator.messages import counted, message, sentence

_WHOLE = sentence("{period}: {value} {share}, {low} to {high}, {reports}")
_ANOMALOUS = sentence("{period}, anomalous: {value} {share}, {low} to {high}, {reports}")
_UNFINISHED = sentence("{period}, unfinished: {value} {share}, {low} to {high}, {reports}")
_PARTIAL = sentence("{period}, partial: {value} {share}, {low} to {high}, {reports}")

_ALL_WHOLE = sentence("{period}, {reports}")
_ALL_ANOMALOUS = sentence("{period}, anomalous, {reports}")
_ALL_UNFINISHED = sentence("{period}, unfinished, {reports}")
_ALL_PARTIAL = sentence("{period}, partial, {reports}")


class TrendLine(NamedTuple):
    """One series over the periods of a trend."""

    label: str
    """What people call it."""
    numbers: tuple[Numbers | None, ...]
    """Number, low and high of each period; None where there is none."""


def described(unit: Unit, periods: Sequence[Period], line: TrendLine) -> str:
    """The first and the last number of a series, for screen readers."""
    found = [place for place, numbers in enumerate(line.numbers) if numbers is not None]
    first, last = (
        _point_words(unit, periods[place], line.label, line.numbers[place])
        for place in (found[0], found[-1])
    )
    return message("From {first} to {last}.", first=first, last=last)


def points_of(
    unit: Unit,
    periods: Sequence[Period],
    lines: Sequence[tuple[int, TrendLine]],
    alarmed: Collection[str],
) -> tuple[Point, ...]:
    """What the tooltip of each period says of all lines, each with its style; nothing without
    lines."""
    marked = frozenset(place for place, each in enumerate(periods) if each.label in alarmed)
    silent = _silent(len(periods), marked)
    if not lines:
        return silent
    return tuple(
        _point_of(unit, place, point, period, lines)
        for place, (point, period) in enumerate(zip(silent, periods, strict=True))
    )


@lru_cache(maxsize=16)
def _silent(count: int, alarmed: frozenset[int]) -> tuple[Point, ...]:
    """So many points without words: a page draws many charts of the same periods."""
    each = 100 / count
    return tuple(
        Point("", round(place * each, 3), round(each, 3), place in alarmed)
        for place in range(count)
    )


def _point_of(
    unit: Unit, place: int, silent: Point, period: Period, lines: Sequence[tuple[int, TrendLine]]
) -> Point:
    """What the tooltip of one period says."""
    told = [
        (style, line.label, line.numbers[place])
        for style, line in lines
        if line.numbers[place] is not None
    ]
    if not told:
        return silent
    if len(lines) == 1:
        text = _point_words(unit, period, told[0][1], told[0][2], alarmed=silent.alarmed)
        return Point(text, *silent[1:])
    template = (
        _ALL_ANOMALOUS
        if silent.alarmed
        else _ALL_UNFINISHED
        if period.unfinished
        else _ALL_PARTIAL
        if period.partial
        else _ALL_WHOLE
    )
    head = message(template, period=window(period.label), reports=_reports(period))
    numbers = tuple((style, _short(unit, label, numbers)) for style, label, numbers in told)
    return silent._replace(text=head, numbers=numbers)


def _reports(period: Period) -> str:
    return counted("{count:,} report", "{count:,} reports", period.n)


def _short(unit: Unit, label: str, numbers: Numbers | None) -> str:
    assert numbers is not None
    share, low, high = with_ends(unit, *numbers)
    return message(
        "{value}: {share}, {low} to {high}", value=label, share=share, low=low, high=high
    )


def _point_words(
    unit: Unit,
    period: Period,
    label: str,
    numbers: Numbers | None,
    *,
    alarmed: bool = False,
) -> str:
    assert numbers is not None
    share, low, high = with_ends(unit, *numbers)
    return message(
        _ANOMALOUS
        if alarmed
        else _UNFINISHED
        if period.unfinished
        else _PARTIAL
        if period.partial
        else _WHOLE,
        period=window(period.label),
        value=label,
        share=share,
        low=low,
        high=high,
        reports=_reports(period),
    )

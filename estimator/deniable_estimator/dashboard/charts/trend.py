"""The geometry of a trend: one value's shares over time, a line inside a band.

Across, points are in percent of the plot; lines and bands, which SVG cannot draw in
percent, are in thousandths of it and stretched. Down, all is in pixels. The scale does not
begin at zero, because it is the change that a trend is about; nothing is clipped. Where an interval
has no limit on one side, the band reaches the edge, and neither line nor dot claims to know more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import groupby

from deniable import windows
from deniable_estimator.answers.units import Unit, half_width
from deniable_estimator.dashboard.charts import Tick, nice_step
from deniable_estimator.dashboard.words import estimate, short, window
from deniable_estimator.messages import Dated, message, sentence
from deniable_estimator.questions.trend import Period, Trend

__all__ = ["Mark", "TrendChart", "trend_chart"]

_TITLES = {
    "day": sentence("{value} by day"),
    "week": sentence("{value} by week"),
    "month": sentence("{value} by month"),
}
_WHOLE = sentence("{period}: {value} {share}, {low} to {high}, {n:,} reports")
_ANOMALOUS = sentence("{period}, anomalous: {value} {share}, {low} to {high}, {n:,} reports")
_UNFINISHED = sentence("{period}, unfinished: {value} {share}, {low} to {high}, {n:,} reports")
_PARTIAL = sentence("{period}, partial: {value} {share}, {low} to {high}, {n:,} reports")

_STEPS = 4
"""About so many gridlines."""

_DATES = 5
"""At most so many dates below them: more do not fit a phone."""


@dataclass(frozen=True, slots=True)
class Mark:
    """One period's share: `at`, `start` and `width` in percent across, the rest in pixels down."""

    text: str
    """Its tooltip."""
    at: float
    start: float
    width: float
    share: float
    low: float
    high: float
    partial: bool
    alarmed: bool
    """Holds windows that raise an alarm."""
    alone: bool
    """Has no neighbour, so that its band must be drawn as a whisker."""
    open: bool = False
    """Its interval has no limit on one side: only the band is drawn."""


@dataclass(frozen=True, slots=True)
class TrendChart:
    """One value's share over time."""

    name: str
    """Makes the ids inside the SVG unique on a page with several."""
    title: str
    description: str
    height: int
    marks: tuple[Mark, ...]
    lines: tuple[str, ...]
    """SVG paths of unbroken runs, across in thousandths."""
    bands: tuple[str, ...]
    levels: tuple[Tick, ...]
    """Gridlines, in pixels down."""
    dates: tuple[Tick, ...]
    years: tuple[Tick, ...]
    """The same dates, with the year in each, for a picture that leaves the page."""


def trend_chart(
    trend: Trend,
    value: str,
    *,
    height: int,
    name: str,
    alarmed: Collection[str] = (),
) -> TrendChart | None:
    """The chart of one value; None where no period has a report about it. The periods `alarmed`
    are marked."""
    found = {
        place: numbers
        for place, period in enumerate(trend.periods)
        if (numbers := _numbers(period, value)) is not None
    }
    if not found:
        return None
    unit = trend.unit
    axis = _scale(unit, [end for numbers in found.values() for end in _known(*numbers)])
    if axis is None:
        return None
    bottom, top, steps = axis

    def down(number: float) -> float:
        # An interval without a limit reaches the edge.
        at = _place(unit, number)
        return round((top - min(max(at, bottom), top)) / (top - bottom) * height, 1)

    each = 100 / len(trend.periods)
    runs = _runs(sorted(found))
    alone = {run[0] for run in runs if len(run) == 1}
    marks = []
    for place, (share, low, high) in found.items():
        period = trend.periods[place]
        marks.append(
            Mark(
                text=_told(unit, period, value, share, low, high, alarmed=period.label in alarmed),
                at=round((place + 0.5) * each, 3),
                start=round(place * each, 3),
                width=round(each, 3),
                share=down(share),
                low=down(low),
                high=down(high),
                partial=period.partial,
                alarmed=period.label in alarmed,
                alone=place in alone,
                open=_is_open(low, high),
            )
        )
    at = dict(zip(found, marks, strict=True))
    drawn = [[at[place] for place in run] for run in runs if len(run) > 1]
    whole = _runs([place for place in sorted(found) if not at[place].open])
    joined = [[at[place] for place in run] for run in whole if len(run) > 1]
    first, last = trend.periods[min(found)], trend.periods[max(found)]
    return TrendChart(
        name=name,
        title=message(_TITLES[trend.by], value=unit.label(value)),
        description=message(
            "From {first} to {last}.",
            first=_told(unit, first, value, *found[min(found)]),
            last=_told(unit, last, value, *found[max(found)]),
        ),
        height=height,
        marks=tuple(marks),
        lines=tuple(_path([(mark.at, mark.share) for mark in run]) for run in joined),
        bands=tuple(
            _path(
                [(mark.at, mark.high) for mark in run]
                + [(mark.at, mark.low) for mark in reversed(run)]
            )
            + "Z"
            for run in drawn
        ),
        levels=tuple(Tick(down(level), unit.tick(level, step)) for level, step in steps),
        dates=tuple(_dates(trend.periods, each, _date_text)),
        years=tuple(_dates(trend.periods, each, lambda period: window(period.label))),
    )


def _numbers(period: Period, value: str) -> tuple[float, float, float] | None:
    series = period.estimate.series if period.estimate else None
    place = None if series is None else series.place(value)
    if series is None or place is None:
        return None
    share, low, high = (float(column[place]) for column in (series.value, series.low, series.high))
    return (share, low, high) if math.isfinite(share) else None


def _runs(places: Sequence[int]) -> list[list[int]]:
    """The places in unbroken runs."""
    numbered = enumerate(places)
    return [
        [place for _, place in run]
        for _, run in groupby(numbered, key=lambda pair: pair[1] - pair[0])
    ]


def _is_open(low: float, high: float) -> bool:
    return not (math.isfinite(low) and math.isfinite(high))


def _known(number: float, low: float, high: float) -> Iterator[float]:
    """The ends that an axis must hold."""
    if not _is_open(low, high):
        yield number
    yield from (end for end in (low, high) if math.isfinite(end))


def _place(unit: Unit, number: float) -> float:
    """Where a number lies on its axis."""
    if unit.log and number != math.inf:
        return math.log10(number) if number > 0 else -math.inf
    return number


def _scale(
    unit: Unit, ends: Sequence[float]
) -> tuple[float, float, list[tuple[float, float]]] | None:
    """Bottom and top of an axis that holds these ends, and gridlines with the step of their digits;
    None where there is no end."""
    if not ends:
        return None
    lowest, highest = _place(unit, min(ends)), _place(unit, max(ends))
    room = max(highest - lowest, _least_span(unit, max(ends))) * 0.06
    bottom, top = lowest - room, highest + room
    if unit.log:
        return bottom, top, _decades(bottom, top)
    step = nice_step((top - bottom) / _STEPS)
    first = math.ceil(bottom / step - 1e-9)
    count = math.floor(top / step + 1e-9) - first
    return bottom, top, [((first + each) * step, step) for each in range(count + 1)]


def _least_span(unit: Unit, highest: float) -> float:
    return 1e-3 if unit.log else unit.least_span(highest)


def _decades(bottom: float, top: float) -> list[tuple[float, float]]:
    """Powers of ten, with 2 and 5 times them where there are few; round numbers in between where
    there are none."""
    span = top - bottom
    factors = (1,) if span > 3 else (1, 3) if span > 1.5 else (1, 2, 5)
    every = math.ceil(span / (_STEPS + 1))
    levels = [
        (factor * 10.0**power, 10.0**power)
        for power in range(math.floor(bottom), math.ceil(top) + 1)
        for factor in factors
        if bottom <= power + math.log10(factor) <= top and power % every == 0
    ]
    if len(levels) > 1:
        return levels
    low, high = 10.0**bottom, 10.0**top
    step = nice_step((high - low) / _STEPS)
    first, last = math.ceil(low / step), math.floor(high / step)
    return [(each * step, step) for each in range(first, last + 1)]


def _path(corners: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x * 10:.1f} {y:g}" for x, y in corners)


def _dates(periods: Sequence[Period], each: float, write: Callable[[Period], str]) -> list[Tick]:
    every = math.ceil(len(periods) / _DATES)
    places = range(every // 2, len(periods), every)
    return [Tick(round((place + 0.5) * each, 3), write(periods[place])) for place in places]


def _date_text(period: Period) -> str:
    kind = windows.kind_of(period.label)
    if kind == "day":
        day = date.fromisoformat(period.label)
        return Dated.of(f"{day.day} {day:%b}", day, "MMMd")
    return period.label.partition("-")[2] if kind == "week" else window(period.label)


def _told(
    unit: Unit,
    period: Period,
    value: str,
    share: float,
    low: float,
    high: float,
    *,
    alarmed: bool = False,
) -> str:
    spread = half_width(share, low, high)
    return message(
        _ANOMALOUS
        if alarmed
        else _UNFINISHED
        if period.unfinished
        else _PARTIAL
        if period.partial
        else _WHOLE,
        period=window(period.label),
        value=unit.label(value),
        share=estimate(unit, share, low, high),
        low=short(unit, low, spread),
        high=short(unit, high, spread),
        n=period.n,
    )

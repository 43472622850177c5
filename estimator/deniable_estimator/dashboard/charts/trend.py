"""The geometry of a trend: one value's shares over time, a line inside a band.

Across, points are in percent of the plot; lines and bands, which SVG cannot draw in
percent, are in thousandths of it and stretched. Down, all is in pixels. The scale does not
begin at zero, because it is the change that a trend is about; nothing is clipped.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import groupby

from deniable import windows
from deniable_estimator.dashboard.charts import Tick, nice_step
from deniable_estimator.dashboard.words import percent, window
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
    lowest = min(low for _, low, _ in found.values())
    highest = max(high for _, _, high in found.values())
    bottom, top, steps, step = _scale(lowest, highest)

    def down(share: float) -> float:
        return round((top - share) / (top - bottom) * height, 1)

    each = 100 / len(trend.periods)
    runs = _runs(sorted(found))
    alone = {run[0] for run in runs if len(run) == 1}
    marks = []
    for place, (share, low, high) in found.items():
        period = trend.periods[place]
        marks.append(
            Mark(
                text=_told(period, value, share, low, high, alarmed=period.label in alarmed),
                at=round((place + 0.5) * each, 3),
                start=round(place * each, 3),
                width=round(each, 3),
                share=down(share),
                low=down(low),
                high=down(high),
                partial=period.partial,
                alarmed=period.label in alarmed,
                alone=place in alone,
            )
        )
    at = dict(zip(found, marks, strict=True))
    drawn = [[at[place] for place in run] for run in runs if len(run) > 1]
    first, last = trend.periods[min(found)], trend.periods[max(found)]
    return TrendChart(
        name=name,
        title=message(_TITLES[trend.by], value=value),
        description=message(
            "From {first} to {last}.",
            first=_told(first, value, *found[min(found)]),
            last=_told(last, value, *found[max(found)]),
        ),
        height=height,
        marks=tuple(marks),
        lines=tuple(_path([(mark.at, mark.share) for mark in run]) for run in drawn),
        bands=tuple(
            _path(
                [(mark.at, mark.high) for mark in run]
                + [(mark.at, mark.low) for mark in reversed(run)]
            )
            + "Z"
            for run in drawn
        ),
        levels=tuple(Tick(down(level), _level_text(level, step)) for level in steps),
        dates=tuple(_dates(trend.periods, each, _date_text)),
        years=tuple(_dates(trend.periods, each, lambda period: window(period.label))),
    )


def _numbers(period: Period, value: str) -> tuple[float, float, float] | None:
    estimate = period.estimate
    if estimate is None or value not in estimate.values:
        return None
    place = estimate.values.index(value)
    share, low, high = (
        float(column[place]) for column in (estimate.share, estimate.low, estimate.high)
    )
    return (share, low, high) if math.isfinite(share) else None


def _runs(places: Sequence[int]) -> list[list[int]]:
    """The places in unbroken runs."""
    numbered = enumerate(places)
    return [
        [place for _, place in run]
        for _, run in groupby(numbered, key=lambda pair: pair[1] - pair[0])
    ]


def _scale(lowest: float, highest: float) -> tuple[float, float, list[float], float]:
    """Bottom, top, gridlines and their distance, for an axis that holds both."""
    room = max(highest - lowest, 1e-4) * 0.06
    bottom, top = lowest - room, highest + room
    step = nice_step((top - bottom) / _STEPS)
    first = math.ceil(bottom / step - 1e-9)
    count = math.floor(top / step + 1e-9) - first
    return bottom, top, [(first + each) * step for each in range(count + 1)], step


def _level_text(level: float, step: float) -> str:
    decimals = max(0, -math.floor(math.log10(step * 100) + 1e-9))
    text = f"{level * 100:.{decimals}f}"
    return (text.lstrip("-") if float(text) == 0 else text).replace("-", "\N{MINUS SIGN}") + "%"


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
    period: Period,
    value: str,
    share: float,
    low: float,
    high: float,
    *,
    alarmed: bool = False,
) -> str:
    spread = (high - low) / 2
    return message(
        _ANOMALOUS if alarmed else _PARTIAL if period.partial else _WHOLE,
        period=window(period.label),
        value=value,
        share=percent(share, spread),
        low=percent(low, spread),
        high=percent(high, spread),
        n=period.n,
    )

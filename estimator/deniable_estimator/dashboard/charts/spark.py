"""The geometry of a sparkline: one series over time, so small that it shows its shape alone.

A box of 100 by 24, stretched across. The line joins the estimates, the band is their interval
(1.96 standard errors). It has no axis, because the numbers stand beside it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from deniable_estimator.answers.units import Unit

MOST_POINTS = 56
"""More windows are drawn by means of several, each weighted by its reports."""

_WIDTH, _HEIGHT = 100, 24
_Z = 1.96


class SparkPoint(NamedTuple):
    """One window's estimate; NaN where nothing is known."""

    n: int
    """Reports."""
    value: float
    std_error: float


@dataclass(frozen=True, slots=True)
class Sparkline:
    """Line and band as SVG paths."""

    line: str
    band: str


def sparkline(points: Sequence[SparkPoint | None], unit: Unit) -> Sparkline | None:
    """The drawing of these windows, the oldest first, None where one has no reports; None if
    fewer than two have any."""
    found = _grouped(points)
    if unit.log:
        found = [_log(each) if each else None for each in found]
    if sum(each is not None for each in found) < 2:
        return None
    ends = [
        end
        for each in found
        if each
        for end in (each.value - _Z * each.std_error, each.value + _Z * each.std_error)
    ]
    bottom, top = min(ends), max(ends)
    least = 1e-3 if unit.log else unit.least_span(top)
    room = max(top - bottom, least) * 0.04
    low, span = bottom - room, top - bottom + 2 * room
    step = _WIDTH / max(1, len(found) - 1)

    def down(number: float) -> str:
        return f"{_HEIGHT - (number - low) / span * _HEIGHT:.1f}".removesuffix(".0")

    lines, bands = [], []
    for known, run in groupby(enumerate(found), key=lambda pair: pair[1] is not None):
        if not known:
            continue
        places = [(f"{place * step:.1f}".removesuffix(".0"), each) for place, each in run if each]
        if len(places) == 1:
            # A dot, which a line without length draws with round ends.
            (x, only) = places[0]
            lines.append(f"M{x} {down(only.value)}h0")
            continue
        lines.append("M" + " ".join(f"{x} {down(each.value)}" for x, each in places))
        above = [f"{x} {down(each.value + _Z * each.std_error)}" for x, each in places]
        below = [f"{x} {down(each.value - _Z * each.std_error)}" for x, each in reversed(places)]
        bands.append("M" + " ".join((*above, *below)) + "Z")
    return Sparkline("".join(lines), "".join(bands))


def _grouped(points: Sequence[SparkPoint | None]) -> list[SparkPoint | None]:
    """At most `MOST_POINTS`: each the mean of as many windows, by their reports."""
    known = [
        each if each and math.isfinite(each.value) and math.isfinite(each.std_error) else None
        for each in points
    ]
    size = math.ceil(len(known) / MOST_POINTS)
    if size <= 1:
        return known
    # From the newest back, so that the last point is a whole one.
    first = len(known) % size - size if len(known) % size else 0
    return [
        _mean([each for each in known[max(0, start) : start + size] if each])
        for start in range(first, len(known), size)
    ]


def _mean(points: Sequence[SparkPoint]) -> SparkPoint | None:
    n = sum(each.n for each in points)
    if not n:
        return None
    value = sum(each.n * each.value for each in points) / n
    return SparkPoint(
        n, value, math.sqrt(sum((each.n * each.std_error) ** 2 for each in points)) / n
    )


def _log(point: SparkPoint) -> SparkPoint | None:
    """The same on a logarithmic axis, where a standard error is relative to the number."""
    if point.value <= 0:
        return None
    relative = min(point.std_error / point.value, 1.0)
    return SparkPoint(point.n, math.log10(point.value), relative / math.log(10))

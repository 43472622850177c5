"""The geometry of the chart of a lifetime: what all windows tell, by number of reports.

Both axes are logarithmic. Across, everything is in percent of the plot, and the curves, which SVG
cannot draw in percent, in thousandths of it; down, in pixels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from deniable_estimator.dashboard.charts import Tick
from deniable_estimator.messages import counted, message
from deniable_estimator.planning.lifetime_choices import LifetimeChoice, LifetimePlan

HEIGHT = 240
_MOST_TICKS = 7
_ROOM = 12.0
"""Percent of the plot that a number below the axis needs, on a phone."""


@dataclass(frozen=True, slots=True)
class Dot:
    """One choice: percent across, pixels down."""

    x: float
    y: float
    best: bool
    text: str


@dataclass(frozen=True, slots=True)
class DivisionChart:
    """The choices, and the lines through them."""

    title: str
    description: str
    height: int
    line: str
    """Through the choices whose reports stay within the largest advised epsilon."""
    beyond: str
    """Through the others, up to the first of these."""
    dots: tuple[Dot, ...]
    counts: tuple[Tick, ...]
    parts: tuple[Tick, ...]
    label: str


def division_chart(plan: LifetimePlan) -> DivisionChart:
    """The chart of a plan's choices, compared with the best."""
    choices = sorted(plan.choices, key=lambda each: each.reports)
    first, last = math.log(choices[0].reports), math.log(choices[-1].reports)
    low = math.log(min(each.relative for each in choices) / 1.2)
    high = math.log(max(each.relative for each in choices) * 1.2)

    def across(reports: float) -> float:
        return round((math.log(reports) - first) / max(last - first, 1e-9) * 90 + 8, 2)

    def down(relative: float) -> float:
        return round((high - math.log(relative)) / (high - low) * HEIGHT, 1)

    def path(some: Sequence[LifetimeChoice]) -> str:
        corners = [f"{10 * across(each.reports):.1f} {down(each.relative):g}" for each in some]
        return "M" + "L".join(corners) if len(corners) > 1 else ""

    beyond = [each for each in choices if not each.advised]
    within = [each for each in choices if each.advised]
    label = counted(
        "{count} report, ε {epsilon:g}",
        "{count} reports, ε {epsilon:g}",
        plan.best.reports,
        epsilon=plan.best.epsilon,
    )
    return DivisionChart(
        title=message("What all windows tell, by number of reports"),
        description=message("The best: {choice}.", choice=label),
        height=HEIGHT,
        line=path(within),
        beyond=path([*beyond, *within[:1]]),
        dots=tuple(
            Dot(across(each.reports), down(each.relative), each == plan.best, f"{each.epsilon:g}")
            for each in choices
        ),
        counts=tuple(
            Tick(across(count), f"{count:,}")
            for count in _spread([each.reports for each in choices], across)
        ),
        parts=tuple(Tick(down(part), f"{100 * part:g}%") for part in _parts(low, high)),
        label=label,
    )


def _spread(counts: Sequence[int], across: Callable[[float], float]) -> list[int]:
    """Those that have room below the axis; the first and the last are always among them."""
    shown = [counts[-1]]
    for count in reversed(counts[:-1]):
        if across(shown[0]) - across(count) >= _ROOM:
            shown.insert(0, count)
    return [counts[0], *shown[1:]] if len(shown) > 1 else list(dict.fromkeys((counts[0], *shown)))


def _parts(low: float, high: float) -> list[float]:
    """Round parts between two logarithms, with 100% among them: 1, 2, 5 of each power of ten, or
    the powers alone if those are too many."""
    decades = range(math.floor(low / math.log(10)), math.ceil(high / math.log(10)) + 1)
    for steps in ((1, 2, 5), (1,)):
        parts = [step * 10.0**decade for decade in decades for step in steps]
        shown = [part for part in parts if low <= math.log(part) <= high]
        if len(shown) <= _MOST_TICKS:
            break
    return shown

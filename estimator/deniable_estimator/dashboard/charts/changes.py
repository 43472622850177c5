"""The picture and the table of a comparison: each value's change, from a zero in the middle."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from deniable_estimator.dashboard.charts import (
    ROW_HEIGHT,
    BarChart,
    Folded,
    Scale,
    Tick,
    nice_step,
)
from deniable_estimator.dashboard.words import percent
from deniable_estimator.messages import joined, message, spaced
from deniable_estimator.questions.comparison import Comparison, signed

__all__ = ["ChangeLine", "change_chart", "change_headline", "change_lines"]

_STEPS = 5
_NAMED = 3


@dataclass(frozen=True, slots=True)
class ChangeLine:
    """One value in both periods."""

    value: str
    before: str
    after: str
    difference: str
    low: str
    high: str
    changed: bool


def change_chart(comparison: Comparison, limit: int) -> Folded:
    """The changes as bars from zero, those furthest from the noise first, at most `limit`; those
    that cannot be told from noise folded away, unless nothing else is there."""
    order = _order(comparison)
    standing = [place for place in order if comparison.changed[place]]
    noise = [place for place in order if not comparison.changed[place]]
    if len(order) == 2 or not standing or not noise:
        return Folded(_draw(comparison, order, order, limit), None, 0)
    shown = standing[:limit] + noise[:limit]
    below = _draw(comparison, noise, shown, limit)
    return Folded(
        _draw(comparison, standing, shown, limit),
        replace(below, name="changes-noise"),
        len(noise),
    )


def _draw(
    comparison: Comparison, places: Sequence[int], scaled: Sequence[int], limit: int
) -> BarChart:
    """The changes of the first `limit` of these values, on a scale that holds those `scaled`."""
    shown = list(scaled[: 2 * limit])
    lowest = min(0.0, float(comparison.low[shown].min()))
    highest = max(0.0, float(comparison.high[shown].max()))
    room = 0.04 * (highest - lowest)
    bottom, top = lowest - room, highest + room
    step = nice_step((top - bottom) / _STEPS)
    ticks = range(math.ceil(bottom / step), math.floor(top / step) + 1)

    scale = Scale(bottom, top)
    bars = [
        scale.bar(
            row,
            comparison.values[place],
            (
                float(comparison.difference[place]),
                float(comparison.low[place]),
                float(comparison.high[place]),
            ),
            signed,
            noise=not bool(comparison.changed[place]),
        )
        for row, place in enumerate(places[:limit])
    ]
    return BarChart(
        name="changes",
        title=message("Changes in percentage points"),
        description=spaced(
            message(
                "{value} {share}, between {low} and {high} points.",
                value=bar.label,
                share=bar.share,
                low=bar.low_text,
                high=bar.high_text,
            )
            for bar in bars[:10]
        ),
        bars=tuple(bars),
        ticks=tuple(Tick(scale.across(tick * step), signed(tick * step, step)) for tick in ticks),
        zero=scale.across(0.0),
        height=len(bars) * ROW_HEIGHT,
        more=len(places) - len(bars),
    )


def change_lines(comparison: Comparison, limit: int) -> list[ChangeLine]:
    """The same values in the same order, with their shares in both periods."""
    lines = []
    for place in _order(comparison)[:limit]:
        low, high = float(comparison.low[place]), float(comparison.high[place])
        spread = (high - low) / 2
        lines.append(
            ChangeLine(
                value=comparison.values[place],
                before=percent(float(comparison.share_before[place]), spread),
                after=percent(float(comparison.share_after[place]), spread),
                difference=signed(float(comparison.difference[place]), spread),
                low=comparison.ends(place)[0],
                high=comparison.ends(place)[1],
                changed=bool(comparison.changed[place]),
            )
        )
    return lines


def change_headline(comparison: Comparison) -> str:
    """What has changed, in a sentence."""
    changed = [place for place in _order(comparison) if comparison.changed[place]]
    if not changed:
        return message("No change that can be told from noise.")
    if comparison.values == ("true", "false"):
        return message("Yes is {change}.", change=comparison.describe(0))
    told = joined(
        message("{value} is {change}", value=comparison.values[at], change=comparison.describe(at))
        for at in changed[:_NAMED]
    )
    rest = len(changed) - _NAMED
    if rest > 0:
        return message("{told}; and {rest:,} more have changed.", told=told, rest=rest)
    return message("{told}.", told=told)


def _order(comparison: Comparison) -> list[int]:
    """Values by how far their change stands out from its noise."""
    with np.errstate(divide="ignore", invalid="ignore"):
        score = np.abs(comparison.difference) / comparison.std_error
    known = np.nan_to_num(score, nan=-1.0)
    order: list[int] = np.argsort(-known, kind="stable").tolist()
    if comparison.values == ("true", "false"):
        order = [0, 1]
    return order

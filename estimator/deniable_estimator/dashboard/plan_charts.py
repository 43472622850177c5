"""The charts of plans: what can be detected by how many devices, and what all windows tell by
number of reports. All axes are logarithmic."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from deniable.protocol.mechanisms import FrequencyOracle
from deniable_estimator.document.plot.lines import path
from deniable_estimator.document.plot.marks import DrawnLine, LineChart, RuleLine, Spot
from deniable_estimator.document.plot.ticks import Label, Tick
from deniable_estimator.forecasting.detection import detectable_share
from deniable_estimator.messages import counted, message
from deniable_estimator.planning.lifetime_crowd import LifetimeChoice

HEIGHT = 240
_DECADES = 6
_STEPS = 20
"""Corners of the curve in each decade."""
_MOST_TICKS = 7
_ROOM = 12.0
"""Percent of the plot that a number below the axis needs, on a phone."""


def reach_chart(
    mechanism: FrequencyOracle[Any], size: int, sample_rate: float, devices: int
) -> LineChart:
    """The smallest detectable share around so many devices, each of which reports at
    `sample_rate`."""
    middle = round(math.log10(devices))
    first = max(1, middle - _DECADES // 2)
    corners = []
    for step in range(_DECADES * _STEPS + 1):
        exponent = first + step / _STEPS
        share = detectable_share(mechanism, size, 10**exponent * sample_rate)
        if share is not None:
            corners.append((step / _STEPS / _DECADES, share))
    lowest = math.floor(math.log10(min((share for _, share in corners), default=0.01)))

    def down(share: float) -> float:
        return round(math.log10(share) / lowest * HEIGHT, 1)

    chosen = detectable_share(mechanism, size, devices * sample_rate)
    label = message("nothing") if chosen is None else share_text(chosen)
    at = round((math.log10(devices) - first) / _DECADES * 100, 2)
    top = 0.0 if chosen is None else down(chosen)
    curve = _path([(x * 100, down(share)) for x, share in corners])
    return LineChart(
        form="reach",
        name="reach",
        title=message("Smallest detectable share against devices"),
        description=counted(
            "With {count:,} device: {share}.",
            "With {count:,} devices: {share}.",
            devices,
            share=label,
        ),
        height=HEIGHT,
        lines=(DrawnLine(paths=(curve,)),) if corners else (),
        levels=tuple(
            Tick(down(10.0**exponent), share_text(10.0**exponent))
            for exponent in range(0, lowest - 1, -1)
        ),
        ticks=tuple(
            Label(round(each / _DECADES * 100, 2), _devices_text(first + each))
            for each in range(_DECADES + 1)
        ),
        rules=(RuleLine((at, top), (at, HEIGHT)),),
        spots=() if chosen is None else (Spot(at, top, 5, label),),
    )


def division_chart(found: Sequence[LifetimeChoice], best: LifetimeChoice) -> LineChart:
    """What all windows tell, by number of reports, compared with the best choice. Dashed to the
    choices whose reports have more than the largest advised epsilon."""
    choices = sorted(found, key=lambda each: each.reports)
    first, last = math.log(choices[0].reports), math.log(choices[-1].reports)
    low = math.log(min(each.relative for each in choices) / 1.2)
    high = math.log(max(each.relative for each in choices) * 1.2)

    def across(reports: float) -> float:
        return round((math.log(reports) - first) / max(last - first, 1e-9) * 90 + 8, 2)

    def down(relative: float) -> float:
        return round((high - math.log(relative)) / (high - low) * HEIGHT, 1)

    beyond = [each for each in choices if not each.advised]
    within = [each for each in choices if each.advised]
    label = counted(
        "{count} report, ε {epsilon:g}",
        "{count} reports, ε {epsilon:g}",
        best.reports,
        epsilon=best.epsilon,
    )

    def line(some: Sequence[LifetimeChoice], *, dashed: bool) -> list[DrawnLine]:
        corners = [(across(each.reports), down(each.relative)) for each in some]
        return [DrawnLine(paths=(_path(corners),), dashed=dashed)] if len(corners) > 1 else []

    return LineChart(
        form="reach",
        name="division",
        title=message("What all windows tell, by number of reports"),
        description=message("The best: {choice}.", choice=label),
        height=HEIGHT,
        lines=(*line([*beyond, *within[:1]], dashed=True), *line(within, dashed=False)),
        levels=tuple(Tick(down(part), f"{100 * part:g}%") for part in _parts(low, high)),
        ticks=tuple(
            Label(across(count), f"{count:,}")
            for count in _spread([each.reports for each in choices], across)
        ),
        spots=tuple(
            Spot(across(each.reports), down(each.relative), 6, label)
            if each == best
            else Spot(across(each.reports), down(each.relative), 3)
            for each in choices
        ),
    )


def _path(corners: Sequence[tuple[float, float]]) -> str:
    return path([f"{10 * x:.1f}" for x, _ in corners], [y for _, y in corners])


def share_text(share: float) -> str:
    """A share in percent, to two digits that matter."""
    per_cent = share * 100
    decimals = max(0, 1 - math.floor(math.log10(per_cent)))
    text = f"{per_cent:.{decimals}f}"
    if decimals:
        text = text.rstrip("0").rstrip(".")
    return text + "%"


def _devices_text(exponent: int) -> str:
    for power, unit in ((9, "B"), (6, "M"), (3, "k")):
        if exponent >= power:
            return f"{10 ** (exponent - power)}{unit}"
    return str(10**exponent)


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

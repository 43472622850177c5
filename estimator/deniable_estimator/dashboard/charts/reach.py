"""The geometry of the planner's chart: the smallest detectable share against devices.

Both axes are logarithmic. Across, everything is in percent of the plot, and the curve,
which SVG cannot draw in percent, in thousandths of it; down, in pixels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from deniable.mechanisms import FrequencyOracle
from deniable_estimator.dashboard.charts import Tick
from deniable_estimator.forecasting.detection import detectable_share
from deniable_estimator.messages import counted, message

HEIGHT = 240
_DECADES = 6
_STEPS = 20
"""Corners of the curve in each decade."""


@dataclass(frozen=True, slots=True)
class ReachChart:
    """The curve, the axes, and where the chosen number of devices lies."""

    title: str
    description: str
    height: int
    curve: str
    at: float
    """Percent across of the chosen devices."""
    share: float | None
    """Pixels down of what they can detect; None if not even 100%."""
    label: str
    devices: tuple[Tick, ...]
    shares: tuple[Tick, ...]


def reach_chart(
    mechanism: FrequencyOracle[Any], size: int, sample_rate: float, devices: int
) -> ReachChart:
    """The chart around so many devices, each of which reports at `sample_rate`."""
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
    return ReachChart(
        title=message("Smallest detectable share against devices"),
        description=counted(
            "With {count:,} device: {share}.",
            "With {count:,} devices: {share}.",
            devices,
            share=label,
        ),
        height=HEIGHT,
        curve="M" + "L".join(f"{x * 1000:.1f} {down(share):g}" for x, share in corners)
        if corners
        else "",
        at=round((math.log10(devices) - first) / _DECADES * 100, 2),
        share=None if chosen is None else down(chosen),
        label=label,
        devices=tuple(
            Tick(round(each / _DECADES * 100, 2), _devices_text(first + each))
            for each in range(_DECADES + 1)
        ),
        shares=tuple(
            Tick(down(10.0**exponent), share_text(10.0**exponent))
            for exponent in range(0, lowest - 1, -1)
        ),
    )


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

"""The table under the chart: every number of an estimate as text, a line for each value."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hearsay_estimator.dashboard.words import error, p_value, percent
from hearsay_estimator.estimate import Estimate

__all__ = ["Line", "table"]


@dataclass(frozen=True, slots=True)
class Line:
    """One value."""

    value: str
    share: str
    low: str
    high: str
    std_error: str
    p_adjusted: str
    consistent: str
    noise: bool
    moved: bool


def table(estimate: Estimate, limit: int, *, declared_order: bool = False) -> list[Line]:
    """The `limit` largest values, the largest first or as they are declared (a boolean always)."""
    declared_order = declared_order or estimate.values == ("true", "false")
    noise, moved = ~estimate.detected, estimate.moved
    order = np.argsort(-estimate.share, kind="stable")[:limit]
    lines = []
    for index in np.sort(order) if declared_order else order:
        spread = float(estimate.high[index] - estimate.low[index]) / 2
        lines.append(
            Line(
                value=estimate.values[index],
                share=percent(float(estimate.share[index]), spread),
                low=percent(float(estimate.low[index]), spread),
                high=percent(float(estimate.high[index]), spread),
                std_error=error(float(estimate.std_error[index])),
                p_adjusted=p_value(float(estimate.p_adjusted[index])),
                consistent=percent(float(estimate.consistent[index]), spread),
                noise=bool(noise[index]),
                moved=bool(moved[index]),
            )
        )
    return lines

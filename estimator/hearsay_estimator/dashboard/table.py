"""The table under the chart: every number of an estimate as text, a line for each value."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from hearsay_estimator.dashboard.words import error, p_value, percent
from hearsay_estimator.estimate import Estimate

__all__ = ["Line", "Lines", "table"]


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


@dataclass(frozen=True, slots=True)
class Lines:
    """The lines of a table in two parts."""

    standing: tuple[Line, ...]
    noise: tuple[Line, ...]
    """What cannot be told from noise, if it is folded away."""
    hidden: int
    """How many values cannot be told from noise, listed or not, if they are folded away."""
    more: int
    """How many values are not listed."""


def table(estimate: Estimate, limit: int, *, declared_order: bool = False) -> Lines:
    """The `limit` largest values, the largest first or as they are declared (a boolean always).

    Those that cannot be told from noise come after the others; where none can be told from
    it, they all stand.
    """
    boolean = estimate.values == ("true", "false")
    detected = estimate.detected
    order = np.argsort(-estimate.share, kind="stable")
    standing, noise = order[detected[order]], order[~detected[order]]
    if boolean or not len(standing):
        standing, noise = order, order[:0]
    shown = standing[:limit]
    below = noise[: limit - len(shown)]
    if declared_order or boolean:
        shown, below = np.sort(shown), np.sort(below)
    columns = tuple(
        column.tolist()
        for column in (
            estimate.share,
            estimate.low,
            estimate.high,
            estimate.std_error,
            estimate.p_adjusted,
            estimate.consistent,
            ~detected,
            estimate.moved,
        )
    )

    def lines(places: Iterable[int]) -> tuple[Line, ...]:
        return tuple(_line(estimate.values[i], *(column[i] for column in columns)) for i in places)

    return Lines(
        lines(shown.tolist()),
        lines(below.tolist()),
        len(noise),
        len(order) - len(shown) - len(below),
    )


def _line(
    value: str,
    share: float,
    low: float,
    high: float,
    std_error: float,
    p_adjusted: float,
    consistent: float,
    noise: bool,
    moved: bool,
) -> Line:
    spread = (high - low) / 2
    return Line(
        value=value,
        share=percent(share, spread),
        low=percent(low, spread),
        high=percent(high, spread),
        std_error=error(std_error),
        p_adjusted=p_value(p_adjusted),
        consistent=percent(consistent, spread),
        noise=noise,
        moved=moved,
    )

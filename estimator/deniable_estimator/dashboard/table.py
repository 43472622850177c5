"""The table under the chart: every number of an estimate as text, a line for each value."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deniable_estimator.answers.shares import Shares
from deniable_estimator.dashboard.words import error, p_value, percent

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
    normalized: str
    noise: bool
    moved: bool
    impossible: bool


@dataclass(frozen=True, slots=True)
class Lines:
    """The lines of a table in two parts."""

    standing: tuple[Line, ...]
    noise: tuple[Line, ...]
    """The values that cannot be told from noise, if they are folded away."""
    hidden: int
    """How many values cannot be told from noise, listed or not, if they are folded away."""
    more: int
    """How many values are not listed."""


def table(estimate: Shares, limit: int, *, declared_order: bool = False) -> Lines:
    """The `limit` largest values, the largest first or as they are declared (a boolean always).

    Impossible ones come first, and those that cannot be told from noise after all others; where
    none can be told from it, they all stand.
    """
    boolean = estimate.values == ("true", "false")
    standing, noise = np.concatenate((estimate.strange, estimate.standing)), estimate.below
    if boolean or not len(standing):
        standing, noise = estimate.order, estimate.order[:0]
    shown = standing[:limit]
    below = noise[: limit - len(shown)]
    if declared_order or boolean:
        shown, below = np.sort(shown), np.sort(below)
    return Lines(
        _lines(estimate, shown),
        _lines(estimate, below),
        len(noise),
        len(estimate.order) - len(shown) - len(below),
    )


def _lines(estimate: Shares, places: NDArray[np.intp]) -> tuple[Line, ...]:
    # Only these become Python's numbers: there may be a million more.
    columns = (
        column[places].tolist()
        for column in (
            estimate.share,
            estimate.low,
            estimate.high,
            estimate.std_error,
            estimate.p_adjusted,
            estimate.normalized,
            ~(estimate.detected | estimate.impossible),
            estimate.moved,
            estimate.impossible,
        )
    )
    values = [estimate.values[place] for place in places.tolist()]
    return tuple(_line(*numbers) for numbers in zip(values, *columns, strict=True))


def _line(
    value: str,
    share: float,
    low: float,
    high: float,
    std_error: float,
    p_adjusted: float,
    normalized: float,
    noise: bool,
    moved: bool,
    impossible: bool,
) -> Line:
    spread = (high - low) / 2
    return Line(
        value=value,
        share=percent(share, spread),
        low=percent(low, spread),
        high=percent(high, spread),
        std_error=error(std_error),
        p_adjusted=p_value(p_adjusted),
        normalized=percent(normalized, spread),
        noise=noise,
        moved=moved,
        impossible=impossible,
    )

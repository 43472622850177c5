"""The table under the chart: every number of an estimate as text, a line for each value."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deniable_estimator.answers.base import Comparison
from deniable_estimator.answers.shares import Shares
from deniable_estimator.dashboard.changes import ChangeText, change_order, change_texts
from deniable_estimator.dashboard.view import Sort
from deniable_estimator.dashboard.words import error, p_value, percent


@dataclass(frozen=True, slots=True)
class Line:
    """One value."""

    value: str
    name: str
    """What pages call it."""
    place: int
    """Its index in the list of values."""
    share: str
    low: str
    high: str
    std_error: str
    p_adjusted: str
    normalized: str
    noise: bool
    moved: bool
    impossible: bool
    change: ChangeText | None = None


@dataclass(frozen=True, slots=True)
class Lines:
    """The lines of a table in two parts."""

    standing: tuple[Line, ...]
    noise: tuple[Line, ...]
    """The values that cannot be told from noise, if they are folded away."""
    hidden: int
    """How many values cannot be told from noise, listed or not, if they are folded away."""
    more: int
    """How many values are not listed, of those that are looked for."""


def table(
    estimate: Shares,
    limit: int,
    *,
    declared_order: bool = False,
    comparison: Comparison | None = None,
    sort: Sort | None = None,
    find: str = "",
) -> Lines:
    """At most `limit` lines: the largest values first, or as they are declared (a boolean always).

    Impossible ones come first, and those that cannot be told from noise after all others; where
    none can be told from it, they all stand. With `sort`, or where text is looked for by `find`,
    nothing is folded away. Upper and lower case make no difference.
    """
    boolean = estimate.values == ("true", "false")
    standing, noise = np.concatenate((estimate.strange, estimate.standing)), estimate.below
    if sort or find:
        standing, noise = _found(estimate, comparison, sort, find), estimate.order[:0]
    elif boolean or not len(standing):
        standing, noise = estimate.order, estimate.order[:0]
    shown = standing[:limit]
    below = noise[: limit - len(shown)]
    if not sort and (declared_order or boolean):
        shown, below = np.sort(shown), np.sort(below)
    return Lines(
        _table_lines(estimate, comparison, shown),
        _table_lines(estimate, comparison, below),
        len(noise),
        len(standing) + len(noise) - len(shown) - len(below),
    )


def _found(
    estimate: Shares, comparison: Comparison | None, sort: Sort | None, find: str
) -> NDArray[np.intp]:
    """The places of the values that contain a text, sorted."""
    column = (sort or "share").removeprefix("-")
    order = estimate.order
    if column == "value":
        names = [value.casefold() for value in estimate.values]
        order = np.array(sorted(range(len(names)), key=names.__getitem__), np.intp)
    elif column == "change" and comparison is not None:
        first = estimate.places(tuple(comparison.values[at] for at in change_order(comparison)))
        order = np.concatenate((first, order[~np.isin(order, first)]))
    if find:
        text = find.casefold()
        held = np.array([text in value.casefold() for value in estimate.values], np.bool_)
        order = order[held[order]]
    return order[::-1] if sort and sort.startswith("-") else order


def _table_lines(
    estimate: Shares, comparison: Comparison | None, places: NDArray[np.intp]
) -> tuple[Line, ...]:
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
    changes = {} if comparison is None else change_texts(comparison, values)
    return tuple(
        Line(
            value=value,
            name=estimate.unit.label(value),
            place=place,
            share=percent(share, spread),
            low=percent(low, spread),
            high=percent(high, spread),
            std_error=error(std_error),
            p_adjusted=p_value(p_adjusted),
            normalized=percent(normalized, spread),
            noise=noise,
            moved=moved,
            impossible=impossible,
            change=changes.get(value),
        )
        for value, place, share, low, high, std_error, p_adjusted, normalized, *flags in zip(
            values, places.tolist(), *columns, strict=True
        )
        for spread, (noise, moved, impossible) in [((high - low) / 2, flags)]
    )

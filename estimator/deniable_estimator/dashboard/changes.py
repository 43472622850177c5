"""The picture and the table of a comparison, each value's change from a zero in the middle; and the
table under a chart of shares: every number as text, a line for each value.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable_estimator.answers.base import Answer, Comparison
from deniable_estimator.answers.shares import Shares
from deniable_estimator.answers.units import half_width, signed
from deniable_estimator.dashboard.view import Sort
from deniable_estimator.dashboard.words import error, estimate, p_value, percent, series_name, short
from deniable_estimator.document.plot.marks import BarRow, Bars, Folded
from deniable_estimator.document.plot.scales import Scale
from deniable_estimator.document.plot.ticks import Tick, nice_step
from deniable_estimator.messages import joined, message, spaced

_STEPS = 5
_NAMED = 3


@dataclass(frozen=True, slots=True)
class ChangeText:
    """The change of one value, for a cell of a table."""

    difference: str
    """At least or at most so much where its interval has no limit on one side."""
    between: str
    """Its interval; empty where that has not both limits."""
    changed: bool
    """By more than noise."""


def change_texts(comparison: Comparison, names: Iterable[str]) -> dict[str, ChangeText]:
    """The changes of these values, of those that the comparison knows."""
    places = {name: place for place, name in enumerate(comparison.values)}
    found = {}
    for name in names:
        place = places.get(name)
        if place is None:
            continue
        if math.isfinite(comparison.difference[place]):
            found[name] = _change_text(comparison, place)
    return found


def _change_text(comparison: Comparison, place: int) -> ChangeText:
    unit = comparison.after.unit
    difference, low, high = comparison.at(place)
    least, most = comparison.ends(place)
    changed = bool(comparison.changed[place])
    if not (math.isfinite(low) or math.isfinite(high)):
        return ChangeText(unit.unknown, "", changed)
    if high == math.inf:
        return ChangeText(message("at least {number}", number=least), "", changed)
    if low == -math.inf:
        return ChangeText(message("at most {number}", number=most), "", changed)
    text = unit.signed(difference, half_width(difference, low, high))
    return ChangeText(text, message("{low} to {high}", low=least, high=most), changed)


def change_order(comparison: Comparison) -> list[int]:
    """The places of its values: those that changed by more than noise first, and of both those
    further from it."""
    changed = comparison.changed.tolist()
    return sorted(_order(comparison), key=lambda place: not changed[place])


def change_chart(comparison: Comparison, limit: int) -> Folded:
    """The changes as bars from zero, those furthest from the noise first, at most `limit`; those
    that cannot be told from noise folded away, unless nothing else is there."""
    order = [place for place in _order(comparison) if math.isfinite(comparison.difference[place])]
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


def _draw(comparison: Comparison, places: Sequence[int], scaled: Sequence[int], limit: int) -> Bars:
    """The changes of the first `limit` of these values, on a scale that holds those `scaled`."""
    unit = comparison.after.unit
    if unit.of_all:
        shown = list(scaled[: 2 * limit])
        scale, ticks = _together(comparison, shown)
        rows = [_bar(comparison, place, scale) for place in places[:limit]]
    else:
        # A p99 has an interval many times as wide as a p50: on one scale nothing is seen of it.
        ticks = ()
        scale = Scale(-1.0, 1.0)
        rows = [_bar(comparison, place, _alone(comparison, place)) for place in places[:limit]]
    return Bars(
        name="changes",
        title=unit.changes_title,
        description=spaced(
            message(
                unit.between,
                value=row.label,
                share=row.number,
                low=row.low_text,
                high=row.high_text,
            )
            for row in rows[:10]
        ),
        rows=tuple(rows),
        ticks=ticks,
        zero=scale.across(0.0),
        more=len(places) - len(rows),
    )


def _bar(comparison: Comparison, place: int, scale: Scale) -> BarRow:
    unit = comparison.after.unit
    difference, low, high = comparison.at(place)
    given = low, high
    low, high = max(low, scale.bottom), min(high, scale.top)
    if unit.of_all:
        spread = (high - low) / 2
        ends = unit.signed(low, spread), unit.signed(high, spread)
        half = percent(spread, spread).rstrip("%")
    else:
        spread, ends = half_width(difference, *given), comparison.ends(place)
        half = unit.text(spread, spread) if math.isfinite(given[1] - given[0]) else ""
    return BarRow(
        series_name(comparison.after, comparison.values[place]),
        unit.signed(difference, spread),
        *(scale.across(difference), scale.across(low), scale.across(high)),
        *ends,
        spread=half,
        noise=not bool(comparison.changed[place]),
    )


def _together(comparison: Comparison, shown: list[int]) -> tuple[Scale, tuple[Tick, ...]]:
    """A scale for all that is shown, and its gridlines."""
    lowest = comparison.low[shown].min(initial=0.0)
    highest = comparison.high[shown].max(initial=0.0)
    room = 0.04 * (highest - lowest or 1.0)
    bottom, top = lowest - room, highest + room
    step = nice_step((top - bottom) / _STEPS)
    ticks = range(math.ceil(bottom / step), math.floor(top / step) + 1)
    scale = Scale(bottom, top)
    return scale, tuple(
        Tick(scale.across(tick * step), signed(tick * step, step)) for tick in ticks
    )


def _alone(comparison: Comparison, place: int) -> Scale:
    """A scale for one change, with zero in the middle; an interval without a limit reaches its
    end."""
    columns = comparison.difference, comparison.low, comparison.high
    numbers = (float(column[place]) for column in columns)
    reach = max((abs(each) for each in numbers if math.isfinite(each)), default=0.0) or 1.0
    return Scale(-1.04 * reach, 1.04 * reach)


def change_lines(comparison: Comparison, limit: int) -> list[dict[str, Any]]:
    """The same values in the same order, with their shares in both periods."""
    lines = []
    before, after = comparison.before, comparison.after
    for place in _order(comparison)[:limit]:
        value, difference = comparison.values[place], float(comparison.difference[place])
        ends = float(comparison.low[place]), float(comparison.high[place])
        spread = half_width(difference, *ends)
        low, high = comparison.ends(place)
        lines.append(
            {
                "value": series_name(after, value),
                "before": _of_period(before, value, spread),
                "after": _of_period(after, value, spread),
                "difference": after.unit.signed(difference, spread),
                "low": low,
                "high": high,
                "changed": bool(comparison.changed[place]),
            }
        )
    return lines


def _of_period(answer: Answer, name: str, spread: float) -> str:
    """A number of one period, with as many digits as its change has."""
    number, low, high = answer.series.at(name)
    if math.isfinite(low) and math.isfinite(high):
        return short(answer.unit, number, spread)
    return estimate(answer.unit, number, low, high)


def change_headline(comparison: Comparison) -> str:
    """What has changed, in a sentence."""
    changed = [place for place in _order(comparison) if comparison.changed[place]]
    if not changed:
        return message("No change that can be told from noise.")
    if comparison.values == ("true", "false"):
        return message("Yes is {change}.", change=comparison.describe(0))
    told = joined(
        message(
            "{value} is {change}",
            value=series_name(comparison.after, comparison.values[at]),
            change=comparison.describe(at),
        )
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
        standing, noise = _table_found(estimate, comparison, sort, find), estimate.order[:0]
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


def _table_found(
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

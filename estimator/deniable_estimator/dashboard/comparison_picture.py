"""The picture and the table of a comparison: each value's change from a zero in the middle."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from deniable_estimator.document.document import Column, Estimate, Frame, Picture, WordedValue
from deniable_estimator.document.plot.marks import BarRow, Bars
from deniable_estimator.document.plot.scales import Scale
from deniable_estimator.document.plot.ticks import Tick, nice_step
from deniable_estimator.document.units import SHARES, half_width
from deniable_estimator.kinds.base import Answer, Comparison
from deniable_estimator.kinds.formats import (
    NOISE,
    change_cells,
    change_title,
    estimate,
    interval_title,
    not_listed,
    order_of,
    series_name,
)
from deniable_estimator.messages import counted, joined, message, spaced

_STEPS = 5
_NAMED = 3


_AMONG_ALL = message(
    "The changes are those among all devices that could report. No report says whose it is, so the "
    "two periods are taken for those of different devices: where the same devices reported in "
    "both, the intervals are wider than they need be."
)
_OF_QUANTILES = message(
    "Whether a quantile has changed is tested by the share of devices below it. The interval of "
    "the change is more cautious, so it may hold zero although the quantile has changed."
)


def change_picture(comparison: Comparison, limit: int) -> Picture:
    """The chart of changes, at most `limit` on each side of the fold, and how it is to be read."""
    after, (standing, noise, hidden) = comparison.after, _drawn(comparison, limit)
    bars = message("change, in points")
    if after.kind != "shares":
        bars = message("change; each row has a scale of its own, with zero in the middle")
    notes = [_AMONG_ALL, *(message("{what}.", what=each) for each in after.footnotes)]
    if after.kind == "distribution":
        notes.append(_OF_QUANTILES)
    notes.append(
        message(
            "Each {level}% interval holds by itself. What counts as changed is corrected for how "
            "many are compared.",
            level=f"{comparison.level * 100:g}",
        )
    )
    shown = [each for each in (standing, noise) if each]
    if any(each.more for each in shown):
        notes.append(
            message(
                "The chart shows {shown} of {values} values; the files hold them all.",
                shown=sum(len(each.rows) for each in shown),
                values=f"{len(comparison.values):,}",
            )
        )
    legend = (
        ("bar", bars),
        ("whisker", interval_title(comparison.level)),
        ("bar noise", message("cannot be told from noise")),
    )
    fold = _below_noise(hidden)
    return Picture(standing, folded=noise, fold=fold, legend=legend, notes=tuple(notes))


def _drawn(comparison: Comparison, limit: int) -> tuple[Bars, Bars | None, int]:
    """The changes as bars from zero, those furthest from the noise first, at most `limit`; those
    that cannot be told from noise, which are to be folded away unless nothing else is there; and
    how many of these there are, drawn or not."""
    order = [place for place in order_of(comparison) if math.isfinite(comparison.difference[place])]
    standing = [place for place in order if comparison.changed[place]]
    noise = [place for place in order if not comparison.changed[place]]
    if len(order) == 2 or not standing or not noise:
        return _draw(comparison, order, order, limit), None, 0
    shown = standing[:limit] + noise[:limit]
    below = _draw(comparison, noise, shown, limit)
    standing_out = _draw(comparison, standing, shown, limit)
    return standing_out, replace(below, name="changes-noise"), len(noise)


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
        title=change_title(unit),
        description=spaced(
            message(
                "{value} {share}, between {low} and {high}.",
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
        half = SHARES.full(spread, spread).rstrip("%")
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
        Tick(scale.across(tick * step), SHARES.signed(tick * step, step)) for tick in ticks
    )


def _alone(comparison: Comparison, place: int) -> Scale:
    """A scale for one change, with zero in the middle; an interval without a limit reaches its
    end."""
    reach = (
        max((abs(each) for each in comparison.at(place) if math.isfinite(each)), default=0.0) or 1.0
    )
    return Scale(-1.04 * reach, 1.04 * reach)


def change_frame(comparison: Comparison, limit: int) -> Frame:
    """The same values in the same order, with their shares in both periods; where some have
    changed, the others are folded away."""
    before, after = comparison.before, comparison.after
    changed = comparison.changed.tolist()
    order = order_of(comparison)[:limit]
    if len(comparison.values) > 2 and any(changed):
        order.sort(key=lambda place: not changed[place])
    cells, rows = change_cells(comparison, comparison.values), []
    for place in order:
        value, spread = comparison.values[place], half_width(*comparison.at(place))
        name = series_name(after, value)
        rows.append(
            (
                WordedValue(value, name, tag="" if changed[place] else NOISE),
                _of_period(before, value, spread),
                _of_period(after, value, spread),
                cells.get(value, Estimate(None, after.unit.unknown)),
            )
        )
    noise = [place for place in order if not changed[place]]
    folded = len(noise) if len(comparison.values) > 2 and len(noise) < len(order) else 0
    more = len(comparison.values) - len(order)
    columns = (
        Column("value", message("Value") if after.kind == "shares" else message("Number"), "name"),
        Column("before", message("Before")),
        Column("after", message("After")),
        Column(
            *("difference", change_title(after.unit), "estimate"),
            interval=interval_title(comparison.level),
        ),
    )
    return Frame(
        "values",
        "",
        columns,
        rows,
        ["plain" if changed[place] else "quiet" for place in order],
        notes=(not_listed(more),) if more else (),
        folded=folded,
        fold=_below_noise(len(changed) - sum(changed)) if folded else "",
    )


def _of_period(answer: Answer, name: str, spread: float) -> str:
    """A number of one period, with as many digits as its change has."""
    number, low, high = answer.series.at(name)
    if math.isfinite(low) and math.isfinite(high):
        return answer.unit.full(number, spread)
    return estimate(answer.unit, number, low, high)


def change_headline(comparison: Comparison) -> str:
    """What has changed, in a sentence."""
    changed = [place for place in order_of(comparison) if comparison.changed[place]]
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


def _below_noise(count: int) -> str:
    """How many changes are folded away."""
    return counted(
        "{count:,} change cannot be told from noise",
        "{count:,} changes cannot be told from noise",
        count,
    )

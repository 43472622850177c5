"""The page that compares two periods of a metric, and its numbers as files: a picture and a table
of each value's change, from a zero in the middle."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from flask import Blueprint, request
from flask.typing import ResponseReturnValue
from werkzeug.exceptions import BadRequest

from deniable import Metric, ValueListError
from deniable_estimator.asking.comparison import compare
from deniable_estimator.asking.query import Days
from deniable_estimator.dashboard.alarms import Alarm, alarm_of, left_out
from deniable_estimator.dashboard.exports import asked_form, file_of, of_comparison
from deniable_estimator.dashboard.metric_view import PageReading, check_listed
from deniable_estimator.dashboard.pages import answer_page, keep_form, listed, unlisted
from deniable_estimator.dashboard.privacy_label import even_guess
from deniable_estimator.dashboard.ranges import RangeError, check_names, earlier_range, read_range
from deniable_estimator.dashboard.recent import change_headline
from deniable_estimator.dashboard.source import current_source, declared_metric
from deniable_estimator.document.document import Column, Estimate, Frame, Picture, WordedValue
from deniable_estimator.document.plot.marks import BarRow, Bars
from deniable_estimator.document.plot.scales import Scale
from deniable_estimator.document.plot.ticks import Tick, nice_step
from deniable_estimator.document.units import SHARES, half_width
from deniable_estimator.errors import EstimateError
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
from deniable_estimator.kinds.registry import kind_of
from deniable_estimator.messages import counted, message, spaced

comparing = Blueprint("comparing", __name__)

_NAMES = ("since", "from", "to", "without", "before_from", "before_to")
"""The parameters of a comparison."""

_CHART_BARS = 40
_TABLE_LINES = 200


@comparing.get("/metric/<name>/compare")
def comparison_page(name: str) -> ResponseReturnValue:
    """What has changed between two ranges of days: by default, against those before with the same
    weekdays."""
    metric, comparison, refused = declared_metric(name), None, None
    try:
        reading, earlier = requested_periods(metric, request.args, "raw")
        if not (obstacle := _obstacle(metric)):
            reading = reading.asking(listed(metric))
            old, new = (each.estimate().answer for each in (reading.over(earlier), reading))
            comparison = compare(old, new)
    except (RangeError, EstimateError) as error:
        refused = keep_form(error, "before_from", "before_to")
        reading, earlier = requested_periods(metric, {})
        obstacle = str(refused)
    later, shown, alarms = reading.days, None, list[Alarm]()
    if comparison and comparison.before.n and comparison.after.n:
        shown = comparison
        found = alarm_of(reading, shown.after), alarm_of(reading.over(earlier), shown.before)
        alarms = [each for each in found if each]
    before = {"before_from": earlier.told["from"], "before_to": earlier.told["to"]}
    query = {**later.query, **before}
    return answer_page(
        "compare.html",
        reading,
        refused,
        asked=request.args if refused else query,
        alarms=alarms,
        left_out=[told for each in (later, earlier) if (told := left_out(each))],
        earlier=earlier,
        query=query,
        obstacle=obstacle,
        comparison=comparison,
        picture=shown and change_picture(shown, _CHART_BARS),
        headline=shown and _headline(shown, alarms),
        table=shown and change_frame(shown, _TABLE_LINES),
        guess=even_guess(metric, reading.source.registry),
    )


@comparing.get("/metric/<name>/compare.<any(csv, json):form>")
def comparison_file(name: str, form: str) -> ResponseReturnValue:
    """The comparison as a file."""
    metric = declared_metric(name)
    reading, earlier = requested_periods(metric, request.args, "raw")
    if obstacle := _obstacle(metric):
        raise BadRequest(obstacle)
    reading = reading.asking(listed(metric))
    found = of_comparison(reading, asked_form(form), earlier)
    return file_of(reading, found, f"{name}-change", form)


def _headline(comparison: Comparison, alarms: Sequence[Alarm]) -> str:
    """What has changed, if shares can be relied on."""
    if alarms:
        return alarms[0].text
    for period in (comparison.after, comparison.before):
        if unsound := kind_of(period).unsound(period):
            return unsound
    return change_headline(comparison)


def requested_periods(
    metric: Metric, arguments: Mapping[str, str], *more: str
) -> tuple[PageReading, Days]:
    """The later days, and those that they are compared with; `more` are parameters beside those of
    a comparison.

    Raises:
        RangeError: the address asks for what there is not.
    """
    check_names(arguments, (*_NAMES, *more))
    source = current_source()
    now = source.seen_until
    later = read_range(arguments, now, metric.window, metric)
    return PageReading(source, metric, later), earlier_range(later, metric.window, arguments, now)


def _obstacle(metric: Metric) -> str | None:
    """Why there is nothing to compare, if there is not."""
    try:
        check_listed(metric)
        if metric.needs_candidates and listed(metric) is None:
            return unlisted(metric)
    except (EstimateError, ValueListError) as error:
        return str(error)
    return None


_STEPS = 5

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
    """The chart of changes, those furthest from the noise first, at most `limit` on each side of
    the fold, and how it is to be read."""
    after, order = comparison.after, order_of(comparison)
    known = [place for place in order if math.isfinite(comparison.difference[place])]
    standing, noise = _split(comparison, known)
    scaled = [*standing[: limit if noise else 2 * limit], *noise[:limit]]
    chart, below = (_draw(comparison, each, scaled, limit) for each in (standing, noise))
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
    if chart.more or below.more:
        notes.append(
            message(
                "The chart shows {shown} of {values} values; the files hold them all.",
                shown=len(chart.rows) + len(below.rows),
                values=f"{len(comparison.values):,}",
            )
        )
    legend = (
        ("bar", bars),
        ("whisker", interval_title(comparison.level)),
        ("bar noise", message("cannot be told from noise")),
    )
    return Picture(
        chart,
        folded=replace(below, name="changes-noise") if noise else None,
        fold=_below_noise(len(noise)),
        legend=legend,
        notes=tuple(notes),
    )


def _split(comparison: Comparison, order: list[int]) -> tuple[list[int], list[int]]:
    """Those that changed by more than noise, and the others, which are to be folded away unless
    nothing else is there."""
    parts: tuple[list[int], list[int]] = [], []
    for place in order:
        parts[not comparison.changed[place]].append(place)
    return parts if all(parts) and len(order) > 2 else (order, [])


def _draw(comparison: Comparison, places: Sequence[int], scaled: list[int], limit: int) -> Bars:
    """The changes of the first `limit` of these values, on a scale that holds those `scaled`."""
    unit = comparison.after.unit
    if unit.of_all:
        scale, ticks = _together(comparison, scaled)
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
    before, after, changed = comparison.before, comparison.after, comparison.changed
    standing, noise = _split(comparison, order_of(comparison)[:limit])
    order = [*standing, *noise]
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
        folded=len(noise),
        fold=_below_noise(len(changed) - changed.sum().item()) if noise else "",
    )


def _of_period(answer: Answer, name: str, spread: float) -> str:
    """A number of one period, with as many digits as its change has."""
    number, low, high = answer.series.at(name)
    if math.isfinite(low) and math.isfinite(high):
        return answer.unit.full(number, spread)
    return estimate(answer.unit, number, low, high)


def _below_noise(count: int) -> str:
    """How many changes are folded away."""
    return counted(
        "{count:,} change cannot be told from noise",
        "{count:,} changes cannot be told from noise",
        count,
    )

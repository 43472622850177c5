"""The page that compares two periods of a metric, and its numbers as files."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from flask import Blueprint, request
from flask.typing import ResponseReturnValue
from werkzeug.exceptions import BadRequest

from deniable import Metric
from deniable_estimator.asking.comparison import compare
from deniable_estimator.asking.history import History
from deniable_estimator.asking.query import Days
from deniable_estimator.dashboard.exports import RAW, file_of, of_comparison
from deniable_estimator.dashboard.metric_view import PageReading
from deniable_estimator.dashboard.pages import answer_page, keep_form, requested, with_strings
from deniable_estimator.dashboard.privacy_label import even_guess
from deniable_estimator.dashboard.ranges import earlier_range
from deniable_estimator.dashboard.recent import change_headline
from deniable_estimator.dashboard.source import declared_metric
from deniable_estimator.document.document import Column, Estimate, Frame, WordedValue
from deniable_estimator.document.units import half_width
from deniable_estimator.errors import EstimateError
from deniable_estimator.inputs import BEFORE_FROM, BEFORE_TO, DAYS
from deniable_estimator.kinds.base import Answer, Comparison
from deniable_estimator.kinds.formats import (
    NOISE,
    change_cells,
    change_order,
    change_title,
    drawn_on,
    estimate,
    interval_title,
    not_listed,
    series_name,
)
from deniable_estimator.kinds.registry import kind_of
from deniable_estimator.messages import counted, message

comparing = Blueprint("comparing", __name__)

_TABLE_LINES = 200


@comparing.get("/metric/<name>/compare")
def comparison_page(name: str) -> ResponseReturnValue:
    """What has changed between two ranges of days: by default, against those before with the same
    weekdays."""
    metric, comparison, refused, obstacle = declared_metric(name), None, None, None
    try:
        reading, earlier = requested_periods(metric, request.args)
        reading = with_strings(reading)
        old, new = (each.estimate().answer for each in (reading.over(earlier), reading))
        comparison = compare(old, new)
    except BadRequest as error:
        obstacle = error.description
    except EstimateError as error:
        refused = keep_form(error, "before_from", "before_to")
        reading, earlier = requested_periods(metric, {})
    later, shown, alarms = reading.days, None, list[History]()
    if comparison and comparison.before.n and comparison.after.n:
        shown = comparison
        found = reading.alarm(shown.after), reading.over(earlier).alarm(shown.before)
        alarms = [each for each in found if each]
    before = {"before_from": earlier.told["from"], "before_to": earlier.told["to"]}
    query = {**later.query, **before}
    return answer_page(
        "compare.html",
        reading,
        refused,
        asked=request.args if refused else query,
        alarms=alarms,
        earlier=earlier,
        query=query,
        obstacle=obstacle,
        comparison=comparison,
        headline=shown and _headline(shown, alarms),
        table=shown and change_frame(shown, _TABLE_LINES),
        guess=even_guess(metric, reading.source.registry),
    )


@comparing.get("/metric/<name>/compare.<any(csv, json):form>")
def comparison_file(name: str, form: str) -> ResponseReturnValue:
    """The comparison as a file."""
    reading, earlier = requested_periods(declared_metric(name), request.args)
    reading = with_strings(reading)
    return file_of(reading, of_comparison(reading, earlier), f"{name}-change", form)


def _headline(comparison: Comparison, alarms: Sequence[History]) -> str:
    """What has changed, if shares can be relied on."""
    if alarms:
        return alarms[0].text
    for period in (comparison.after, comparison.before):
        if unsound := kind_of(period).unsound(period):
            return unsound
    return change_headline(comparison)


def requested_periods(metric: Metric, arguments: Mapping[str, str]) -> tuple[PageReading, Days]:
    """The later days, and those that they are compared with.

    Raises:
        EstimateError: the address asks for what there is not.
    """
    later, asked = requested(metric, arguments, (*DAYS, BEFORE_FROM, BEFORE_TO, RAW))
    return later, earlier_range(later.days, metric.window, asked, later.source.seen_until)


def change_frame(comparison: Comparison, limit: int) -> Frame:
    """Each value with its change, as a bar too, and its number in both periods: those that changed
    by more than noise first. Where some have, the others are folded away."""
    before, after, changed = comparison.before, comparison.after, comparison.changed
    order = change_order(comparison)[:limit]
    noise = sum(not changed[place] for place in order)
    folded = noise if noise < len(order) > 2 else 0
    more = len(comparison.values) - len(order)
    axis = _together(comparison, order) if after.unit.of_all else None
    cells, rows = change_cells(comparison, comparison.values), []
    for place in order:
        value, spread = comparison.values[place], half_width(*comparison.at(place))
        cell = cells.get(value, Estimate(None, after.unit.unknown))
        if value in cells:
            drawn = drawn_on(axis or _alone(comparison, place), *comparison.at(place))
            cell = replace(cell, drawn=drawn)
        name = WordedValue(value, series_name(after, value), tag="" if changed[place] else NOISE)
        rows.append(
            (name, cell, _of_period(before, value, spread), _of_period(after, value, spread))
        )
    base, top = axis or (-1.0, 1.0)
    ends = after.unit.signed(base, top - base), after.unit.signed(top, top - base)
    columns = (
        Column("value", message("Value") if after.kind == "shares" else message("Number"), "name"),
        Column(
            *("difference", change_title(after.unit), "estimate"),
            interval=interval_title(comparison.level),
            scale=ends if axis else ("", ""),
            zero=-base / (top - base),
        ),
        Column("before", message("Before")),
        Column("after", message("After")),
    )
    return Frame(
        "values",
        "",
        columns,
        rows,
        ["plain" if changed[place] else "quiet" for place in order],
        notes=(not_listed(more),) if more else (),
        folded=folded,
        fold=_below_noise(len(changed) - changed.sum().item()) if folded else "",
    )


def _together(comparison: Comparison, places: Sequence[int]) -> tuple[float, float]:
    """A scale for all of these changes."""
    known = [0.0, *(end for place in places for end in comparison.at(place) if math.isfinite(end))]
    room = 0.04 * (max(known) - min(known) or 1.0)
    return min(known) - room, max(known) + room


def _alone(comparison: Comparison, place: int) -> tuple[float, float]:
    """A scale for one change, with zero in the middle: a p99 has an interval many times as wide as
    a p50, so that on one scale nothing would be seen of it."""
    reach = max((abs(each) for each in comparison.at(place) if math.isfinite(each)), default=0.0)
    return -1.04 * (reach or 1.0), 1.04 * (reach or 1.0)


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

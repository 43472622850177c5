"""The page that compares two periods of a metric, and its numbers as files."""

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
from deniable_estimator.dashboard.exports import file_of, of_comparison
from deniable_estimator.dashboard.metric_view import PageReading, check_listed
from deniable_estimator.dashboard.pages import answer_page, keep_form, listed, unlisted
from deniable_estimator.dashboard.privacy_label import even_guess
from deniable_estimator.dashboard.ranges import RangeError, check_names, earlier_range, read_range
from deniable_estimator.dashboard.recent import change_headline
from deniable_estimator.dashboard.source import current_source, declared_metric
from deniable_estimator.document.document import Column, Estimate, Frame, WordedValue
from deniable_estimator.document.units import half_width
from deniable_estimator.errors import EstimateError
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

_NAMES = ("since", "from", "to", "without", "before_from", "before_to")
"""The parameters of a comparison."""

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
    return file_of(reading, of_comparison(reading, earlier), f"{name}-change", form)


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


_AMONG_ALL = message(
    "The changes are those among all devices that could report. No report says whose it is, so the "
    "two periods are taken for those of different devices: where the same devices reported in "
    "both, the intervals are wider than they need be."
)
_OF_QUANTILES = message(
    "Whether a quantile has changed is tested by the share of devices below it. The interval of "
    "the change is more cautious, so it may hold zero although the quantile has changed."
)


def change_frame(comparison: Comparison, limit: int) -> Frame:
    """Each value with its change, as a bar too, and its number in both periods: those that changed
    by more than noise first. Where some have, the others are folded away."""
    before, after, changed = comparison.before, comparison.after, comparison.changed
    order = change_order(comparison)[:limit]
    noise = sum(not changed[place] for place in order)
    folded = noise if noise < len(order) > 2 else 0
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
        notes=_notes(comparison, len(comparison.values) - len(order)),
        folded=folded,
        fold=_below_noise(len(changed) - changed.sum().item()) if folded else "",
    )


def _notes(comparison: Comparison, more: int) -> tuple[str, ...]:
    """How the changes are to be read."""
    after = comparison.after
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
    return (*notes, not_listed(more)) if more else tuple(notes)


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

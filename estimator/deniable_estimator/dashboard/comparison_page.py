"""The page that compares two periods of a metric, and its numbers as files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from flask import Blueprint, render_template, request
from flask.typing import ResponseReturnValue
from werkzeug.exceptions import BadRequest

from deniable import Metric, ValueListError
from deniable_estimator.asking.comparison import compare
from deniable_estimator.asking.query import Days
from deniable_estimator.dashboard.alarms import Alarm, alarm_of, left_out
from deniable_estimator.dashboard.comparison_picture import (
    change_frame,
    change_headline,
    change_picture,
)
from deniable_estimator.dashboard.exports import asked_form, file_of, of_comparison
from deniable_estimator.dashboard.metric_view import PageReading, check_listed
from deniable_estimator.dashboard.pages import keep_form, listed, unlisted
from deniable_estimator.dashboard.privacy_label import even_guess
from deniable_estimator.dashboard.ranges import RangeError, check_names, earlier_range, read_range
from deniable_estimator.dashboard.source import current_source, declared_metric
from deniable_estimator.errors import EstimateError
from deniable_estimator.kinds.base import Comparison
from deniable_estimator.kinds.registry import kind_of

comparing = Blueprint("comparing", __name__)

PERIOD_NAMES = ("since", "from", "to", "without", "before_from", "before_to")
"""The parameters of a comparison."""

_CHART_BARS = 40
_TABLE_LINES = 200


@comparing.get("/metric/<name>/compare")
def comparison_page(name: str) -> ResponseReturnValue:
    """What has changed between two ranges of days: by default, against those before with the same
    weekdays."""
    comparison, refused = None, None
    try:
        reading, earlier = _requested_periods(name)
        if not (obstacle := _obstacle(reading.metric)):
            reading = reading.asking(listed(reading.metric))
            old, new = (each.estimate().answer for each in (reading.over(earlier), reading))
            comparison = compare(old, new)
    except (RangeError, EstimateError) as error:
        refused = keep_form(error, "before_from", "before_to")
        reading, earlier = requested_periods(name, {})
        obstacle = str(refused)
    metric, later = reading.metric, reading.days
    shown = comparison if comparison and comparison.before.n and comparison.after.n else None
    alarms = []
    if shown:
        found = (
            alarm_of(reading, shown.after),
            alarm_of(reading.over(earlier), shown.before),
        )
        alarms = [each for each in found if each]
    page = render_template(
        "compare.html",
        refused=refused,
        asked=request.args if refused else _query(earlier, later),
        alarms=alarms,
        left_out=[told for each in (later, earlier) if (told := left_out(each))],
        metric=metric,
        earlier=earlier,
        later=later,
        query=_query(earlier, later),
        obstacle=obstacle,
        comparison=comparison,
        picture=shown and change_picture(shown, _CHART_BARS),
        headline=shown and _headline(shown, alarms),
        table=shown and change_frame(shown, _TABLE_LINES),
        guess=even_guess(metric, reading.source.registry),
    )
    return page, 400 if refused else 200


@comparing.get("/metric/<name>/compare.<any(csv, json):form>")
def comparison_file(name: str, form: str) -> ResponseReturnValue:
    """The comparison as a file."""
    reading, earlier = _requested_periods(name)
    if obstacle := _obstacle(reading.metric):
        raise BadRequest(obstacle)
    reading = reading.asking(listed(reading.metric))
    found = of_comparison(reading, asked_form(form), earlier)
    return file_of(reading, found, f"{name}-change", form)


def _headline(comparison: Comparison, alarms: Sequence[Alarm]) -> str:
    """What has changed, if shares can be relied on."""
    if alarms:
        return alarms[0].text_of_changes
    for period in (comparison.after, comparison.before):
        if unsound := kind_of(period).unsound(period):
            return unsound
    return change_headline(comparison)


def _requested_periods(name: str) -> tuple[PageReading, Days]:
    declared_metric(name)
    check_names(request.args, (*PERIOD_NAMES, "raw"))
    return requested_periods(name, request.args)


def requested_periods(name: str, arguments: Mapping[str, str]) -> tuple[PageReading, Days]:
    """The later days, and those that they are compared with.

    Raises:
        RangeError: the address asks for what there is not.
    """
    source, metric = current_source(), declared_metric(name)
    now = source.seen_until
    later = read_range(arguments, now, metric.window, metric)
    return PageReading(source, metric, later), earlier_range(later, metric.window, arguments, now)


def _query(earlier: Days, later: Days) -> dict[str, str]:
    days = {"before_from": earlier.told["from"], "before_to": earlier.told["to"]}
    return {**later.query, **days}


def _obstacle(metric: Metric) -> str | None:
    """Why there is nothing to compare, if there is not."""
    try:
        check_listed(metric)
        if metric.needs_candidates and listed(metric) is None:
            return unlisted(metric)
    except (EstimateError, ValueListError) as error:
        return str(error)
    return None

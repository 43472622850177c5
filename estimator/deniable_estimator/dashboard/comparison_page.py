"""The page that compares two periods of a metric, and its numbers as files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from flask import Blueprint, render_template, request
from flask.typing import ResponseReturnValue
from werkzeug.exceptions import BadRequest

from deniable import Metric, ValueListError
from deniable.protocol.types import Discovery
from deniable_estimator.answers.base import Comparison
from deniable_estimator.answers.words import kind_of
from deniable_estimator.asking.comparison import compare
from deniable_estimator.asking.listed import digest_of_candidates
from deniable_estimator.dashboard.alarms import Alarm, alarm_of, left_out
from deniable_estimator.dashboard.calculations import compared, comparison_text
from deniable_estimator.dashboard.changes import change_chart, change_frame, change_headline
from deniable_estimator.dashboard.data import DataSource
from deniable_estimator.dashboard.pages import asked_form, download, keep_form, listed
from deniable_estimator.dashboard.privacy_label import even_guess
from deniable_estimator.dashboard.ranges import (
    DayRange,
    RangeError,
    check_names,
    earlier_range,
    read_range,
)
from deniable_estimator.dashboard.source import current_source, declared_metric
from deniable_estimator.errors import EstimateError
from deniable_estimator.messages import message

comparing = Blueprint("comparing", __name__)

_CHART_BARS = 40
_TABLE_LINES = 200


@comparing.get("/metric/<name>/compare")
def comparison_page(name: str) -> ResponseReturnValue:
    """What has changed between two ranges of days: by default, against those before with the same
    weekdays."""
    comparison, candidates, refused = None, None, None
    try:
        source, metric, earlier, later = _requested_periods(name)
        obstacle = _obstacle(source, metric)
        if obstacle is None:
            candidates = listed(source, metric)
            both = (source.estimate_at(metric, days, candidates) for days in (earlier, later))
            comparison = compare(*(each.answer for each in both))
    except (RangeError, EstimateError) as error:
        refused = keep_form(error, "before_from", "before_to")
        source, metric, earlier, later = _periods(name, {})
        obstacle = str(refused)
    shown = comparison if comparison and comparison.before.n and comparison.after.n else None
    alarms = []
    if shown:
        found = (
            alarm_of(source, metric, later, shown.after, candidates),
            alarm_of(source, metric, earlier, shown.before, candidates),
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
        folded=shown and change_chart(shown, _CHART_BARS),
        headline=shown and _headline(shown, alarms),
        table=shown and change_frame(shown, _TABLE_LINES),
        guess=even_guess(metric, source.registry),
    )
    return page, 400 if refused else 200


@comparing.get("/metric/<name>/compare.<any(csv, json):form>")
def comparison_file(name: str, form: str) -> ResponseReturnValue:
    """The comparison as a file."""
    source, metric, earlier, later = _requested_periods(name)
    if obstacle := _obstacle(source, metric):
        raise BadRequest(obstacle)
    candidates = listed(source, metric)
    old, new = (source.estimate_at(metric, days, candidates) for days in (earlier, later))
    found, known = compared(old.answer, new.answer, candidates), digest_of_candidates(candidates)
    text = source.written(
        len(found.values),
        ("comparison file", old.version, new.version, known, asked_form(form)),
        *(comparison_text, asked_form(form), found, {}),
        candidates=candidates,
    )
    return download(text, f"{name}-change", form)


def _headline(comparison: Comparison, alarms: Sequence[Alarm]) -> str:
    """What has changed, if shares can be relied on."""
    if alarms:
        return alarms[0].text_of_changes
    for period in (comparison.after, comparison.before):
        if unsound := kind_of(period).unsound(period):
            return unsound
    return change_headline(comparison)


def _requested_periods(name: str) -> tuple[DataSource, Metric, DayRange, DayRange]:
    declared_metric(name)
    check_names(request.args, ("since", "from", "to", "without", "before_from", "before_to", "raw"))
    return _periods(name, request.args)


def _periods(
    name: str, arguments: Mapping[str, str]
) -> tuple[DataSource, Metric, DayRange, DayRange]:
    source, metric = current_source(), declared_metric(name)
    now = source.seen_until
    later = read_range(arguments, now, metric.window, metric)
    named = arguments.get("before_from"), arguments.get("before_to")
    return source, metric, earlier_range(later, metric.window, *named, now), later


def _query(earlier: DayRange, later: DayRange) -> dict[str, str]:
    days = {"before_from": earlier.told["from"], "before_to": earlier.told["to"]}
    return {**later.query, **days}


def _obstacle(source: DataSource, metric: Metric) -> str | None:
    """Why there is nothing to compare, if there is not."""
    if isinstance(metric.type, Discovery):
        return message(
            "{metric} is a discovery, whose strings nobody lists: its page shows which were found, "
            "and how common each was over time.",
            metric=metric.name,
        )
    try:
        if metric.needs_candidates and listed(source, metric) is None:
            return message(
                "This metric takes any string. Upload a list of those to compare on its page, or "
                "put them into {metric}.txt in the folder that DENIABLE_CANDIDATES_DIR names.",
                metric=metric.name,
            )
    except ValueListError as error:
        return str(error)
    return None

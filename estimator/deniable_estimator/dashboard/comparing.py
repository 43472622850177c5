"""The page that compares two periods of a metric, and its numbers as files."""

from __future__ import annotations

from flask import Blueprint, render_template, request
from flask.typing import ResponseReturnValue
from werkzeug.exceptions import BadRequest

from deniable import Metric, ValueListError
from deniable_estimator.comparison import Comparison, compare, has_memory
from deniable_estimator.dashboard.below import list_mistake
from deniable_estimator.dashboard.calculations import compared, comparison_text
from deniable_estimator.dashboard.charts.changes import change_chart, change_headline, change_lines
from deniable_estimator.dashboard.pages import download
from deniable_estimator.dashboard.privacy import even_guess
from deniable_estimator.dashboard.ranges import DayRange, before, read_range
from deniable_estimator.dashboard.source import Source, current_source, declared_metric
from deniable_estimator.dashboard.versions import digest_of_candidates
from deniable_estimator.messages import message

__all__ = ["comparing"]

comparing = Blueprint("comparing", __name__)

_CHART_BARS = 40
_TABLE_LINES = 200


@comparing.get("/metric/<name>/compare")
def comparison_page(name: str) -> ResponseReturnValue:
    """What has changed between two ranges of days: by default, against as many days before."""
    source, metric, earlier, later = _asked(name)
    comparison, obstacle = None, _obstacle(source, metric)
    if obstacle is None:
        comparison = _compare(source, metric, earlier, later)
    known = comparison is not None and bool(comparison.before.n and comparison.after.n)
    return render_template(
        "compare.html",
        metric=metric,
        earlier=earlier,
        later=later,
        query=_query(earlier, later),
        obstacle=obstacle,
        comparison=comparison,
        folded=change_chart(comparison, _CHART_BARS) if comparison and known else None,
        headline=change_headline(comparison) if comparison and known else None,
        lines=change_lines(comparison, _TABLE_LINES) if comparison and known else [],
        guess=even_guess(metric),
    )


@comparing.get("/metric/<name>/compare.<any(csv, json):form>")
def comparison_file(name: str, form: str) -> ResponseReturnValue:
    """The comparison as a file."""
    source, metric, earlier, later = _asked(name)
    if obstacle := _obstacle(source, metric):
        raise BadRequest(obstacle)
    candidates = source.candidates(metric)
    old, new = (source.estimate_at(metric, days, candidates) for days in (earlier, later))
    found, known = compared(old.answer, new.answer, candidates), digest_of_candidates(candidates)
    text = source.written(
        len(found.values),
        ("comparison file", old.version, new.version, known, form),
        *(comparison_text, form, found, {}),
        candidates=candidates,
    )
    kind = "text/csv" if form == "csv" else "application/json"
    return download(text, kind, f"{name}-change.{form}")


def _asked(name: str) -> tuple[Source, Metric, DayRange, DayRange]:
    source, metric = current_source(), declared_metric(name)
    now = source.clock()
    later = read_range(request.args, now)
    earlier = before(later, metric.window)
    named = {"from": request.args.get("before_from"), "to": request.args.get("before_to")}
    if given := {key: text for key, text in named.items() if text}:
        earlier = read_range({**earlier.query, **given}, now)
    return source, metric, earlier, later


def _query(earlier: DayRange, later: DayRange) -> dict[str, str]:
    return {**later.query, **{f"before_{key}": text for key, text in earlier.query.items()}}


def _obstacle(source: Source, metric: Metric) -> str | None:
    """Why the metric's periods cannot be compared, if they cannot."""
    if has_memory(source.store, metric):
        return message(
            "Devices repeat their remembered answers to this metric, so two periods are not "
            "independent, and no interval of their difference can be given."
        )
    try:
        if metric.values is None and source.candidates(metric) is None:
            return message(
                "This metric takes any string. Put the strings to compare into {metric}.txt in "
                "the folder that DENIABLE_CANDIDATES_DIR names.",
                metric=metric.name,
            )
    except ValueListError as error:
        return list_mistake(error)
    return None


def _compare(source: Source, metric: Metric, earlier: DayRange, later: DayRange) -> Comparison:
    candidates = source.candidates(metric)
    old, new = (source.estimate(metric, days, candidates) for days in (earlier, later))
    assert old is not None
    assert new is not None
    return compare(old, new)

"""The pages: the overview of all metrics, one metric, and its numbers as files."""

from __future__ import annotations

import json
from collections.abc import Sequence

from flask import Blueprint, Response, render_template, request
from flask.typing import ResponseReturnValue
from werkzeug.exceptions import BadRequest

from deniable import Metric, ValueListError
from deniable.value_list import parse_values
from deniable_estimator.comparison import compare, has_memory
from deniable_estimator.dashboard import words
from deniable_estimator.dashboard.alarms import alarm_of, left_out
from deniable_estimator.dashboard.below import list_mistake
from deniable_estimator.dashboard.charts import folded_chart
from deniable_estimator.dashboard.embedding import embed_link
from deniable_estimator.dashboard.overview import cards, read_filters
from deniable_estimator.dashboard.privacy import privacy_label
from deniable_estimator.dashboard.ranges import before, presets
from deniable_estimator.dashboard.source import Source, current_source, declared_metric
from deniable_estimator.dashboard.table import table
from deniable_estimator.dashboard.timeline import grouping, timeline
from deniable_estimator.dashboard.view import View, read_view
from deniable_estimator.dashboard.words import freshness, headline
from deniable_estimator.estimate import Estimate
from deniable_estimator.messages import message, spaced
from deniable_estimator.trend import GROUPS, Trend

__all__ = ["asked_view", "download", "pages"]

pages = Blueprint("pages", __name__)

_CHART_BARS = 40
_NOISE_BARS = 20
_TABLE_LINES = 100
"""What a page of 100 KB has room for; all are a click away."""
_ALL_LINES = 10_000
"""Of longer lists the files alone hold every value."""


@pages.get("/")
def overview() -> ResponseReturnValue:
    """All metrics, or those that were looked for, with their latest complete windows."""
    source = current_source()
    filters = read_filters(request.args, source.registry)
    found = cards(source, filters)
    ranges = {card.days for card in found}
    return render_template(
        "overview.html",
        cards=found,
        days=ranges.pop() if len(ranges) == 1 else None,
        filters=filters,
        total=len(source.registry),
        waiting=bool(found) and all(source.newest(each) is None for each in source.registry),
    )


@pages.get("/metric/<name>")
def metric_page(name: str) -> ResponseReturnValue:
    """One metric: its chart, its trend, its table and its privacy label."""
    source, metric, view = asked_view(name)
    mistake, candidates = None, None
    try:
        candidates = source.candidates(metric)
    except ValueListError as error:
        mistake = list_mistake(error)
    return _page(source, metric, view, candidates, mistake=mistake)


@pages.post("/metric/<name>")
def metric_upload(name: str) -> ResponseReturnValue:
    """The same of strings that are named by a file in the request, which is not kept."""
    source, metric, view = asked_view(name)
    if metric.values is not None:
        raise BadRequest(message("{name} lists its values; it takes no others.", name=name))
    file = request.files.get("candidates")
    try:
        if file is None or not file.filename:
            raise ValueListError("The list", None, "is missing; choose a file")
        candidates = parse_values(file.stream.read(), "Your list")
    except ValueListError as error:
        return _page(source, metric, view, None, mistake=list_mistake(error)), 400
    form = request.form.get("form")
    if form in ("csv", "json"):
        estimate = source.estimate(metric, view.days, candidates)
        assert estimate is not None
        return _estimate_file(estimate, form)
    return _page(source, metric, view, candidates, uploaded=True)


def _page(
    source: Source,
    metric: Metric,
    view: View,
    candidates: Sequence[str] | None,
    *,
    uploaded: bool = False,
    mistake: str | None = None,
) -> str:
    estimate = source.estimate(metric, view.days, candidates)
    answered = estimate if estimate and estimate.n else None
    declared_order = view.order == "declared"
    # Decoding strings takes about a second each time: their trend waits until it is asked for.
    quick = metric.values is not None
    over_time = answered is not None and (quick or (view.by is not None and not uploaded))
    alarm = alarm_of(source, metric, view.days, answered, candidates)
    newest = source.newest(metric)
    now = source.clock()
    folded = lines = None
    if answered:
        folded = folded_chart(
            answered,
            limit=_CHART_BARS,
            noise_limit=_NOISE_BARS,
            declared_order=declared_order,
            normalized=view.shares == "normalized",
        )
        limit = _ALL_LINES if view.lines == "all" else _TABLE_LINES
        lines = table(answered, limit, declared_order=declared_order)
    return render_template(
        "metric.html",
        metric=metric,
        view=view,
        estimate=estimate,
        folded=folded,
        lines=lines,
        all_lines=_ALL_LINES,
        alarm=alarm,
        left_out=left_out(view.days),
        headline=(alarm.text if alarm else headline(answered)) if answered else None,
        alarming=bool(alarm or (answered and answered.impossible.any())),
        since=_since(source, metric, view, answered)
        if answered and quick and not alarm and not answered.impossible.any()
        else None,
        timeline=timeline(source, metric, view, answered, alarm)
        if answered and over_time
        else None,
        over_time=over_time,
        by=view.by or grouping(metric, view.days),
        groups=GROUPS[metric.window],
        label=privacy_label(metric, source.registry.lifetime_epsilon),
        presets=presets(now, metric.window),
        newest=newest,
        freshness=freshness(newest, now) if newest else None,
        notes=_notes(source, metric, estimate),
        embed=embed_link(metric, request.args, source.today),
        uploaded=uploaded,
        mistake=mistake,
    )


@pages.get("/metric/<name>.<any(csv, json):form>")
def metric_file(name: str, form: str) -> ResponseReturnValue:
    """The estimate as a file."""
    return _estimate_file(_estimate(*asked_view(name)), form)


@pages.get("/metric/<name>/trend.<any(csv, json):form>")
def trend_file(name: str, form: str) -> ResponseReturnValue:
    """The trend of every value as a file."""
    source, metric, view = asked_view(name)
    candidates = _candidates(source, metric)
    found: Trend = source.trend(
        metric, view.days, view.by or grouping(metric, view.days), candidates
    )
    if form == "csv":
        return download(found.to_csv(), "text/csv", f"{name}-trend.csv")
    return _json(found.to_dict(), f"{name}-trend.json")


def asked_view(name: str) -> tuple[Source, Metric, View]:
    """The metric of that name, in the view that the request asks for."""
    source, metric = current_source(), declared_metric(name)
    return source, metric, read_view(request.args, metric, source.clock())


def _candidates(source: Source, metric: Metric) -> list[str] | None:
    """What the operator has listed; None where the metric itself lists its values."""
    candidates = source.candidates(metric)
    if metric.values is None and candidates is None:
        raise BadRequest(
            message(
                "The strings of {metric} must be named to be estimated: upload a list on its "
                "page, or use `deniable estimate {metric} --candidates FILE`.",
                metric=metric.name,
            )
        )
    return candidates


def _estimate(source: Source, metric: Metric, view: View) -> Estimate:
    estimate = source.estimate(metric, view.days, _candidates(source, metric))
    assert estimate is not None
    return estimate


def _since(source: Source, metric: Metric, view: View, estimate: Estimate) -> str | None:
    """The change of the leading value against the days before with the same weekdays; None
    without answers there."""
    if has_memory(source.store, metric):
        return None
    days = before(view.days, metric.window)
    earlier = source.estimate(metric, days)
    if earlier is None or not earlier.n:
        return None
    if alarm := alarm_of(source, metric, days, earlier):
        return message(
            "Not compared with {period}: {which} is anomalous.",
            period=words.days_of(days),
            which=alarm.which,
        )
    if earlier.impossible.any():
        return None
    found = compare(earlier, estimate)
    value = estimate.values[int(estimate.share.argmax())]
    if estimate.values == ("true", "false"):
        value = "true"
    if value not in found.values:
        return None
    told = found.describe(found.values.index(value))
    notes = (message("{what}.", what=each) for each in found.notes)
    return spaced((words.since(days, value, told), *notes))


def _notes(source: Source, metric: Metric, estimate: Estimate | None) -> list[str]:
    """What a careful reader should know before believing the picture."""
    notes = list(estimate.warnings) if estimate and estimate.n else []
    if metric.expires < source.today:
        notes.append(message(words.EXPIRED, day=metric.expires))
    return notes


def _estimate_file(estimate: Estimate, form: str) -> Response:
    if form == "csv":
        return download(estimate.to_csv(), "text/csv", f"{estimate.metric}.csv")
    return _json(estimate.to_dict(), f"{estimate.metric}.json")


def _json(document: dict[str, object], filename: str) -> Response:
    text = json.dumps(document, ensure_ascii=False, allow_nan=False)
    return download(text, "application/json", filename)


def download(text: str, mimetype: str, filename: str) -> Response:
    """A file that is saved, not shown."""
    response = Response(text, mimetype=mimetype)
    response.headers.set("Content-Disposition", "attachment", filename=filename)
    return response

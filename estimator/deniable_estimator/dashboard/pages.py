"""The pages: the overview of all metrics, one metric, and its numbers as files."""

from __future__ import annotations

from collections.abc import Sequence

from flask import Blueprint, Response, render_template, request
from flask.typing import ResponseReturnValue
from werkzeug.exceptions import BadRequest

from deniable import Metric, ValueListError
from deniable_estimator.comparison import compare, has_memory
from deniable_estimator.dashboard import words
from deniable_estimator.dashboard.below import list_mistake
from deniable_estimator.dashboard.calculations import estimate_text, trend_text
from deniable_estimator.dashboard.charts import folded_chart
from deniable_estimator.dashboard.embedding import embed_link
from deniable_estimator.dashboard.overview import metric_card, read_filters
from deniable_estimator.dashboard.privacy import privacy_label
from deniable_estimator.dashboard.ranges import before, presets, read_range
from deniable_estimator.dashboard.source import Source, current_source, declared_metric
from deniable_estimator.dashboard.table import table
from deniable_estimator.dashboard.timeline import grouping, timeline
from deniable_estimator.dashboard.versions import digest_of_candidates
from deniable_estimator.dashboard.view import View, read_view
from deniable_estimator.dashboard.words import freshness, headline
from deniable_estimator.estimate import Estimate
from deniable_estimator.messages import message
from deniable_estimator.trend import GROUPS

__all__ = ["asked_view", "download", "pages"]

pages = Blueprint("pages", __name__)

_CHART_BARS = 40
_NOISE_BARS = 20
_TABLE_LINES = 100
"""What a page of 100 KB has room for; all are a click away."""
_TYPES = {"csv": "text/csv", "json": "application/json"}
_ALL_LINES = 10_000
"""Of longer lists the files alone hold every value."""


@pages.get("/")
def overview() -> ResponseReturnValue:
    """All metrics, or those that were looked for, with their last 30 days."""
    source = current_source()
    days = read_range({}, source.clock())
    filters = read_filters(request.args, source.registry)
    cards = [
        metric_card(source, metric, days) for metric in source.registry if filters.admit(metric)
    ]
    return render_template(
        "overview.html",
        cards=cards,
        days=days,
        filters=filters,
        total=len(source.registry),
        waiting=bool(cards) and all(source.newest(each) is None for each in source.registry),
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
        candidates = source.sent(file.stream.read(), "Your list")
    except ValueListError as error:
        return _page(source, metric, view, None, mistake=list_mistake(error)), 400
    form = request.form.get("form")
    if form in ("csv", "json"):
        return _estimate_file(source, metric, view, candidates, form)
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
        headline=headline(answered) if answered else None,
        since=_since(source, metric, view, answered) if answered and quick else None,
        timeline=timeline(source, metric, view, answered) if answered and over_time else None,
        over_time=over_time,
        by=view.by or grouping(metric, view.days),
        groups=GROUPS[metric.window],
        label=privacy_label(metric, source.registry.lifetime_epsilon),
        presets=presets(now),
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
    source, metric, view = asked_view(name)
    return _estimate_file(source, metric, view, _candidates(source, metric), form)


@pages.get("/metric/<name>/trend.<any(csv, json):form>")
def trend_file(name: str, form: str) -> ResponseReturnValue:
    """The trend of every value as a file."""
    source, metric, view = asked_view(name)
    candidates = _candidates(source, metric)
    by = view.by or grouping(metric, view.days)
    found = source.trend_at(metric, view.days, by, candidates)
    text = source.written(
        len(found.answer.periods) * len(candidates or metric.values or ()),
        ("trend file", found.version, digest_of_candidates(candidates), form),
        *(trend_text, form, found.answer, {}),
        candidates=candidates,
    )
    return download(text, _TYPES[form], f"{name}-trend.{form}")


def asked_view(name: str) -> tuple[Source, Metric, View]:
    """The metric of that name, in the view that the request asks for."""
    source, metric = current_source(), declared_metric(name)
    return source, metric, read_view(request.args, metric, source.clock())


def _candidates(source: Source, metric: Metric) -> Sequence[str] | None:
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


def _since(source: Source, metric: Metric, view: View, estimate: Estimate) -> str | None:
    """The change of the leading value against as many days before; None without answers there."""
    if has_memory(source.store, metric):
        return None
    earlier = source.estimate(metric, before(view.days, metric.window))
    if earlier is None or not earlier.n:
        return None
    found = compare(earlier, estimate, together=False)
    value = estimate.values[int(estimate.share.argmax())]
    if estimate.values == ("true", "false"):
        value = "true"
    if value not in found.values:
        return None
    told = found.describe(found.values.index(value))
    return words.since(view.days.days, value, told)


def _notes(source: Source, metric: Metric, estimate: Estimate | None) -> list[str]:
    """What a careful reader should know before believing the picture."""
    notes = list(estimate.warnings) if estimate and estimate.n else []
    if metric.expires < source.today:
        notes.append(message(words.EXPIRED, day=metric.expires))
    return notes


def _estimate_file(
    source: Source, metric: Metric, view: View, candidates: Sequence[str] | None, form: str
) -> Response:
    found = source.estimate_at(metric, view.days, candidates)
    text = source.written(
        len(found.answer.values),
        ("estimate file", found.version, digest_of_candidates(candidates), form),
        *(estimate_text, form, found.answer, {}),
        candidates=candidates,
    )
    return download(text, _TYPES[form], f"{metric.name}.{form}")


def download(text: str, mimetype: str, filename: str) -> Response:
    """A file that is saved, not shown."""
    response = Response(text, mimetype=mimetype)
    response.headers.set("Content-Disposition", "attachment", filename=filename)
    return response

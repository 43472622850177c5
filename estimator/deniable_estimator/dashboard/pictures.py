"""The chart and the trend of a metric as self-contained pictures: SVG and PNG."""

from __future__ import annotations

from flask import Blueprint, Response, render_template, request
from flask.typing import ResponseReturnValue
from werkzeug.exceptions import BadRequest

from deniable import Metric
from deniable_estimator.answers.base import Answer
from deniable_estimator.dashboard.alarms import alarm_of, left_out
from deniable_estimator.dashboard.annotation_flags import annotated
from deniable_estimator.dashboard.data import DataSource
from deniable_estimator.dashboard.kinds import kind_of
from deniable_estimator.dashboard.pages import asked_view, listed
from deniable_estimator.dashboard.recent import headline_of
from deniable_estimator.dashboard.source import current_source
from deniable_estimator.dashboard.timeline import timeline
from deniable_estimator.dashboard.view import View
from deniable_estimator.messages import message

pictures = Blueprint("pictures", __name__)

MAX_SCALE = 4
"""Pixels of a PNG for each of the SVG's: at 4 the tallest picture takes 80 MB to draw."""

_BARS = 40


@pictures.get("/metric/<name>.<any(svg, png):form>")
def metric_picture(name: str, form: str) -> ResponseReturnValue:
    """The chart of one metric."""
    source, metric, view = asked_view(name, "scale")
    estimate = _estimate(source, metric, view)
    kind = kind_of(estimate)
    text = render_template(
        kind.picture_template,
        metric=metric,
        chart=kind.picture(estimate, view, _BARS),
        estimate=estimate,
        view=view,
        alarm=alarm_of(source, metric, view.days, estimate, listed(source, metric)),
        left_out=left_out(view.days),
    )
    return send_picture(text, name, form)


@pictures.get("/metric/<name>/trend.<any(svg, png):form>")
def trend_picture(name: str, form: str) -> ResponseReturnValue:
    """The trend of one of its values."""
    source, metric, view = asked_view(name, "scale")
    estimate = _estimate(source, metric, view)
    view.check_values(estimate.series.names)
    alarm = alarm_of(source, metric, view.days, estimate, listed(source, metric))
    found = timeline(source, metric, view, estimate, alarm)
    if found is None:
        raise BadRequest(
            message("A trend needs reports from two periods at least; these days hold fewer.")
        )
    text = render_template(
        "picture_trend.svg",
        metric=metric,
        noted=annotated(
            metric, view.days.around.first, view.days.last, source.today, found.trend.periods
        ),
        timeline=found,
        estimate=estimate,
        headline=headline_of(source, metric, view, estimate, listed(source, metric))
        if view.days.since and not alarm
        else None,
        left_out=left_out(view.days),
    )
    return send_picture(text, f"{name}-trend", form)


def send_picture(svg: str, name: str, form: str) -> Response:
    """A picture that is saved, not shown.

    Raises:
        StillDecoding, TooManyDecodes: to draw it takes longer than one may wait.
    """
    if form == "svg":
        response = Response(svg, mimetype="image/svg+xml")
    else:
        response = Response(current_source().picture(svg, _scale()), mimetype="image/png")
    response.headers.set("Content-Disposition", "attachment", filename=f"{name}.{form}")
    return response


def _scale() -> int:
    text = request.args.get("scale", "2")
    if text not in map(str, range(1, MAX_SCALE + 1)):
        raise BadRequest(message("“scale” can be a whole number from 1 to {most}.", most=MAX_SCALE))
    return int(text)


def _estimate(source: DataSource, metric: Metric, view: View) -> Answer:
    estimate = source.estimate(metric, view.days, listed(source, metric))
    if estimate is None:
        raise BadRequest(
            message(
                "The strings of {metric} must be named to be drawn: upload a list on its page, or "
                "put them into {metric}.txt in the folder that DENIABLE_CANDIDATES_DIR names.",
                metric=metric.name,
            )
        )
    if not estimate.n:
        raise BadRequest(
            message("There are no reports in these days, so there is nothing to draw.")
        )
    return estimate

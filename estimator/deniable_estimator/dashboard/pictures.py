"""The chart and the trend of a metric as self-contained pictures: SVG and PNG."""

from __future__ import annotations

from pathlib import Path

import resvg_py
from flask import Blueprint, Response, render_template, request
from flask.typing import ResponseReturnValue
from werkzeug.exceptions import BadRequest

from deniable import Metric
from deniable_estimator.answers.base import Answer
from deniable_estimator.dashboard.alarms import alarm_of, left_out
from deniable_estimator.dashboard.annotation_flags import annotated
from deniable_estimator.dashboard.kinds import kind_of
from deniable_estimator.dashboard.pages import asked_view, listed
from deniable_estimator.dashboard.recent import headline_of
from deniable_estimator.dashboard.sources import DataSource
from deniable_estimator.dashboard.timeline import timeline
from deniable_estimator.dashboard.view import View
from deniable_estimator.messages import message

pictures = Blueprint("pictures", __name__)

FONT = Path(__file__).parent / "fonts" / "DejaVuSans.ttf"
"""Bundled, so that text can be drawn on a machine without fonts. Letters that it lacks come from
the fonts of the machine."""

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


def png(svg: str, scale: int, *, machine_fonts: bool = True) -> bytes:
    """An SVG of ours as a PNG, `scale` times as large."""
    drawn: bytes = resvg_py.svg_to_bytes(
        svg_string=svg,
        zoom=scale,
        font_files=[str(FONT)],
        skip_system_fonts=not machine_fonts,
        font_family="DejaVu Sans",
        serif_family="DejaVu Sans",
        sans_serif_family="DejaVu Sans",
    )
    return drawn


def send_picture(svg: str, name: str, form: str) -> Response:
    """A picture that is saved, not shown."""
    if form == "svg":
        response = Response(svg, mimetype="image/svg+xml")
    else:
        response = Response(png(svg, _scale()), mimetype="image/png")
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

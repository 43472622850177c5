"""Charts and boards alone, without the rest of their page: what a link shows in a frame.

A browser shows them in a frame only of the sites that DENIABLE_DASHBOARD_FRAME_ANCESTORS names.
"""

from __future__ import annotations

from flask import Blueprint, Flask, Response, current_app, render_template, request
from flask.typing import ResponseReturnValue
from werkzeug.exceptions import NotFound

from deniable_estimator.dashboard.access.caller import opened_link
from deniable_estimator.dashboard.alarms import alarm_of, left_out
from deniable_estimator.dashboard.boards.pages import show_board
from deniable_estimator.dashboard.kinds import kind_of
from deniable_estimator.dashboard.privacy_label import even_guess
from deniable_estimator.dashboard.recent import headline_of
from deniable_estimator.dashboard.release_pages import newest_view, shares_releases
from deniable_estimator.dashboard.source import current_source, declared_metric
from deniable_estimator.dashboard.view import read_view
from deniable_estimator.messages import message

embedding = Blueprint("embedding", __name__)

_BARS = 12

_POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self' data:; form-action 'none'; "
    "frame-ancestors {origins}; base-uri 'none'"
)


def offer_embedding(app: Flask, origins: tuple[str, ...], public_url: str) -> None:
    """Let these sites show charts in frames. A link must be whole for that, so it takes the
    dashboard's own address too."""
    app.config["DENIABLE_FRAME_ORIGINS"] = origins
    app.register_blueprint(embedding)
    lacking = {(True, True): "", (True, False): "address", (False, True): "sites"}
    app.jinja_env.globals["frames_lack"] = lacking.get((bool(origins), bool(public_url)), "both")


@embedding.get("/embed/metric/<name>")
def embedded(name: str) -> ResponseReturnValue:
    """The chart of a metric with its caption."""
    source, metric = current_source(), declared_metric(name)
    if shares_releases(current_app):
        numbers = newest_view(name)
        if numbers is None:
            raise NotFound(message("Nothing has been released of this metric."))
        return render_template("embed_released.html", view=numbers)
    view = read_view(request.args, metric, source.seen_until)
    estimate = source.estimate(metric, view.days, source.candidates(metric))
    chart = alarm = kind = None
    if estimate is not None and estimate.n:
        kind = kind_of(estimate)
        alarm = alarm_of(source, metric, view.days, estimate, source.candidates(metric))
        chart = kind.picture(estimate, view, _BARS)
    return render_template(
        "embed.html",
        metric=metric,
        view=view,
        estimate=estimate,
        kind=kind,
        chart=chart,
        alarm=alarm,
        left_out=left_out(view.days),
        headline=headline_of(source, metric, view, estimate, source.candidates(metric))
        if estimate and kind and not alarm
        else None,
        guess=even_guess(metric, source.registry),
    )


@embedding.get("/embed/board/<name>")
def embedded_board(name: str) -> ResponseReturnValue:
    """The charts of a board."""
    return show_board(name, "embed_board.html")


@embedding.after_request
def _framed(response: Response) -> Response:
    return let_in_frames(response) if opened_link() is not None else response


def let_in_frames(response: Response) -> Response:
    """Let the sites that may show charts show this in a frame."""
    if origins := current_app.config["DENIABLE_FRAME_ORIGINS"]:
        response.headers["Content-Security-Policy"] = _POLICY.format(origins=" ".join(origins))
        # It is made to be shown by others, who may ask for this of all that they show.
        response.headers["Cross-Origin-Resource-Policy"] = "cross-origin"
    return response

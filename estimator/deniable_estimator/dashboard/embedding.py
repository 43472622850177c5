"""A chart for other sites: one metric and view behind a signed link.

The link names the metric, the view and its last day, and a signature holds them together,
under a key that is derived from the dashboard's token. So it opens this one chart and nothing
else, to whoever has it, and a new token ends all links. A browser shows the chart in a frame
only of the sites that DENIABLE_DASHBOARD_FRAME_ANCESTORS names; without any, no link opens.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from hashlib import sha256
from typing import Literal, TypeAlias
from urllib.parse import urlencode

from flask import Blueprint, Flask, Response, current_app, render_template, request, url_for
from flask.typing import ResponseReturnValue
from itsdangerous import Signer

from deniable import DeniableError, Metric
from deniable_estimator.dashboard.access.shared import opened_link
from deniable_estimator.dashboard.alarms import alarm_of, left_out
from deniable_estimator.dashboard.decodes import StillDecoding, TooManyDecodes
from deniable_estimator.dashboard.kinds import kind_of
from deniable_estimator.dashboard.privacy import even_guess
from deniable_estimator.dashboard.released import newest_view, shares_releases
from deniable_estimator.dashboard.source import current_source
from deniable_estimator.dashboard.view import read_view
from deniable_estimator.messages import message

__all__ = [
    "Embedding",
    "board_link",
    "embed_link",
    "embedding",
    "framed",
    "offer_embedding",
    "opened",
    "refusal",
]

embedding = Blueprint("embedding", __name__)

Shown: TypeAlias = tuple[Literal["metric", "board"], str]
"""What a link opens: its kind, which the signature covers, and its name."""

_VIEW = ("from", "to", "without", "order", "shares")
"""What of a view a link may name; without days it always shows the latest complete windows."""
_UNSIGNED = ("signature", "lang")
_BARS = 12


@dataclass(frozen=True, slots=True)
class Embedding:
    """Which sites may embed charts, and how long a link is valid."""

    origins: tuple[str, ...]
    days: int
    public_url: str
    """Where others reach the dashboard; without it there are no links."""
    signer: Signer

    @property
    def policy(self) -> str:
        """The Content-Security-Policy of a chart in a frame."""
        return (
            "default-src 'none'; style-src 'self'; img-src 'self' data:; form-action 'none'; "
            f"frame-ancestors {' '.join(self.origins)}; base-uri 'none'"
        )

    def signature(self, shown: Shown, chosen: Iterable[tuple[str, str]]) -> str:
        """The signature of what is shown and the rest of a link."""
        return self.signer.get_signature(_message(shown, chosen)).decode()

    def holds(self, shown: Shown, chosen: Iterable[tuple[str, str]], signature: str) -> bool:
        return self.signer.verify_signature(_message(shown, chosen), signature)


def offer_embedding(app: Flask, origins: tuple[str, ...], days: int, public_url: str) -> None:
    """Let these origins show charts, by links to `public_url` that live so many days."""
    assert app.secret_key is not None
    signer = Signer(app.secret_key, b"deniable embed", digest_method=sha256)
    app.extensions["deniable_embedding"] = Embedding(origins, days, public_url, signer)
    app.register_blueprint(embedding)
    lacking = {(True, False): "address", (False, True): "sites"}
    app.jinja_env.globals["frames_lack"] = lacking.get((bool(origins), bool(public_url)), "both")


def embed_link(metric: Metric, arguments: Mapping[str, str], today: date) -> str | None:
    """The whole address of a metric's chart in the view of a page; None if that is switched off.

    It begins as DENIABLE_PUBLIC_URL says, never as the request's Host does: whoever sends the
    request chooses that.
    """
    offered = _offered()
    if not (offered.origins and offered.public_url):
        return None
    chosen = {name: arguments[name] for name in _VIEW if arguments.get(name)}
    chosen["until"] = (today + timedelta(days=offered.days)).isoformat()
    path = url_for("embedding.embedded", name=metric.name)
    return _link(offered, path, ("metric", metric.name), chosen)


def board_link(name: str, today: date) -> str | None:
    """The same of a board; it shows what the board's file says when it is opened."""
    offered = _offered()
    if not (offered.origins and offered.public_url):
        return None
    chosen = {"until": (today + timedelta(days=offered.days)).isoformat()}
    return _link(offered, url_for("embedding.embedded_board", name=name), ("board", name), chosen)


def _link(offered: Embedding, path: str, shown: Shown, chosen: Mapping[str, str]) -> str:
    signature = offered.signature(shown, chosen.items())
    return f"{offered.public_url}{path}?{urlencode({**chosen, 'signature': signature})}"


@embedding.get("/embed/metric/<name>")
def embedded(name: str) -> ResponseReturnValue:
    """The chart that a signed link names, with its caption, for a frame."""
    source = current_source()
    arguments = opened(("metric", name), name in source.registry.metrics)
    if isinstance(arguments, Response):
        return arguments
    if shares_releases(current_app):
        numbers = newest_view(name)
        if numbers is None:
            return refusal(message("Nothing has been released of this metric."), 404)
        return framed(render_template("embed_released.html", view=numbers))
    metric = source.registry[name]
    try:
        view = read_view(arguments, metric, source.seen_until)
        estimate = source.estimate(metric, view.days, source.candidates(metric))
    except (StillDecoding, TooManyDecodes) as error:
        busy = refusal(str(error), 503)
        busy.headers["Retry-After"] = busy.headers["Refresh"] = str(error.retry_after)
        return busy
    except DeniableError as error:
        return refusal(str(error), 400)
    chart = alarm = kind = None
    if estimate is not None and estimate.n:
        kind = kind_of(estimate)
        alarm = alarm_of(source, metric, view.days, estimate, source.candidates(metric))
        chart = kind.picture(estimate, view, _BARS)
    page = render_template(
        "embed.html",
        metric=metric,
        view=view,
        estimate=estimate,
        kind=kind,
        chart=chart,
        alarm=alarm,
        left_out=left_out(view.days),
        headline=kind.headline(estimate) if kind else None,
        guess=even_guess(metric, source.registry),
        refusal=None,
    )
    return framed(page)


def opened(shown: Shown, exists: bool) -> dict[str, str] | Response:
    """What the link of this request names besides, or why it opens nothing."""
    offered = _offered()
    if shown[0] == "board" and shares_releases(current_app):
        return refusal(message("Boards are not shown here: only released numbers are."), 403)
    chosen = [pair for pair in request.args.items(multi=True) if pair[0] not in _UNSIGNED]
    arguments = dict(chosen)
    signature = request.args.get("signature", "")
    if opened_link() is not None:
        # Whoever has made a link to this chart has chosen its days, and the link has its own end.
        return arguments
    if (
        not offered.origins
        or len(arguments) != len(chosen)
        or not offered.holds(shown, chosen, signature)
        or not exists
    ):
        return refusal(message("This link opens no chart. Ask for a new one."), 403)
    if current_source().today > date.fromisoformat(arguments["until"]):
        ended = message("This link ended on {day}. Ask for a new one.", day=arguments["until"])
        return refusal(ended, 403)
    return arguments


def refusal(text: str, code: int) -> Response:
    """A page in the frame that says why there is no chart."""
    response = framed(render_template("embed.html", refusal=text))
    response.status_code = code
    return response


def framed(page: str) -> Response:
    """The page, for the frames of the sites that may show charts."""
    response = Response(page, mimetype="text/html")
    if _offered().origins:
        response.headers["Content-Security-Policy"] = _offered().policy
        # It is made to be shown by others, who may ask for this of all that they show.
        response.headers["Cross-Origin-Resource-Policy"] = "cross-origin"
    return response


def _offered() -> Embedding:
    offered: Embedding = current_app.extensions["deniable_embedding"]
    return offered


def _message(shown: Shown, chosen: Iterable[tuple[str, str]]) -> bytes:
    return urlencode([shown, *sorted(chosen)]).encode()

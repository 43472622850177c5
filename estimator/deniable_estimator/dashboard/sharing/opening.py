"""Lets a link in: what is asked of it is asked of its view, and of nothing else.

`/shared/SECRET` is the view's page, and `/shared/SECRET/PATH` a file or picture of it. The request
goes on as one for the view with the link's own parameters, without cookies, tokens or headers
that could name somebody. So what a page shows to those who have signed in, it does not show here.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Iterable
from datetime import date
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from flask import Flask, Response, current_app, make_response, render_template, request
from flask.typing import ResponseReturnValue
from werkzeug.exceptions import ServiceUnavailable
from werkzeug.http import parse_cookie

from deniable_collector.operation.events import tell
from deniable_estimator.dashboard.access.people import PeopleFile
from deniable_estimator.dashboard.access.shared import OPENED, OpenedLink, opened_link
from deniable_estimator.dashboard.language import COOKIE, LANGUAGES, PARAMETER
from deniable_estimator.dashboard.released import shares_releases
from deniable_estimator.dashboard.sharing.links import SharedLink, SharedLinks
from deniable_estimator.dashboard.sharing.one_view import one_view
from deniable_estimator.dashboard.sharing.views import VIEWS, target_of
from deniable_estimator.messages import message

__all__ = ["open_links"]

_PREFIX = "/shared/"
_TROUBLE = "deniable.links_away"
_BUSY = frozenset({429, 503})
"""Refusals that pass by themselves; the page says when to look again."""

_KEPT = ("HTTP_HOST", "HTTP_ACCEPT", "HTTP_ACCEPT_LANGUAGE", "HTTP_ACCEPT_ENCODING",
         "HTTP_X_FORWARDED_PROTO", "HTTP_X_FORWARDED_HOST")  # fmt: skip
"""Headers that go on to the view."""

_OF_RELEASES = ("released.release_page", "released.newest")

_Start = Callable[..., Any]


class _Openings:
    """Turns the request of a link into that of its view, before anything else looks at it."""

    def __init__(
        self, app: Flask, links: SharedLinks, today: Callable[[], date], people: PeopleFile
    ) -> None:
        self._app, self._links, self._today = app, links, today
        self._people = people
        self._next = app.wsgi_app

    def __call__(self, environ: dict[str, Any], start: _Start) -> Iterable[bytes]:
        if environ.get("PATH_INFO", "").startswith(_PREFIX):
            try:
                environ = self._opened(environ) or environ
            except sqlite3.Error:
                environ[_TROUBLE] = True
        return self._next(environ, start)

    def _opened(self, environ: dict[str, Any]) -> dict[str, Any] | None:
        """The request for the view; None if the link does not open what is asked for."""
        # PEP 3333 has the bytes of a path as Latin-1.
        asked_path = environ["PATH_INFO"].encode("latin-1", "replace").decode("utf-8", "replace")
        secret, slash, rest = asked_path.removeprefix(_PREFIX).partition("/")
        # Reads the file again if it has changed, which ends the links of whoever has left.
        self._people.current()
        link = self._links.find(secret, self._today())
        if link is None or environ["REQUEST_METHOD"] not in ("GET", "HEAD"):
            return None
        shown = shown_path(self._app, link)
        view = target_of(self._app, shown) if shown else None
        if shown is None or view is None or view[0] not in VIEWS:
            return None
        path = f"/{rest}" if slash else shown
        if slash and not _belongs(target_of(self._app, path), view):
            return None
        asked = parse_qs(environ.get("QUERY_STRING", "")).get(PARAMETER, []) if not slash else []
        language = urlencode([(PARAMETER, each) for each in asked[:1]])
        kept = {
            name: value
            for name, value in environ.items()
            if name in _KEPT or not name.startswith(("HTTP_", "RAW_", "REQUEST_URI"))
        }
        # A release has no range to choose.
        query = link.query if shown == link.path else ""
        chosen = parse_cookie(environ).get(COOKIE)
        return {
            **kept,
            **({"HTTP_COOKIE": f"{COOKIE}={chosen}"} if chosen in LANGUAGES else {}),
            "PATH_INFO": path.encode().decode("latin-1"),
            "QUERY_STRING": "&".join(each for each in (query, language) if each),
            OPENED: OpenedLink(link, secret),
        }


def shown_path(app: Flask, link: SharedLink) -> str | None:
    """The path that a link shows: its view's own, or, if links show releases alone, that of the
    metric's newest release; None if it would show something else."""
    if not shares_releases(app):
        return link.path
    view = target_of(app, link.path)
    if view is None:
        return None
    if view[0] == "pages.metric_page":
        return f"/released/{view[1]}"
    return link.path if view[0] in (*_OF_RELEASES, "embedding.embedded") else None


def open_links(
    app: Flask, links: SharedLinks, today: Callable[[], date], people: PeopleFile
) -> None:
    """Open these links at this application. `today` is the day in UTC. The links of people who
    leave the file of people end."""
    people.on_gone = lambda names: _end_links_of(links, names)
    app.extensions["deniable_links"] = links
    # It runs before what was registered earlier, such as what compresses the page.
    app.after_request(_show_one_view)
    app.add_url_rule(f"{_PREFIX}<path:rest>", "nothing_shared", _nothing)
    app.jinja_env.globals["opened_link"] = opened_link
    app.wsgi_app = _Openings(app, links, today, people)  # type: ignore[method-assign, assignment]


def _end_links_of(links: SharedLinks, names: Collection[str]) -> None:
    try:
        count = links.revoke_all_of(names)
    except sqlite3.Error as error:
        told = f"the links of people who were removed could not be revoked: {error}"
        tell("error", "links-not-revoked", f"{told}. Run `deniable links revoke --by NAME`")
        return
    if count:
        tell("info", "links-revoked", "the links of people who were removed are revoked",
             links=count)  # fmt: skip


def _belongs(target: tuple[str, str] | None, view: tuple[str, str]) -> bool:
    """Whether this is a file or picture of the view."""
    return target is not None and target[0] in VIEWS[view[0]].files and target[1] == view[1]


def _nothing(rest: str) -> ResponseReturnValue:
    if request.environ.get(_TROUBLE):
        raise ServiceUnavailable(message("Links cannot be opened now. Try again in a minute."))
    return _closed()


def _closed() -> Response:
    """One page for links that have ended, were revoked, never were, or show nothing any more."""
    page = make_response(render_template("shared_nothing.html"), 404)
    _private(page)
    return page


def _private(response: Response) -> None:
    response.headers["Referrer-Policy"] = "no-referrer"
    response.headers["X-Robots-Tag"] = "noindex, nofollow, noarchive"
    response.headers["Cache-Control"] = "no-store"


def _show_one_view(response: Response) -> Response:
    """Take out of a link's page what leads elsewhere; a mistake says nothing of the inside."""
    opened = opened_link()
    if opened is None:
        return response
    if response.status_code >= 400 and response.status_code not in _BUSY:
        return _closed()
    if response.mimetype == "text/html":
        response.set_data(one_view(response.get_data(as_text=True), _place_of(opened)))
    _private(response)
    return response


def _place_of(opened: OpenedLink) -> Callable[[str], str | None]:
    """Where an address of the page leads for whoever has the link; None for nowhere."""
    app: Flask = current_app
    shown = shown_path(app, opened.link)
    view = target_of(app, shown) if shown else None
    assert view is not None
    static = f"{app.static_url_path}/"
    public: str = app.config["DENIABLE_PUBLIC_URL"]

    def place(address: str) -> str | None:
        parts = urlsplit(address)
        if address.startswith("#") or parts.scheme == "data":
            return address
        if parts.scheme in ("http", "https"):
            own = public and address.startswith(public)
            return None if own or parts.netloc == request.host else address
        if parts.scheme or parts.netloc:
            return None
        if parts.path.startswith(static):
            return address
        if parts.path == shown and (chosen := parse_qs(parts.query).get(PARAMETER)):
            return f"{opened.address}?{urlencode({PARAMETER: chosen[0]})}"
        if _belongs(target_of(app, parts.path), view):
            return f"{opened.address}{parts.path}"
        return None

    return place

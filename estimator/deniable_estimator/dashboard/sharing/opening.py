"""Which views can be shared, and how a link is let in: what is asked of it is asked of its view,
and of nothing else.

`/shared/SECRET` is the view's page, and `/shared/SECRET/PATH` a file or picture of it. The request
goes on as one for the view with the link's own parameters, without cookies, tokens or headers
that could name somebody. So what a page shows to those who have signed in, it does not show here.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

from flask import Flask, Response, current_app, make_response, render_template, request, url_for
from flask.typing import ResponseReturnValue
from werkzeug.datastructures import MultiDict
from werkzeug.exceptions import HTTPException, NotFound, ServiceUnavailable
from werkzeug.http import parse_cookie
from werkzeug.routing import RequestRedirect

from deniable import DeniableError
from deniable.protocol.types.discovery import Discovery
from deniable_estimator.dashboard.access.caller import OPENED, opened_link
from deniable_estimator.dashboard.access.people import PeopleFile
from deniable_estimator.dashboard.boards.pages import current_boards
from deniable_estimator.dashboard.comparison_page import requested_periods
from deniable_estimator.dashboard.language import COOKIE, LANGUAGES, PARAMETER
from deniable_estimator.dashboard.pictures import let_in_frames
from deniable_estimator.dashboard.release_pages import named_release
from deniable_estimator.dashboard.segments_page import requested_segments
from deniable_estimator.dashboard.sharing.links import Maker, SharedLink, SharedLinks
from deniable_estimator.dashboard.source import current_source, declared_metric
from deniable_estimator.dashboard.view import read_view
from deniable_estimator.errors import EstimateError
from deniable_estimator.inputs import read_inputs
from deniable_estimator.messages import message

MOST_ADDRESS = 2000
"""The most characters of a view's address."""

_PREFIX = "/shared/"
_TROUBLE = "deniable.links_away"
_BUSY = frozenset({429, 503})
"""Refusals that pass by themselves; the page says when to look again."""

_KEPT = ("HTTP_HOST", "HTTP_ACCEPT", "HTTP_ACCEPT_LANGUAGE", "HTTP_ACCEPT_ENCODING",
         "HTTP_X_FORWARDED_PROTO", "HTTP_X_FORWARDED_HOST")  # fmt: skip
"""Headers that go on to the view."""

_OF_RELEASES = ("released.release_page", "released.newest_page", "embedding.embedded")
"""What shows released numbers alone where links show no others."""

_SEVERAL = frozenset({"value", "where", "over", "without", "by"})
"""Parameters that may be given several times."""


class ViewError(DeniableError):
    """This cannot be shared; the message says what can."""


class SharedView(NamedTuple):
    """The page that a link opens, and nothing beside it; or a file or picture of it."""

    endpoint: str
    name: str
    """Of the metric or the board."""
    path: str
    query: str = ""


def _unshared() -> ViewError:
    return ViewError(message("This page cannot be shared. Pages that can have a button “Share”."))


def _check_metric(name: str, arguments: MultiDict[str, str]) -> None:
    metric = declared_metric(name)
    if isinstance(metric.type, Discovery):
        raise _unshared()
    if "line" in arguments:
        raise ViewError(
            message("A list of strings that you have sent is yours alone, and is not shared.")
        )
    read_view(arguments, metric, current_source())


def _check_board(name: str) -> None:
    if name not in current_boards().names:
        raise NotFound
    if current_boards().get(name)[0] is None:
        raise ViewError(message("This board cannot be shown: its file has mistakes."))


_Check: TypeAlias = Callable[[str, MultiDict[str, str]], object]


def _plain(look_up: Callable[[str], object]) -> _Check:
    """The check of a view without parameters, which only has to be there."""

    def check(name: str, arguments: MultiDict[str, str]) -> None:
        read_inputs((), arguments)
        look_up(name)

    return check


_METRIC_FILES = (
    *("pages.metric_file", "pages.trend_file"),
    *("pictures.metric_picture", "pictures.trend_picture"),
)

VIEWS: Mapping[str, tuple[_Check, Sequence[str]]] = {
    "pages.metric_page": (_check_metric, _METRIC_FILES),
    "comparing.comparison_page": (
        lambda name, arguments: requested_periods(declared_metric(name), arguments),
        ("comparing.comparison_file",),
    ),
    "segments.segments_page": (
        lambda name, arguments: requested_segments(declared_metric(name), arguments),
        ("segments.segments_file", "segments.segments_picture"),
    ),
    "released.release_page": (_plain(named_release), ("released.release_file",)),
    "released.newest_page": (_plain(declared_metric), ("released.newest_file",)),
    "embedding.embedded": (_check_metric, ()),
    "boards.board_page": (_plain(_check_board), ()),
    "embedding.embedded_board": (_plain(_check_board), ()),
}
"""What can be shared, by endpoint: what checks its parameters, and its files and pictures. A link
opens the page and these files of the same name."""


def read_address(address: str) -> SharedView:
    """The view at an address of this dashboard, in the language of whoever opens it.

    Raises:
        ViewError: it is no view that can be shared, or asks for what there is not.
    """
    parts = urlsplit(address) if len(address) <= MOST_ADDRESS and address.isprintable() else None
    view = view_at(current_app, parts.path) if parts and not parts.netloc else None
    if parts is None or view is None or view.endpoint not in VIEWS:
        raise _unshared()
    pairs = [pair for pair in parse_qsl(parts.query) if pair[0] != "lang"]
    arguments = MultiDict(pairs)
    if any(len(texts) > 1 for name, texts in arguments.lists() if name not in _SEVERAL):
        raise ViewError(message("The address names a parameter twice. Remove one of them."))
    try:
        VIEWS[view.endpoint][0](view.name, arguments)
    except EstimateError as error:
        raise ViewError(str(error)) from None
    except NotFound:
        told = message("There is no such view. Open the page, and share it from there.")
        raise ViewError(told) from None
    return view._replace(query=urlencode(pairs))


def view_at(app: Flask, path: str) -> SharedView | None:
    """What a path with a name in it leads to with GET; None if there is nothing."""
    try:
        endpoint, arguments = app.url_map.bind("").match(path, "GET")
    except (HTTPException, RequestRedirect):
        return None
    name = arguments.get("name")
    return SharedView(endpoint, name, path) if isinstance(name, str) else None


def _opened(app: Flask, links: SharedLinks, environ: dict[str, Any]) -> dict[str, Any] | None:
    """The request for the view; None if the link does not open what is asked for."""
    # PEP 3333 has the bytes of a path as Latin-1.
    asked_path = environ["PATH_INFO"].encode("latin-1", "replace").decode("utf-8", "replace")
    secret, slash, rest = asked_path.removeprefix(_PREFIX).partition("/")
    link = links.find(secret, app.extensions["deniable_source"].today)
    if link is None or environ["REQUEST_METHOD"] not in ("GET", "HEAD"):
        return None
    view = _shown(app, link)
    if view is None:
        return None
    page, language = view.path, ""
    if slash:
        part = view_at(app, f"/{rest}")
        # Only a file or picture of the view.
        if not (part and part.endpoint in VIEWS[view.endpoint][1] and part.name == view.name):
            return None
        page = part.path
    elif asked := parse_qs(environ.get("QUERY_STRING", "")).get(PARAMETER):
        language = urlencode({PARAMETER: asked[0]})
    kept = {
        name: value
        for name, value in environ.items()
        if name in _KEPT or not name.startswith(("HTTP_", "RAW_", "REQUEST_URI"))
    }
    chosen = parse_cookie(environ).get(COOKIE)
    return {
        **kept,
        **({"HTTP_COOKIE": f"{COOKIE}={chosen}"} if chosen in LANGUAGES else {}),
        "PATH_INFO": page.encode().decode("latin-1"),
        "QUERY_STRING": "&".join(each for each in (view.query, language) if each),
        OPENED: link,
    }


def _shown(app: Flask, link: SharedLink) -> SharedView | None:
    """What a link shows: its own view, or, if links show releases alone, the metric's newest
    release; None if it would show something else."""
    view = view_at(app, link.path)
    if view is None or view.endpoint not in VIEWS:
        return None
    if app.config["DENIABLE_SETTINGS"].share_releases:
        if view.endpoint == "pages.metric_page":
            # A release has no range to choose.
            return view_at(app, f"/released/{view.name}")
        if view.endpoint not in _OF_RELEASES:
            return None
    return view._replace(query=link.query)


def open_links(app: Flask, path: str) -> None:
    """Open the links in a file at this application: turn the request of a link into that of its
    view, before anything else looks at it."""
    answer = app.wsgi_app
    links = SharedLinks(path, partial(maker_of, app.extensions["deniable_door"].people))

    def opened(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        if environ.get("PATH_INFO", "").startswith(_PREFIX):
            try:
                environ = _opened(app, links, environ) or environ
            except sqlite3.Error:
                environ[_TROUBLE] = True
        return answer(environ, start)

    app.extensions["deniable_links"] = links
    # It runs before what was registered earlier, such as what compresses the page.
    app.after_request(_close)
    app.add_url_rule(f"{_PREFIX}<path:rest>", "nothing_shared", _nothing)
    app.jinja_env.globals.update(opened_link=opened_link, url_for=_address)
    app.wsgi_app = opened  # type: ignore[method-assign, assignment]


def maker_of(people: PeopleFile, link: SharedLink) -> Maker:
    """Whether the maker of a link is still in the file of people, if ever, with the same entry.
    While the file is not there, or has mistakes, nobody has left it for good."""
    if link.entry is None:
        return "here"
    current = people.current
    maker = (people.value if current is None else current).get(link.maker)
    if maker is not None and maker.entry == link.entry:
        return "here"
    return "away" if current is None else "left"


def _address(endpoint: str, **values: Any) -> str:
    """Where a page leads. For whoever has a link, the files and pictures of its view are the
    link's own, and there is nothing else to go to: templates offer no more, and what one forgets
    leads nowhere."""
    opened = opened_link()
    if opened is None or endpoint == "static":
        return url_for(endpoint, **values)
    if endpoint not in VIEWS.get(request.endpoint or "", ((), ()))[1]:
        return "#"
    # The link has its view's parameters.
    return opened.opened_at + url_for(endpoint, name=values["name"], form=values["form"])


def _nothing(rest: str) -> ResponseReturnValue:
    if request.environ.get(_TROUBLE):
        raise ServiceUnavailable(message("Links cannot be opened now. Try again in a minute."))
    return _closed()


def _closed() -> Response:
    """One page for links that have ended, were revoked, never were, or show nothing any more."""
    page = let_in_frames(make_response(render_template("shared_nothing.html"), 404))
    _private(page)
    return page


def _private(response: Response) -> None:
    response.headers["Referrer-Policy"] = "no-referrer"
    response.headers["X-Robots-Tag"] = "noindex, nofollow, noarchive"
    response.headers["Cache-Control"] = "no-store"


def _close(response: Response) -> Response:
    """What a link shows is for nobody else; a mistake says nothing of the inside."""
    if opened_link() is None:
        return response
    if response.status_code >= 400 and response.status_code not in _BUSY:
        return _closed()
    _private(response)
    return response

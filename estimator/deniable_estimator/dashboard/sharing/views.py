"""Which views can be shared, and which files and pictures belong to each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode, urlsplit

from flask import Flask, current_app
from werkzeug.datastructures import MultiDict
from werkzeug.exceptions import HTTPException
from werkzeug.routing import RequestRedirect

from deniable import DeniableError, Metric
from deniable.protocol.types import Discovery
from deniable_estimator.dashboard.boards.pages import current_boards
from deniable_estimator.dashboard.ranges import RangeError, check_names, earlier_range, read_range
from deniable_estimator.dashboard.release_pages import release_named
from deniable_estimator.dashboard.segments_page import SEGMENT_NAMES, requested_segments
from deniable_estimator.dashboard.source import current_source
from deniable_estimator.dashboard.view import names_of, read_view
from deniable_estimator.messages import message

MOST_ADDRESS = 2000
"""The most characters of a view's address."""


_SEVERAL = frozenset({"value", "where", "over"})
"""Parameters that may be given several times."""


class ViewError(DeniableError):
    """This cannot be shared; the message says what can."""


@dataclass(frozen=True, slots=True)
class SharedView:
    """The page that a link opens, and nothing beside it."""

    endpoint: str
    name: str
    """Of the metric or the board."""
    path: str
    query: str


@dataclass(frozen=True, slots=True)
class _ViewKind:
    """A kind of page that can be shared: the endpoints of its files and pictures, and what checks
    its parameters."""

    files: frozenset[str]
    check: Callable[[str, Mapping[str, str]], object]


def _declared(name: str) -> Metric:
    registry = current_source().registry
    if name not in registry.metrics:
        raise ViewError(message("There is no such view. Open the page, and share it from there."))
    return registry[name]


def _check_metric(name: str, arguments: Mapping[str, str]) -> None:
    metric = _declared(name)
    if isinstance(metric.type, Discovery):
        raise ViewError(
            message("This page cannot be shared. Pages that can have a button “Share”.")
        )
    if "line" in arguments:
        raise ViewError(
            message("A list of strings that you have sent is yours alone, and is not shared.")
        )
    check_names(arguments, names_of(metric))
    read_view(arguments, metric, current_source().clock())


def _check_comparison(name: str, arguments: Mapping[str, str]) -> None:
    metric, now = _declared(name), current_source().clock()
    check_names(arguments, ("since", "from", "to", "without", "before_from", "before_to"))
    later = read_range(arguments, now, metric.window, metric)
    named = arguments.get("before_from"), arguments.get("before_to")
    earlier_range(later, metric.window, *named, now)


def _check_segments(name: str, arguments: Mapping[str, str]) -> None:
    metric = _declared(name)
    check_names(arguments, SEGMENT_NAMES)
    requested_segments(current_source(), metric, MultiDict(arguments))


def _check_board(name: str, arguments: Mapping[str, str]) -> None:
    if name not in current_boards().names:
        raise ViewError(message("There is no such view. Open the page, and share it from there."))
    check_names(arguments, ())
    if current_boards().get(name)[0] is None:
        raise ViewError(message("This board cannot be shown: its file has mistakes."))


def _check_release(name: str, arguments: Mapping[str, str]) -> None:
    check_names(arguments, ())
    if release_named(name) is None:
        raise ViewError(message("There is no such view. Open the page, and share it from there."))


def _check_newest(name: str, arguments: Mapping[str, str]) -> None:
    check_names(arguments, ())
    _declared(name)


VIEWS: Mapping[str, _ViewKind] = {
    "pages.metric_page": _ViewKind(
        frozenset(
            {
                *("pages.metric_file", "pages.trend_file"),
                *("pictures.metric_picture", "pictures.trend_picture"),
            }
        ),
        _check_metric,
    ),
    "comparing.comparison_page": _ViewKind(
        frozenset({"comparing.comparison_file"}), _check_comparison
    ),
    "segments.segments_page": _ViewKind(
        frozenset({"segments.segments_file", "segments.segments_picture"}), _check_segments
    ),
    "released.release_page": _ViewKind(frozenset({"released.release_file"}), _check_release),
    "released.newest": _ViewKind(frozenset({"released.newest_file"}), _check_newest),
    "embedding.embedded": _ViewKind(frozenset(), _check_metric),
    "boards.board_page": _ViewKind(frozenset(), _check_board),
    "embedding.embedded_board": _ViewKind(frozenset(), _check_board),
}
"""What can be shared, by endpoint. A link opens the page and these files of the same name."""


def read_address(address: str) -> SharedView:
    """The view at an address of this dashboard, in the language of whoever opens it.

    Raises:
        ViewError: it is no view that can be shared, or asks for what there is not.
    """
    parts = urlsplit(address) if len(address) <= MOST_ADDRESS and address.isprintable() else None
    found = target_of(current_app, parts.path) if parts and not parts.netloc else None
    if parts is None or found is None or found[0] not in VIEWS:
        raise ViewError(
            message("This page cannot be shared. Pages that can have a button “Share”.")
        )
    endpoint, name = found
    pairs = [pair for pair in parse_qsl(parts.query) if pair[0] != "lang"]
    arguments = MultiDict(pairs)
    if any(len(texts) > 1 for name, texts in arguments.lists() if name not in _SEVERAL):
        raise ViewError(message("The address names a parameter twice. Remove one of them."))
    try:
        VIEWS[endpoint].check(name, arguments)
    except RangeError as error:
        raise ViewError(str(error)) from None
    return SharedView(endpoint, name, parts.path, urlencode(pairs))


def target_of(app: Flask, path: str) -> tuple[str, str] | None:
    """The endpoint that a path leads to with GET, and the name in it; None if there is neither."""
    try:
        endpoint, arguments = app.url_map.bind("").match(path, "GET")
    except (HTTPException, RequestRedirect):
        return None
    name = arguments.get("name")
    return (endpoint, name) if isinstance(name, str) else None

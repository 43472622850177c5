"""The responses of the read API: JSON or CSV, with a strong ETag if possible."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from flask import Response, request

import deniable
from deniable_estimator.asking.results import key_of
from deniable_estimator.dashboard.calculations import json_text
from deniable_estimator.dashboard.exports import Text
from deniable_estimator.dashboard.metric_view import PageReading
from deniable_estimator.dashboard.problems import refusal
from deniable_estimator.document.csv_files import csv_text

GZIPPED = "-gzip"
"""What the tag of a compressed response ends with: a strong tag stands for certain bytes."""

Form: TypeAlias = Literal["json", "csv", "raw"]
"""`raw` is a CSV whose texts are as they are, which no spreadsheet must be given."""

_TYPES: dict[Form, str] = {"json": "application/json", "csv": "text/csv", "raw": "text/csv"}
_VARY = ("Accept", "Authorization", "Cookie")


def form_of(asked: Literal["json", "csv"] | None, raw: bool, *offered: Form) -> Form:
    """The form that the request asks for: by `format`, or by its Accept header; else the first. A
    CSV is `raw` where that is asked for.

    Raises:
        ApiProblem: the endpoint does not offer it.
    """
    offers = {_TYPES[form]: form for form in offered}
    found: str | None = _TYPES[asked or offered[0]]
    if asked is None and request.accept_mimetypes:
        found = request.accept_mimetypes.best_match(list(offers))
    if found not in offers:
        raise refusal(406, "not-acceptable", f"This can be sent as {' or '.join(offers)}.")
    return "raw" if raw and offers[found] == "csv" else offers[found]


def respond(form: Form, parts: object, write: Callable[[], str]) -> Response:
    """What `write` returns, which is a function of these parts; 304, if the client has it."""
    tag = _tag(form, parts)
    return _unchanged(tag) or _response(form, write(), tag)


def respond_content(
    form: Form,
    document: Mapping[str, Any],
    columns: Sequence[str] = (),
    rows: Iterable[Mapping[str, Any]] = (),
) -> Response:
    """A document that is cheap to make, so its content itself is the version; or, as CSV, its rows
    with these columns."""

    def write() -> str:
        return json_text(document) if form == "json" else _csv(form, columns, rows)

    return respond(form, document, write)


def respond_at(
    reading: PageReading,
    form: Form,
    parts: tuple[object, ...],
    version: Callable[[], object],
    find: Callable[[], Text],
) -> Response:
    """The same of what takes long. `version` is that of the tallies, which `find` reads only if the
    client has not got the response."""
    about = reading.metric, reading.days, reading.strings, *parts
    known = request.method != "POST" and bool(request.if_none_match)
    if known and (same := _unchanged(_tag(form, (*about, version())))):
        return same
    found = find()
    tag = _tag(form, (*about, found.version))
    text = reading.source.written(found.lines, ("api", tag), found.write, form)
    return _response(form, text, tag)


def _csv(form: Form, columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> str:
    """One line for each row under a header (RFC 4180); lists are joined by spaces, and what a row
    does not have is empty."""
    cells = ([row.get(name) for name in columns] for row in rows)
    lines = ([" ".join(x) if isinstance(x, list) else x for x in line] for line in cells)
    return csv_text(columns, lines, raw=form == "raw")


def _tag(form: Form, parts: object) -> str:
    return key_of(deniable.__version__, request.endpoint, request.view_args, form, parts).hex()


def _unchanged(tag: str) -> Response | None:
    for each in (tag, tag + GZIPPED):
        if each in request.if_none_match:
            response = Response(status=304)
            response.set_etag(each)
            return _cacheable(response)
    return None


def _response(form: Form, text: str, tag: str) -> Response:
    response = Response(text, mimetype=_TYPES[form])
    if request.method == "POST":
        # What was sent by POST is not to be kept.
        response.vary.update(_VARY)
        return response
    response.set_etag(tag)
    return _cacheable(response)


def _cacheable(response: Response) -> Response:
    response.headers["Cache-Control"] = "private, no-cache"
    response.vary.update(_VARY)
    return response

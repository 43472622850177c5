"""The responses of the read API: JSON or CSV, with a strong ETag if possible."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from flask import Response, request

import deniable
from deniable_estimator.answers.files import csv_text
from deniable_estimator.asking.results import digest
from deniable_estimator.dashboard.problems import ApiProblem

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
    found: str | None
    if asked is not None:
        found = _TYPES[asked]
    elif not request.accept_mimetypes:
        found = _TYPES[offered[0]]
    else:
        found = request.accept_mimetypes.best_match(list(offers))
    if found not in offers:
        raise ApiProblem(
            406, "not-acceptable", "Not acceptable", f"This can be sent as {' or '.join(offers)}."
        )
    return "raw" if raw and offers[found] == "csv" else offers[found]


def etag(form: Form, *parts: object) -> str:
    """The tag of a response that is a function of these parts."""
    return digest(deniable.__version__, request.endpoint, request.view_args, form, *parts).hex()


def unchanged(tag: str) -> Response | None:
    """304, if the client has this response already."""
    known = request.if_none_match
    for each in (tag, tag + GZIPPED):
        if each in known:
            response = Response(status=304)
            response.set_etag(each)
            return _cacheable(response)
    return None


def same_as_known(tag: Callable[[], str]) -> Response | None:
    """304, if the client has this response already; the tallies are read only if it has any."""
    if request.method == "POST" or not request.if_none_match:
        return None
    return unchanged(tag())


def represent(form: Form, text: str, *, tag: str) -> Response:
    """The response in that form; what was sent by POST is not to be kept."""
    response = Response(text, mimetype=_TYPES[form])
    response.vary.update(_VARY)
    if request.method == "POST":
        return response
    response.set_etag(tag)
    return _cacheable(response)


def to_csv(form: Form, columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> str:
    """One line for each row under a header (RFC 4180); lists are joined by spaces, and what a row
    does not have is empty."""
    cells = ([row.get(name) for name in columns] for row in rows)
    lines = ([" ".join(x) if isinstance(x, list) else x for x in line] for line in cells)
    return csv_text(columns, lines, raw=form == "raw")


def _cacheable(response: Response) -> Response:
    response.headers["Cache-Control"] = "private, no-cache"
    response.vary.update(_VARY)
    return response

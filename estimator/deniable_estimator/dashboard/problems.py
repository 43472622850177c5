"""Errors of a response: problem documents for programs (RFC 9457), what a status says, and the
response while strings are being decoded: a page that reloads by itself, or a problem.

A program is not given 202: it would take the body for the table that it has asked for.
"""

from __future__ import annotations

from typing import Any

from flask import Response, make_response, render_template
from werkzeug.exceptions import HTTPException

from deniable_estimator.asking.results import StillDecoding, TooManyDecodes
from deniable_estimator.messages import message

_TITLES = {
    400: message("Bad Request"),
    401: message("Unauthorized"),
    403: message("Forbidden"),
    404: message("Not Found"),
    405: message("Method Not Allowed"),
    413: message("Request Entity Too Large"),
    500: message("Internal Server Error"),
    503: message("Service Unavailable"),
}
_DETAILS = {
    400: message("The browser (or proxy) sent a request that this server could not understand."),
    404: message(
        "The requested URL was not found on the server. If you entered the URL manually please "
        "check your spelling and try again."
    ),
    405: message("The method is not allowed for the requested URL."),
}
"""What an error says that was raised without words."""


class ApiProblem(HTTPException):
    """An error with a type, `urn:deniable:problem:KIND`, and what a program needs to react."""

    def __init__(
        self,
        status: int,
        kind: str,
        title: str,
        detail: str,
        *,
        retry_after: int | None = None,
        **members: Any,
    ) -> None:
        super().__init__(detail)
        self.code = status
        self.kind = f"urn:deniable:problem:{kind}"
        self.title = title
        self.members = members
        self.retry_after = retry_after

    @property
    def name(self) -> str:
        return self.title

    def get_headers(self, *args: Any, **kwargs: Any) -> list[tuple[str, str]]:
        """The headers, with Retry-After if waiting helps."""
        headers = super().get_headers(*args, **kwargs)
        if self.retry_after is not None:
            headers.append(("Retry-After", str(self.retry_after)))
        return headers


def told_error(error: HTTPException) -> tuple[str, str]:
    """The title and the detail of an error: its own, or those of its status."""
    code = error.code or 500
    title = error.name if isinstance(error, ApiProblem) else _TITLES.get(code, error.name)
    if "description" not in vars(error) and code in _DETAILS:
        return title, _DETAILS[code]
    return title, error.description or ""


def waiting_page(error: StillDecoding) -> Response:
    """The progress, on a page that reloads by itself."""
    page = make_response(render_template("decoding.html", progress=error), 202)
    page.headers["Refresh"] = str(error.retry_after)
    return page


def waiting_problem(error: StillDecoding | TooManyDecodes) -> ApiProblem:
    """The same for programs, and for what was sent and must be sent again."""
    if isinstance(error, TooManyDecodes):
        return ApiProblem(503, "busy", message("Busy"), str(error), retry_after=error.retry_after)
    return ApiProblem(
        503,
        "still-decoding",
        message("Still decoding"),
        message(
            "{progress} What is done is kept: the same request goes on where this one has stopped.",
            progress=str(error),
        ),
        retry_after=error.retry_after,
        done=error.done,
        of=error.of,
    )


def refusal(status: int, kind: str, detail: str, **members: Any) -> ApiProblem:
    """The error that refuses what a program asks, under a title that says its kind."""
    return ApiProblem(status, kind, kind.replace("-", " ").capitalize(), detail, **members)


def invalid(detail: str) -> ApiProblem:
    """The error that refuses a parameter."""
    return refusal(400, "invalid-parameter", f"{detail}.")

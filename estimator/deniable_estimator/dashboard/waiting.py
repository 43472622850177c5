"""The response while strings are being decoded: a page that reloads by itself, or a problem.

A program is not given 202: it would take the body for the table that it has asked for.
"""

from __future__ import annotations

from flask import Response, make_response, render_template

from deniable_estimator.dashboard.decodes import StillDecoding, TooManyDecodes
from deniable_estimator.dashboard.problems import ApiProblem
from deniable_estimator.messages import message

__all__ = ["waiting_page", "waiting_problem"]


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

"""The Flask application: what all responses of the dashboard have in common."""

from __future__ import annotations

import gzip
import logging
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

from flask import Flask, Response, g, jsonify, make_response, render_template, request
from flask.typing import ResponseReturnValue
from werkzeug.exceptions import BadRequest, HTTPException, InternalServerError, ServiceUnavailable
from werkzeug.middleware.proxy_fix import ProxyFix

import deniable
from deniable import DeniableError, Registry, SchemeError, ValueListError
from deniable_collector.settings import SettingsError
from deniable_collector.stores import Store, StoreError, StoreUnavailable, open_store
from deniable_estimator.asking.reader import Reader
from deniable_estimator.asking.results import Results, StillDecoding, TooManyDecodes
from deniable_estimator.asking.work import TooHeavy, Workers, WorkersClosed
from deniable_estimator.dashboard import words
from deniable_estimator.dashboard.access.caller import for_people, role_name
from deniable_estimator.dashboard.access.door import access, guard
from deniable_estimator.dashboard.annotation_file import keep_annotations
from deniable_estimator.dashboard.api import api
from deniable_estimator.dashboard.api.representations import GZIPPED
from deniable_estimator.dashboard.boards.pages import offer_boards
from deniable_estimator.dashboard.comparison_page import comparing
from deniable_estimator.dashboard.data import DataSource
from deniable_estimator.dashboard.discovery_page import discovering
from deniable_estimator.dashboard.language import offer_languages
from deniable_estimator.dashboard.pages import pages
from deniable_estimator.dashboard.pictures import embedding, offer_plots, pictures
from deniable_estimator.dashboard.planner import planner
from deniable_estimator.dashboard.privacy_label import LABEL_FILTERS
from deniable_estimator.dashboard.problems import (
    ApiProblem,
    told_error,
    waiting_page,
    waiting_problem,
)
from deniable_estimator.dashboard.ranges import is_day
from deniable_estimator.dashboard.release_pages import released
from deniable_estimator.dashboard.segments_page import segments
from deniable_estimator.dashboard.settings import DashboardSettings
from deniable_estimator.dashboard.sharing.opening import open_links
from deniable_estimator.dashboard.sharing.share_pages import offer_share, sharing
from deniable_estimator.dashboard.source import held_from, held_until, settings_in_force
from deniable_estimator.dashboard.uploads import MOST_OF_THE_LARGEST, Uploads, offer_uploads
from deniable_estimator.errors import EstimateError
from deniable_estimator.files import ANNOTATIONS, LINKS
from deniable_estimator.kinds import formats
from deniable_estimator.messages import isolated, message

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self'; "
    "img-src 'self' data:; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
"""Only the scripts in `static/` run, and only where a page is more convenient with them: every
page works without. None is ever part of a page."""

MAX_FORM = 16 << 10
"""The largest form without a list: a token, and the address to go to next."""

_UPLOADS = frozenset({"pages.metric_upload", "api.estimate", "api.trend", "api.comparison"})

_WORTH_COMPRESSING = 1024

_log = logging.getLogger("deniable.dashboard")


_MOST_LISTED = 20
"""The most windows in a header."""


def create_app(
    settings: DashboardSettings | None = None,
    *,
    store: Store | None = None,
    registry: Registry | None = None,
    clock: Callable[[], float] = time.time,
) -> Flask:
    """The WSGI application. What is left out comes from the DENIABLE_* environment.

    Whoever serves it calls `close_app` before the process ends, so that no calculation has to
    be waited for. It starts processes as `multiprocessing` does: a script that serves it keeps
    what it does under `if __name__ == "__main__"`.

    Raises:
        SettingsError, RegistryError, StoreError, CheckedFileError: what it was given cannot be
            used.
    """
    settings = settings or DashboardSettings.from_env()
    if not settings.dashboard_token:
        raise SettingsError(
            ["DENIABLE_DASHBOARD_TOKEN is missing: `deniable dashboard` makes one, or set your own"]
        )
    app = Flask(__name__)
    # Flask would redirect /metric//name to the host that the request names, whatever it is.
    app.url_map.merge_slashes = False
    app.config["DENIABLE_SETTINGS"] = settings
    app.extensions["deniable_source"] = DataSource(
        Reader(store or open_store(settings)),
        # An empty registry is one as well.
        Registry.load(settings.registry) if registry is None else registry,
        clock,
        settings,
        Results(
            settings.dashboard_cache,
            workers=settings.dashboard_workers,
            most=settings.dashboard_queue,
            most_of_one=settings.dashboard_queue_of_one,
        ),
        Workers(
            settings.dashboard_workers,
            settings.dashboard_memory,
            settings.dashboard_seconds,
            preloaded="deniable_estimator.dashboard.planner",
        ),
    )
    _make_folder(settings.data)
    keep_annotations(app, settings.kept(ANNOTATIONS))
    offer_boards(app, settings.boards, app.extensions["deniable_source"].registry)
    app.before_request(_limit)
    guard(app, settings, clock)
    most_bytes = MOST_OF_THE_LARGEST * settings.dashboard_upload
    offer_uploads(app, Uploads(clock, most_bytes))
    for each in (access, pages, comparing, segments, discovering, planner, api, pictures, sharing,
                 embedding, released):  # fmt: skip
        app.register_blueprint(each)
    app.add_url_rule("/healthz", "healthz", lambda: {"status": "ok"})
    app.after_request(_tell_unreadable)
    app.after_request(_protect)
    app.after_request(_compress)
    app.register_error_handler(HTTPException, _error)
    for kind in (EstimateError, SchemeError, ValueListError, TooHeavy,
                 WorkersClosed, StoreError):  # fmt: skip
        app.register_error_handler(kind, lambda error: _error(_problem_of(error)))
    app.register_error_handler(StillDecoding, _still_decoding)
    app.register_error_handler(TooManyDecodes, _still_decoding)
    app.register_error_handler(sqlite3.Error, _data_away)
    app.register_error_handler(Exception, _failure)
    offer_languages(app)
    open_links(app, settings.kept(LINKS))
    app.jinja_env.globals.update(
        offer_share=offer_share,
        unreadable_windows=_left_out,
        held_until=held_until,
        held_from=held_from,
        version=deniable.__version__,
    )
    app.jinja_env.trim_blocks = app.jinja_env.lstrip_blocks = True
    app.jinja_env.filters.update(
        number="{:,}".format,
        chance=words.chance,
        day=formats.day,
        days=words.days_of,
        kind=formats.kind,
        type=words.type_name,
        ask=words.ASKED.get,
        example=words.example,
        range=words.range_of,
        role=role_name,
        period=formats.period,
        window=formats.window,
        isolated=isolated,
        left_out=words.windows_left_out,
        is_day=is_day,
        **LABEL_FILTERS,
    )
    offer_plots(app)
    if settings.trusted_proxies:
        hops = settings.trusted_proxies
        app.wsgi_app = ProxyFix(  # type: ignore[method-assign]
            app.wsgi_app, x_for=0, x_proto=hops, x_host=hops
        )
    return app


def _make_folder(path: str) -> None:
    """Make the folder of data, for its owner alone."""
    if not path:
        return
    try:
        Path(path).mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        told = f"DENIABLE_DATA: the folder {path} cannot be made: {error.strerror}"
        raise SettingsError([told]) from None


def close_app(app: Flask) -> None:
    """End the processes that calculate for an application."""
    source: DataSource = app.extensions["deniable_source"]
    source.workers.close()


def _limit() -> None:
    """Limit the size of a body by its purpose."""
    upload = settings_in_force().dashboard_upload
    request.max_content_length = upload if request.endpoint in _UPLOADS else MAX_FORM


def body_limits(settings: DashboardSettings) -> dict[bytes, int]:
    """The most bytes of a body by what its path begins with, for a server that reads it first."""
    lists = max(MAX_FORM, settings.dashboard_upload)
    return {b"/metric/": lists, b"/api/": lists, b"": MAX_FORM}


def _left_out() -> list[tuple[str, list[str]]]:
    """The windows that this request asked for and that cannot be read, by metric."""
    found: dict[str, list[str]] = g.source.reader.left_out if "source" in g else {}
    return [*found.items()]


def _tell_unreadable(response: Response) -> Response:
    """Tell programs, whatever they read, that it lacks windows."""
    if found := _left_out():
        listed = [f"{metric}/{label}" for metric, labels in found for label in labels]
        more = f", and {len(listed) - _MOST_LISTED} more" if len(listed) > _MOST_LISTED else ""
        response.headers["Deniable-Unreadable"] = ", ".join(listed[:_MOST_LISTED]) + more
    return response


def _protect(response: Response) -> Response:
    headers = response.headers
    headers.setdefault("Content-Security-Policy", CONTENT_SECURITY_POLICY)
    headers["X-Content-Type-Options"] = "nosniff"
    headers.setdefault("Referrer-Policy", "same-origin")
    headers["Cross-Origin-Opener-Policy"] = "same-origin"
    headers.setdefault("Cross-Origin-Resource-Policy", "same-origin")
    if request.endpoint != "static" and "Cache-Control" not in headers:
        headers["Cache-Control"] = "no-store"
    return response


def _compress(response: Response) -> Response:
    """Compress long tables, which are mostly repetition. A page contains no secret beside what was
    requested, so its compressed length reveals nothing."""
    response.vary.add("Accept-Encoding")
    if (
        request.accept_encodings["gzip"]
        and not response.direct_passthrough
        and "Content-Encoding" not in response.headers
        and len(response.get_data()) >= _WORTH_COMPRESSING
    ):
        # No time in the gzip header: the same content must give the same bytes (strong ETag).
        response.set_data(gzip.compress(response.get_data(), compresslevel=5, mtime=0))
        response.headers["Content-Encoding"] = "gzip"
        tag, weak = response.get_etag()
        if tag is not None and not weak:
            response.set_etag(f"{tag}{GZIPPED}")
    return response


def _error(error: HTTPException) -> ResponseReturnValue:
    """A page for people, a problem document (RFC 9457) for programs."""
    code = error.code or 500
    if error.response is not None:
        return error.response
    title, detail = told_error(error)
    if code == 413:
        detail = message(
            "More than {most:,} bytes were sent, which is the most that is taken here. A longer "
            "list of strings belongs into the folder that DENIABLE_CANDIDATES_DIR names, or to "
            "`deniable estimate --candidates FILE`.",
            most=request.max_content_length,
        )
    kind = error.kind if isinstance(error, ApiProblem) else "about:blank"
    members = error.members if isinstance(error, ApiProblem) else {}
    if for_people():
        response = Response(render_template("error.html", code=code, title=title, detail=detail))
        response.mimetype = "text/html"
    else:
        response = jsonify(type=kind, title=title, status=code, detail=detail, **members)
        response.mimetype = "application/problem+json"
    response.status_code = code
    for name, value in error.get_headers():
        if name.lower() not in ("content-type", "content-length"):
            response.headers[name] = value
    if code == 401:
        response.headers["WWW-Authenticate"] = "Bearer"
    return response


def _problem_of(error: DeniableError) -> HTTPException:
    """Why there is no result; the message says what to request instead."""
    match error:
        case EstimateError():
            title = message("Invalid parameter")
            return ApiProblem(400, "invalid-parameter", title, str(error))
        case TooHeavy():
            return ApiProblem(400, "too-heavy", message("Too much at once"), str(error))
        case WorkersClosed():
            return ServiceUnavailable(str(error), retry_after=error.retry_after)
        case StoreError():
            # It cannot be read, or does not exist yet before the first collector starts.
            _log.warning("%s", error)
            return ServiceUnavailable(
                message(
                    "The store cannot be read. Check that a collector has been started with it, "
                    "and that DENIABLE_STORE names the same one here and there."
                ),
                retry_after=int(error.retry_after) if isinstance(error, StoreUnavailable) else None,
            )
    return BadRequest(str(error))


def _still_decoding(error: StillDecoding | TooManyDecodes) -> ResponseReturnValue:
    """A page reloads by itself, but it cannot send a POST again."""
    if isinstance(error, StillDecoding) and request.method != "POST" and for_people():
        return waiting_page(error)
    response = make_response(_error(waiting_problem(error)))
    if isinstance(error, TooManyDecodes) and request.method != "POST" and for_people():
        response.headers["Refresh"] = str(error.retry_after)
    return response


def _data_away(error: sqlite3.Error) -> ResponseReturnValue:
    """A file in the folder of data failed; those of the store and of releases have errors of their
    own."""
    _log.error("a file in DENIABLE_DATA cannot be used: %s", error)
    told = message(
        "The dashboard cannot read or write its folder of data. An operator finds the reason in "
        "the log, and can make room, restart it, or name another folder in DENIABLE_DATA."
    )
    return _error(ServiceUnavailable(told))


def _failure(error: Exception) -> ResponseReturnValue:
    # The error's text may contain parts of the request; its type and place do not.
    _log.error("a page failed: %s", type(error).__name__, exc_info=error)
    return _error(InternalServerError(message("The page could not be made. The log says more.")))

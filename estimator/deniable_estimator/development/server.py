"""What `deniable dev` serves at one port of loopback, to devices and pages, and with the live page.

Batches of development mode go on to a collector, all others do not. It is the one that everybody
runs, with its checks and its limits. Only the mark is taken off before it sees a batch, and windows
count as open while they last.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Collection, Iterable
from dataclasses import replace
from pathlib import Path
from wsgiref.types import StartResponse, WSGIEnvironment

from werkzeug.datastructures import Headers
from werkzeug.exceptions import HTTPException
from werkzeug.wrappers import Request, Response

from deniable import Registry
from deniable.device.development import TROUBLE_CODES, TROUBLES
from deniable.protocol.addresses import is_loopback_host
from deniable.protocol.wire import SealedReport, is_development, unmarked
from deniable.tools.compile_command import web_files
from deniable_collector.documents import documents
from deniable_collector.intake import Intake
from deniable_collector.refusals import IntakeError, malformed
from deniable_collector.serving.responses import HttpResponse, answered, head, problem_of
from deniable_collector.settings import Settings
from deniable_collector.stores import Store, open_store
from deniable_estimator.dashboard.app import close_app, create_app
from deniable_estimator.dashboard.data import DataSource
from deniable_estimator.dashboard.settings import DashboardSettings
from deniable_estimator.development.crowd import SimulatedCrowd
from deniable_estimator.development.live import LIVE, Live, live
from deniable_estimator.development.state import LONGEST_NAME, Arrivals, RegistryFile

HOST = "127.0.0.1"
"""The only address at which it listens."""

_MOST_REPORTS = "100"
"""Reports in a batch; a device sends no more."""

_REPORTS = "/v1/reports"
_LARGEST = {_REPORTS: 1 << 20, TROUBLES: 1 << 12}
"""Bytes of a body that is read."""

_NOTHING = HttpResponse(204, b"")

# Not a code for which a device drops its batch: a real report waits for its collector.
_REFUSED = {
    "type": "urn:deniable:problem:development-only",
    "title": "Development only",
    "status": 403,
    "detail": "`deniable dev` takes only reports of development mode: set DENIABLE_DEV, or the "
    "option `development` of the client",
}
_DEVELOPMENT_ONLY = HttpResponse(403, json.dumps(_REFUSED).encode(), "application/problem+json")


_SCRIPTS = {"/deniable.min.js": "text/javascript", "/deniable.js": "text/javascript",
            "/metrics.js": "text/javascript", "/metrics.json": "application/json"}  # fmt: skip
"""The SDK for web pages, in its development build, with the registry of now."""


_DEVELOPER = {
    "REMOTE_ADDR": HOST,
    "HTTP_X_DENIABLE_DEVELOPER": "developer",
    "HTTP_X_DENIABLE_ROLE": "operator",
}
"""Whoever asks is an operator, named to the dashboard as a proxy would: all that there is are the
noisy reports of test values, and only this machine can reach it."""


class Gate:
    """Answers at all paths under /v1/."""

    def __init__(
        self,
        settings: Settings,
        store: Store,
        registry: Registry,
        arrivals: Arrivals,
        origins: Collection[str],
    ) -> None:
        self._settings = settings
        self._store = store
        self._arrivals = arrivals
        self._origins = frozenset(origins)
        self.load(registry)

    def load(self, registry: Registry) -> None:
        """Take reports by another registry from now on."""
        self._registry = registry
        # Before the first report, so that pages can read the store.
        self._store.publish((metric.name, metric.scheme) for metric in registry)
        # A window takes reports from its beginning.
        metrics = {
            metric.name: replace(metric, answer="at_once", compiled=metric.scheme.mechanism)
            for metric in registry
        }
        known = replace(registry, metrics=metrics)
        self._documents = documents(known, self._settings.metrics_bind)
        self._intake = Intake(known, self._store, max_reports=self._settings.max_reports)

    def respond(self, request: Request) -> Response:
        """The response to a request, with the headers that let pages read it."""
        origin = request.headers.get("Origin")
        allowed = origin is not None and self.may_send(origin)
        try:
            answer = self._answer(request, origin, allowed=allowed)
        except IntakeError as error:
            answer = problem_of(error)
        fields = head(answer.content_type, answer.retry_after, answer.status)
        headers = Headers([(name.decode(), text.decode()) for name, text in fields])
        if request.path in _LARGEST:
            headers["Vary"] = "Origin"
            if answer.status == 405:
                headers["Allow"] = "POST"
            if origin is not None and allowed:
                headers["Access-Control-Allow-Origin"] = origin
                headers["Access-Control-Expose-Headers"] = "Retry-After"
                # Browsers ask this where a page of another network calls this machine.
                headers["Access-Control-Allow-Private-Network"] = "true"
            if allowed and request.method == "OPTIONS":
                headers["Access-Control-Allow-Methods"] = "POST"
                headers["Access-Control-Allow-Headers"] = (
                    "authorization, content-type, x-deniable-key"
                )
        return Response(answer.body, answer.status, headers)

    def _answer(self, request: Request, origin: str | None, *, allowed: bool) -> HttpResponse:
        """The response to a request.

        Raises:
            IntakeError: it is refused, as a collector would.
        """
        if request.path not in _LARGEST:
            # What the collector tells everyone.
            found = self._documents.get(request.path.encode())
            if found is None:
                raise IntakeError("http-404", "there is nothing at this path")
            return HttpResponse(200, found.body)
        if origin is not None and not allowed:
            self._arrivals.mistake("origin", None, origin[:LONGEST_NAME])
            told = "pages of this origin may not send to `deniable dev`: name it with --origin"
            raise IntakeError("origin-not-allowed", told)
        if request.method == "OPTIONS":
            return _NOTHING
        if request.method != "POST":
            raise IntakeError("http-405", "send a batch with POST")
        request.max_content_length = _LARGEST[request.path]
        try:
            body = request.get_data(cache=False)
        except HTTPException:
            told = "the body is larger than a batch may be"
            raise IntakeError("body-too-large", told) from None
        return self._reports(body) if request.path == _REPORTS else self._trouble(body)

    def _reports(self, body: bytes) -> HttpResponse:
        if not is_development(body):
            self._arrivals.mistake("not_development")
            return _DEVELOPMENT_ONLY
        inner = unmarked(body)
        try:
            (outcome,) = self._intake.take([self._intake.read(inner)])
        except Exception as error:
            outcome = error
        response = answered(outcome)
        if isinstance(outcome, Exception):
            told = json.loads(response.body)
            code = told["type"].rpartition(":")[2]
            self._arrivals.mistake("batch", None, f"{code}: {told['detail']}")
        elif not outcome.duplicate:
            reports = dict(enumerate(json.loads(inner)["reports"]))
            for each in outcome.rejected:
                report = reports.pop(each.index)
                name = report.get("metric") if isinstance(report, dict) else None
                self._arrivals.mistake(
                    each.reason, name if isinstance(name, str) else None, each.detail
                )
            counted = (SealedReport(**{"row": 0, **each}) for each in reports.values())
            self._arrivals.batch(len(body), counted)
        return response

    def _trouble(self, body: bytes) -> HttpResponse:
        """A mistake that a client found: a code and the name of a metric, and no value."""
        try:
            document = json.loads(body)
            trouble = document["trouble"]
            code, metric = trouble["code"], trouble["metric"]
            fine = (
                document["development"] is True
                and code in TROUBLE_CODES
                and isinstance(metric, str | None)
            )
        except (ValueError, TypeError, KeyError, RecursionError):
            fine = False
        if not fine:
            raise malformed("this is no mistake as clients tell it")
        if metric is not None and code != "unknown_metric" and metric not in self._registry.metrics:
            code = "unknown_metric"
        self._arrivals.mistake(code, metric)
        return _NOTHING

    def may_send(self, origin: str) -> bool:
        """Whether a page of this origin may send: one of this machine, or one that was named.
        Otherwise any page that the developer visits could."""
        scheme, _, host = origin.partition("://")
        local = scheme in ("http", "https") and _is_local(host)
        return local or origin in self._origins


def _is_local(host: str) -> bool:
    """Whether a host, maybe with a port, is this machine."""
    return is_loopback_host(host if host.endswith("]") else host.rpartition(":")[0] or host)


class DevelopmentApp:
    """The WSGI application: the gate under /v1/, the SDK for pages, and the dashboard.

    Args:
        file: the registry, which was read.
        folder: where everything is that is kept; the caller deletes it.
        origins: those of pages that may send reports, beside those of this machine.
        candidates: a folder of METRIC.txt files with strings to look for; None: there is none.
        devices: so many simulated devices report as soon as `crowd.add` is called.
    """

    def __init__(
        self,
        file: RegistryFile,
        folder: Path,
        origins: Collection[str] = (),
        candidates: Path | None = None,
        devices: int = 0,
    ) -> None:
        self.arrivals = Arrivals()
        self._file = file
        environ = {
            "DENIABLE_STORE": f"sqlite:///{folder}/tallies.db",
            "DENIABLE_REGISTRY": str(file.path),
            "DENIABLE_RATE": "off",
            "DENIABLE_MAX_REPORTS": _MOST_REPORTS,
            "DENIABLE_DASHBOARD_TOKEN": secrets.token_urlsafe(32),
            "DENIABLE_DASHBOARD_PROXIES": HOST,
            "DENIABLE_DASHBOARD_USER_HEADER": "X-Deniable-Developer",
            "DENIABLE_DASHBOARD_ROLE_HEADER": "X-Deniable-Role",
            "DENIABLE_DATA": str(folder),
            **({} if candidates is None else {"DENIABLE_CANDIDATES_DIR": str(candidates)}),
        }
        self.settings = settings = DashboardSettings.from_env(environ)
        self.store = open_store(settings)
        self.crowd = SimulatedCrowd(devices, candidates)
        self._gate = Gate(settings, self.store, file.registry, self.arrivals, origins)
        self._dashboard = create_app(settings, store=self.store, registry=file.registry)
        self._dashboard.extensions[LIVE] = Live(file, self.arrivals, self.crowd)
        self._dashboard.config["DENIABLE_DEVELOPMENT"] = self.crowd
        self._dashboard.register_blueprint(live)
        self._load_scripts()

    def reload(self) -> None:
        """Serve by the registry that the file has now."""
        registry = self._file.registry
        self._gate.load(registry)
        source: DataSource = self._dashboard.extensions["deniable_source"]
        self._dashboard.extensions["deniable_source"] = replace(source, registry=registry)
        self._load_scripts()
        self.arrivals.forget_mistakes()

    def close(self) -> None:
        """Release the store, and end the processes that calculate."""
        close_app(self._dashboard)
        self.store.close()

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        request = Request(environ)
        if not _is_local(request.headers.get("Host", "")):
            # A page of a site that has given its own name the address 127.0.0.1.
            refusal = Response("This server answers to the names of this machine alone.\n", 403)
            return refusal(environ, start_response)
        if request.path.startswith("/v1/"):
            return self._gate.respond(request)(environ, start_response)
        if request.path in self._scripts:
            return self._script(request)(environ, start_response)
        environ |= _DEVELOPER
        if "HTTP_ORIGIN" not in environ:
            # No page has made a program send this.
            environ.setdefault("HTTP_SEC_FETCH_SITE", "none")
        return self._dashboard.wsgi_app(environ, start_response)

    def _load_scripts(self) -> None:
        files = web_files(self._file.registry, development=True)
        self._scripts = {path: files[path[1:]] for path in _SCRIPTS}

    def _script(self, request: Request) -> Response:
        # Only pages that may send read the registry, which may not be released yet. Browsers say
        # from which site a request comes; other programs have no such header.
        origin = request.headers.get("Origin") or "/".join(
            request.headers.get("Referer", "").split("/")[:3]
        )
        cross = request.headers.get("Sec-Fetch-Site", "none") == "cross-site"
        if cross and not self._gate.may_send(origin):
            return Response("// pages of this origin may not load the SDK from here\n", 403)
        headers = {
            # Pages of other origins, which the developer's own server serves, load it from here.
            "Cross-Origin-Resource-Policy": "cross-origin",
            "X-Content-Type-Options": "nosniff",
            "Cache-Control": "no-store",
            "Vary": "Origin, Referer, Sec-Fetch-Site",
        }
        if origin and self._gate.may_send(origin):
            headers["Access-Control-Allow-Origin"] = origin
        kind = _SCRIPTS[request.path]
        return Response(self._scripts[request.path], headers=headers, content_type=kind)

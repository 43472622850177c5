"""The collector as a Flask app: public, write-only, and silent about who sends.

GET /v1/registry shows everyone the metrics, and /v1/openapi.json the protocol. /healthz and /readyz
are for the operator's probes. What devices send, batches and capsules, is not the app's
(`collector`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from flask import Flask, Response, request
from werkzeug.exceptions import HTTPException

from deniable import Metric, Registry
from deniable.protocol.oblivious.signed_keys import KEYS_TYPE, PATH, SIGNATURE
from deniable_collector.intake import Intake
from deniable_collector.oblivious.gateway import Gateway
from deniable_collector.oblivious.key_file import KeyFile
from deniable_collector.openapi import description
from deniable_collector.operation.metrics import count_answer, served
from deniable_collector.operation.watch import WatchedStore
from deniable_collector.serving.batch_reader import BatchReader
from deniable_collector.serving.problems import problem, problem_of
from deniable_collector.serving.responses import SECURITY_HEADERS, HttpResponse, head
from deniable_collector.settings import Settings, port_of
from deniable_collector.stores import Store, store_of
from deniable_collector.upkeep.journal import JournalKeeper
from deniable_collector.upkeep.keeper import Keeper, Upkeep
from deniable_collector.upkeep.sealing import Sealer

PARTS = "deniable_parts"
"""Where the app keeps its `Parts` among its extensions."""


class Parts(NamedTuple):
    """What a server needs beside the app: what reads batches and capsules (None: this is no
    gateway), and the work beside requests, which it starts, and stops in this order."""

    batch_reader: BatchReader
    gateway: Gateway | None
    upkeep: tuple[Upkeep, ...]


def create_app(
    settings: Settings,
    store: Store | None = None,
    registry: Registry | None = None,
    mistakes: Sequence[str] = (),
    keys: KeyFile | None = None,
) -> Flask:
    """The WSGI app. It also starts while its store is down, and then answers 503.

    `mistakes` says why settings and registry are not those of now (`inherited`); `keys` are the
    gateway's, by default those of its file.

    Raises:
        RegistryError: the registry has mistakes.
        KeyFileError: the gateway's keys cannot be used.
        StoreError: the store's address names no store.
    """
    if registry is None:
        registry = Registry.load(settings.registry)
    keys = keys or KeyFile.of(settings.gateway_keys)
    if store is None:
        store = store_of(settings)
    store = WatchedStore(store)
    app = Flask("deniable_collector", static_folder=None)
    if settings.metrics_bind:
        app.wsgi_app = served(  # type: ignore[method-assign, assignment]
            app.wsgi_app, port_of(settings.metrics_bind), store, len(registry)
        )
    app.register_error_handler(HTTPException, _http_error)
    app.register_error_handler(Exception, lambda error: _response(problem_of(error)))
    app.after_request(_secure)
    intake = Intake(registry, store, max_reports=settings.max_reports)
    batch_reader = BatchReader(intake, settings)
    gateway = None if keys is None else Gateway(settings, keys, batch_reader)
    if gateway is not None:
        _add_keys(app, gateway)
    keeper = Keeper(store, settings.keep_days, metrics=registry)
    # The last one closes the store.
    upkeep = keeper, Sealer(store), JournalKeeper(store, settings.journal_seconds)
    app.extensions[PARTS] = Parts(batch_reader, gateway, upkeep)
    _add_probes(app, intake, store, mistakes)
    _add_documents(app, registry, settings)
    return app


def _add_probes(app: Flask, intake: Intake, store: Store, mistakes: Sequence[str]) -> None:
    ready: dict[str, Any] = {"status": "ready"}
    if mistakes:
        ready["detail"] = "nothing was reloaded, and what was read before serves on"
        ready["mistakes"] = list(mistakes)

    @app.get("/healthz")
    def healthz() -> Response:
        return _json({"status": "ok"})

    @app.get("/readyz")
    def readyz() -> Response:
        intake.prepare()
        store.ping()
        return _json(ready)


def _add_documents(app: Flask, registry: Registry, settings: Settings) -> None:
    metrics = json.dumps({"metrics": {each.name: _describe(each, registry) for each in registry}})
    described = json.dumps(description(settings.metrics_bind))

    @app.get("/v1/registry")
    def read_registry() -> Response:
        return _document(metrics)

    @app.get("/v1/openapi.json")
    def read_description() -> Response:
        return _document(described)


def _add_keys(app: Flask, gateway: Gateway) -> None:
    @app.get(PATH)
    def read_keys() -> Response:
        headers = {SIGNATURE: gateway.signature, "Cache-Control": "public, max-age=60"}
        return Response(gateway.keys, headers=headers, content_type=KEYS_TYPE)


def _document(text: str) -> Response:
    """A response that is the same for everyone, with ETag and caching."""
    response = Response(text, content_type="application/json")
    response.set_etag(hashlib.sha256(text.encode()).hexdigest())
    response.headers["Cache-Control"] = "public, max-age=300"
    response.make_conditional(request)
    return response


def _describe(metric: Metric, registry: Registry) -> dict[str, Any]:
    """The public description of a metric: everything but its owner. A metric that devices do not
    report by itself names the pair that they report in its place."""
    pair = registry.unasked.get(metric.name)
    return {
        **({"reported_by": pair.name} if pair else {}),
        "type": metric.type.name,
        "description": metric.description,
        "values": list(metric.values) or None,
        "epsilon": metric.epsilon,
        "lifetime_epsilon": metric.lifetime_epsilon,
        "window": metric.window,
        "answer": metric.answer,
        "sample_rate": metric.sample_rate,
        "one_in": metric.one_in,
        "longitudinal": metric.longitudinal,
        "expires": metric.expires.isoformat(),
        "scheme": metric.scheme.fingerprint,
        "definition": metric.scheme.definition(),
    }


def _json(document: dict[str, Any], status: int = 200) -> Response:
    return Response(json.dumps(document), status, content_type="application/json")


def _response(response: HttpResponse) -> Response:
    headers = head(response.content_type, response.retry_after, response.status)
    named = [(name.decode(), text.decode()) for name, text in headers]
    return Response(response.body, response.status, named)


def _http_error(error: HTTPException) -> Response:
    status = error.code or 500
    detail = _DETAILS.get(status, error.name)
    response = _response(problem(f"http-{status}", status, error.name, detail))
    for name, value in error.get_headers():
        if name in ("Allow", "Retry-After"):
            response.headers[name] = value
    return response


NOT_ALLOWED = "this path does not accept this method: see the Allow header"

_DETAILS = {
    404: "there is nothing at this path",
    405: NOT_ALLOWED,
}


def _secure(response: Response) -> Response:
    # Problem documents are counted where they are made, and acknowledged batches in intake.
    if response.status_code < 400 and response.status_code != 202:
        count_answer(response.status_code)
    for name, value in SECURITY_HEADERS.items():
        response.headers.setdefault(name, value)
    return response

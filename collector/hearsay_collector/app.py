"""The collector over HTTP: public, write-only, and without a word about who sends.

POST /v1/reports takes a batch; GET /v1/registry tells everyone what is asked; /healthz
and /readyz are for the operator's probes.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from typing import Any

from flask import Flask, Response, request
from werkzeug.exceptions import UnsupportedMediaType
from werkzeug.middleware.proxy_fix import ProxyFix

from hearsay import Metric, Registry
from hearsay_collector.bodies import read_body
from hearsay_collector.intake import Intake
from hearsay_collector.problems import handle_errors
from hearsay_collector.settings import Settings
from hearsay_collector.stores import Store, open_store

__all__ = ["create_app"]

_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


def create_app(
    settings: Settings, store: Store | None = None, registry: Registry | None = None
) -> Flask:
    """The WSGI app. A store that is down does not keep it from starting: it answers 503.

    Raises:
        RegistryError: the registry has mistakes.
        StoreError: the store's address names no store.
    """
    if registry is None:
        registry = Registry.load(settings.registry)
    if store is None:
        store = open_store(settings.store, prefix=settings.redis_prefix, shards=settings.shards)
    app = Flask("hearsay_collector", static_folder=None)
    if settings.trusted_proxies:
        hops = settings.trusted_proxies
        app.wsgi_app = ProxyFix(  # type: ignore[method-assign]  # as Flask documents it
            app.wsgi_app, x_for=hops, x_proto=hops, x_host=hops, x_prefix=hops
        )
    handle_errors(app)
    app.after_request(_secure)
    _add_routes(app, Intake(registry, store, max_reports=settings.max_reports), settings, store)
    _add_registry(app, registry)
    return app


def _add_routes(app: Flask, intake: Intake, settings: Settings, store: Store) -> None:
    @app.post("/v1/reports")
    def reports() -> Response:
        if request.mimetype != "application/json":
            raise UnsupportedMediaType
        encoding = request.headers.get("Content-Encoding", "")
        batch = intake.read(read_body(request.stream, encoding, settings.max_body))
        (receipt,) = intake.take([batch])
        return _json(asdict(receipt), 202)

    @app.get("/healthz")
    def healthz() -> Response:
        return _json({"status": "ok"})

    @app.get("/readyz")
    def readyz() -> Response:
        intake.prepare()
        store.ping()
        return _json({"status": "ready"})


def _add_registry(app: Flask, registry: Registry) -> None:
    document = json.dumps({"metrics": {each.name: _describe(each) for each in registry}})
    etag = hashlib.sha256(document.encode()).hexdigest()

    @app.get("/v1/registry")
    def metrics() -> Response:
        response = Response(document, content_type="application/json")
        response.set_etag(etag)
        response.headers["Cache-Control"] = "public, max-age=300"
        response.make_conditional(request)
        return response


def _describe(metric: Metric) -> dict[str, Any]:
    """What everyone may know about a metric: all of it but who in the house owns it."""
    return {
        "type": metric.type,
        "description": metric.description,
        "values": None if metric.values is None else list(metric.values),
        "epsilon": metric.epsilon,
        "lifetime_epsilon": metric.lifetime_epsilon,
        "window": metric.window,
        "sample_rate": metric.sample_rate,
        "expires": metric.expires.isoformat(),
        "scheme": metric.scheme.fingerprint,
        "definition": metric.scheme.definition(),
    }


def _json(document: dict[str, Any], status: int = 200) -> Response:
    return Response(json.dumps(document), status, content_type="application/json")


def _secure(response: Response) -> Response:
    for name, value in _HEADERS.items():
        response.headers.setdefault(name, value)
    return response

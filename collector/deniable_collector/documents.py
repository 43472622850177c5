"""What everyone may read: the metrics of the registry, and the description of the protocol.

The description (OpenAPI 3.1) is `openapi.json`, and in it what the code declares: its settings, the
problems of `refusals` and the reasons of `batch`.
"""

from __future__ import annotations

import hashlib
import json
from functools import cache
from importlib.resources import files
from typing import Any, TypeAlias

from deniable import Metric, Registry
from deniable_collector.batches.batch import REASONS
from deniable_collector.refusals import PROBLEMS
from deniable_collector.serving.http import Request
from deniable_collector.serving.responses import HttpResponse
from deniable_collector.settings import Settings

Json: TypeAlias = dict[str, Any]

_LIMITS = tuple(
    f"DENIABLE_{name}"
    for name in ("MAX_BODY", "MAX_REPORTS", "REQUEST_TIMEOUT", "MAX_CONNECTIONS", "RATE", "QUEUE")
)

_ANYWHERE = ("too-slow", "header-too-large", "internal", "too-many-connections")
"""Problems of every path."""

_OF_NO_BATCH = ("http-404", "http-405")
"""Problems that no batch can have at its path."""

_PREFIX = "urn:deniable:problem:"


def _problem_responses(wanted: list[str], headers: Json) -> Json:
    """The responses of an operation that are problems, these and those of every path, with the
    headers of their statuses."""
    statuses: dict[int, list[str]] = {}
    for code, problem in PROBLEMS.items():
        if code in wanted or code in _ANYWHERE:
            statuses.setdefault(problem.status, []).append(code)
    found = {}
    for status, codes in statuses.items():
        mine = {"status": {"const": status}, "type": {"enum": [_PREFIX + code for code in codes]}}
        schema = {"allOf": [{"$ref": "#/components/schemas/Problem"}, {"properties": mine}]}
        found[str(status)] = {
            "description": " ".join(f"`{code}`: {PROBLEMS[code].meaning}" for code in codes),
            **({"headers": headers[str(status)]} if str(status) in headers else {}),
            "content": {"application/problem+json": {"schema": schema}},
        }
    return found


@cache
def description(metrics_bind: str = "127.0.0.1:9464") -> Json:
    """The whole document, of a collector that listens there for Prometheus; "": nowhere."""
    text = files(__package__).joinpath("openapi.json").read_text(encoding="utf-8")
    document: Json = json.loads(text)
    paths, components = document.pop("paths"), document.pop("components")
    headers = document.pop("x-headers")
    if metrics_bind:
        private = {
            "url": f"http://{metrics_bind}",
            "description": "DENIABLE_METRICS_BIND alone; the public address responds with 404.",
        }
        paths["/metrics"] = {"servers": [private], **paths["/metrics"]}
    else:
        del paths["/metrics"]
    # Of each operation the file names the problems that only it has, or all.
    for operation in (each for path in paths.values() for each in path.values()):
        if "x-problems" in operation:
            own = operation.pop("x-problems")
            if own == "all":
                own = [code for code in PROBLEMS if code not in _OF_NO_BATCH]
            operation["responses"] |= _problem_responses(own, headers)
    schemas = components["schemas"]
    schemas["Problem"]["properties"]["type"]["enum"] = [_PREFIX + code for code in PROBLEMS]
    reasons = [{"const": name, "description": each} for name, each in REASONS.items()]
    schemas["Reason"]["oneOf"] = reasons
    settings = {
        name: {"default": default, "meaning": meaning}
        for name, default, meaning in Settings.table()
    }
    return {
        **document,
        "x-limits": {name: settings[name] for name in _LIMITS},
        "x-problems": {
            code: {"status": each.status, "meaning": each.meaning}
            for code, each in PROBLEMS.items()
        },
        "paths": paths,
        "components": components,
    }


class PublicDocument:
    """A response that is the same for everyone, with ETag and caching."""

    def __init__(self, content: dict[str, Any]) -> None:
        self.body = json.dumps(content).encode()
        self._tag = f'"{hashlib.sha256(self.body).hexdigest()}"'.encode()

    async def __call__(self, request: Request) -> HttpResponse:
        """304 for whoever has it (RFC 9110, 13.1.2)."""
        request.given += ((b"etag", self._tag),)
        known = request.headers.get(b"if-none-match", b"")
        status, body = (304, b"") if known == b"*" or self._tag in known else (200, self.body)
        return HttpResponse(status, body, cache="public, max-age=300")


def documents(registry: Registry, metrics_bind: str) -> dict[bytes, PublicDocument]:
    """The documents of a collector, by path."""
    metrics = {each.name: _describe(each, registry) for each in registry}
    return {
        b"/v1/registry": PublicDocument({"metrics": metrics}),
        b"/v1/openapi.json": PublicDocument(description(metrics_bind)),
    }


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

"""What everyone may read: the metrics of the registry, and the description of the protocol."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from deniable import Metric, Registry
from deniable_collector.openapi import description
from deniable_collector.serving.http import Request
from deniable_collector.serving.responses import HttpResponse


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

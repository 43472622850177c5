"""The OpenAPI 3.1 description of the collector, made of what the code declares: its settings, the
problems of `refusals` and the reasons of `batch`."""

from __future__ import annotations

from functools import cache
from typing import Any, TypeAlias

from deniable_collector.batches.batch import NAMED, REASONS
from deniable_collector.refusals import PROBLEMS
from deniable_collector.settings import Settings

Json: TypeAlias = dict[str, Any]

_LIMITS = (*("MAX_BODY", "MAX_REPORTS", "REQUEST_TIMEOUT", "MAX_CONNECTIONS", "RATE", "QUEUE"),)

_ANYWHERE = ("too-slow", "header-too-large", "internal", "too-many-connections")
"""Problems of every path."""

_PREFIX = "urn:deniable:problem:"


def _text(description: str = "", **more: Any) -> Json:
    return {"type": "string", **({"description": description} if description else {}), **more}


def _count(description: str, minimum: int = 0) -> Json:
    return {"type": "integer", "minimum": minimum, "description": description}


def _positive(description: str, **more: Any) -> Json:
    return {"type": "number", "exclusiveMinimum": 0, "description": description, **more}


def _object(description: str, properties: Json, *optional: str, closed: bool = True) -> Json:
    """An object of these properties, all of which are required but the `optional` ones."""
    return {
        "type": "object",
        "description": description,
        "required": [name for name in properties if name not in optional],
        **({"additionalProperties": False} if closed else {}),
        "properties": properties,
    }


def _ref(schema: str) -> Json:
    return {"$ref": f"#/components/schemas/{schema}"}


def _list(items: Json, description: str = "", **more: Any) -> Json:
    told = {"description": description} if description else {}
    return {"type": "array", "items": items, **told, **more}


_ID = _text("128 random bits.", pattern="^[0-9a-f]{32}$")

_SCHEMAS: Json = {
    "Batch": _object(
        "Some reports under one random id. Repeated keys are refused.",
        {"batch": _ID, "reports": _list(_ref("Report"))},
    ),
    "Text": _text("The bytes of `Batch` in JSON, in UTF-8. A charset that is named must be UTF-8."),
    "Report": _object(
        "What a device says of one metric and window: a row and a set of its columns.",
        {
            "metric": _text("The metric's name in the registry."),
            "scheme": _text("The fingerprint of the scheme that made the report."),
            "window": _text(
                "A UTC day, ISO week or month, as the metric says.",
                examples=["2026-11-20", "2026-W47", "2026-11"],
            ),
            "row": {**_count("The row of the tally."), "default": 0},
            "columns": {
                "description": "By the row's packing.",
                "oneOf": [
                    _count("Index: the column."),
                    _list(
                        {"type": "integer", "minimum": 0},
                        "List: as many columns as the mechanism sets.",
                        uniqueItems=True,
                    ),
                    _text(
                        "Bitmap: URL-safe base64 without padding, column j at bit j % 8 of byte "
                        "j // 8.",
                        pattern="^[A-Za-z0-9_-]*$",
                    ),
                ],
            },
        },
        "row",
    ),
    "Receipt": _object(
        "What became of a batch. Either `accepted` or `duplicate` is 0: a batch is counted as a "
        "whole, or was before.",
        {
            "batch": _ID,
            "accepted": _count("Reports counted now."),
            "duplicate": _count("Reports that were counted when this batch came before."),
            "rejected": _list(
                _ref("Rejection"),
                f"Reports that were left out: the first {NAMED}.",
                maxItems=NAMED,
            ),
            "refused": {
                "type": "object",
                "description": "How many reports were left out, by reason.",
                "propertyNames": _ref("Reason"),
                "additionalProperties": {"type": "integer", "minimum": 1},
            },
        },
    ),
    "Rejection": _object(
        "A report that was not counted. Nothing is gained by sending it again, but for three "
        "reasons that pass (docs/reference/protocol.md).",
        {
            "index": _count("Its place in the batch."),
            "reason": _ref("Reason"),
            "detail": _text("The reason in words."),
        },
    ),
    "Reason": {
        "description": "Why a report was rejected, in the order in which it is looked at. The "
        "report ...",
        "oneOf": [{"const": name, "description": each} for name, each in REASONS.items()],
    },
    "Registry": _object(
        "Every metric by its name.",
        {"metrics": {"type": "object", "additionalProperties": _ref("Metric")}},
    ),
    "Metric": _object(
        "One declared question.",
        {
            "type": _text(),
            "description": _text(),
            "values": {
                "type": ["array", "null"],
                "items": {"type": "string"},
                "description": "The values it can have; null where any text is one.",
            },
            "epsilon": _positive("What the report of one window can reveal at most."),
            "lifetime_epsilon": _positive(
                "What all reports together can reveal at most; with `longitudinal` memoize, all "
                "reports of one memo."
            ),
            "window": {"enum": ["day", "week", "month"]},
            "answer": {
                "enum": ["at_close", "at_once"],
                "description": "When a device reports: after its window has ended, or as soon as "
                "the window has its first value.",
            },
            "sample_rate": _positive("The share of windows in which a device reports.", maximum=1),
            "one_in": {
                "type": ["integer", "null"],
                "minimum": 2,
                "description": "If a number, a device reports in one of so many windows, in place "
                "of `sample_rate`: the groups of devices take turns.",
            },
            "longitudinal": {
                "enum": ["fresh", "memoize"],
                "description": "Whether each report is drawn anew, or is fresh noise on a memo.",
            },
            "expires": _text(format="date"),
            "scheme": _text("The fingerprint of the scheme in force."),
            "definition": {
                "type": "object",
                "description": "The scheme: its mechanism with all parameters.",
            },
            "reported_by": _text(
                "The pair that devices report in place of the metric: what is revealed is what "
                "the pair declares."
            ),
        },
        "reported_by",
        closed=False,
    ),
    "Status": _object(
        "What a probe is told.",
        {
            "status": {"enum": ["ok", "ready"]},
            "detail": _text("What an operator should know."),
            "mistakes": _list({"type": "string"}, "Why the registry was not reloaded."),
        },
        "detail",
        "mistakes",
    ),
    "Problem": _object(
        "RFC 9457. Nothing of the batch was counted, as far as the sender knows; where it may be "
        "sent again, the same id keeps it from being counted twice.",
        {
            "type": {
                "enum": [_PREFIX + code for code in PROBLEMS],
                "description": "`x-problems` says what each of them means.",
            },
            "title": _text(),
            "status": {"type": "integer"},
            "detail": _text("What to do."),
        },
    ),
}


def _header(description: str, schema: Json) -> Json:
    return {"description": description, "required": True, "schema": schema}


_RETRY_AFTER = _header("Seconds to wait before the same request may succeed.", _count("", 1))
_AUTHENTICATE = _header("How to send a key.", _text())
_ETAG = _header("Changes with what is described.", _text())
_HEADERS = {
    401: {"WWW-Authenticate": _AUTHENTICATE},
    429: {"Retry-After": _RETRY_AFTER},
    503: {"Retry-After": _RETRY_AFTER},
}


def _problems(*codes: str) -> Json:
    """The responses of an operation that are problems: these, and those of every path."""
    statuses: dict[int, list[str]] = {}
    for code, problem in PROBLEMS.items():
        if code in codes or code in _ANYWHERE:
            statuses.setdefault(problem.status, []).append(code)
    return {
        str(status): {
            "description": " ".join(f"`{code}`: {PROBLEMS[code].meaning}" for code in each),
            **({"headers": _HEADERS[status]} if status in _HEADERS else {}),
            "content": {
                "application/problem+json": {
                    "schema": {
                        "allOf": [
                            _ref("Problem"),
                            {
                                "properties": {
                                    "status": {"const": status},
                                    "type": {"enum": [_PREFIX + code for code in each]},
                                }
                            },
                        ]
                    }
                }
            },
        }
        for status, each in statuses.items()
    }


def _good(description: str, schema: Json, **more: Any) -> Json:
    return {"description": description, "content": {"application/json": {"schema": schema}}, **more}


def _operation(name: str, summary: str, responses: Json, *codes: str, **more: Any) -> Json:
    return {
        "operationId": name,
        "summary": summary,
        **more,
        "responses": {**responses, **_problems(*codes)},
    }


def _document(name: str, summary: str, schema: Json) -> Json:
    """A document that is the same for everyone, with an ETag."""
    asked = {
        "name": "If-None-Match",
        "in": "header",
        "description": "The `ETag` of an earlier response.",
        "schema": _text(),
    }
    headers = {"ETag": _ETAG}
    unchanged = {"description": "Nothing has changed since; no body.", "headers": headers}
    responses = {"200": _good("The document.", schema, headers=headers), "304": unchanged}
    return {"get": _operation(name, summary, responses, parameters=[asked])}


_SEND = _operation(
    "sendBatch",
    "Send one batch of reports.",
    {"202": _good("All that could be counted of the batch is in the store.", _ref("Receipt"))},
    *(code for code in PROBLEMS if code not in ("http-404", "http-405")),
    description="A batch is counted once. One that got no response is sent again, the same bytes "
    "under the same id, until it is: an id is remembered for as long as any window of its batch "
    "accepts reports. The response comes after the reports are in the store, durably. A web page "
    "can send the JSON as `text/plain`, for which browsers ask no leave beforehand "
    "(`navigator.sendBeacon`); the collector then checks the page's origin itself.",
    security=[{}, {"bearer": []}, {"key": []}, {"query": []}],
    parameters=[
        {
            "name": "Content-Encoding",
            "in": "header",
            "description": "How the body is compressed; the limits hold before and after.",
            "schema": _text(enum=["gzip", "identity"]),
        }
    ],
    requestBody={
        "required": True,
        "content": {
            "application/json": {"schema": _ref("Batch")},
            "text/plain": {"schema": _ref("Text")},
        },
    },
)

_PREFLIGHT = _operation(
    "preflight",
    "Which origins, methods and headers a page may use (CORS).",
    {
        "200": {
            "description": "The methods of this path; no body.",
            "headers": {"Allow": _header("The methods.", _text())},
        }
    },
    description="The `Access-Control-*` headers are there for the origins that the operator has "
    "named.",
    security=[{}],
)

_PATHS: Json = {
    "/v1/reports": {"post": _SEND, "options": _PREFLIGHT},
    "/v1/registry": _document(
        "readRegistry",
        "What is asked: every metric, for devices and for everyone who wants to know.",
        _ref("Registry"),
    ),
    "/v1/openapi.json": _document(
        "readDescription",
        "This document.",
        {"type": "object", "required": ["openapi", "info", "paths"]},
    ),
    "/healthz": {
        "get": _operation(
            "alive", "Whether the process responds.", {"200": _good("It does.", _ref("Status"))}
        )
    },
    "/readyz": {
        "get": _operation(
            "ready",
            "Whether the store can take a commit now.",
            {"200": _good("It can.", _ref("Status"))},
            *("store-refused", "store-unavailable"),
        )
    },
    "/metrics": {
        "get": {
            "operationId": "figures",
            "summary": "Figures for Prometheus, over all processes.",
            "responses": {
                "200": {
                    "description": "Prometheus's text format, or OpenMetrics where that is asked "
                    "for.",
                    "content": {
                        "text/plain": {"schema": _text()},
                        "application/openmetrics-text": {"schema": _text()},
                    },
                }
            },
        },
    },
}

_KEYS: Json = {
    "bearer": {
        "type": "http",
        "scheme": "bearer",
        "description": "An ingest key, where the operator asks for one.",
    },
    "key": {
        "type": "apiKey",
        "in": "header",
        "name": "X-Deniable-Key",
        "description": "The same, in a header of its own.",
    },
    "query": {
        "type": "apiKey",
        "in": "query",
        "name": "key",
        "description": "The same, for a beacon, which has no headers of the page's choice. It "
        "counts only where neither header is sent.",
    },
}


@cache
def description(metrics_bind: str = "127.0.0.1:9464") -> Json:
    """The whole document, of a collector that listens there for Prometheus; "": nowhere."""
    settings = {name: (default, meaning) for name, default, meaning in Settings.table()}
    limits = {f"DENIABLE_{name}": settings[f"DENIABLE_{name}"] for name in _LIMITS}
    private = {
        "url": f"http://{metrics_bind}",
        "description": "DENIABLE_METRICS_BIND alone; the public address responds with 404.",
    }
    paths = {
        path: {"servers": [private], **item} if path == "/metrics" else item
        for path, item in _PATHS.items()
        if metrics_bind or path != "/metrics"
    }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "deniable collector",
            "version": "1",
            "summary": "Takes randomized reports, keeps their sums.",
            "description": "Public and write-only. A device or a relay sends batches of "
            "randomized reports; the collector adds them up and keeps nothing else. "
            "docs/reference/protocol.md tells the same in prose, and the vectors under "
            "client/vectors/ are the last word on bodies. Every response carries the security "
            "headers `Cache-Control`, `Content-Security-Policy`, `Referrer-Policy` and "
            "`X-Content-Type-Options`.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "x-limits": {
            name: {"default": default, "meaning": meaning}
            for name, (default, meaning) in limits.items()
        },
        "x-problems": {
            code: {"status": each.status, "meaning": each.meaning}
            for code, each in PROBLEMS.items()
        },
        "paths": paths,
        "components": {"securitySchemes": _KEYS, "schemas": _SCHEMAS},
    }

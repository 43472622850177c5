"""The collector's HTTP is what its OpenAPI document says: each route, response, code and limit."""

from __future__ import annotations

import gzip
import hashlib
import json
import urllib.request
from contextlib import closing
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from tests.collector.conftest import METRICS, SocketClient, collecting

from deniable import Registry
from deniable_collector.batches.batch import NAMED, REASONS
from deniable_collector.collector import Collector
from deniable_collector.documents import description
from deniable_collector.inherited import Inherited
from deniable_collector.refusals import PROBLEMS
from deniable_collector.settings import Settings
from deniable_collector.stores import open_store

DOCUMENT: dict[str, Any] = json.loads(json.dumps(description()))
SERVED: dict[str, Any] = json.loads(json.dumps(description("")))
"""What a collector serves that has no address for Prometheus."""
VECTORS = Path(__file__).parents[2] / "client" / "vectors" / "wire.json"
PRIVATE = "/metrics"
"""Described with the address that it has for itself."""

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]


def operations():
    for path, item in DOCUMENT["paths"].items():
        for method in item.keys() & {"get", "post", "options", "put", "delete", "head", "patch"}:
            yield path, method, item[method]


def test_every_problem_has_a_vector():
    """The responses that devices are tested with hold each problem of the collector."""
    cases = json.loads(VECTORS.read_text(encoding="utf-8"))["answers"]["problems"]
    known = {code: each.status for code, each in PROBLEMS.items()}
    assert {each["why"]: each["status"] for each in cases if each["why"] in known} == known


def test_every_route_is_described_and_no_other(tmp_path):
    """The paths and methods are those of the app, and /metrics at its own address."""
    with closing(open_store(Settings(store=f"sqlite:///{tmp_path / 'store.db'}"))) as store:
        app = Collector(Inherited(Settings(), Registry.parse(METRICS)), store)
    routes = {(path.decode(), "get") for path in app.pages}
    described = {(path, method) for path, method, _ in operations()}
    reports = {("/v1/reports", "post"), ("/v1/reports", "options")}
    assert described == routes | {(PRIVATE, "get")} | reports
    assert DOCUMENT["paths"][PRIVATE]["servers"]


def test_a_batch_may_meet_every_problem_but_a_wrong_path():
    """Each code stands at its status in the responses to a batch, and in the words of it."""
    responses = DOCUMENT["paths"]["/v1/reports"]["post"]["responses"]
    for code, problem in PROBLEMS.items():
        if code not in ("http-404", "http-405"):
            assert f"`{code}`: {problem.meaning}" in responses[str(problem.status)]["description"]
    limits = {name for name, _, _ in Settings.table() if "_MAX_" in name}
    assert limits <= DOCUMENT["x-limits"].keys()
    assert DOCUMENT["components"]["schemas"]["Receipt"]["properties"]["rejected"]["maxItems"] == (
        NAMED
    )
    reasons = DOCUMENT["components"]["schemas"]["Reason"]["oneOf"]
    assert [each["const"] for each in reasons] == [*REASONS]


def response_schema(path, method, status, content_type):
    """The schema of a response, which the document must have; None for one without a body."""
    response = DOCUMENT["paths"][path][method]["responses"][str(status)]
    if "content" not in response:
        return None
    schema = response["content"][content_type.partition(";")[0]]["schema"]
    return {**schema, "components": DOCUMENT["components"]}


KEY = "first-key-of-the-app"
BATCH = b'{"batch": "%s", "reports": [%s]}'
ID = b"0" * 32
JSON = {"Content-Type": "application/json", "X-Deniable-Key": KEY}

REQUESTS: list[tuple[str, str, bytes, dict[str, str], int]] = [
    ("/v1/reports", "POST", BATCH % (ID, b""), JSON, 202),
    ("/v1/reports", "POST", BATCH % (ID, b"{}, 7, {}"), JSON, 202),
    ("/v1/reports", "POST", gzip.compress(BATCH % (ID, b"")), {**JSON, "Content-Encoding": "gzip"},
     202),
    ("/v1/reports", "POST", BATCH % (ID, b""), {**JSON, "Content-Type": "text/plain"}, 202),
    ("/v1/reports", "POST", b"{", JSON, 400),
    ("/v1/reports", "POST", BATCH % (b"x", b""), JSON, 400),
    ("/v1/reports", "POST", b'{"batch": "%s"}' % ID, JSON, 400),
    ("/v1/reports", "POST", b"x", {**JSON, "Content-Encoding": "gzip"}, 400),
    ("/v1/reports", "POST", b"{}", {"Content-Type": "application/json"}, 401),
    ("/v1/reports", "POST", b"{}",
     {**JSON, "Content-Type": "text/plain", "Origin": "https://evil.example"}, 403),
    ("/v1/reports", "POST", BATCH % (ID, b"{}," * 20 + b"{}"), JSON, 413),
    ("/v1/reports", "POST", b" " * 5_000, JSON, 413),
    ("/v1/reports", "POST", b"{}", {**JSON, "Content-Type": "text/html"}, 415),
    ("/v1/reports", "POST", b"{}", {**JSON, "Content-Encoding": "br"}, 415),
    ("/v1/reports", "POST", b"{}", {**JSON, "X-Long": "x" * 20_000}, 431),
    ("/v1/reports", "OPTIONS", b"", {}, 200),
    ("/v1/registry", "GET", b"", {}, 200),
    ("/v1/openapi.json", "GET", b"", {}, 200),
    ("/healthz", "GET", b"", {}, 200),
    ("/readyz", "GET", b"", {}, 200),
]  # fmt: skip


def test_each_response_is_one_that_the_document_has(tmp_path):
    """Requests of every kind get the status that they should, with a body and the headers that the
    document gives to that status, on the path that serves them."""
    hashed = (hashlib.sha256(KEY.encode()).digest(),)
    limits = Settings(rate="off", max_body=4096, max_reports=20, ingest_keys=hashed)
    with closing(open_store(Settings(store=f"sqlite:///{tmp_path / 'store.db'}"))) as store:
        client = SocketClient(Collector(Inherited(limits, Registry.parse(METRICS)), store))
        with closing(client):
            for path, method, data, headers, status in REQUESTS:
                found = client.open(path, method=method, data=data, headers=headers)
                assert found.status_code == status, (path, headers)
                operation = DOCUMENT["paths"][path][method.lower()]
                needed = operation["responses"][str(status)].get("headers", {})
                assert all(name in found.headers for name in needed)
                schema = response_schema(path, method.lower(), status, found.content_type or "")
                if schema is not None:
                    jsonschema_rs.validate(schema, found.json)
            again = {"If-None-Match": client.get("/v1/registry").headers["ETag"]}
            unchanged = client.get("/v1/registry", headers=again)
            assert (unchanged.status_code, unchanged.data) == (304, b"")
            assert client.get("/v1/openapi.json").json == SERVED


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """A running collector."""
    folder = tmp_path_factory.mktemp("collector")
    with collecting(folder, DENIABLE_METRICS_BIND="") as collector:
        yield collector.address


@pytest.mark.campaign
def test_responses_conform(address):
    """Requests that schemathesis makes of the document, good ones and bad ones (the same in each
    run), meet no 5xx, and every response is one that the document describes."""
    with urllib.request.urlopen(f"{address}/v1/openapi.json", timeout=60) as response:
        served = json.load(response)
    assert served == SERVED
    schema = schemathesis.openapi.from_dict(served)
    seen = set()
    for path, method, operation in operations():
        if path == PRIVATE:
            continue
        modes = [schemathesis.GenerationMode.POSITIVE]
        if "requestBody" in operation:
            # Only what takes something can be given what is wrong.
            modes.append(schemathesis.GenerationMode.NEGATIVE)
        for mode in modes:

            @given(case=schema[path][method.upper()].as_strategy(generation_mode=mode))
            @settings(
                max_examples=100,
                derandomize=True,
                deadline=None,
                database=None,
                suppress_health_check=list(HealthCheck),
            )
            def conforms(case):
                answer = case.call(base_url=address)
                seen.add(answer.status_code)
                case.validate_response(answer, checks=CHECKS)

            conforms()
    assert {200, 202, 400} <= seen

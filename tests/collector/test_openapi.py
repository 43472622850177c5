"""The OpenAPI file is what the collector does: every route, response, code, reason and limit."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

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

import deniable_collector
from deniable_collector.app import create_app
from deniable_collector.batches.batch import REASONS
from deniable_collector.settings import Settings

SOURCES = Path(deniable_collector.__file__).parent
DOCUMENT: dict[str, Any] = json.loads((SOURCES / "openapi.json").read_text(encoding="utf-8"))
SCHEMAS = DOCUMENT["components"]["schemas"]
PRIVATE = "/metrics"
"""Described with the address that it has for itself."""

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]


def operations() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, item in DOCUMENT["paths"].items():
        for method in item.keys() & {"get", "post", "options", "put", "delete", "head", "patch"}:
            yield path, method, item[method]


def test_every_problem_has_a_vector():
    """The responses that devices are tested with hold each problem of the collector."""
    path = Path(__file__).parents[2] / "client" / "vectors" / "wire.json"
    cases = json.loads(path.read_text(encoding="utf-8"))["answers"]["problems"]
    known = DOCUMENT["x-problems"]
    assert {case["why"]: case["status"] for case in cases if case["why"] in known} == {
        code: each["status"] for code, each in known.items()
    }


def test_every_route_is_described_and_no_other(registry, store):
    """The paths and methods are those of the app, and /metrics at its own address."""
    app = create_app(Settings(), store, registry)
    routes = {
        (rule.rule, method.lower())
        for rule in app.url_map.iter_rules()
        for method in rule.methods - {"HEAD", "OPTIONS"}
    }
    described = {(path, method) for path, method, _ in operations()}
    assert described == routes | {(PRIVATE, "get"), ("/v1/reports", "options")}
    assert DOCUMENT["paths"][PRIVATE]["servers"]


def test_every_problem_is_described_and_no_other():
    """The codes are those in the code, each with its status, and each of an operation's responses
    names the codes of its status."""
    # A gateway has a resource of another standard, which docs/two-hops.md describes.
    files = (file for file in SOURCES.rglob("*.py") if file.parent.name != "oblivious")
    sources = "\n".join(file.read_text(encoding="utf-8") for file in files)
    calls = re.findall(r"(?:IntakeError|problem)\(\s*\"([a-z0-9-]+)\",\s*(\d{3})", sources)
    told = {code: int(status) for code, status in calls} | {"http-404": 404, "http-405": 405}
    assert {code: each["status"] for code, each in DOCUMENT["x-problems"].items()} == told
    names = [f"urn:deniable:problem:{code}" for code in DOCUMENT["x-problems"]]
    assert SCHEMAS["Problem"]["properties"]["type"]["enum"] == names
    sent = set()
    for _, _, operation in operations():
        for status, response in operation["responses"].items():
            for content in response.get("content", {}).values():
                for part in content["schema"].get("allOf", [])[1:]:
                    types = part["properties"]["type"]["enum"]
                    codes = {each.removeprefix("urn:deniable:problem:") for each in types}
                    assert {told[code] for code in codes} == {int(status)}
                    assert all(f"`{code}`" in response["description"] for code in codes)
                    sent |= codes
    assert sent == told.keys() - {"http-404", "http-405"}


def test_every_reason_is_described():
    """The reasons for rejecting a report are the list in the code, in its order."""
    assert tuple(each["const"] for each in SCHEMAS["Reason"]["oneOf"]) == REASONS


def test_limits_are_those_in_force():
    """Every limit is named by its variable, with its default and meaning in the settings."""
    known = {name: (default, meaning) for name, default, meaning in Settings.table()}
    limits = {
        name: (each["default"], each["meaning"]) for name, each in DOCUMENT["x-limits"].items()
    }
    assert limits == {name: known[name] for name in limits}
    assert {name for name in known if "_MAX_" in name} <= limits.keys()


def test_it_is_served(registry, store, serve):
    """GET /v1/openapi.json is the file in the package, sent only to those who lack it."""
    client = serve(create_app(Settings(), store, registry))
    answer = client.get("/v1/openapi.json")
    assert answer.json == DOCUMENT
    again = client.get("/v1/openapi.json", headers={"If-None-Match": answer.headers["ETag"]})
    assert (again.status_code, again.data) == (304, b"")


def test_the_page_points_to_it():
    """docs/protocol.md names the path, for those who write a client."""
    page = Path(__file__).parents[2] / "docs" / "protocol.md"
    assert "/v1/openapi.json" in page.read_text(encoding="utf-8")


@pytest.fixture
def plain_way(tmp_path, metrics) -> Iterator[str]:
    """The Flask route under gunicorn's threads."""
    (tmp_path / "metrics.toml").write_text(metrics)
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "gunicorn", "-c", "python:deniable_collector.gunicorn_conf"),
            *("-k", "deniable_collector.worker.ThreadWorker", "deniable_collector.wsgi:app"),
        ],
        env={"DENIABLE_BIND": "127.0.0.1:0", "DENIABLE_WORKERS": "1"},
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        yield process.stdout.readline().rsplit(" ", 1)[1].strip()
    finally:
        process.terminate()
        process.communicate(timeout=60)


@pytest.fixture(params=["asgi", "wsgi"])
def address(request, new_collector) -> str:
    """A running collector, on each route."""
    if request.param == "wsgi":
        return request.getfixturevalue("plain_way")
    return new_collector(DENIABLE_WORKERS="1").address


def test_responses_conform(address):
    """Requests that schemathesis makes of the file, good ones and bad ones (the same in each
    run), meet no 5xx on either route, and every response is one that the file describes."""
    with urllib.request.urlopen(f"{address}/v1/openapi.json", timeout=30) as response:
        schema = schemathesis.openapi.from_dict(json.load(response))
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
    assert {200, 202, 400, 415} <= seen

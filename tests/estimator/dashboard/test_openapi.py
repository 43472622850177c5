"""The read API of each kind of metric is what its description says; what it refuses, and why."""

from __future__ import annotations

import copy
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
from tests.contract.questions import QUESTIONS

from deniable_estimator.dashboard.access.tokens import SCOPES

from .conftest import TOKEN

HEADERS = {"Authorization": f"Bearer {TOKEN}", "Accept-Encoding": "identity"}
NOT_HERE = ("odd ", "another level", "mistakes of readers", "addresses of another kind")
ASKED = [
    line.removeprefix("GET ")
    for name, lines in QUESTIONS.items()
    for line in lines
    if not name.startswith(NOT_HERE)
    if line.startswith("GET /api/v1/") and "csv" not in line and "openapi" not in line
]
ASKED += [
    f"/api/v1/metrics/{each}"
    for each in (
        "plugin/finds/trend?find=git",
        "mode_by_channel/trend",
        "mode_by_channel/comparison",
        "load_time/comparison",
    )
]
"""Requests of the contract, of every address and kind of metric."""


@pytest.fixture(scope="module")
def app(golden):
    return golden.app


@pytest.fixture(scope="module")
def document(app):
    """The description, which is served without a token."""
    answer = app.test_client().get("/api/v1/openapi.json")
    assert answer.status_code == 200
    found: dict[str, Any] = answer.json
    return found


def test_every_route_is_described_and_no_other(app, document):
    """With all scopes that tokens can have."""
    routes = {
        (rule.rule.replace("<", "{").replace(">", "}"), method.lower())
        for rule in app.url_map.iter_rules()
        if rule.endpoint.startswith("api.") and rule.endpoint not in ("api.nowhere", "api.openapi")
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
    }
    operations = {
        (path, method): each
        for path, methods in document["paths"].items()
        for method, each in methods.items()
    }
    assert set(operations) == routes
    asked = {scope for each in operations.values() for scope in each["security"][0]["bearer"]}
    assert asked == set(SCOPES)
    assert len({each["operationId"] for each in operations.values()}) == len(operations)


def closed(schema):
    """The schema, which now takes no key that it does not have."""
    if isinstance(schema, dict):
        found = {name: closed(each) for name, each in schema.items()}
        return {**found, "additionalProperties": False} if "required" in schema else found
    return [closed(each) for each in schema] if isinstance(schema, list) else schema


def test_responses_hold_what_is_described(golden, document):
    """Every key with its type, and no other key. To ask for all of it takes some seconds."""
    schemas = closed(copy.deepcopy(document["components"]))
    routes = golden.app.url_map.bind("deniable.acme.example")
    seen, wrong = set(), {}
    for line in ASKED:
        answer = golden.response("GET", line, golden.folder)
        if answer.status_code != 200:
            continue
        rule, _ = routes.match(line.partition("?")[0], "GET", return_rule=True)
        path = rule.rule.replace("<", "{").replace(">", "}")
        seen.add(path)
        described = document["paths"][path]["get"]["responses"]["200"]
        schema = described["content"]["application/json"]["schema"]
        # An answer by segments is an answer, with more.
        components = document["components"] if path.endswith("/segments") else schemas
        validator = jsonschema_rs.Draft202012Validator({**schema, "components": components})
        found = [f"{each.instance_path}: {each}" for each in validator.iter_errors(answer.json)]
        if found:
            wrong[line] = found
    assert wrong == {}
    assert seen == document["paths"].keys()


@pytest.mark.campaign
def test_whatever_is_asked_is_answered_as_described(app):
    """Of 20 made-up requests of each operation, always the same, no response is a failure, and each
    has the status, type and shape that the description gives it; of metrics that there are, mostly.
    """
    made, *_ = app.test_client().get("/api/v1/releases", headers=HEADERS).json["releases"]
    described = schemathesis.openapi.from_wsgi("/api/v1/openapi.json", app)
    checks = [
        not_a_server_error,
        status_code_conformance,
        content_type_conformance,
        response_headers_conformance,
        response_schema_conformance,
    ]
    for result in described.get_all_operations():
        statuses = asked_of(result.ok(), made["id"], checks)
        assert statuses & {200, 409}, f"no request of {result.ok().path} was understood"


def asked_of(operation, release_id, checks):
    """The statuses of made-up requests, each of which is checked."""
    statuses = set()

    def check(case):
        if len(case.path_parameters.get("name", "")) > 1:
            metric = "plugin" if operation.path.endswith("/finds") else "browser"
            case.path_parameters["name"] = "theme" if "/segments" in operation.path else metric
        if len(case.query.get("by", ())) > 1 and "/segments" in operation.path:
            case.query["by"] = ["platform"]
        if len(case.path_parameters.get("release", "")) > 1:
            case.path_parameters["release"] = release_id
        if len(case.query.get("metric", ())) > 1 and "/releases" in operation.path:
            case.query["metric"] = ["browser"]
        while (answer := case.call(headers=HEADERS)).status_code == 503:
            pass  # what takes long on a busy machine is asked for again
        case.validate_response(answer, checks=checks)
        statuses.add(answer.status_code)

    # A busy machine is given fewer examples: then more are asked for.
    for examples in (20, 100):
        settings(
            max_examples=examples,
            derandomize=True,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        )(given(case=operation.as_strategy())(check))()
        if statuses & {200, 409}:
            break
    return statuses

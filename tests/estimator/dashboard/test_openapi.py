"""The read API of each kind of metric is what its description says; what it refuses, and why."""

from __future__ import annotations

import copy
from typing import Any

import jsonschema_rs
import numpy as np
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
from tests.registries import tables

from deniable import Registry
from deniable_collector.stores import open_store
from deniable_collector.upkeep.keeper import SETTLED
from deniable_estimator.asking.query import Query
from deniable_estimator.dashboard.access.tokens import SCOPES
from deniable_estimator.development.crowd import fold_tally
from deniable_estimator.planning.retention_crowd import Life, tallies_of
from deniable_estimator.releasing.ledger import ReleaseLedger, listed_releases
from deniable_estimator.releasing.making import release
from deniable_estimator.releasing.prepared import ReleaseRequest
from deniable_estimator.releasing.preparing import prepare

from .conftest import NOW, REGISTRY, SEGMENTED, TOKEN, dashboard_of, fill, fill_drawn, fill_numbers

HEADERS = {"Authorization": f"Bearer {TOKEN}", "Accept-Encoding": "identity"}
KINDS = tables(
    load={"type": "number", "low": 0.01, "high": 100, "unit": "s", "scale": "log",
          "ask": "distribution"},
    tabs={"type": "number", "low": 0, "high": 50, "ask": "mean"},
    both={"type": "pair", "of": ["dark_mode", "silent"], "lifetime_epsilon": 100.0},
    back={"type": "retention", "window": "day", "ages": 2, "lifetime_epsilon": 4.0},
    kept={"type": "boolean", "longitudinal": "memoize", "epsilon": 1.0, "lifetime_epsilon": 2.0},
    terms={"type": "discovery", "epsilon": 4.0, "lifetime_epsilon": 40.0, "max_length": 4},
)  # fmt: skip
"""More of the registry: a metric of each kind."""

M = "/api/v1/metrics"
PLAN = "epsilon=1&devices=100000"
GOOD = {
    M: "", "/api/v1/overview": "", f"{M}/load": "", f"{M}/both": "", f"{M}/browser": "",
    f"{M}/browser/estimate": "", f"{M}/load/estimate": "below=2", f"{M}/tabs/estimate": "",
    f"{M}/both/estimate": "", f"{M}/theme/segments": "by=platform",
    f"{M}/theme/segments/trend": "by=platform", f"{M}/browser/anomalies": "",
    f"{M}/browser/trend": "by=day", f"{M}/load/trend": "by=day", f"{M}/both/trend": "by=day",
    f"{M}/back/estimate": "", f"{M}/back/trend": "by=day",
    f"{M}/browser/comparison": "from=2026-11-20&before_from=2026-11-10&before_to=2026-11-10",
    f"{M}/load/comparison": "from=2026-11-20&before_from=2026-11-10&before_to=2026-11-10",
    "/api/v1/annotations": "", "/api/v1/releases": "", "/api/v1/releases/RELEASE": "",
    f"{M}/both/comparison": "from=2026-11-20&before_from=2026-11-10&before_to=2026-11-10",
    f"{M}/browser/privacy": "", f"{M}/kept/privacy": "", "/api/v1/privacy": "",
    f"{M}/browser/privacy/outsider": "", "/api/v1/plan": f"size=10&{PLAN}",
    "/api/v1/plan/number": f"low=0&high=10&ask=both&{PLAN}",
    "/api/v1/plan/pair": f"rows=2&columns=2&{PLAN}",
    "/api/v1/plan/discovery": PLAN, "/api/v1/plan/retention": f"lifetime_epsilon=4&{PLAN}",
    "/api/v1/plan/lifetime": "lifetime_epsilon=8&years=2&devices=100000",
}  # fmt: skip
"""Requests that every address answers."""


@pytest.fixture(scope="module")
def registry():
    return Registry.parse(REGISTRY + SEGMENTED + KINDS)


@pytest.fixture(scope="module")
def kinds(registry, tmp_path_factory):
    """Two days of reports of each kind."""
    folder = tmp_path_factory.mktemp("kinds")
    store = open_store(f"sqlite:///{folder}/tallies.db")
    store.publish({metric.name: [metric.scheme] for metric in registry})
    for day in ("2026-11-10", "2026-11-20"):
        fill(store, registry, "browser", [0.25, 0.74, 0.01, 0.0], 20_000, day)
        fill(store, registry, "theme", [0.25, 0.75], 20_000, day)
        fill(store, registry, "theme", [0.5, 0.5], 20_000, day, 1)
        fill_numbers(store, registry, "load", [0.5, 1.0, 4.0] * 5_000, day)
        fill_numbers(store, registry, "tabs", [3.0, 8.0] * 5_000, day)
        fill_drawn(store, registry, "both", {0: 9_000, 1: 3_000, 2: 2_000, 3: 6_000}, day)
    back, days = registry["back"], ["2026-11-18", "2026-11-19", "2026-11-20"]
    lives = [Life.steady(50_000)] * len(days)
    for tally, _ in tallies_of(back, days, lives, np.random.default_rng(1), older=40_000):
        fold_tally(store, back, tally, 0, NOW)
    yield store
    store.close()


@pytest.fixture(scope="module")
def ledger(kinds, registry, tmp_path_factory):
    """A ledger with one release."""
    path = tmp_path_factory.mktemp("ledger") / "releases.sqlite"
    kept = ReleaseLedger(path, 1e-6, None)
    later = NOW + SETTLED + 86_400
    release(prepare(kinds, registry, ReleaseRequest(Query("browser")), later), kept, now=later)
    kept.close()
    return path


@pytest.fixture(scope="module")
def app(kinds, registry, ledger, tmp_path_factory):
    """A dashboard with everything that the API can show."""
    data = tmp_path_factory.mktemp("data")
    (data / "annotations.toml").write_text(
        'schema = 1\n[[annotations]]\ndate = 2026-11-20\ntext = "Release"\n'
    )
    chosen = {"releases": str(ledger), "data": str(data)}
    return dashboard_of(kinds, registry, **chosen)


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


def mistakes(app, document, path, query, release):
    """What is otherwise in a response than the description says: a key, or its type."""
    client, at = app.test_client(), path.replace("RELEASE", release)
    while (answer := client.get(f"{at}?{query}", headers=HEADERS)).status_code == 503:
        pass
    assert answer.status_code == 200, answer.text
    template = path.replace("RELEASE", "{release}")
    for name in ("browser", "theme", "load", "tabs", "both", "kept", "terms", "back"):
        template = template.replace(f"/metrics/{name}", "/metrics/{name}")
    response = document["paths"][template]["get"]["responses"]["200"]
    schema = response["content"]["application/json"]["schema"]
    components = document["components"]
    if template != f"{M}/{{name}}/segments":  # An answer by segments is an answer, with more.
        components = closed(copy.deepcopy(components))
    validator = jsonschema_rs.Draft202012Validator({**schema, "components": components})
    found = validator.iter_errors(answer.json)
    return [f"{each.instance_path}: {each.message}" for each in found]


@pytest.mark.parametrize("path", GOOD)
def test_responses_hold_what_is_described(app, document, ledger, path):
    """Every key with its type, and no other key."""
    (made,) = listed_releases(ledger, 1)
    assert mistakes(app, document, path, GOOD[path], made.id) == []


@pytest.mark.campaign
def test_finds_hold_what_is_described(app, kinds, registry, document):
    """The same of a discovery, which takes a process of its own to decode."""
    fill_drawn(kinds, registry, "terms", {"ab": 40_000, "cd": 20_000})
    for path, query in (("finds", ""), ("finds/trend", "find=ab&by=day")):
        assert mistakes(app, document, f"{M}/terms/{path}", query, "") == []


@pytest.mark.campaign
def test_whatever_is_asked_is_answered_as_described(app, ledger):
    """Of 20 made-up requests of each operation, always the same, no response is a failure, and each
    has the status, type and shape that the description gives it; of metrics that there are, mostly.
    """
    (made,) = listed_releases(ledger, 1)
    described = schemathesis.openapi.from_wsgi("/api/v1/openapi.json", app)
    checks = [
        not_a_server_error,
        status_code_conformance,
        content_type_conformance,
        response_headers_conformance,
        response_schema_conformance,
    ]
    for result in described.get_all_operations():
        statuses = asked_of(result.ok(), made.id, checks)
        assert statuses & {200, 409}, f"no request of {result.ok().path} was understood"


def asked_of(operation, release_id, checks):
    """The statuses of made-up requests, each of which is checked."""
    statuses = set()

    def check(case):
        if len(case.path_parameters.get("name", "")) > 1:
            metric = "terms" if operation.path.endswith("/finds") else "browser"
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

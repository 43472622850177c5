"""The description of the read API is the API: its routes, its parameters, its responses."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
import schemathesis
from flask import Flask
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from deniable import Registry
from deniable_collector.stores import Store
from deniable_collector.upkeep.retention import SETTLED
from deniable_estimator.dashboard import api, create_app
from deniable_estimator.dashboard.access.tokens import SCOPES
from deniable_estimator.dashboard.api import parameters
from deniable_estimator.dashboard.settings import DashboardSettings
from deniable_estimator.releasing.ledger import ReleaseLedger
from deniable_estimator.releasing.looking import listed_releases
from deniable_estimator.releasing.making import release
from deniable_estimator.releasing.preparing import prepare
from deniable_estimator.releasing.request import ReleaseRequest

from .conftest import NOW, REGISTRY, SEGMENTED, TOKEN, fill

FILE = Path(api.__file__).with_name("openapi.json")
DOCUMENT: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
HEADERS = {"Authorization": f"Bearer {TOKEN}", "Accept-Encoding": "identity"}
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]

PARAMETERS = {
    "/api/v1/metrics": parameters.ListParameters,
    "/api/v1/overview": parameters.OverviewParameters,
    "/api/v1/metrics/{name}": parameters.DeclaredParameters,
    "/api/v1/metrics/{name}/estimate": parameters.EstimateParameters,
    "/api/v1/metrics/{name}/segments": parameters.SegmentsParameters,
    "/api/v1/metrics/{name}/segments/trend": parameters.SegmentsTrendParameters,
    "/api/v1/metrics/{name}/anomalies": parameters.AnomaliesParameters,
    "/api/v1/metrics/{name}/trend": parameters.TrendParameters,
    "/api/v1/metrics/{name}/comparison": parameters.ComparisonParameters,
    "/api/v1/metrics/{name}/finds": parameters.FindsParameters,
    "/api/v1/metrics/{name}/finds/trend": parameters.FindTrendParameters,
    "/api/v1/annotations": parameters.AnnotationParameters,
    "/api/v1/releases": parameters.ReleasesParameters,
    "/api/v1/releases/{release}": parameters.ReleaseParameters,
    "/api/v1/metrics/{name}/privacy": parameters.PrivacyParameters,
    "/api/v1/privacy": parameters.PrivacyParameters,
    "/api/v1/metrics/{name}/privacy/outsider": parameters.OutsiderParameters,
    "/api/v1/privacy/outsider": parameters.OutsiderParameters,
    "/api/v1/plan": parameters.PlanParameters,
    "/api/v1/plan/number": parameters.NumberPlanParameters,
    "/api/v1/plan/pair": parameters.PairPlanParameters,
    "/api/v1/plan/lifetime": parameters.LifetimePlanParameters,
}


@pytest.fixture
def registry() -> Registry:
    """The registry of the other tests, and a metric with segments."""
    return Registry.parse(REGISTRY + SEGMENTED)


@pytest.fixture
def ledger(store: Store, registry: Registry, tmp_path: Path) -> Path:
    """A ledger with one release."""
    path = tmp_path / "releases.sqlite"
    kept = ReleaseLedger(path, 1e-6, None)
    later = NOW + SETTLED + 86_400
    release(prepare(store, registry, ReleaseRequest("browser"), later), kept, now=later)
    kept.close()
    return path


@pytest.fixture
def app(store: Store, registry: Registry, ledger: Path) -> Flask:
    """A dashboard that shows the releases of the ledger."""
    settings = DashboardSettings(dashboard_token=TOKEN, releases=str(ledger))
    return create_app(settings, store=store, registry=registry, clock=lambda: NOW)


def resolved(part: dict[str, Any]) -> dict[str, Any]:
    """What a reference stands for, or the part itself."""
    if "$ref" not in part:
        return part
    found: Any = DOCUMENT
    for step in part["$ref"].removeprefix("#/").split("/"):
        found = found[step]
    return dict(found)


def test_it_is_served_without_a_token(app: Flask) -> None:
    """Whoever wants to write a client can read it first, and it is the file that is shipped."""
    answer = app.test_client().get("/api/v1/openapi.json")
    assert answer.status_code == 200
    assert answer.json == DOCUMENT


def test_every_route_is_described_and_no_other(app: Flask) -> None:
    """The paths and methods of the file are those of the application."""
    routes = {
        (re.sub(r"<(\w+)>", r"{\1}", rule.rule), method.lower())
        for rule in app.url_map.iter_rules()
        if rule.endpoint.startswith("api.") and rule.endpoint != "api.nowhere"
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
    }
    described = {(path, method) for path, each in DOCUMENT["paths"].items() for method in each}
    assert routes == described


@pytest.mark.parametrize("path", PARAMETERS)
def test_every_parameter_is_described_with_its_bounds(path: str) -> None:
    """Names, bounds, defaults and necessity are those that the code checks."""
    kind = PARAMETERS[path]
    schema = msgspec.json.schema(kind)
    expected = schema["$defs"][kind.__name__]["properties"]
    needed = set(schema["$defs"][kind.__name__].get("required", ()))
    for operation in DOCUMENT["paths"][path].values():
        listed = [resolved(each) for each in operation["parameters"]]
        query = {each["name"]: each for each in listed if each["in"] == "query"}
        assert query.keys() == expected.keys()
        assert {name for name, each in query.items() if each["required"]} == needed
        for name, each in query.items():
            checked = expected[name]
            options = checked.get("anyOf", [checked])
            bounds = {key: value for option in options for key, value in option.items()}
            for key in ("minimum", "maximum", "exclusiveMinimum", "maxItems"):
                assert each["schema"].get(key) == bounds.get(key), (name, key)
            if each["schema"].get("default") is not None:
                assert each["schema"]["default"] == checked["default"]


def test_every_scope_is_described() -> None:
    """The scopes that operations ask for are those that tokens can have."""
    asked = {
        scope
        for each in DOCUMENT["paths"].values()
        for operation in each.values()
        for option in operation["security"]
        for scope in option.get("bearer", ())
    }
    assert asked == set(SCOPES)


@pytest.mark.parametrize(
    ("path", "method"),
    [(path, method) for path, each in DOCUMENT["paths"].items() for method in each],
)
def test_responses_are_as_described(
    app: Flask, store: Store, registry: Registry, ledger: Path, path: str, method: str
) -> None:
    """Whatever is asked, no response is a failure, and each has the status, type and shape that
    the file gives it (20 made-up requests an operation, always the same; of metrics that there
    are, mostly)."""
    fill(store, registry, "browser", [0.25, 0.74, 0.01, 0.0], 20_000, "2026-11-10")
    fill(store, registry, "theme", [0.25, 0.75], 20_000, "2026-11-10")
    operation = schemathesis.openapi.from_wsgi("/api/v1/openapi.json", app)[path][method]
    (made,) = listed_releases(ledger, 1)
    statuses = set()

    def check(case: Any) -> None:
        if len(case.path_parameters.get("name", "")) > 1:
            case.path_parameters["name"] = "theme" if "/segments" in path else "browser"
        if len(case.query.get("by", ())) > 1 and "/segments" in path:
            case.query["by"] = ["platform"]
        if len(case.path_parameters.get("release", "")) > 1:
            case.path_parameters["release"] = made.id
        if len(case.query.get("metric", ())) > 1 and "/releases" in path:
            case.query["metric"] = ["browser"]
        answer = case.call(headers=HEADERS)
        case.validate_response(answer, checks=CHECKS)
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
    assert statuses & {200, 409}, "no request was understood, so little was tested"

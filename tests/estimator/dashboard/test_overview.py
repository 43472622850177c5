"""The overview: finding metrics, and what it warns of."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest
from flask.testing import FlaskClient

from deniable import Registry
from deniable_collector.stores import Store
from deniable_estimator.dashboard import create_app
from deniable_estimator.dashboard.settings import DashboardSettings

from .conftest import NOW, TOKEN, fill

REGISTRY = """
schema = 1
app = "example"
[defaults]
owner = "growth@acme.example"
expires = 2027-06-30

[metrics.dark_mode]
type = "boolean"
epsilon = 1.0
lifetime_epsilon = 8.0
description = "Is dark mode on?"
tags = ["settings", "look"]

[metrics.large_text]
type = "boolean"
epsilon = 1.0
lifetime_epsilon = 8.0
description = "Is the text large?"
owner = "access@acme.example"
tags = ["settings"]
devices = 500

[metrics.crash]
type = "boolean"
epsilon = 1.0
lifetime_epsilon = 8.0
description = "Did it <i>crash</i>?"
owner = "quality@acme.example"
expires = 2026-12-01
"""


def visit(store: Store, registry: Registry, now: float = NOW) -> FlaskClient:
    """A signed-in browser at that time."""
    store.publish({metric.name: [metric.scheme] for metric in registry})
    settings = DashboardSettings(dashboard_token=TOKEN)
    client = create_app(settings, store=store, registry=registry, clock=lambda: now).test_client()
    client.post("/login", data={"token": TOKEN})
    return client


@pytest.fixture
def registry() -> Registry:
    return Registry.parse(REGISTRY)


@pytest.fixture
def client(empty_store: Store, registry: Registry) -> FlaskClient:
    client = visit(empty_store, registry)
    fill(empty_store, registry, "dark_mode", [0.2, 0.8], 20_000)
    fill(empty_store, registry, "large_text", [0.5, 0.5], 10)
    return client


def shown(page: str) -> list[str]:
    return re.findall(r'<h2><a href="/metric/(\w+)', page)


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("", ["dark_mode", "large_text", "crash"]),
        ("q=TEXT", ["large_text"]),
        ("q=is+on", ["dark_mode"]),
        ("q=quality", ["crash"]),
        ("owner=growth@acme.example", ["dark_mode"]),
        ("tag=settings", ["dark_mode", "large_text"]),
        ("tag=settings&owner=access@acme.example&q=large", ["large_text"]),
        ("q=%3Cscript%3E", []),
    ],
)
def test_metrics_are_found(client: FlaskClient, query: str, names: list[str]) -> None:
    """Every word of a search must be somewhere in a metric; owner and tag must be those chosen."""
    page = client.get(f"/?{query}").text
    assert shown(page) == names
    assert ("No metric matches" in page) == (not names)
    assert "<script>" not in page
    assert ("Show all 3" in page) == bool(query)


def test_the_choices_are_those_of_the_registry(client: FlaskClient) -> None:
    """Owners and tags can be chosen, and what was chosen stays chosen."""
    page = client.get("/?tag=look").text
    assert "<option selected>look</option>" in page
    assert page.count("acme.example</option>") == 3
    assert "<i>crash" not in page


def test_the_overview_warns(client: FlaskClient) -> None:
    """Too few devices, nothing but noise and a near expiry are said; what is well is not."""
    page = client.get("/").text
    cards = dict(zip(shown(page), page.split('<li class="card metric')[1:], strict=True))
    assert "note" not in cards["dark_mode"]
    assert "Few devices are expected: " in cards["large_text"]
    assert "Nothing stands out" in cards["large_text"]
    assert "Expires on 2026-12-01" in cards["crash"]


def test_silence_is_noticed(empty_store: Store, registry: Registry) -> None:
    """A daily metric that has been silent for days says since when."""
    later = datetime(2026, 11, 26, tzinfo=UTC).timestamp()
    client = visit(empty_store, registry, later)
    fill(empty_store, registry, "dark_mode", [0.2, 0.8], 20_000)
    assert "No reports since 2026-11-20" in client.get("/").text
    soon = visit(empty_store, registry, NOW)
    assert "No reports since" not in soon.get("/").text


def test_an_anomalous_metric_is_marked(empty_store: Store, registry: Registry) -> None:
    """A tally that honest devices would not make carries a warning on its card; others none."""
    client = visit(empty_store, registry)
    fill(empty_store, registry, "dark_mode", [0.2, 0.8], 20_000)
    assert "Anomalous" not in client.get("/").text
    fill(empty_store, registry, "large_text", [1.3, -0.3], 20_000)
    page = client.get("/").text
    cards = dict(zip(shown(page), page.split('<li class="card metric')[1:], strict=True))
    assert "Anomalous" in cards["large_text"]
    assert "Anomalous" not in cards["dark_mode"]

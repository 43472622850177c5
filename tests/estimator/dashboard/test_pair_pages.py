"""Pages and API of pairs: the heat map in both directions, its words, files, and bad addresses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from flask.testing import FlaskClient

from deniable import Registry
from deniable_collector.stores import Store, open_store

from .conftest import TOKEN, YESTERDAY, browser_of, dashboard_of, fill_drawn

SCRIPT = "<script>alert(1)</script>"
PAIRS = f"""
schema = 1
app = "example"
[defaults]
owner = "growth@acme.example"
expires = 2027-06-30

[metrics.plan]
type = "category"
description = "Which plan is it?"
values = ["free", "pro", "{SCRIPT}"]
epsilon = 1.0
lifetime_epsilon = 8.0

[metrics.dark_mode]
type = "boolean"
description = "Is dark mode on?"
epsilon = 1.0
lifetime_epsilon = 8.0

[metrics.plan_by_mode]
type = "pair"
of = ["plan", "dark_mode"]
description = "Do plan and dark mode go together?"
epsilon = 2.0
lifetime_epsilon = 100.0
"""
DAYS = ("2026-11-13", "2026-11-18", "2026-11-19", YESTERDAY)
CELLS = dict(enumerate((900, 600, 300, 1_050, 63, 87)))


@pytest.fixture
def pair_text() -> str:
    return PAIRS


@pytest.fixture
def pair_store(tmp_path: Path, pair_text: str) -> Iterator[Store]:
    registry = Registry.parse(pair_text)
    store = open_store(f"sqlite:///{tmp_path}/pairs.db")
    store.publish({metric.name: [metric.scheme] for metric in registry})
    for day in DAYS:
        fill_drawn(store, registry, "plan_by_mode", CELLS, day)
    yield store
    store.close()


@pytest.fixture
def pair_reader(pair_store: Store, pair_text: str) -> FlaskClient:
    return browser_of(dashboard_of(pair_store, Registry.parse(pair_text)))


@pytest.mark.parametrize(
    ("address", "status"),
    [
        ("/metric/plan_by_mode?given=browser", 400),
        ("/metric/plan?given=plan", 400),
        ("/metric/plan_by_mode?limit=3", 400),
        ("/metric/plan_by_mode?value=nothing", 400),
    ],
)
def test_a_wrong_address_is_refused(pair_reader: FlaskClient, address: str, status: int) -> None:
    """Another metric, a direction of what is no pair, and keys of other kinds are mistakes."""
    assert pair_reader.get(address).status_code == status


FORGOTTEN = PAIRS + 'forget = "marginals"\n'


RANGES = (
    FORGOTTEN.replace(
        'type = "boolean"\n', 'type = "number"\nlow = 0\nhigh = 60\nunit = "min"\nask = "mean"\n'
    )
    .replace("dark_mode", "minutes")
    .replace('"minutes"]', '"minutes"]\nbins = { minutes = [15] }')
)


@pytest.mark.parametrize("pair_text", [RANGES])
def test_the_api_names_the_ranges_of_a_forgotten_number(pair_reader: FlaskClient) -> None:
    """`value=` takes the ranges whose shares the answer has, and a wrong one is refused with
    them."""
    ask = pair_reader.application.test_client()
    base = "/api/v1/metrics/minutes"
    for path in ("estimate", "trend", "comparison"):
        given = {"value": "below 15"}
        found = ask.get(f"{base}/{path}", headers=AUTHORIZED, query_string=given)
        assert found.status_code == 200, path
        assert "below 15" in found.text
        assert "15 or more" not in found.text
    refused = ask.get(f"{base}/estimate", headers=AUTHORIZED, query_string={"value": "15"})
    assert refused.status_code == 400
    assert "below 15, 15 or more, mean" in refused.get_json()["detail"]


AUTHORIZED = {"Authorization": f"Bearer {TOKEN}", "Accept": "application/json"}

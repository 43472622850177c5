"""Pages and API of pairs: the heat map in both directions, its words, files, and bad addresses."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from flask.testing import FlaskClient

from deniable import Registry
from deniable_collector.stores import Store, open_store
from deniable_collector.stores.commits import Commit, Increment, TallyKey, TallyRowKey
from deniable_estimator.analyses.sampling import sample_tally
from deniable_estimator.dashboard import create_app
from deniable_estimator.dashboard.settings import DashboardSettings

from .conftest import NOW, TOKEN, YESTERDAY

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
TABLE = np.array([[0.30, 0.20], [0.10, 0.35], [0.021, 0.029]])


def fill_pair(store: Store, registry: Registry, day: str, n: int, seed: int) -> None:
    metric = registry["plan_by_mode"]
    rng = np.random.default_rng(seed)
    tally = sample_tally(
        metric.scheme, rng.multinomial(n, TABLE.ravel()), rng, metric=metric.name, window=day
    )
    (row,) = tally.rows
    key = TallyRowKey(TallyKey(metric.name, tally.scheme, day), 0)
    cells = Increment(len(row.cells), row.reports, range(len(row.cells)), row.cells.tolist())
    store.fold(Commit((secrets.token_hex(16),), {key: cells}), NOW)


@pytest.fixture
def pair_text() -> str:
    return PAIRS


@pytest.fixture
def pair_store(tmp_path: Path, pair_text: str) -> Iterator[Store]:
    registry = Registry.parse(pair_text)
    store = open_store(f"sqlite:///{tmp_path}/pairs.db")
    store.publish({metric.name: [metric.scheme] for metric in registry})
    for seed, day in enumerate(DAYS):
        fill_pair(store, registry, day, 3000, seed)
    yield store
    store.close()


def reader_of(store: Store, text: str) -> FlaskClient:
    settings = DashboardSettings(dashboard_token=TOKEN)
    app = create_app(settings, store=store, registry=Registry.parse(text), clock=lambda: NOW)
    client = app.test_client()
    client.environ_base["HTTP_ACCEPT"] = "text/html"
    assert client.post("/login", data={"token": TOKEN}).status_code == 303
    return client


@pytest.fixture
def pair_reader(pair_store: Store, pair_text: str) -> FlaskClient:
    return reader_of(pair_store, pair_text)


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


def test_few_reports(tmp_path: Path) -> None:
    """With fewer reports than the test takes, the page says how many it takes."""
    registry = Registry.parse(PAIRS)
    store = open_store(f"sqlite:///{tmp_path}/few.db")
    store.publish({metric.name: [metric.scheme] for metric in registry})
    fill_pair(store, registry, YESTERDAY, 40, 1)
    page = reader_of(store, PAIRS).get("/metric/plan_by_mode").text
    assert "40 reports are too few for the test of independence" in page
    store.close()


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

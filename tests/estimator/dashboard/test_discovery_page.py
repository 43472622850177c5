"""The page of a discovery, its files, its card and its API."""

from __future__ import annotations

import csv
import io
import re
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flask import Flask
from flask.testing import FlaskClient

from deniable import Registry
from deniable_collector.stores import Store, open_store
from deniable_collector.stores.commits import Commit, Increment, TallyKey, TallyRowKey
from deniable_estimator.analyses import analysis_of
from deniable_estimator.dashboard import create_app
from deniable_estimator.dashboard.settings import DashboardSettings

from .conftest import NOW, TOKEN, YESTERDAY

HOSTILE = "<b>\u202e"
CROWD = {
    "search": 30_000,
    "a": 16_000,
    HOSTILE: 15_000,
    "搜索": 14_000,
    "longestword": 12_000,
    "": 9000,
}
"""String -> its devices on each day; "longestword" has more than 8 bytes."""
DAYS = ("2026-11-18", "2026-11-19", YESTERDAY)
REGISTRY = """
schema = 1
app = "example"
[defaults]
owner = "growth@acme.example"
expires = 2027-06-30
[metrics.terms]
type = "discovery"
epsilon = 4.0
lifetime_epsilon = 40.0
description = "What was <i>searched</i> for."
max_length = 8
[metrics.quiet]
type = "discovery"
epsilon = 4.0
lifetime_epsilon = 40.0
description = "Nobody has reported."
max_length = 8
[metrics.engine]
type = "category"
epsilon = 4.0
lifetime_epsilon = 40.0
description = "The engine."
values = ["search", "other"]
[metrics.followed]
type = "string"
epsilon = 4.0
lifetime_epsilon = 40.0
description = "What we know already."
"""


@pytest.fixture(scope="module")
def found_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """Two days of the same crowd, and one of two devices alone."""
    registry, rng = Registry.parse(REGISTRY), np.random.default_rng(7)
    scheme = registry["terms"].scheme
    path = tmp_path_factory.mktemp("discovery") / "finds.db"
    with closing(open_store(f"sqlite:///{path}")) as store:
        store.publish({each.name: [each.scheme] for each in registry})
        for day, crowd in zip(DAYS, ({"search": 2}, CROWD, CROWD), strict=True):
            key = TallyKey("terms", scheme.fingerprint, day)
            rows = analysis_of(scheme.mechanism).sample_rows(
                tuple(crowd), np.array([*crowd.values()]), rng
            )
            increments = {
                TallyRowKey(key, place): Increment(
                    len(row.cells), row.reports, np.flatnonzero(row.cells), row.cells[row.cells > 0]
                )
                for place, row in enumerate(rows)
                if row.reports
            }
            store.fold(Commit((f"{DAYS.index(day):032x}",), increments), NOW)
        yield store


@pytest.fixture(scope="module")
def found_app(found_store: Store, tmp_path_factory: pytest.TempPathFactory) -> Flask:
    """The operator follows one of the strings in a list."""
    folder: Path = tmp_path_factory.mktemp("candidates")
    (folder / "followed.txt").write_text("搜索\nnothing\n", encoding="utf-8")
    settings = DashboardSettings(dashboard_token=TOKEN, candidates_dir=str(folder))
    registry = Registry.parse(REGISTRY)
    return create_app(settings, store=found_store, registry=registry, clock=lambda: NOW)


@pytest.fixture
def reader(found_app: Flask) -> FlaskClient:
    client = found_app.test_client()
    client.environ_base["HTTP_ACCEPT"] = "text/html"
    assert client.post("/login", data={"token": TOKEN}).status_code == 303
    return client


def read(client: FlaskClient, path: str) -> str:
    """The page as soon as it is calculated."""
    for _ in range(120):
        answer = client.get(path, follow_redirects=True)
        if "Refresh" not in answer.headers and answer.status_code != 202:
            assert answer.status_code == 200, answer.text[:500]
            return answer.text
        time.sleep(0.25)
    raise AssertionError("it is never calculated")


def test_a_find_over_time(reader: FlaskClient) -> None:
    """The trend of a chosen string is drawn with its intervals, and its files have each day; the
    string is named in the address, also one that is cut."""
    page = read(reader, "/metric/terms/strings?find=search")
    assert "Over time: " in page
    assert 'class="chart trend"' in page
    link = re.search(r'href="(/metric/terms/strings\.csv[^"]*find=search[^"]*)"', page)
    assert link is not None
    lines = list(csv.DictReader(io.StringIO(read(reader, link[1].replace("&amp;", "&")))))
    assert [each["share"] != "" for each in lines if each["n"] == "96000"]
    assert "Over time" in read(reader, "/metric/terms/strings?find=longestw%E2%80%A6&by=week")
    for query, told in (
        ("find=nothing", "was not found in these days"),
        ("by=year", "takes day, week, month"),
        ("form=x", "not known here"),
        ("from=2026-11-30&to=2026-11-01", 'role="alert"'),
    ):
        answer = reader.get(f"/metric/terms/strings?{query}")
        assert (answer.status_code, told in answer.text) == (400, True), query


def test_other_pages_refuse_it(reader: FlaskClient) -> None:
    """Pages about listed values say where the strings are; a metric that lists its values has no
    page of strings."""
    for path in ("terms.csv", "terms/trend.csv", "terms/compare"):
        answer = reader.get(f"/metric/{path}")
        assert answer.status_code == (200 if path.endswith("compare") else 400), path
        assert "is a discovery, whose strings nobody lists" in answer.text
    moved = reader.get("/metric/engine/strings")
    assert (moved.status_code, moved.headers["Location"]) == (302, "/metric/engine")


def test_the_api(found_app: Flask) -> None:
    """Finds and their trend as JSON and CSV; each wrong question with its reason."""
    client = found_app.test_client()
    headers = {"Authorization": f"Bearer {TOKEN}"}

    def ask(path: str) -> Any:
        for _ in range(120):
            answer = client.get(f"/api/v1/metrics/{path}", headers=headers)
            if answer.status_code != 503:
                return answer
            time.sleep(0.25)
        raise AssertionError("it is never calculated")

    found = ask("terms/finds")
    assert len(found.json["finds"]) == 5
    assert found.json["n"] == 2 * sum(CROWD.values()) + 2
    tag = {"If-None-Match": found.headers["ETag"]}
    again = client.get("/api/v1/metrics/terms/finds", headers={**headers, **tag})
    assert again.status_code == 304
    assert [each["text"] for each in ask("terms/finds?min_share=0.2").json["finds"]] == ["search"]
    assert ask("terms/finds?format=csv").text.startswith("text,cut,share")
    trend = ask("terms/finds/trend?find=search&by=day").json
    shares = [each["values"][0]["share"] for each in trend["periods"] if each["n"] == 96_000]
    assert shares == pytest.approx([0.3125, 0.3125], abs=0.02)
    for path, status, told in (
        ("engine/finds", 409, "discovers nothing"),
        ("terms/finds/trend?find=x", 400, "was not found"),
        ("terms/finds/trend", 400, "find"),
        ("terms/finds?min_share=2", 400, "min_share"),
        ("terms/estimate", 400, "is a discovery"),
        ("terms/trend", 400, "is a discovery"),
        ("terms/anomalies", 400, "is a discovery"),
    ):
        answer = ask(path)
        assert answer.status_code == status, path
        assert told in answer.json["detail"], path
        assert answer.json["type"].startswith("urn:deniable:problem:")

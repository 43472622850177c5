"""The page of a discovery, its files, its card and its API."""

from __future__ import annotations

import csv
import io
import json
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


def test_the_page(reader: FlaskClient) -> None:
    """Every string with its share and interval, the cut one marked, who follows them, how much they
    explain, from where on strings surface, how many fakes make one appear, and how to follow them;
    strangers' strings are escaped and isolated."""
    page = read(reader, "/metric/terms")
    assert "5 strings were found" in page
    rows = re.findall(r'<th scope="row"><bdi>(.*?)</th>', page)
    assert len(rows) == 5
    assert rows[0].startswith("search</bdi>")
    assert [each for each in rows if "cut" in each] == [
        each for each in rows if each.startswith("longestw")
    ]
    assert "&lt;b&gt;" in page
    assert "<b>\u202e" not in page
    assert "<i>searched" not in page
    (explained,) = re.findall(r"Together they explain ([0-9.]+)%", page)
    assert 86 < float(explained) < 96
    assert "of all reports hold no string" in page
    assert "fake devices can make a string of theirs appear here" in page
    assert "is found in 95% of cases" in page
    assert 'href="/metric/engine"' in page
    assert 'href="/metric/followed"' in page
    assert page.count('<span class="dim">nobody</span>') == 3
    assert "deniable discover terms --from" in page
    assert "--promote engine" in page
    assert "<code>engine</code> follows some of them already" in page
    assert ">Share</a>" not in page
    assert reader.get("/share?view=/metric/terms").status_code == 400


def test_only_a_related_metric_is_proposed(found_store: Store) -> None:
    """Where no metric follows a find, the command names none of the registry's metrics."""
    text = REGISTRY.replace('values = ["search", "other"]', 'values = ["red", "blue"]')
    settings = DashboardSettings(dashboard_token=TOKEN)
    app = create_app(settings, store=found_store, registry=Registry.parse(text), clock=lambda: NOW)
    client = app.test_client()
    client.environ_base["HTTP_ACCEPT"] = "text/html"
    client.post("/login", data={"token": TOKEN})
    page = read(client, "/metric/terms")
    assert "5 strings were found" in page
    assert "--promote TARGET" in page
    assert "No metric follows any of them yet" in page


def test_a_board_refuses_it_in_words(found_store: Store, tmp_path: Path) -> None:
    """A chart of a discovery on a board says that it is not shown there, and leads to its page;
    the other charts are there. Values of it cannot be named."""
    item = '[[items]]\nmetric = "terms"\n'
    other = '[[items]]\nmetric = "engine"\n'
    (tmp_path / "both.toml").write_text(f'schema = 1\ntitle = "B"\n{item}{other}')
    (tmp_path / "named.toml").write_text(f'schema = 1\ntitle = "N"\n{item}values = ["a"]\n')
    settings = DashboardSettings(dashboard_token=TOKEN, boards=str(tmp_path))
    registry = Registry.parse(REGISTRY)
    app = create_app(settings, store=found_store, registry=registry, clock=lambda: NOW)
    client = app.test_client()
    client.post("/login", data={"token": TOKEN})
    page = client.get("/boards/both")
    assert page.status_code == 200
    assert "A board does not show what a discovery finds" in page.text
    assert "No reports in these days" in page.text
    link = re.search(r'href="(/metric/terms[^"]*)"', page.text)
    assert link is not None
    assert "5 strings were found" in read(client, link[1].replace("&amp;", "&"))
    assert client.get("/boards/named").status_code != 200


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


def test_files(reader: FlaskClient) -> None:
    """CSV and JSON hold all finds; a formula in a string is no formula in a spreadsheet."""
    document = json.loads(read(reader, "/metric/terms/strings.json"))
    assert document["kind"] == "finds"
    assert {each["text"] for each in document["finds"]} == {*CROWD} - {"", "longestword"} | {
        "longestw"
    }
    followed = {each["text"]: each["followed"] for each in document["finds"]}
    assert (followed["search"], followed["搜索"], followed["a"]) == (["engine"], ["followed"], [])
    assert len(list(csv.DictReader(io.StringIO(read(reader, "/metric/terms/strings.csv"))))) == 5


def test_empty_states(reader: FlaskClient) -> None:
    """Without reports, without any in the days, and with a crowd in which nothing can surface, the
    page says so in plain words."""
    assert "No device has reported yet" in read(reader, "/metric/quiet")
    before = read(reader, "/metric/terms?from=2026-01-01&to=2026-01-07")
    assert "No reports in these days" in before
    assert YESTERDAY in before or "Choose a range" in before
    few = read(reader, f"/metric/terms?from={DAYS[0]}&to={DAYS[0]}")
    assert "No string is common enough to be found" in few
    assert "With so few reports no string is found" in few


def test_other_pages_refuse_it(reader: FlaskClient) -> None:
    """Pages about listed values say where the strings are; a metric that lists its values has no
    page of strings."""
    for path in ("terms.csv", "terms/trend.csv", "terms/compare"):
        answer = reader.get(f"/metric/{path}")
        assert answer.status_code == (200 if path.endswith("compare") else 400), path
        assert "is a discovery, whose strings nobody lists" in answer.text
    moved = reader.get("/metric/engine/strings")
    assert (moved.status_code, moved.headers["Location"]) == (302, "/metric/engine")


def test_the_card(reader: FlaskClient) -> None:
    """The overview shows how many strings were found, and the commonest three."""
    page = read(reader, "/")
    for _ in range(60):
        if "strings were found" in page:
            break
        time.sleep(0.5)
        page = read(reader, "/")
    card = page.partition('href="/metric/terms')[2].partition("</li>\n<li class")[0]
    assert "5 strings were found" in card
    assert card.count("<bdi>") == 3
    assert "Waiting for the first reports" in page


def test_in_chinese(reader: FlaskClient) -> None:
    """The page has no English sentence in Chinese."""
    for path in ("/metric/terms/strings?find=search&", "/metric/quiet/strings?"):
        page = read(reader, f"{path}lang=zh-Hans")
        text = re.sub(r"<(pre|code).*?</\1>|<[^>]*>", " ", page.partition('id="content"')[2])
        for known in ("What was", "searched", "for", "Nobody has reported", "search", "longestw",
                      "terms", "quiet", "engine", "followed", "CSV", "JSON", "growth",
                      "acme", "example", "English", "deniable", "epsilon", "odds",
                      "devices"):  # fmt: skip
            text = text.replace(known, "")
        assert re.findall(r"[A-Za-z]{4,}", text.partition("<footer")[0]) == []


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

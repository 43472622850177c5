"""The page, the files and the API of a metric by segments."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

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

REGISTRY = """
schema = 1
app = "example"
[defaults]
owner = "growth@acme.example"
expires = 2027-06-30
[segments.platform]
values = ["ios", "android", "<script>alert(1)</script>"]
other = "other"
[segments.plan]
values = ["free", "paid"]
[metrics.theme]
type = "category"
description = "The theme."
values = ["light", "dark", "<b>sepia</b>"]
epsilon = 3.0
lifetime_epsilon = 8.0
segments = ["platform", "plan"]
[metrics.size]
type = "number"
description = "The size."
low = 0
high = 10
unit = "cm"
ask = "mean"
epsilon = 3.0
lifetime_epsilon = 8.0
segments = ["plan"]
[metrics.plugin]
type = "string"
description = "The plugin."
epsilon = 3.0
lifetime_epsilon = 8.0
segments = ["plan"]
[metrics.plain]
type = "boolean"
description = "Without segments."
epsilon = 3.0
lifetime_epsilon = 8.0
"""


@pytest.fixture
def segment_store(tmp_path: Path) -> Iterator[Store]:
    """One day: dark themes are likelier on Android, and numbers larger for those who pay."""
    registry, rng = Registry.parse(REGISTRY), np.random.default_rng(5)
    with closing(open_store(f"sqlite:///{tmp_path / 'segments.db'}")) as store:
        store.publish({each.name: [each.scheme] for each in registry})
        crowds: list[tuple[str, int, Any, list[int]]] = [
            ("size", place, np.array([2 << 28, 3 << 28])[:2], counts)
            for place, counts in enumerate([[9000, 1000], [1000, 9000]])
        ]
        for place in range(8):
            n = (8000, 4000, 600, 30)[place // 2]
            dark = n * (6 if place // 2 == 1 else 3) // 10
            crowds.append(("theme", place, np.arange(3), [n - dark - n // 10, dark, n // 10]))
        for number, (name, place, items, counts) in enumerate(crowds):
            scheme = registry[name].scheme
            key = TallyKey(name, scheme.fingerprint, YESTERDAY)
            rows = analysis_of(scheme.mechanism).sample_rows(items, np.array(counts), rng)
            increments = {}
            for each, row in enumerate(rows):
                columns = np.flatnonzero(row.cells)
                increments[TallyRowKey(key, place * len(rows) + each)] = Increment(
                    len(row.cells), row.reports, columns, row.cells[columns]
                )
            store.fold(Commit((f"{number:032x}",), increments), NOW)
        yield store


@pytest.fixture
def segment_app(segment_store: Store) -> Flask:
    settings = DashboardSettings(dashboard_token=TOKEN)
    registry = Registry.parse(REGISTRY)
    return create_app(settings, store=segment_store, registry=registry, clock=lambda: NOW)


@pytest.fixture
def reader(segment_app: Flask) -> FlaskClient:
    client = segment_app.test_client()
    client.environ_base["HTTP_ACCEPT"] = "text/html"
    assert client.post("/login", data={"token": TOKEN}).status_code == 303
    return client


def test_the_page(reader: FlaskClient) -> None:
    """The page names what differs, each segment with its difference, and what folds away; texts
    of a registry are never markup; the label says what is told in clear."""
    page = reader.get("/metric/theme/segments").text
    assert "series differ between segments" in page
    assert page.count('<table class="panel">') == 3
    assert page.count('<th scope="row">') == 3 * 4  # three large segments and all
    assert "1 segment with fewer than 100 reports is folded away" in page
    assert "<script>alert" not in page
    assert "<b>sepia" not in page
    assert "Not private: each report states its segment without noise" in page
    assert "differs</strong>" in page
    assert re.search(r"<td>\+[0-9.]+ \(\+[0-9.]+ to \+[0-9.]+\)</td>", page)
    assert "/metric/theme/segments?" in reader.get("/metric/theme").text
    assert "/segments" not in reader.get("/metric/plain").text


def test_the_planner_has_the_smallest_segment(reader: FlaskClient) -> None:
    """The page leads to the planner with the part of the smallest segment, folded or not. The page
    of the metric, which shows all segments together, leads to the plan for all devices."""
    link = r'href="(/plan[^"]*)">Plan the smallest segment'
    found = re.search(link, reader.get("/metric/theme/segments").text)
    assert found is not None
    asked = parse_qs(urlsplit(found[1].replace("&amp;", "&")).query)
    assert asked["segment_share"] == [f"{60 / (2 * (8000 + 4000 + 600 + 30)):.3g}"]
    assert asked["devices"] == [str(2 * (8000 + 4000 + 600 + 30))]
    assert reader.get(found[1].replace("&amp;", "&")).status_code == 200
    metric = reader.get("/metric/theme").text
    assert 'href="/plan?' in metric
    assert "segment_share" not in metric
    assert "/plan/number?" in reader.get("/metric/size/segments").text


def test_the_chooser(reader: FlaskClient) -> None:
    """`by`, `where` and `against` are in the address, and in the links to the files."""
    both = reader.get("/metric/theme/segments?by=platform,plan").text
    assert "ios, free" in both
    only = reader.get("/metric/theme/segments?by=platform&where=plan=paid&against=android").text
    assert "Difference from android" in only
    link = re.search(r'href="(/metric/theme/segments\.csv[^"]+)"', only)
    assert link is not None
    rows = list(csv.DictReader(io.StringIO(reader.get(link[1].replace("&amp;", "&")).text)))
    ios = next(each for each in rows if (each["platform"], each["value"]) == ("ios", "dark"))
    assert (ios["n"], float(ios["difference"]) < 0) == ("8000", True)
    # A form sends the empty choice too, and an unknown reference is the largest.
    page = reader.get("/metric/theme/segments?by=platform&where=&against=tv")
    assert page.status_code == 200
    assert "Difference from ios" in page.text
    assert "is no segment: compared with the largest one" in page.text
    assert reader.get("/metric/theme/segments.csv?by=platform&against=tv").status_code == 400
    turned = reader.get("/metric/theme/segments?by=plan&where=plan=paid")
    assert "is left out, because the page divides by plan" in turned.text
    assert "is left out" not in reader.get("/metric/theme/segments?by=plan").text
    number = reader.get("/metric/size/segments").text
    assert "The segments differ by more than noise" in number
    assert "cm" in number


@pytest.mark.parametrize(
    ("path", "status", "told"),
    [
        ("/metric/theme/segments?by=shoe", 400, "counted by platform, plan"),
        ("/metric/theme/segments?by=plan,plan", 400, "counted by platform, plan"),
        ("/metric/theme/segments?where=plan=gold", 400, "no segment plan=gold"),
        ("/metric/theme/segments?form=x", 400, "not known here"),
        ("/metric/theme/segments?from=2026-11-30&to=2026-11-01", 400, 'role="alert"'),
        ("/metric/theme/segments?from=2026-01-01&to=2026-01-02", 200, "No reports in these days"),
        ("/metric/plain/segments", 200, "not counted by segments"),
        ("/metric/plugin/segments", 200, "takes any string"),
        ("/metric/nothing/segments", 404, "No metric of that name"),
    ],
)
def test_what_cannot_be_shown(reader: FlaskClient, path: str, status: int, told: str) -> None:
    """Wrong addresses, empty ranges and metrics without segments say what to do."""
    answer = reader.get(path)
    assert answer.status_code == status
    assert told in answer.text


def test_in_chinese(reader: FlaskClient) -> None:
    """The page has no English sentence in Chinese."""
    page = reader.get("/metric/theme/segments?lang=zh-Hans").text
    text = re.sub(r"<[^>]*>", " ", page.partition('<main id="content">')[2].partition("</main>")[0])
    for known in ("The theme", "light", "dark", "sepia", "platform", "plan", "ios", "android",
                  "script", "alert", "other", "free", "paid", "theme", "CSV", "JSON"):  # fmt: skip
        text = text.replace(known, "")
    assert re.findall(r"[A-Za-z]{4,}", text) == []


def test_the_api(segment_app: Flask) -> None:
    """By segments, within one, over time; and each wrong question with its reason."""
    client = segment_app.test_client()
    headers = {"Authorization": f"Bearer {TOKEN}"}

    def ask(path: str) -> Any:
        return client.get(f"/api/v1/metrics/{path}", headers=headers)

    found = ask("theme/segments?by=platform").json
    assert [each["segment"]["platform"] for each in found["segments"]][:2] == ["ios", "android"]
    assert found["reference"] == {"platform": "ios"}
    assert {each["value"]: each["differs"] for each in found["tests"]}["dark"] is True
    within = ask("theme/segments?by=platform&where=plan=paid&against=platform=android").json
    assert (within["where"], within["reference"]) == ({"plan": "paid"}, {"platform": "android"})
    assert ask("theme/estimate?where=platform=ios&where=plan=paid").json["n"] == 8000
    assert ask("theme/estimate").json["n"] == 25_260
    trend = ask("theme/trend?where=platform=android&by=day").json
    assert [each["n"] for each in trend["periods"] if each["n"]] == [8000]
    named = ask("plugin/segments?by=plan&value=a&value=b").json
    assert named["total"]["n"] == 0
    tag = ask("theme/segments?by=platform").headers["ETag"]
    again = client.get(
        "/api/v1/metrics/theme/segments?by=platform", headers={**headers, "If-None-Match": tag}
    )
    assert again.status_code == 304
    for path, status, told in (
        ("theme/segments?by=shoe", 400, "counted by platform, plan"),
        ("theme/segments?by=platform&where=plan", 400, "like platform=web"),
        ("theme/segments?by=platform&against=platform=tv", 400, "platform=tv"),
        ("theme/segments", 400, "lacks the field `by`"),
        ("theme/estimate?where=plan=gold", 400, "plan has no value gold"),
        ("theme/trend?where=shoe=red", 400, "not counted by a segment shoe"),
        ("plain/segments?by=platform", 409, "not counted by segments"),
    ):
        answer = ask(path)
        assert answer.status_code == status, path
        assert answer.json["type"].startswith("urn:deniable:problem:"), path
        assert told in answer.text, path


def test_the_page_is_small_with_32_segments(tmp_path: Path) -> None:
    """With 32 segments and 100 values the page shows as many series as there is room for."""
    names = ", ".join(f'"segment number {number}"' for number in range(32))
    values = ", ".join(f'"value {number}"' for number in range(100))
    text = REGISTRY.replace('"free", "paid"', names).replace(
        '["light", "dark", "<b>sepia</b>"]', f"[{values}]"
    )
    text = text.replace('segments = ["platform", "plan"]', 'segments = ["plan"]')
    text = text.partition("[metrics.plugin]")[0]
    registry, rng = Registry.parse(text), np.random.default_rng(5)
    scheme = registry["theme"].scheme
    with closing(open_store(f"sqlite:///{tmp_path / 'store.db'}")) as store:
        store.publish({"theme": [scheme]})
        key = TallyKey("theme", scheme.fingerprint, YESTERDAY)
        increments = {}
        for place in range(32):
            cells = rng.binomial(1000, float(scheme.oracle.q), 100)
            columns = np.flatnonzero(cells)
            increments[TallyRowKey(key, place)] = Increment(100, 1000, columns, cells[columns])
        store.fold(Commit(("0" * 32,), increments), NOW)
        settings = DashboardSettings(dashboard_token=TOKEN)
        app = create_app(settings, store=store, registry=registry, clock=lambda: NOW)
        client = app.test_client()
        client.environ_base["HTTP_ACCEPT"] = "text/html"
        client.post("/login", data={"token": TOKEN})
        page = client.get("/metric/theme/segments")
        assert page.text.count('<table class="panel">') == 7
        assert "93 more are not listed" in page.text
        assert len(page.data) < 150_000


def test_two_combinations_of_one_name(tmp_path: Path) -> None:
    """Values that hold a comma make two combinations read alike; each has its own difference, and
    the address names each by itself."""
    text = (
        'schema = 1\napp = "x"\n[defaults]\nowner = "a@b.example"\nexpires = 2027-06-30\n'
        '[segments.one]\nvalues = ["a", "a, b"]\n[segments.two]\nvalues = ["b, c", "c"]\n'
        '[metrics.yes]\ntype = "boolean"\ndescription = "Yes."\nepsilon = 3.0\n'
        'lifetime_epsilon = 8.0\nsegments = ["one", "two"]\n'
    )
    registry, rng = Registry.parse(text), np.random.default_rng(3)
    scheme = registry["yes"].scheme
    with closing(open_store(f"sqlite:///{tmp_path / 'x.db'}")) as store:
        store.publish({"yes": [scheme]})
        key = TallyKey("yes", scheme.fingerprint, YESTERDAY)
        for place, yes in enumerate((9000, 5000, 5000, 1000)):
            (row,) = analysis_of(scheme.mechanism).sample_rows(
                np.arange(2), np.array([yes, 10_000 - yes]), rng
            )
            columns = np.flatnonzero(row.cells)
            change = Increment(len(row.cells), row.reports, columns, row.cells[columns])
            increments = {TallyRowKey(key, place): change}
            store.fold(Commit((f"{place:032x}",), increments), NOW)
        settings = DashboardSettings(dashboard_token=TOKEN)
        app = create_app(settings, store=store, registry=registry, clock=lambda: NOW)
        client, headers = app.test_client(), {"Authorization": f"Bearer {TOKEN}"}
        api = "/api/v1/metrics/yes/segments?by=one&by=two&against=one=a&against=two=c"
        found = client.get(api, headers=headers).json
        alike = {
            (each["segment"]["one"], each["segment"]["two"]): each["values"][0]["difference"]
            for each in found["differences"]
        }
        assert len(alike) == 3
        assert alike["a", "b, c"] > 0.2 > alike["a, b", "c"] + 0.4
        page = client.get("/metric/yes/segments?by=one,two", headers=headers).text
        values = re.findall(r'<option value="(\[[^"]*)"', page)
        assert len(set(values)) == 3
        assert '<option value="a, c"' in page


def test_trends_by_segment(segment_app: Flask, segment_store: Store, reader: FlaskClient) -> None:
    """Each segment has a chart on one scale, the largest two are drawn over each other, or those
    that the address names; files and API have every trend."""
    scheme = Registry.parse(REGISTRY)["theme"].scheme
    rng, day = np.random.default_rng(8), "2026-11-19"
    key = TallyKey("theme", scheme.fingerprint, day)
    increments = {}
    for place, n in ((0, 4000), (2, 3000), (4, 700)):
        counts = np.array([n * 6 // 10, n * 3 // 10, n // 10])
        (row,) = analysis_of(scheme.mechanism).sample_rows(np.arange(3), counts, rng)
        columns = np.flatnonzero(row.cells)
        increments[TallyRowKey(key, place)] = Increment(
            len(row.cells), row.reports, columns, row.cells[columns]
        )
    segment_store.fold(Commit(("f" * 32,), increments), NOW)
    page = reader.get("/metric/theme/segments").text
    charts = page.partition('id="trend"')[2]
    assert charts.count('class="chart trend small"') == 3
    assert charts.count('aria-current="true"><span>') == 2
    chosen = reader.get("/metric/theme/segments?series=dark&over=android&period=day").text
    assert chosen.partition('id="trend"')[2].count('class="current"') == 1
    assert "<b>sepia" not in page
    lines = reader.get("/metric/theme/segments.csv?by=platform&period=day").text
    rows = [each for each in csv.DictReader(io.StringIO(lines)) if each["n"] != "0"]
    assert {each["platform"] for each in rows} >= {"ios", "android"}
    for query, told in (("series=x", "no series x"), ("period=year", "takes day, week, month")):
        wrong = reader.get(f"/metric/theme/segments?{query}")
        assert wrong.status_code == 400
        assert told in re.sub("[\u2066-\u2069]", "", wrong.text)
    api = segment_app.test_client().get(
        "/api/v1/metrics/theme/segments/trend?by=platform&period=day",
        headers={"Authorization": f"Bearer {TOKEN}"},
    )
    assert api.status_code == 200, api.text
    assert [each["segment"]["platform"] for each in api.json["segments"]][:2] == ["ios", "android"]

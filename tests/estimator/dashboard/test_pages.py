"""The pages: what they say, escape, refuse and forbid."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from flask import Flask
from flask.testing import FlaskClient

import deniable
from deniable import Registry
from deniable_collector.stores import Store, StoreUnavailable, open_store
from deniable_estimator.dashboard import create_app
from deniable_estimator.dashboard.settings import DashboardSettings

from .conftest import NOW, TOKEN, fill


def drawings(page: str) -> list[ElementTree.Element]:
    """Every bar chart of a page, parsed."""
    return [
        ElementTree.fromstring(found.replace(" hidden>", ">"))
        for found in re.findall(r'<div class="chart [^"]*" role="img".*?</div>', page, re.DOTALL)
    ]


def texts(drawing: ElementTree.Element) -> str:
    return " ".join("".join(drawing.itertext()).split())


def test_the_overview_shows_every_metric(browser: FlaskClient) -> None:
    """Each metric has its question, picture, reports, epsilon and freshness."""
    page = browser.get("/").text
    for part in ("Which browser opens links?", "20,000 reports", "1.0", "yesterday"):
        assert part in page
    assert "<span>chrome</span> <strong>74.0%</strong> <small>±" in page
    assert '<p class="figure">20.0% <span class="spread">±' in page
    assert page.count('<ul class="bars">') == 2
    assert "Waiting for the first reports" in page
    assert "Expired on 2026-11-01" in page


def test_an_empty_dashboard_teaches_the_first_step(empty_browser: FlaskClient) -> None:
    """Before any report the overview says how to get one, with a metric of this registry."""
    page = empty_browser.get("/").text
    assert "deniable collect" in page
    assert "telemetry.record(&#34;browser&#34;" in page or 'telemetry.record("browser"' in page
    assert "deniable demo" in page
    assert not drawings(page)


def test_the_metric_page_answers_the_first_questions(browser: FlaskClient) -> None:
    """Which value leads, whether the lead is real, how many reported, what a device risks."""
    page = browser.get("/metric/browser").text
    assert "chrome leads with 74.0%, ahead of firefox by more than the noise." in page
    assert "20,000 devices reported, 20 Nov 2026" in page
    assert "Privacy risk of a device" in page
    assert "<strong>2.72</strong>" in page
    assert "<strong>73.2</strong> times in 100" in page
    assert "at most <strong>8</strong> reports" in page


def rows_of(chart: ElementTree.Element) -> list[ElementTree.Element]:
    return [row for row in chart.iter() if row.get("class", "").startswith("row")]


def test_the_chart_draws_every_value_with_its_interval(browser: FlaskClient) -> None:
    """Each bar has a whisker around its end; what is noise is grey, in a chart of its own."""
    charts = [
        each
        for each in drawings(browser.get("/metric/browser").text)
        if "chart large" in each.get("class", "")
    ]
    standing, noise = map(rows_of, charts)
    assert len(standing) + len(noise) == 4
    assert [row.get("class") for row in standing] == ["row"] * len(standing)
    assert [row.get("class") for row in noise] == ["row noise"] * len(noise)
    for row in standing + noise:
        low, high = (
            float(line.get(name, "").rstrip("%"))
            for line in row
            if line.get("class") == "whisker"
            for name in ("x1", "x2")
            if line.get("x1") != line.get("x2")
        )
        bar = next(each for each in row if each.get("class") == "bar")
        start, width = (float(bar.get(name, "").rstrip("%")) for name in ("x", "width"))
        assert low < high
        assert low <= start + width <= high or low <= start <= high


def test_what_is_noise_is_folded_away_and_counted(browser: FlaskClient) -> None:
    """Chart and table fold the values below the noise, with their number; none is left out."""
    page = browser.get("/metric/browser").text
    folds = re.findall(r'<details class="fold">\s*<summary>(.*?)</summary>', page)
    assert len(folds) == 2
    (count,) = {fold.split()[0] for fold in folds}
    assert folds[0].endswith("cannot be told from noise")
    assert page.count("<small>noise</small>") == int(count)
    for value in ("firefox", "chrome", "&lt;script&gt;", "&#34;quoted&#34;"):
        assert len(re.findall(f'"> {value}[^<]*</label>', page)) == 1


def test_where_all_is_noise_nothing_is_folded(
    browser: FlaskClient, store: Store, registry: Registry
) -> None:
    """With no value above the noise all are shown grey, and the headline says so."""
    fill(store, registry, "browser", [0.25, 0.25, 0.25, 0.25], 12, "2026-10-01")
    page = browser.get("/metric/browser?from=2026-10-01&to=2026-10-01").text
    assert "No value can be told from noise yet" in page
    assert "fold" not in page
    assert page.count("<small>noise</small>") == 4


def test_the_table_has_every_number(browser: FlaskClient) -> None:
    """The table names its columns and has a headed row for each value, noise marked."""
    page = browser.get("/metric/browser").text
    tables = re.findall(r"<table>\s*<thead>.*?</table>", page, re.DOTALL)
    assert [table.count('scope="col"') for table in tables] == [6, 6]
    assert sum(table.count('scope="row"') for table in tables) == 4
    assert "95% interval" in page
    assert "&lt; 0.0001" in page
    assert "<small>noise</small>" in page


def test_a_long_table_is_listed_on_request(tmp_path: Path) -> None:
    """Of 1,000 values a page lists the largest and links to all; each is then there once."""
    names = ", ".join(f'"value {number}"' for number in range(1000))
    registry = Registry.parse(
        "schema = 1\napp = 'example'\n"
        "[metrics.many]\ntype = 'category'\ndescription = '?'\nowner = 'me'\n"
        f"expires = 2027-06-30\nepsilon = 2.0\nlifetime_epsilon = 8.0\nvalues = [{names}]\n"
    )
    store = open_store(f"sqlite:///{tmp_path}/many.db")
    store.publish({"many": [registry["many"].scheme]})
    shares = [0.2, 0.2, 0.1] + [0.001] * 500 + [0.0] * 497
    fill(store, registry, "many", shares, 100_000)
    app = create_app(
        DashboardSettings(dashboard_token=TOKEN), store=store, registry=registry, clock=lambda: NOW
    )
    client = app.test_client()
    client.post("/login", data={"token": TOKEN})
    page = client.get("/metric/many").text
    assert page.count('<th scope="row"><label>') == 100
    assert "997 values cannot be told from noise" in page
    assert "900 smaller values are not listed here" in page
    assert len(page.encode()) < 100_000
    link = re.search(r'<a href="([^"]*lines=all[^"]*)"', page)
    assert link is not None
    whole = client.get(link[1].replace("&amp;", "&")).text
    assert len(set(re.findall(r'"> (value \d+)</label>', whole))) == 1000
    assert client.get("/metric/many?lines=few").status_code == 400
    store.close()


@pytest.mark.parametrize("path", ["/", "/metric/browser", "/metric/silent", "/metric/nope"])
def test_hostile_text_is_escaped_everywhere(browser: FlaskClient, path: str) -> None:
    """Values and descriptions are text, in HTML as in SVG, and there is no style, and no script
    but a file of ours."""
    page = browser.get(path).text
    script = f'<script src="/static/overview.js?v={deniable.__version__}" defer'
    assert re.findall("<script[^>]*", page) == ([script] if path == "/" else [])
    assert "<b>anybody" not in page
    assert 'style="' not in page
    assert "onload" not in page


def test_a_range_without_reports_says_where_they_are(browser: FlaskClient) -> None:
    """An empty range names the newest window instead of drawing nothing."""
    page = browser.get("/metric/browser?from=2026-01-01&to=2026-01-31").text
    assert "No reports in these days" in page
    assert "2026-11-20" in page
    assert "No device has reported yet" in browser.get("/metric/silent").text


@pytest.mark.parametrize(
    ("query", "advice"),
    [
        ("from=yesterday", "2026-11-21"),
        ("from=2026-11-21&to=2026-11-01", "Swap the two dates"),
        ("from=0001-01-01&to=9999-12-31", "shorter"),
        ("from=2026-02-30", "2026-11-21"),
    ],
)
def test_a_bad_range_is_explained(browser: FlaskClient, query: str, advice: str) -> None:
    """A range that cannot be shown gives a page (or a problem document) that says how to ask."""
    answer = browser.get(f"/metric/browser?{query}")
    assert answer.status_code == 400
    assert advice in answer.text
    problem = browser.get(f"/metric/browser.json?{query}")
    assert problem.status_code == 400
    assert problem.mimetype == "application/problem+json"
    assert advice in problem.json["detail"]


def test_an_unknown_metric_suggests_a_near_one(browser: FlaskClient) -> None:
    """A misspelt name gives a 404 that names the metric that was meant."""
    answer = browser.get("/metric/browsr")
    assert answer.status_code == 404
    assert "browser" in answer.text
    assert browser.get("/metric/browsr.csv").status_code == 404
    assert browser.get("/nowhere").status_code == 404
    assert browser.post("/").status_code == 405


def test_the_files_hold_what_the_page_shows(browser: FlaskClient) -> None:
    """CSV and JSON are downloads with the same estimate, value by value."""
    answer = browser.get("/metric/browser.json")
    assert answer.headers["Content-Disposition"] == "attachment; filename=browser.json"
    document = answer.json
    assert document["n"] == 20_000
    shares = {each["value"]: each["share"] for each in document["values"]}
    assert shares["chrome"] == pytest.approx(0.74, abs=1e-3)
    text = browser.get("/metric/browser.csv").get_data(as_text=True)
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    assert {row["value"]: float(row["share"]) for row in rows} == pytest.approx(shares)


@pytest.mark.parametrize("path", ["/", "/metric/browser", "/metric/browser.csv", "/login", "/x"])
def test_every_response_carries_the_same_protection(browser: FlaskClient, path: str) -> None:
    """No response may run scripts, be framed, sniffed or kept by caches."""
    headers = browser.get(path).headers
    policy = headers["Content-Security-Policy"]
    for rule in (
        "default-src 'none'",
        "style-src 'self'",
        "img-src 'self' data:",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    ):
        assert rule in policy
    assert "unsafe" not in policy
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cache-Control"] == "no-store"


def test_a_store_that_is_down_is_explained(app: Flask, token: str, registry: Registry) -> None:
    """While the store is away the page says so, with 503, and works again after."""

    class Down:
        def __getattr__(self, name: str) -> None:
            raise StoreUnavailable("redis://:secret@db is away", retry_after=3)

    settings = DashboardSettings(dashboard_token=token)
    away = create_app(settings, store=Down(), registry=registry).test_client()  # type: ignore[arg-type]
    answer = away.get("/", headers={"Authorization": f"Bearer {token}"})
    assert answer.status_code == 503
    assert answer.headers["Retry-After"] == "3"
    assert "secret" not in answer.text


def test_a_failure_shows_nothing_of_itself(token: str, registry: Registry) -> None:
    """An error of our own gives a plain 500, not its text."""

    class Broken:
        def __getattr__(self, name: str) -> None:
            raise RuntimeError("the inside")

    settings = DashboardSettings(dashboard_token=token)
    broken = create_app(settings, store=Broken(), registry=registry).test_client()  # type: ignore[arg-type]
    answer = broken.get("/", headers={"Authorization": f"Bearer {token}"})
    assert answer.status_code == 500
    assert "inside" not in answer.text


def test_a_dashboard_may_start_before_the_collector(
    token: str, registry: Registry, tmp_path: object
) -> None:
    """Without a store file the page says what to check, and nothing is created."""
    store: Store = open_store(f"sqlite:///{tmp_path}/none.db")
    app = create_app(DashboardSettings(dashboard_token=token), store=store, registry=registry)
    answer = app.test_client().get("/", headers={"Authorization": f"Bearer {token}"})
    assert answer.status_code == 503
    assert "collector" in answer.json["detail"]


def test_a_file_says_when_and_how_many(
    browser: FlaskClient, store: Store, registry: Registry
) -> None:
    """Each line of a CSV file has the first and the last day, with years, and the number of
    reports: of an estimate, of each period of a trend, and of both periods of a comparison."""
    fill(store, registry, "dark_mode", [0.3, 0.7], 30_000, "2026-11-18")

    def lines(path: str) -> list[dict[str, str]]:
        return list(csv.DictReader(io.StringIO(browser.get(path).text)))

    for line in lines("/metric/dark_mode.csv?from=2026-11-18&to=2026-11-20"):
        assert (line["first"], line["last"]) == ("2026-11-18", "2026-11-20")
        assert line["n"] == "50000"
        assert 30_000 <= int(line["devices"]) <= 50_000
    for line in lines("/metric/dark_mode/trend.csv?from=2026-11-18&to=2026-11-20"):
        assert line["first"] == line["last"] == line["period"]
        assert line["n"] == {"2026-11-18": "30000", "2026-11-20": "20000"}[line["period"]]
    asked = "from=2026-11-20&to=2026-11-20&before_from=2026-11-18&before_to=2026-11-19"
    changes = lines(f"/metric/dark_mode/compare.csv?{asked}")
    assert len(changes) == 2
    for line in changes:
        assert (line["first_before"], line["last_before"]) == ("2026-11-18", "2026-11-18")
        assert (line["first_after"], line["last_after"]) == ("2026-11-20", "2026-11-20")
        assert (line["n_before"], line["n_after"]) == ("30000", "20000")

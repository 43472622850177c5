"""The pages: what they say, escape, refuse and forbid."""

from __future__ import annotations

import csv
import io
import re
from xml.etree import ElementTree

import pytest
from flask import Flask
from flask.testing import FlaskClient

from hearsay import Registry
from hearsay_collector.stores import Store, StoreUnavailable, open_store
from hearsay_estimator.dashboard import create_app
from hearsay_estimator.dashboard.settings import Settings


def drawings(page: str) -> list[ElementTree.Element]:
    """Every labelled SVG of a page, parsed."""
    return [
        ElementTree.fromstring(found)
        for found in re.findall(r"<svg[^>]*role=\"img\".*?</svg>", page, re.DOTALL)
    ]


def texts(drawing: ElementTree.Element) -> str:
    return " ".join("".join(drawing.itertext()).split())


def test_the_overview_shows_every_metric(browser: FlaskClient) -> None:
    """Each metric has its question, picture, answers, epsilon and freshness."""
    page = browser.get("/").text
    for part in ("Which browser opens links?", "20,000 answers", "1.0", "up to yesterday"):
        assert part in page
    first, second = drawings(page)
    assert "chrome 74.0%" in texts(first)
    assert "20.0%" in page
    assert "dark_mode" in texts(second)
    assert "Waiting for the first answers" in page
    assert "Expired on 2026-11-01" in page


def test_an_empty_dashboard_teaches_the_first_step(empty_browser: FlaskClient) -> None:
    """Before any answer the overview says how to get one, with a metric of this registry."""
    page = empty_browser.get("/").text
    assert "hearsay collect" in page
    assert "telemetry.record(&#34;browser&#34;" in page or 'telemetry.record("browser"' in page
    assert "hearsay demo" in page
    assert not drawings(page)


def test_the_metric_page_answers_the_first_questions(browser: FlaskClient) -> None:
    """Which value leads, whether the lead is real, how many answered, what a device risks."""
    page = browser.get("/metric/browser").text
    assert "chrome leads with 74.0%, ahead of firefox by more than the noise." in page
    assert "20,000 answers, 20 Nov 2026" in page
    assert "What a device risks" in page
    assert "<strong>2.72</strong>" in page
    assert "<strong>73.2</strong> times in 100" in page
    assert "at most <strong>8</strong> answers" in page


def test_the_chart_draws_every_value_with_its_interval(browser: FlaskClient) -> None:
    """Each bar has a whisker around its end, and what is noise is drawn as such."""
    (chart,) = drawings(browser.get("/metric/browser").text)
    rows = [row for row in chart if row.get("class", "").startswith("row")]
    assert len(rows) == 4
    noise = ["noise" in row.get("class", "") for row in rows]
    assert noise == [False, False, True, True] or noise == [False, False, False, True]
    for row in rows:
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


def test_the_table_has_every_number(browser: FlaskClient) -> None:
    """The table names its columns and has a headed row for each value, noise marked."""
    page = browser.get("/metric/browser").text
    assert page.count('scope="col"') == 6
    assert page.count('scope="row"') == 4
    assert "95% interval" in page
    assert "&lt; 0.0001" in page
    assert "<small>noise</small>" in page


@pytest.mark.parametrize("path", ["/", "/metric/browser", "/metric/silent", "/metric/nope"])
def test_hostile_text_is_escaped_everywhere(browser: FlaskClient, path: str) -> None:
    """Values and descriptions are text, in HTML as in SVG, and there is no script or style."""
    page = browser.get(path).text
    assert "<script" not in page
    assert "<b>anybody" not in page
    assert 'style="' not in page
    assert "onload" not in page


def test_a_range_without_answers_says_where_they_are(browser: FlaskClient) -> None:
    """An empty range names the newest window instead of drawing nothing."""
    page = browser.get("/metric/browser?from=2026-01-01&to=2026-01-31").text
    assert "No answers in these days" in page
    assert "2026-11-20" in page
    assert "No device has answered yet" in browser.get("/metric/silent").text


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
def test_every_answer_carries_the_same_protection(browser: FlaskClient, path: str) -> None:
    """No answer may run scripts, be framed, sniffed or kept by caches."""
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

    settings = Settings(dashboard_token=token)
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

    settings = Settings(dashboard_token=token)
    broken = create_app(settings, store=Broken(), registry=registry).test_client()  # type: ignore[arg-type]
    answer = broken.get("/", headers={"Authorization": f"Bearer {token}"})
    assert answer.status_code == 500
    assert "inside" not in answer.text


def test_a_dashboard_may_start_before_the_collector(
    token: str, registry: Registry, tmp_path: object
) -> None:
    """Without a store file the page says what to check, and nothing is created."""
    store: Store = open_store(f"sqlite:///{tmp_path}/none.db")
    app = create_app(Settings(dashboard_token=token), store=store, registry=registry)
    answer = app.test_client().get("/", headers={"Authorization": f"Bearer {token}"})
    assert answer.status_code == 503
    assert "collector" in answer.json["detail"]

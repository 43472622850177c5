"""The trend on the metric's page, and the page that compares two periods."""

from __future__ import annotations

import csv
import io
import re
from xml.etree import ElementTree

import pytest
from flask import Flask
from flask.testing import FlaskClient

from deniable import Registry
from deniable_collector.stores import Store
from deniable_estimator.dashboard import create_app
from deniable_estimator.dashboard.settings import DashboardSettings

from .conftest import NOW, REGISTRY, TOKEN, fill

DAYS = {"2026-11-10": 0.1, "2026-11-11": 0.1, "2026-11-13": 0.1, "2026-11-17": 0.3}
"""Day -> the share that says yes; the 20th, with 0.2, is in the store already."""


@pytest.fixture
def store(store: Store, registry: Registry) -> Store:
    for day, share in DAYS.items():
        fill(store, registry, "dark_mode", [share, 1 - share], 20_000, day)
    fill(store, registry, "browser", [0.35, 0.64, 0.01, 0.0], 20_000, "2026-11-13")
    return store


def drawing(page: str, kind: str) -> ElementTree.Element:
    found = re.search(
        rf'<svg class="chart {kind}".*?</svg>\s*(?=<div class="points")', page, re.DOTALL
    )
    assert found is not None
    return ElementTree.fromstring(found[0])


def test_the_trend_is_drawn_with_its_band(browser: FlaskClient) -> None:
    """Every day with reports is a dot in the plot with its interval; unbroken days share a band."""
    page = browser.get("/metric/dark_mode").text
    chart = drawing(page, "trend")
    dots = [each for each in chart.iter() if each.get("class", "").startswith("dot")]
    assert len(dots) == 5
    paths = [each for each in chart.iter() if each.tag.endswith("path")]
    assert [each.get("class") for each in paths] == ["interval", "line"]
    assert len(re.findall(r"[ML]", paths[1].get("d", ""))) == 2
    whiskers = [each for each in chart.iter() if each.get("class") == "whisker"]
    assert len(whiskers) == 3
    assert all(0 < float(dot.get("cy", "").removesuffix("em")) < 220 / 16 for dot in dots)


def test_the_newest_change_is_told_with_its_interval(browser: FlaskClient) -> None:
    """The last day against the same weekday before, in words, and in the table of days."""
    page = browser.get("/metric/dark_mode").text
    assert re.search(
        r"20 Nov 2026 vs 13 Nov 2026: up 10\.\d points \(95% CI \+\d+\.\d to \+\d+\.\d\)", page
    )
    assert len(re.findall(r'<th scope="row">\d+ Nov 2026', page)) == 5
    tips = re.findall(r'<input type="radio" name="trend-point"><span class="tip">([^<]+)', page)
    assert len(tips) == 5
    assert tips[-1].startswith("20 Nov 2026: true 20.0%, 18.6% to 21.4%")


def test_days_add_up_to_weeks(browser: FlaskClient) -> None:
    """By week there are two periods, and the one that is not over is marked, and compared with
    none."""
    page = browser.get("/metric/dark_mode?by=week").text
    assert "2026-W47 (partial)" in page
    assert "2026-W47 vs" not in page
    assert browser.get("/metric/dark_mode?by=hour").status_code == 400


def test_the_range_is_compared_with_as_many_days_before(browser: FlaskClient) -> None:
    """The page says how chosen days have changed against the days before them."""
    page = browser.get("/metric/dark_mode?from=2026-11-14&to=2026-11-20").text
    assert re.search(
        r"Yes is up 15\.\d points \(95% CI [^)]+\)\. Compared with 7 Nov 2026 to 13 Nov 2026\.",
        page,
    )
    alone = browser.get("/metric/dark_mode?from=2026-11-01&to=2026-11-20").text
    assert "No reports from 11 Oct 2026 to 30 Oct 2026 to compare with." in alone


def test_a_value_is_chosen_by_its_small_chart(browser: FlaskClient) -> None:
    """Each large value has a small chart that links to its trend; the chosen one is drawn large."""
    page = browser.get("/metric/browser?value=firefox").text
    assert "Over time: firefox" in page
    assert page.count('class="chart trend small"') == 4
    assert "value=chrome" in page
    assert browser.get("/metric/browser/trend.svg?value=firefox").status_code == 200
    for path in ("/metric/browser", "/metric/browser/trend.svg"):
        assert browser.get(f"{path}?value=nonsense").status_code == 400


def test_one_period_is_no_trend(browser: FlaskClient) -> None:
    """With reports from one day alone the page says what is missing."""
    page = browser.get("/metric/browser?from=2026-11-20").text
    assert "needs reports from two days" in page


def test_trend_files(browser: FlaskClient) -> None:
    """The files hold every period and value, under the grouping of the page."""
    answer = browser.get("/metric/dark_mode/trend.csv?by=week")
    assert answer.headers["Content-Disposition"] == "attachment; filename=dark_mode-trend.csv"
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert [row["period"] for row in rows] == ["2026-W46"] * 2 + ["2026-W47"] * 2
    document = browser.get("/metric/dark_mode/trend.json").json
    assert sum(period["n"] for period in document["periods"]) == 100_000


def test_a_comparison_says_what_changed(browser: FlaskClient) -> None:
    """Values that changed by more than noise are named with their intervals; others are grey."""
    query = "from=2026-11-20&to=2026-11-20&before_from=2026-11-13&before_to=2026-11-13"
    page = browser.get(f"/metric/browser/compare?{query}").text
    assert re.search(r"chrome is up 10\.\d points \(95% CI", page)
    assert re.search(r"firefox is down 10\.\d points \(95% CI", page)
    charts = re.findall(r'<div class="chart large".*?</div>', page, re.DOTALL)
    rows = [re.findall(r'<svg class="(row[^"]*)"', chart) for chart in charts]
    assert rows == [["row", "row"], ["row noise", "row noise"]]
    assert page.count("2 changes cannot be told from noise") == 3
    assert page.count("<small>noise</small>") == 2
    assert "<script" not in page
    text = browser.get(f"/metric/browser/compare.csv?{query}").text
    changes = {row["value"]: row for row in csv.DictReader(io.StringIO(text))}
    assert changes["chrome"]["changed"] == "True"
    assert float(changes["chrome"]["difference"]) == pytest.approx(0.1, abs=0.001)
    assert browser.get(f"/metric/browser/compare.json?{query}").json["level"] == 0.95


def test_periods_that_cannot_be_compared(browser: FlaskClient) -> None:
    """Overlapping ranges, ranges without reports and bad dates are explained."""
    overlap = "from=2026-11-10&to=2026-11-20&before_from=2026-11-01&before_to=2026-11-11"
    answer = browser.get(f"/metric/dark_mode/compare?{overlap}")
    assert answer.status_code == 400
    assert "do not overlap" in answer.text
    empty = browser.get("/metric/dark_mode/compare?before_from=2026-01-01&before_to=2026-01-02")
    assert "No reports to compare" in empty.text
    wrong = browser.get("/metric/dark_mode/compare?before_from=x")
    assert wrong.status_code == 400
    assert browser.get("/metric/dark_mod/compare").status_code == 404


def test_remembered_noise_is_not_compared(store: Store) -> None:
    """Where devices repeat remembered noise, no interval of a change is shown anywhere."""
    text = REGISTRY.replace("sample_rate = 0.02", 'sample_rate = 0.02\nlongitudinal = "memoize"')
    registry = Registry.parse(text)
    store.publish({"dark_mode": [registry["dark_mode"].scheme]})
    app: Flask = create_app(
        DashboardSettings(dashboard_token=TOKEN), store=store, registry=registry, clock=lambda: NOW
    )
    client = app.test_client()
    client.post("/login", data={"token": TOKEN})
    page = client.get("/metric/dark_mode").text
    assert "not independent" in page
    assert "% CI" not in page
    assert "cannot be compared" in client.get("/metric/dark_mode/compare").text
    assert client.get("/metric/dark_mode/compare.json").status_code == 400

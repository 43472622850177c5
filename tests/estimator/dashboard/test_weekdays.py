"""Periods that are compared hold the same weekdays, and every page tells one change alike."""

from __future__ import annotations

import html
import re
import secrets
from datetime import date, datetime, timedelta

import pytest
from flask.testing import FlaskClient

from deniable import Registry
from deniable_collector.stores import Store
from deniable_collector.stores.commits import Commit, Increment, TallyKey, TallyRowKey
from deniable_estimator.dashboard import create_app
from deniable_estimator.dashboard.settings import DashboardSettings

from .conftest import NOW, TOKEN, fill

JSON = {"Accept": "application/json"}

LAST = date(2026, 11, 20)
"""A Friday, the last complete day of a dashboard that is looked at on the 21st."""

PERIODS = (1, 2, 7, 20, 28, 30, 91)


@pytest.fixture
def store(empty_store: Store, registry: Registry) -> Store:
    """200 days of a metric that changes on weekends and never else; a few reports of today."""
    days = [LAST - timedelta(days=ago) for ago in range(200)]
    shares = {each.isoformat(): 0.5 if each.weekday() < 5 else 0.8 for each in days}
    fill_days(empty_store, registry, "dark_mode", shares, 40_000)
    fill(empty_store, registry, "dark_mode", [0.9, 0.1], 2_000, "2026-11-21")
    return empty_store


def fill_days(
    store: Store, registry: Registry, name: str, shares: dict[str, float], n: int
) -> None:
    """Days of a boolean with these shares of yes, in one commit."""
    scheme = registry[name].scheme
    p, q = float(scheme.mechanism.p), float(scheme.mechanism.q)
    increments = {}
    for day, share in shares.items():
        counts = [round(n * (q + each * (p - q))) for each in (share, 1 - share)]
        key = TallyRowKey(TallyKey(name, scheme.fingerprint, day), 0)
        increments[key] = Increment(2, n, (0, 1), counts)
    store.fold(Commit((secrets.token_hex(16),), increments), NOW)


def told(page: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split())


@pytest.mark.parametrize("days", PERIODS)
def test_a_weekend_is_no_change(browser: FlaskClient, days: int) -> None:
    """A metric that never changes but on weekends changes in no period, however long, on the
    metric's page, in its trend and in the comparison."""
    first = LAST - timedelta(days=days - 1)
    query = f"from={first}&to={LAST}"
    page = told(browser.get(f"/metric/dark_mode?{query}").text)
    assert "vs" in page
    assert not re.search(r"\b(up|down) [\d.]+ points", page)
    comparison = told(browser.get(f"/metric/dark_mode/compare?{query}").text)
    assert "No change that can be told from noise" in comparison
    changes = browser.get(f"/metric/dark_mode/trend.json?{query}&by=day").json["periods"]
    assert all(abs(value["change"]) < 1e-3 for period in changes for value in period["values"])
    assert all(
        date.fromisoformat(each["period"]) - date.fromisoformat(each["since"]) == timedelta(days=7)
        for each in changes
    )


def test_presets_compare_alike(browser: FlaskClient) -> None:
    """Every preset of the page ends with the last complete day, and shows no change either."""
    page = browser.get("/metric/dark_mode").text
    presets = re.search(r'<ul class="presets".*?</ul>', page, re.DOTALL)
    assert presets is not None
    links = [html.unescape(each) for each in re.findall(r'href="([^"]+)"', presets[0])]
    assert len(links) == 4
    for link in links:
        assert "to=2026-11-20" in link
        page = told(browser.get(link).text)
        assert not re.search(r"\b(up|down) [\d.]+ points", page)
    # What is still coming in is one click away, and not among the days that are shown first.
    assert "2,240,000" not in page


def test_a_cut_week_is_not_compared_with_a_whole_one(browser: FlaskClient) -> None:
    """A week of which five days are over is unfinished; no change is told of it."""
    page = told(browser.get("/metric/dark_mode?by=week").text)
    assert "2026-W47 (unfinished)" in page
    assert not re.search(r"\b(up|down) [\d.]+ points", page)


def test_the_api_calls_an_unfinished_week_partial(browser: FlaskClient) -> None:
    """A week that has not ended is partial, also if the range that was asked for holds it all."""
    for last in ("2026-11-20", "2026-11-21", "2026-11-22", "2026-11-30"):
        answer = browser.get(
            f"/api/v1/metrics/dark_mode/trend?by=week&from=2026-11-02&to={last}", headers=JSON
        ).json
        partial = {each["period"]: each["partial"] for each in answer["periods"] if each["n"]}
        assert partial == {"2026-W45": False, "2026-W46": False, "2026-W47": True}


@pytest.mark.usefixtures("store")
def test_one_change_has_one_interval(
    browser: FlaskClient, empty_store: Store, registry: Registry
) -> None:
    """The metric's page, its trend, the comparison's page and its file tell one change by the
    same numbers with the same signs."""
    for day, shares in (("2026-11-13", [0.3, 0.6, 0.1, 0.0]), ("2026-11-20", [0.4, 0.55, 0.05, 0])):
        fill(empty_store, registry, "browser", shares, 20_000, day)
    query = "from=2026-11-20&to=2026-11-20"
    interval = r"down (\S+) points \(95% CI (\S+) to (\S+)\)"
    page = told(browser.get(f"/metric/browser?{query}&value=chrome").text)
    (since,) = re.findall(f"chrome is {interval}", page)
    trend = told(browser.get("/metric/browser?from=2026-11-13&to=2026-11-20&value=chrome").text)
    assert f"20 Nov 2026 vs 13 Nov 2026: down {since[0]} points" in trend
    assert re.findall(f"20 Nov 2026 vs 13 Nov 2026: {interval}", trend) == [since]
    comparison = told(browser.get(f"/metric/browser/compare?{query}").text)
    assert since in re.findall(f"chrome is {interval}", comparison)
    minus = "\N{MINUS SIGN}"
    assert f"{minus}{since[0]} {since[1]} to {since[2]}" in comparison
    assert since[1].startswith(minus)
    assert since[2].startswith(minus)
    rows = browser.get(f"/metric/browser/compare.json?{query}").json["values"]
    (chrome,) = [row for row in rows if row["value"] == "chrome"]
    assert float(since[1].replace(minus, "-")) == pytest.approx(100 * chrome["low"], abs=0.051)
    assert float(since[2].replace(minus, "-")) == pytest.approx(100 * chrome["high"], abs=0.051)


def test_a_tag_knows_when_a_week_is_over(store: Store, registry: Registry) -> None:
    """At midnight after Sunday the week is whole, and a program that asks again is not told that
    nothing has changed."""
    tags, partial = [], []
    for now in ("2026-11-22T23:59:00+00:00", "2026-11-23T00:01:00+00:00"):
        time = datetime.fromisoformat(now).timestamp()
        settings = DashboardSettings(dashboard_token=TOKEN)
        app = create_app(settings, store=store, registry=registry, clock=lambda time=time: time)
        address = "/api/v1/metrics/dark_mode/trend?by=week&from=2026-11-02&to=2026-11-22"
        headers = {"Authorization": f"Bearer {TOKEN}", "Accept-Encoding": "identity"}
        known = {"If-None-Match": f'"{tags[0]}"'} if tags else {}
        answer = app.test_client().get(address, headers={**headers, **known})
        assert answer.status_code == 200
        tags.append(answer.get_etag()[0])
        partial.append(answer.json["periods"][-1]["partial"])
    assert partial == [True, False]
    assert tags[0] != tags[1]


def test_periods_with_other_weekdays_are_marked(
    browser: FlaskClient, empty_store: Store, registry: Registry
) -> None:
    """Where days are missing in one period the page says that its weekdays differ, and so does
    the file; a week that lacks days is compared with no other."""
    assert "same weekdays" not in told(browser.get("/metric/dark_mode").text)
    old = "from=2026-05-22&to=2026-06-18"
    page = told(browser.get(f"/metric/dark_mode?{old}").text)
    assert "the two periods do not hold the same weekdays" in page
    (note,) = browser.get(f"/api/v1/metrics/dark_mode/comparison?{old}", headers=JSON).json["notes"]
    assert "weekdays" in note
    weeks = browser.get("/metric/dark_mode/trend.json?from=2026-05-04&to=2026-05-31&by=week").json
    first, second, third, _ = weeks["periods"]
    assert (first["since"], second["since"]) == (None, None)
    assert third["since"] == second["period"]

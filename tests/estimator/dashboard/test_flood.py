"""A day of fakes among many honest ones: the alarm, the mark in the trend, and leaving it out."""

from __future__ import annotations

import html
import re
import secrets
from collections.abc import Callable
from dataclasses import replace
from datetime import date, timedelta

import numpy as np
import pytest
from flask import Flask
from flask.testing import FlaskClient

from deniable import Registry
from deniable_collector.stores import Store
from deniable_collector.stores.commits import Commit, Increment, TallyKey, TallyRowKey
from deniable_collector.tally import Tally, TallyRow
from deniable_estimator.analyses.sampling import sample_tally
from deniable_estimator.dashboard import create_app, gunicorn_conf
from deniable_estimator.dashboard.settings import DashboardSettings
from deniable_estimator.dashboard.sources import windows

from .conftest import NOW, TOKEN

FLOOD = "2026-11-12"
"""A Thursday, nine days before a dashboard that is looked at on the 21st."""

FAKES = 6000
DAYS = [date(2026, 11, 20) - timedelta(days=ago) for ago in range(60)]
JSON = {"Accept": "application/json"}


@pytest.fixture
def registry() -> Registry:
    return Registry.parse("""
schema = 1
app = "example"
[defaults]
owner = "growth@acme.example"
expires = 2027-06-30

[metrics.browser]
type = "category"
description = "Which browser opens links?"
epsilon = 1.0
lifetime_epsilon = 8.0
values = ["chrome", "firefox", "safari", "edge", "opera", "other"]

[metrics.dark_mode]
type = "boolean"
description = "Is dark mode on?"
epsilon = 1.0
lifetime_epsilon = 8.0

[metrics.site]
type = "string"
description = "Which site?"
epsilon = 1.0
lifetime_epsilon = 8.0
""")


def put(store: Store, *tallies: Tally) -> None:
    increments = {}
    for tally in tallies:
        (day,) = tally.windows
        for number, row in enumerate(tally.rows):
            columns = np.flatnonzero(row.cells)
            key = TallyRowKey(TallyKey(tally.metric, tally.scheme, day), number)
            increments[key] = Increment(
                len(row.cells), row.reports, columns.tolist(), row.cells[columns].tolist()
            )
    store.fold(Commit((secrets.token_hex(16),), increments), NOW)


def flood(registry: Registry, metric: str, value: int, day: str, fakes: int = FAKES) -> Tally:
    """Fakes that all push one value; their other columns are filled up at random."""
    scheme = registry[metric].scheme
    size = scheme.mechanism.rows[0].width
    rng = np.random.default_rng(6)
    others = np.delete(np.arange(size), value)
    more = scheme.mechanism.k - 1
    chosen = rng.permuted(np.tile(others, (fakes, 1)), axis=1)[:, :more].ravel()
    cells = np.bincount(chosen, minlength=size)
    cells[value] += fakes
    return Tally(metric, scheme.fingerprint, (day,), (TallyRow(fakes, cells),))


@pytest.fixture
def store(empty_store: Store, registry: Registry) -> Store:
    """60 honest days of 9,000 browsers and of as many reports about dark mode; on one of them
    6,000 fakes say firefox."""
    rng = np.random.default_rng(5)
    shares = {"browser": [0.5, 0.08, 0.2, 0.12, 0.04, 0.06], "dark_mode": [0.3, 0.7]}
    tallies = [
        sample_tally(
            registry[name].scheme,
            rng.multinomial(rng.poisson(9000), weights),
            rng,
            metric=name,
            window=day.isoformat(),
        )
        for name, weights in shares.items()
        for day in DAYS
    ]
    put(empty_store, *tallies)
    put(empty_store, flood(registry, "browser", 1, FLOOD))
    return empty_store


def told(page: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split())


def alarms(page: str) -> list[str]:
    return [told(each) for each in re.findall(r'<div class="alarm.*?</div>', page, re.DOTALL)]


def link(page: str, text: str) -> str:
    found = re.findall(rf'<a [^>]*href="([^"]+)"[^>]*>\s*{re.escape(text)}\s*</a>', page)
    return html.unescape(found[0])


def test_the_day_is_named_on_the_page(browser: FlaskClient) -> None:
    """Fakes of one day among 28 are an alarm that names the day and the value, says how many
    checks share its level, and what to do; nothing leads, and no change is told."""
    page = browser.get("/metric/browser").text
    (alarm,) = alarms(page)
    assert "12 Nov 2026" in alarm
    assert re.search(r"the share of firefox is 10\d\.\d\d%, where [78]\.\d\d% was usual", alarm)
    assert re.search(r"1[45],\d{3} reported, where [89],\d{3} were usual", alarm)
    assert re.search(r"All 1\d\d checks .* once in 1,000", alarm)
    assert "Do not correct the shares" in alarm
    text = told(page)
    assert "Anomalous: 12 Nov 2026. Do not rely on these shares." in text
    assert "leads" not in text
    assert " vs 26 Sep" not in text
    assert "20 Nov 2026 vs 13 Nov 2026" in text, "a change between two honest days stays"


def test_the_card_carries_the_alarm(browser: FlaskClient) -> None:
    """The overview marks the metric's card, names the day, and marks no other."""
    page = browser.get("/").text
    (card,) = re.findall(r'<li class="card metric alarmed">.*?</li>', page, re.DOTALL)
    assert "Anomalous: 12 Nov 2026. Do not rely on these shares." in told(card)
    assert "Which browser opens links?" in card
    assert page.count("Anomalous") == 2, "the card, and the strip of what needs attention"
    (line,) = re.findall(r'<li class="anomaly">.*?</li>', page)
    assert 'href="/metric/browser?from=2026-10-24&amp;to=2026-11-20"' in line


@pytest.mark.parametrize(
    "days", ["from=2026-11-12&to=2026-11-12", "from=2026-11-10", "from=2026-09-25"]
)
def test_every_range_that_holds_it_is_alarmed(browser: FlaskClient, days: str) -> None:
    """Also of one day alone: it is compared with the days before, which the page does not show."""
    assert "12 Nov 2026" in alarms(browser.get(f"/metric/browser?{days}&to=2026-11-20").text)[0]
    assert alarms(browser.get("/metric/browser?from=2026-11-13").text) == []
    assert alarms(browser.get("/metric/browser?to=2026-11-11").text) == []


def test_the_trend_marks_the_day(browser: FlaskClient) -> None:
    """The day is marked in the chart, in its legend and in the table of days, also by week and
    as a picture; where nothing is strange, nothing is."""
    page = browser.get("/metric/browser?value=firefox").text
    (chart,) = re.findall(r'<div class="trend-box".*?</div>\s*</div>', page, re.DOTALL)
    assert len(re.findall(r'<rect class="alarm"', chart)) == 1
    assert '<span class="tip">12 Nov 2026, anomalous: firefox' in chart
    (row,) = re.findall(r'<tr class="alarmed">.*?</tr>', page, re.DOTALL)
    assert "12 Nov 2026" in row
    week = browser.get("/metric/browser?by=week").text
    assert '<span class="tip">2026-W46, anomalous: ' in week
    picture = browser.get("/metric/browser/trend.svg?value=firefox")
    assert picture.text.count('fill="#b42318" fill-opacity') == 1
    assert "Anomalous: 12 Nov 2026." in told(browser.get("/metric/browser.svg").text)
    for name in ("browser.svg", "browser/trend.svg"):
        picture = browser.get(f"/metric/{name}?without={FLOOD}")
        assert "#b42318" not in picture.text
        assert "Left out: 12 Nov 2026." in told(picture.text)
    assert 'class="alarm' not in browser.get("/metric/dark_mode").text


def test_the_day_is_left_out_by_a_link(browser: FlaskClient) -> None:
    """The link keeps all other days: the alarm is gone, a lead is a lead again, what is left out
    is said, and can be taken back; a new range keeps it left out."""
    page = browser.get("/metric/browser").text
    address = link(page, "Leave out 12 Nov 2026")
    assert f"without={FLOOD}" in address
    page = browser.get(address).text
    assert alarms(page) == []
    text = told(page)
    assert "Left out: 12 Nov 2026." in text
    assert "chrome leads" in text
    assert "24 Oct 2026 to 20 Nov 2026" in text
    assert f'name="without" value="{FLOOD}"' in page
    assert "without" not in link(page, "Count it again")
    for form in ("csv", "json"):
        file = link(page, "CSV") if form == "csv" else link(page, "JSON")
        assert f"without={FLOOD}" in file
    known = browser.get("/metric/browser.json?from=2026-10-24&to=2026-11-20&without=" + FLOOD).json
    assert len(known["windows"]) == 27
    assert FLOOD not in known["windows"]


def test_the_api_leaves_it_out_too(browser: FlaskClient) -> None:
    """Estimate, trend and comparison take the same parameter, as JSON and as CSV, and say so;
    the days before leave out the same weekday."""
    days = f"from=2026-11-07&to=2026-11-20&without={FLOOD}"
    base = "/api/v1/metrics/browser"
    whole = browser.get(f"{base}/estimate?from=2026-11-07&to=2026-11-20", headers=JSON)
    answer = browser.get(f"{base}/estimate?{days}", headers=JSON)
    assert answer.json["without"] == FLOOD
    assert FLOOD not in answer.json["windows"]
    assert len(answer.json["windows"]) == 13
    assert answer.headers["ETag"] != whole.headers["ETag"]
    rows = browser.get(f"{base}/estimate?{days}&format=csv").text
    assert rows != browser.get(f"{base}/estimate?from=2026-11-07&to=2026-11-20&format=csv").text
    trend = browser.get(f"{base}/trend?{days}&by=day", headers=JSON).json
    assert {each["period"]: each["n"] > 0 for each in trend["periods"]}[FLOOD] is False
    change = browser.get(f"{base}/comparison?{days}", headers=JSON).json
    assert FLOOD not in change["after"]["windows"]
    assert change["before"]["without"] == "2026-10-29,2026-11-12"
    assert len(change["before"]["windows"]) == 13
    wrong = browser.get(f"{base}/estimate?without=2026-W46", headers=JSON)
    assert wrong.status_code == 400
    assert "without" in wrong.json["detail"]


def test_the_api_names_the_windows(browser: FlaskClient) -> None:
    """Programs are told what the page tells: which windows are strange, and by which figures."""
    base = "/api/v1/metrics/browser/anomalies"
    found = browser.get(base, headers=JSON).json
    assert found["anomalous"] is True
    assert [each["window"] for each in found["windows"] if each["anomalous"]] == [FLOOD]
    assert len(found["windows"]) == 28
    assert found["level"] == 0.001
    quiet = browser.get(f"{base}?without={FLOOD}", headers=JSON).json
    assert quiet["anomalous"] is False
    assert len(quiet["windows"]) == 27


def test_an_anomalous_period_is_not_compared_with(browser: FlaskClient) -> None:
    """A page whose earlier period holds the day says that instead of a change; the comparison
    names the day on either side, and leaves it out by a link."""
    text = told(browser.get("/metric/browser?from=2026-11-14&to=2026-11-20&change=range").text)
    assert "Not compared with 7 Nov 2026 to 13 Nov 2026: 12 Nov 2026 is anomalous." in text
    page = browser.get("/metric/browser/compare?from=2026-11-14&to=2026-11-20").text
    (alarm,) = alarms(page)
    assert "12 Nov 2026" in alarm
    assert "Anomalous: 12 Nov 2026. Do not rely on these changes." in told(page)
    assert "firefox is down" not in told(page)
    address = link(page, "Leave out 12 Nov 2026")
    left = browser.get(address).text
    assert alarms(left) == []
    assert "No change that can be told from noise." in told(left)


def test_strings_that_nobody_has_named_are_looked_at(
    browser: FlaskClient, empty_store: Store, registry: Registry
) -> None:
    """Fakes that all choose one row are an alarm on the card and on the page of a metric whose
    strings are not named yet."""
    rng = np.random.default_rng(8)
    scheme = registry["site"].scheme
    days = [
        sample_tally(
            scheme, np.array([3000]), rng, values=["a"], metric="site", window=day.isoformat()
        )
        for day in DAYS[:10]
    ]
    put(empty_store, *days)
    assert "Anomalous" not in told(browser.get("/metric/site").text)
    rows = [TallyRow(0, np.zeros(row.width, np.int64)) for row in scheme.mechanism.rows]
    cells = np.zeros(scheme.mechanism.rows[0].width, np.int64)
    cells[0] = 1000
    rows[0] = TallyRow(1000, cells)
    put(empty_store, Tally("site", scheme.fingerprint, ("2026-11-18",), tuple(rows)))
    assert "18 Nov 2026" in alarms(browser.get("/metric/site").text)[0]
    assert "Anomalous: 18 Nov 2026." in told(browser.get("/").text)


def test_a_second_flood_is_seen_once_the_first_is_left_out(
    browser: FlaskClient, empty_store: Store, registry: Registry
) -> None:
    """What is left out is no measure for what comes after it, and all can be left out at once."""
    put(empty_store, flood(registry, "browser", 1, "2026-11-17", 2000))
    page = browser.get("/metric/browser").text
    assert "12 Nov 2026" in alarms(page)[0]
    page = browser.get(link(page, "Leave out 12 Nov 2026")).text
    assert "17 Nov 2026" in alarms(page)[0]
    page = browser.get(link(page, "Leave out 17 Nov 2026")).text
    assert alarms(page) == []
    assert "Left out: 12 Nov 2026, 17 Nov 2026." in told(page)


def test_a_chart_elsewhere_carries_the_alarm(store: Store, registry: Registry) -> None:
    """A frame says that its shares cannot be relied on, and one of the rest keeps the day out."""
    here = "https://deniable.example"
    settings = DashboardSettings(
        dashboard_token=TOKEN, dashboard_frame_ancestors="https://wiki.example", public_url=here
    )
    app = create_app(settings, store=store, registry=registry, clock=lambda: NOW)
    client = app.test_client()
    client.post("/login", data={"token": TOKEN}, base_url=here)
    for query, alarmed in (("", True), (f"?without={FLOOD}", False)):
        page = client.get(f"/metric/browser{query}", base_url=here).text
        found = re.search(r'&lt;iframe src="([^"]+)"', html.unescape(page).replace("<", "&lt;"))
        assert found is not None
        frame = told(client.get(found[1].replace("&amp;", "&"), base_url=here).text)
        assert ("Do not rely on these shares." in frame) is alarmed
        assert ("chrome leads" in frame) is not alarmed
        assert ("Left out: 12 Nov 2026." in frame) is not alarmed


def test_what_has_not_changed_is_not_looked_at_again(
    app: Flask,
    browser: FlaskClient,
    store: Store,
    registry: Registry,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Windows are looked at once, before anybody asks; when one has changed, it alone is looked at
    again."""
    seen: list[str] = []
    real: Callable[..., object] = windows.look_at_each

    def look(labels: list[str], questions: object) -> object:
        seen.extend(labels)
        return real(labels, questions)

    monkeypatch.setattr(windows, "look_at_each", look)
    gunicorn_conf._overview(app)
    assert len(seen) == 2 * 56
    seen.clear()
    browser.get("/")
    assert seen == []
    put(store, replace(flood(registry, "browser", 2, "2026-11-20", 10)))
    browser.get("/")
    assert seen == ["2026-11-20"]

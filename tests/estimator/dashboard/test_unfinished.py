"""What the dashboard says of a window that has not ended and has reports."""

from __future__ import annotations

import pytest
from flask import Flask
from flask.testing import FlaskClient

from deniable import Registry
from deniable_collector.stores import Store
from deniable_estimator.dashboard import create_app
from deniable_estimator.dashboard.settings import DashboardSettings

from .conftest import NOW, REGISTRY, TOKEN, Clock, fill

TODAY = "2026-11-21"
RANGE = f"from=2026-11-14&to={TODAY}"
AT_ONCE = REGISTRY.replace(
    'description = "Is dark mode on?"\n',
    'description = "Is dark mode on?"\naggregate = "first"\nanswer = "at_once"\n',
).replace(
    'description = "Does <b>anybody</b> report?"\n',
    'description = "Does <b>anybody</b> report?"\naggregate = "first"\nanswer = "at_once"\n',
)


@pytest.fixture
def registry() -> Registry:
    """Two metrics that are answered at once, one of them without reports."""
    return Registry.parse(AT_ONCE)


@pytest.fixture
def clock() -> Clock:
    """Nine o'clock of the day that runs."""
    return Clock(NOW)


@pytest.fixture
def store(store: Store, registry: Registry) -> Store:
    """With reports of a week before, and of the day that runs."""
    for day, share in (("2026-11-14", 0.2), (TODAY, 0.6)):
        fill(store, registry, "dark_mode", [share, 1 - share], 20_000, day)
    return store


@pytest.fixture
def app(store: Store, registry: Registry, clock: Clock) -> Flask:
    settings = DashboardSettings(dashboard_token=TOKEN)
    return create_app(settings, store=store, registry=registry, clock=clock)


def test_the_default_range_ends_before_it(browser: FlaskClient) -> None:
    """Without a range, pages end with the last complete day, and say nothing of today's."""
    page = browser.get("/metric/dark_mode").text
    assert page.count("21 Nov 2026") == 1
    assert "unfinished:" not in page
    assert "21 Nov 2026 has reports already, and is unfinished" in page
    assert "<dt>Window</dt><dd>day, answered at once, with its first record</dd>" in page


def test_a_range_with_it_marks_it(browser: FlaskClient) -> None:
    """The estimate has a warning, the trend a mark, and neither tells a change of that day."""
    page = browser.get(f"/metric/dark_mode?{RANGE}").text
    assert f"unfinished: {TODAY}; more reports will come" in page
    assert "21 Nov 2026 (unfinished)" in page
    assert "21 Nov 2026, unfinished: true" in page
    assert "21 Nov 2026 vs 14 Nov 2026" not in page
    assert "Compare periods" not in page


def test_once_it_has_ended_it_is_like_any_other(browser: FlaskClient, clock: Clock) -> None:
    """At midnight the marks are gone, and the day is compared."""
    assert "(unfinished)" in browser.get(f"/metric/dark_mode?{RANGE}").text
    clock.now += 15 * 3_600
    browser.post("/login", data={"token": TOKEN})  # a session is shorter
    page = browser.get(f"/metric/dark_mode?{RANGE}").text
    assert "unfinished" not in page
    assert "21 Nov 2026 vs 14 Nov 2026" in page


def test_a_comparison_says_it_once(browser: FlaskClient) -> None:
    """The page that compares two days has one warning about the one that runs."""
    page = browser.get(
        f"/metric/dark_mode/compare?from={TODAY}&to={TODAY}"
        "&before_from=2026-11-14&before_to=2026-11-14"
    ).text
    assert page.count(f"unfinished: {TODAY}") == 1


def test_the_api_says_it(browser: FlaskClient, clock: Clock) -> None:
    """Under `unfinished`, and among warnings and notes; the ETag changes when the day has ended,
    so that no copy of the marked answer stays."""
    api, key = "/api/v1/metrics/dark_mode", {"Authorization": f"Bearer {TOKEN}", "Accept": "*/*"}
    first = browser.get(f"{api}/estimate?{RANGE}", headers=key)
    assert first.json is not None
    assert first.json["unfinished"] == [TODAY]
    assert first.json["warnings"][0].startswith(f"unfinished: {TODAY}")
    series = browser.get(f"{api}/trend?{RANGE}", headers=key).json
    assert series is not None
    assert [each["unfinished"] for each in series["periods"]] == [False] * 7 + [True]
    days = f"from={TODAY}&to={TODAY}&before_from=2026-11-14&before_to=2026-11-14"
    compared = browser.get(f"{api}/comparison?{days}", headers=key).json
    assert compared is not None
    assert compared["notes"][0].startswith(f"unfinished: {TODAY}")
    same = browser.get(
        f"{api}/estimate?{RANGE}", headers={**key, "If-None-Match": first.headers["ETag"]}
    )
    assert same.status_code == 304
    clock.now += 15 * 3_600
    ended = browser.get(
        f"{api}/estimate?{RANGE}", headers={**key, "If-None-Match": first.headers["ETag"]}
    )
    assert ended.status_code == 200
    assert ended.json is not None
    assert ended.json["unfinished"] == []


def test_a_metric_without_reports_says_when_they_come(browser: FlaskClient) -> None:
    """Not after the window has closed, but after its first record."""
    page = browser.get("/metric/silent").text
    assert "Reports arrive within seconds after the first record of a window" in page
    assert "has closed" not in page


def test_the_label_says_what_the_time_shows(browser: FlaskClient) -> None:
    """The network and the operator learn roughly when the app was used; of a metric that is
    answered at the close of its windows nothing like that is said."""
    page = browser.get("/metric/dark_mode").text
    assert page.count("roughly when the app was first used in a window") == 2
    assert "roughly when" not in browser.get("/metric/browser").text


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (f"/metric/dark_mode?{RANGE}", "尚未结束：2026-11-21"),
        (f"/metric/dark_mode?{RANGE}", "（尚未结束）"),
        ("/metric/dark_mode", "应用在一个窗口内大约何时第一次被使用"),
        ("/metric/silent", "窗口内第一次记录后几秒内"),
    ],
)
def test_in_chinese(browser: FlaskClient, path: str, text: str) -> None:
    """The same in Chinese."""
    sign = "&" if "?" in path else "?"
    assert text in browser.get(f"{path}{sign}lang=zh-Hans").text

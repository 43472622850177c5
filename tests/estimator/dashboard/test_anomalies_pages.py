"""Fakes on the pages: the budget of every metric, and the alarm of a poisoned one."""

from __future__ import annotations

import html
import re

import pytest
from flask.testing import FlaskClient

from deniable import Registry
from deniable_collector.settings import SettingsError
from deniable_collector.stores import Store
from deniable_estimator.dashboard import create_app
from deniable_estimator.dashboard.settings import DashboardSettings

from .conftest import NOW, TOKEN, fill


def text(client: FlaskClient, address: str) -> str:
    """What the page says, as one line."""
    page = client.get(address)
    assert page.status_code == 200
    return " ".join(html.unescape(re.sub(r"<[^>]+>", "", page.text)).split())


def test_every_estimate_has_its_budget(browser: FlaskClient) -> None:
    """An honest metric's page says what 1% fakes could add, and raises no alarm."""
    page = text(browser, "/metric/dark_mode")
    assert "Worst case with 1% fake devices: +1.38 points for one value." in page
    assert "Anomalous" not in page
    assert "Anomalous" not in text(browser, "/")


def test_a_poisoned_metric_is_marked(
    empty_browser: FlaskClient, empty_store: Store, registry: Registry
) -> None:
    """Shares that only fakes could cause are called anomalous on the page and on the card, with
    the reason and what to do; other metrics are not."""
    fill(empty_store, registry, "dark_mode", [1.1, -0.1], 20_000)
    fill(empty_store, registry, "browser", [0.25, 0.74, 0.01, 0.0], 20_000)
    page = text(empty_browser, "/metric/dark_mode")
    assert "Anomalous: 20 Nov 2026. Do not rely on these shares." in page
    assert "the lowest share, -10.00%, is further below zero than chance takes it" in page
    assert "Do not correct the shares" in page
    assert "Anomalous" not in text(empty_browser, "/metric/browser")
    assert text(empty_browser, "/").count("Anomalous: 20 Nov 2026.") == 2


def test_what_only_the_sum_shows_is_an_alarm_of_the_sum(
    empty_browser: FlaskClient, empty_store: Store, registry: Registry
) -> None:
    """Fakes that are too few on each of 20 days to be seen there are seen in the sum of the days,
    which is then said, without a day to leave out."""
    for day in range(1, 21):
        fill(empty_store, registry, "dark_mode", [1.012, -0.012], 20_000, f"2026-11-{day:02}")
    page = text(empty_browser, "/metric/dark_mode")
    assert "Anomalous: all windows together. Do not rely on these shares." in page
    assert "Leave out" not in page


def test_the_part_of_fakes_and_the_level_are_settings(store: Store, registry: Registry) -> None:
    """DENIABLE_FAKES changes the budget, and DENIABLE_ALARM_LEVEL what is an alarm."""
    fill(store, registry, "dark_mode", [1.02, -0.02], 20_000, "2026-11-19")
    pages = []
    for environment in (
        {"DENIABLE_FAKES": "0.05", "DENIABLE_ALARM_LEVEL": "0.000000000001"},
        {"DENIABLE_ALARM_LEVEL": "0.1"},
    ):
        settings = DashboardSettings.from_env({"DENIABLE_DASHBOARD_TOKEN": TOKEN, **environment})
        app = create_app(settings, store=store, registry=registry, clock=lambda: NOW)
        client = app.test_client()
        client.post("/login", data={"token": TOKEN})
        pages.append(text(client, "/metric/dark_mode?from=2026-11-19&to=2026-11-19"))
    assert "Worst case with 5% fake devices" in pages[0]
    assert "Anomalous" not in pages[0]
    assert "Worst case with 1% fake devices" in pages[1]
    assert "Anomalous" in pages[1]


@pytest.mark.parametrize("value", ["0", "1", "1%", "-0.1", "nan"])
def test_a_part_lies_between_0_and_1(value: str) -> None:
    """Anything else is refused, with its variable's name."""
    with pytest.raises(SettingsError, match=r"DENIABLE_FAKES must be a number between 0 and 1"):
        DashboardSettings.from_env({"DENIABLE_FAKES": value})


def test_the_planner_states_the_budget(browser: FlaskClient) -> None:
    """A small epsilon is a weak shield, which the planner says before a metric is declared."""
    assert re.search(
        r"1% fake devices ?18\.11 points ?that they could add",
        text(browser, "/plan?size=10&epsilon=0.1"),
    )


def test_what_is_impossible_is_called_so(
    empty_browser: FlaskClient, empty_store: Store, registry: Registry
) -> None:
    """Also of too few reports for an alarm, a share of 130% leads nothing and is no noise, on the
    page, on the card, in the comparison and in the files."""
    fill(empty_store, registry, "dark_mode", [1.4, -0.4], 900)
    fill(empty_store, registry, "browser", [1.2, 0.2, -0.4, 0.0], 900)
    fill(empty_store, registry, "browser", [0.4, 0.3, 0.2, 0.1], 900, "2026-11-13")
    page = text(empty_browser, "/metric/browser?from=2026-11-20")
    assert re.search(
        r"Impossible: .[34]\d\.\d% for .*, 1[12]\d\.\d% for .*firefox.* Do not rely", page
    )
    assert "leads" not in page
    assert " vs " not in page.split("Every day")[0]
    assert page.count("impossible") >= 3
    cards = text(empty_browser, "/")
    assert re.search(r"Impossible: 1[34]\d\.\d% say yes\. Do not rely on these shares\.", cards)
    assert "Nothing stands out" not in cards
    changes = text(empty_browser, "/metric/browser/compare?from=2026-11-20&to=2026-11-20")
    assert "Impossible: " in changes
    assert "firefox is up" not in changes
    rows = empty_browser.get("/metric/browser.json?from=2026-11-20").json["values"]
    assert {row["value"]: row["impossible"] for row in rows}["firefox"] is True
    picture = empty_browser.get("/metric/browser.svg?from=2026-11-20").text
    assert picture.count('fill="#b42318"') == 2

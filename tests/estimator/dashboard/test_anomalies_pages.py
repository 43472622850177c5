"""Fakes on the pages: the budget of every metric, and the alarm of a poisoned one."""

import html
import re

import pytest

from deniable_collector.settings import SettingsError
from deniable_estimator.dashboard import create_app
from deniable_estimator.dashboard.settings import DashboardSettings

from .conftest import NOW, TOKEN, fill


def text(client, address):
    """What the page says, as one line."""
    page = client.get(address)
    assert page.status_code == 200
    return " ".join(html.unescape(re.sub(r"<[^>]+>", "", page.text)).split())


def test_a_poisoned_metric_is_marked(empty_browser, empty_store, registry):
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


def test_the_part_of_fakes_and_the_level_are_settings(store, registry):
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


def test_what_is_left_out_is_named(browser):
    """The windows that a reader leaves out are named in their order, those of these days alone."""
    days = "from=2026-11-14&to=2026-11-20"
    out = "without=2026-11-16,2026-11-15,2026-11-03"
    text = browser.get(f"/metric/dark_mode?{days}&{out}").text
    told = re.search(r"Left out: ([^<]*)\.", text)
    assert told is not None
    assert re.sub("[\u2066-\u2069]", "", told[1]) == "15 Nov 2026, 16 Nov 2026"
    assert "Left out" not in browser.get(f"/metric/dark_mode?{days}").text
    assert "Left out" not in browser.get(f"/metric/dark_mode?{days}&without=2026-11-03").text


@pytest.mark.parametrize("value", ["0", "1", "1%", "-0.1", "nan"])
def test_a_part_lies_between_0_and_1(value):
    """Anything else is refused, with its variable's name."""
    with pytest.raises(SettingsError, match=r"DENIABLE_FAKES must be a number between 0 and 1"):
        DashboardSettings.from_env({"DENIABLE_FAKES": value})

"""Fakes on the pages: the budget of every metric, and the alarm of a poisoned one."""

import html
import re

from deniable_estimator.dashboard import create_app
from deniable_estimator.dashboard.settings import DashboardSettings

from .conftest import NOW, TOKEN, fill


def text(client, address):
    """What the page says, as one line."""
    page = client.get(address)
    assert page.status_code == 200
    return " ".join(html.unescape(re.sub(r"<[^>]+>", "", page.text)).split())


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

"""Fakes on the pages: the budget of every metric, and the alarm of a poisoned one."""

import pytest

from deniable_estimator.dashboard import create_app
from deniable_estimator.dashboard.settings import DashboardSettings

from .conftest import NOW, TOKEN, browser_of, dashboard_of, fill, text_of


@pytest.mark.parametrize(
    ("environ", "worst", "is_anomalous"),
    [
        ({"DENIABLE_FAKES": "0.05", "DENIABLE_ALARM_LEVEL": "0.000000000001"}, "5%", False),
        ({"DENIABLE_ALARM_LEVEL": "0.1"}, "1%", True),
    ],
)
def test_the_part_of_fakes_and_the_level_are_settings(
    store, registry, environ, worst, is_anomalous
):
    """DENIABLE_FAKES changes the budget, and DENIABLE_ALARM_LEVEL what is an alarm."""
    fill(store, registry, "dark_mode", [1.02, -0.02], 20_000, "2026-11-19")
    settings = DashboardSettings.from_env({"DENIABLE_DASHBOARD_TOKEN": TOKEN, **environ})
    app = create_app(settings, store=store, registry=registry, clock=lambda: NOW)
    page = text_of(browser_of(app), "/metric/dark_mode?from=2026-11-19&to=2026-11-19")
    assert f"Worst case with {worst} fake devices" in page
    assert ("Anomalous" in page) is is_anomalous


def test_the_metrics_of_an_overview_share_the_level(store, registry):
    """A day that honest devices bring about once in 157 times (0.006) raises an alarm of 0.01 on
    its page, and none on the overview of four metrics."""
    fill(store, registry, "dark_mode", [1.02, -0.02], 20_000, "2026-11-19")
    browser, days = browser_of(dashboard_of(store, registry, alarm_level=0.01)), "2026-11-19"
    for path, is_anomalous in (("/metric/dark_mode", True), ("/", False)):
        page = text_of(browser, f"{path}?from={days}&to={days}")
        assert ("Anomalous" in page) is is_anomalous

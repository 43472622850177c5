"""The newest complete week on a metric's page: what it says, what changed, who leads by now."""

import re
from datetime import date, timedelta

import pytest
from tests.registries import declared

from deniable import Registry
from deniable.protocol import windows
from deniable_estimator.asking.query import Days
from deniable_estimator.dashboard.ranges import newest_period

from .conftest import NOW, browser_of, dashboard_of, fill

MONDAY = date(2026, 11, 9)
"""That of the newest complete week at NOW, a Saturday."""


def weeks(store, registry, shares, n=20_000):
    """Each week's shares, by how many weeks it lies before the newest, on every day of it."""
    for ago, each in shares.items():
        for day in range(7):
            at = MONDAY + timedelta(day - 7 * ago)
            fill(store, registry, "browser", each, n, at.isoformat())


def words(page):
    return re.sub(r"[\u2068\u2069]|<[^>]+>", "", page)


@pytest.mark.parametrize(
    ("kind", "last", "first_day", "last_day"),
    [
        ("day", date(2026, 11, 20), date(2026, 11, 9), date(2026, 11, 15)),
        ("day", date(2026, 11, 15), date(2026, 11, 9), date(2026, 11, 15)),
        ("day", date(2026, 11, 14), date(2026, 11, 2), date(2026, 11, 8)),
        ("week", date(2026, 12, 31), date(2026, 11, 9), date(2026, 11, 15)),
        ("month", date(2026, 11, 20), date(2026, 10, 1), date(2026, 10, 31)),
        ("month", date(2026, 9, 30), date(2026, 9, 1), date(2026, 9, 30)),
    ],
)
def test_the_newest_week_is_from_monday_to_sunday(kind, last, first_day, last_day):
    """It has ended by now, and does not lie after the days that are shown; months are whole."""
    days = Days(last - timedelta(27), last)
    found = newest_period(days, NOW, kind)
    assert found == Days(first_day, last_day)


def test_before_the_calendar_there_is_no_week():
    """Days at its beginning have no complete week, which is no error."""
    for kind in ("day", "week"):
        assert newest_period(Days(date.min, date.min), NOW, kind) is None
    assert newest_period(Days(date.min, date.min), NOW, "month") is None


def test_another_leader_is_named_only_beyond_noise(empty_browser, empty_store, registry):
    """Over four weeks firefox leads, in the newest one chrome does; where the two are too close
    in either part, nothing is said."""
    weeks(empty_store, registry, {each: [0.47, 0.38, 0.1, 0.05] for each in (1, 2, 3)}, 2_500)
    weeks(empty_store, registry, {0: [0.38, 0.47, 0.1, 0.05]}, 2_500)
    text = words(empty_browser.get("/metric/browser").text)
    assert "firefox leads with" in text
    assert "chrome leads now; before this, firefox did." in text
    alone = words(empty_browser.get("/metric/browser?from=2026-11-09&to=2026-11-15").text)
    assert "leads now" not in alone


def test_a_close_leader_is_no_news(empty_browser, empty_store, registry):
    """A lead of half a point in the newest week is noise, so no new leader is named."""
    weeks(empty_store, registry, {each: [0.5, 0.45, 0.05, 0.0] for each in (1, 2, 3)})
    weeks(empty_store, registry, {0: [0.465, 0.47, 0.065, 0.0]})
    assert "leads now" not in empty_browser.get("/metric/browser").text


def test_a_month_whose_days_were_dropped_has_a_page(empty_store):
    """Its newest week is not kept, so nothing is compared, and the page says why."""
    keep = 'keep = { day = "60 days", month = "forever" }\n'
    registry = Registry.parse(declared(m={"type": "boolean"}) + keep)
    scheme = registry["m"].scheme
    empty_store.publish([("m", scheme)])
    for day in windows.span("day", date(2026, 7, 1), date(2026, 7, 31)):
        fill(empty_store, registry, "m", [0.4, 0.6], 2_000, day)
    before = windows.end("2026-07-31")
    assert empty_store.sums.drop_windows(("m", scheme.fingerprint), before, ("month",))
    client = browser_of(dashboard_of(empty_store, registry))
    page = client.get("/metric/m?from=2026-07-01&to=2026-07-31&change=newest")
    assert page.status_code == 200
    assert "Not compared: only sums of longer periods are kept" in words(page.text)

"""What the dashboard says of a window that has not ended and has reports."""

import pytest

from deniable import Registry

from .conftest import NOW, REGISTRY, TOKEN, Clock, dashboard_of, fill, program_of

TODAY = "2026-11-21"
RANGE = f"from=2026-11-14&to={TODAY}"
AT_ONCE = 'description = "Is dark mode on?"\naggregate = "first"\nanswer = "at_once"\n'


@pytest.fixture
def registry():
    """A metric that is answered at once, beside others."""
    return Registry.parse(REGISTRY.replace('description = "Is dark mode on?"\n', AT_ONCE))


@pytest.fixture
def clock():
    """Nine o'clock of the day that runs."""
    return Clock(NOW)


@pytest.fixture
def store(store, registry):
    """With reports of a week before, and of the day that runs."""
    for day, share in (("2026-11-14", 0.2), (TODAY, 0.6)):
        fill(store, registry, "dark_mode", [share, 1 - share], 20_000, day)
    return store


@pytest.fixture
def app(store, registry, clock):
    return dashboard_of(store, registry, clock=clock)


def test_the_api_says_it(app, clock):
    """Under `unfinished`, and among warnings and notes; the ETag changes when the day has ended,
    so that no copy of the marked answer stays."""
    program, api = program_of(app), "/api/v1/metrics/dark_mode"
    first = program.get(f"{api}/estimate?{RANGE}")
    assert first.json["unfinished"] == [TODAY]
    assert first.json["warnings"][0].startswith(f"unfinished: {TODAY}")
    series = program.get(f"{api}/trend?{RANGE}").json
    assert [each["unfinished"] for each in series["periods"]] == [False] * 7 + [True]
    days = f"from={TODAY}&to={TODAY}&before_from=2026-11-14&before_to=2026-11-14"
    compared = program.get(f"{api}/comparison?{days}").json
    assert compared["notes"][0].startswith(f"unfinished: {TODAY}")
    known = {"If-None-Match": first.headers["ETag"]}
    assert program.get(f"{api}/estimate?{RANGE}", headers=known).status_code == 304
    clock.now += 15 * 3_600
    ended = program.get(f"{api}/estimate?{RANGE}", headers=known)
    assert (ended.status_code, ended.json["unfinished"]) == (200, [])


def test_once_it_has_ended_it_is_like_any_other(browser, clock):
    """At midnight the marks are gone, and the day is compared."""
    assert "(unfinished)" in browser.get(f"/metric/dark_mode?{RANGE}").text
    clock.now += 15 * 3_600
    browser.post("/login", data={"token": TOKEN})  # a session is shorter
    page = browser.get(f"/metric/dark_mode?{RANGE}").text
    assert "unfinished" not in page
    assert "21 Nov 2026 vs 14 Nov 2026" in page


def test_a_fast_clock_moves_no_day(browser, store, registry, clock):
    """One report of tomorrow, by a device whose clock is fast, takes today's place nowhere before
    tomorrow has begun."""
    fill(store, registry, "dark_mode", [1.0, 0.0], 1, "2026-11-22")
    page = browser.get("/metric/dark_mode").text
    assert f"from={TODAY}&amp;to={TODAY}" in page
    assert "2026-11-22" not in page
    clock.now += 86_400
    browser.post("/login", data={"token": TOKEN})
    assert "from=2026-11-22&amp;to=2026-11-22" in browser.get("/metric/dark_mode").text

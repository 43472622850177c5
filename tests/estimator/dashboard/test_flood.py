"""A day of fakes among many honest ones: the alarm, the mark in the trend, and leaving it out."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta

import numpy as np
import pytest
from tests.registries import declared

from deniable import Registry
from deniable_collector.tally import Tally, TallyRow
from deniable_estimator.analyses import sample_tally
from deniable_estimator.dashboard import alarms, gunicorn_conf

from .conftest import put

FLOOD = "2026-11-12"
"""A Thursday, nine days before a dashboard that is looked at on the 21st."""

FAKES = 6000
DAYS = [date(2026, 11, 20) - timedelta(days=ago) for ago in range(60)]
JSON = {"Accept": "application/json"}


@pytest.fixture
def registry():
    values = ["chrome", "firefox", "safari", "edge", "opera", "other"]
    return Registry.parse(
        declared(
            browser={"type": "category", "epsilon": 1.0, "values": values},
            dark_mode={"type": "boolean", "epsilon": 1.0},
        )
    )


def flood(registry, metric, value, day, fakes=FAKES):
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
def store(empty_store, registry):
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
    for tally in (*tallies, flood(registry, "browser", 1, FLOOD)):
        put(empty_store, registry[tally.metric], tally.rows, tally.windows[0])
    return empty_store


def test_the_api_leaves_it_out_too(browser):
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


def test_what_has_not_changed_is_not_looked_at_again(app, browser, store, registry, monkeypatch):
    """Windows are looked at once, before anybody asks; when one has changed, it alone is looked at
    again."""
    seen: list[str] = []
    real: Callable[..., object] = alarms.looks_in

    def look(selection, labels):
        seen.extend(labels)
        return real(selection, labels)

    monkeypatch.setattr(alarms, "looks_in", look)
    gunicorn_conf._overview(app)
    assert len(seen) == 2 * 56
    seen.clear()
    browser.get("/")
    assert seen == []
    put(store, registry["browser"], flood(registry, "browser", 2, "2026-11-20", 10).rows)
    browser.get("/")
    assert seen == ["2026-11-20"]

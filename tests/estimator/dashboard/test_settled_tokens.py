"""Tokens that see settled windows alone: nothing they read tells of a window that grows."""

from __future__ import annotations

import json
from threading import Event, Thread

import numpy as np
import pytest
from click.testing import CliRunner
from tests.registries import tables

from deniable import Registry
from deniable_collector.tally import TallyRow
from deniable_collector.upkeep.keeper import SETTLED
from deniable_estimator.dashboard.commands import new as new_token

from .conftest import REGISTRY, SEGMENTED, YESTERDAY, dashboard_of, fill, program_of, put

OLD, OLDEST = "2026-11-13", "2026-11-12"
"""The newest settled day and the one before: seven full days before `NOW`."""

MORE = tables(word={"type": "string"})

SCOPES = ("--scope", "read:metrics", "--scope", "read:estimates")
DAYS = "from=2026-11-01&to=2026-11-21"
READ = (
    *("/metrics", "/overview", "/metrics/browser", "/metrics/theme"),
    *(f"/metrics?{DAYS}", f"/overview?{DAYS}", f"/metrics/browser/anomalies?{DAYS}"),
    *("/metrics/browser/estimate", f"/metrics/browser/estimate?{DAYS}"),
    *(f"/metrics/browser/trend?{DAYS}&by=day", f"/metrics/browser/trend?{DAYS}&by=week"),
    f"/metrics/browser/comparison?from={OLD}&to=2026-11-21&before_from={OLDEST}&before_to={OLDEST}",
    *(f"/metrics/theme/segments?by=platform&{DAYS}",),
    *(f"/metrics/theme/segments/trend?by=platform&period=day&{DAYS}",),
    *(f"/metrics/word/estimate?value=a&{DAYS}", f"/metrics/word/trend?value=a&by=day&{DAYS}"),
)


@pytest.fixture
def registry():
    return Registry.parse(REGISTRY + MORE + SEGMENTED)


@pytest.fixture
def new_reader(store, registry):
    """A program at a dashboard, which is a new one unless it is given."""
    made = [
        json.loads(
            CliRunner().invoke(new_token, ["--name", name, *SCOPES, *options, "--json"]).stdout
        )
        for name, options in (("open", []), ("settled", ["--settled"]))
    ]
    lines = "\n".join(each["lines"] for each in made)

    def new(settled=True, app=None):
        if app is None:
            app = dashboard_of(store, registry, api_tokens=lines)
        return program_of(app, made[settled]["token"])

    return new


def fill_day(store, registry, day, n=3_000):
    fill(store, registry, "browser", [0.25, 0.74, 0.01, 0.0], n, day)
    fill(store, registry, "theme", [0.25, 0.75], n, day)
    rows = registry["word"].scheme.rows
    each = n // len(rows)
    alike = [TallyRow(each, np.full(row.width, each // 2)) for row in rows]
    put(store, registry["word"], alike, day)


def test_late_reports_change_nothing_that_a_settled_token_reads(store, registry, new_reader):
    """Before and after reports of windows that still take them, every response is the same, byte
    by byte, from a running dashboard and from a new one; an open token sees the difference."""
    for day in (OLDEST, OLD):
        fill_day(store, registry, day)
    settled = new_reader()
    open_one = new_reader(settled=False, app=settled.application)
    before = {path: settled.get(f"/api/v1{path}") for path in READ}
    seen = {path: open_one.get(f"/api/v1{path}") for path in READ}
    assert {each.status_code for each in (*before.values(), *seen.values())} == {200}
    # A window that has just ended, one that ended a week ago less a day, and today's.
    for day in (YESTERDAY, "2026-11-14", "2026-11-21"):
        fill_day(store, registry, day, 50)
    for client in (settled, new_reader()):
        for path in READ:
            after = client.get(f"/api/v1{path}")
            assert after.get_data() == before[path].get_data(), path
            assert after.headers["ETag"] == before[path].headers["ETag"], path
            assert after.headers["Deniable-Settled"] == "2026-11-13"
    for path in READ:
        newer = open_one.get(f"/api/v1{path}")
        assert newer.get_data() != seen[path].get_data(), path
        assert "Deniable-Settled" not in newer.headers


def test_settled_days_are_counted(store, registry, new_reader):
    """A settled token reads all reports of the windows that take none any more, and by default its
    ranges end with the newest of them."""
    fill_day(store, registry, OLD, 3_000)
    fill_day(store, registry, "2026-11-14", 500)
    found = new_reader().get("/api/v1/metrics/browser/estimate").json
    assert found["n"] == 3_000
    assert found["to"] == "2026-11-13"
    (listed, *_) = new_reader().get("/api/v1/metrics").json["metrics"]
    assert (listed["newest"], listed["n"]) == (OLD, 3_000)


def test_a_settled_reader_is_not_given_what_others_wait_for(
    store, registry, new_reader, monkeypatch
):
    """Two readers who ask for the same strings and days at once wait for one calculation only if
    they see the same windows."""
    fill_day(store, registry, OLD, 3_000)
    fill_day(store, registry, YESTERDAY, 500)
    settled = new_reader()
    open_one = new_reader(settled=False, app=settled.application)
    path = f"/api/v1/metrics/word/estimate?value=a&{DAYS}"
    results = settled.application.extensions["deniable_source"].results
    began, go = Event(), Event()
    whole = results._run

    def slowly(*arguments):
        began.set()
        go.wait(120)
        whole(*arguments)

    monkeypatch.setattr(results, "_run", slowly)
    found: dict[str, int] = {}

    def ask(name, client):
        found[name] = client.get(path).json["n"]

    first = Thread(target=ask, args=("open", open_one))
    first.start()
    assert began.wait(120)
    second = Thread(target=ask, args=("settled", settled))
    second.start()
    second.join(0.3)
    go.set()
    first.join(120)
    second.join(120)
    assert found["settled"] < found["open"]


def test_seven_days_after_its_end_a_window_is_settled(store, registry, new_reader):
    """The moment is that of `deniable release`: `SETTLED` seconds after the end of the window."""
    assert SETTLED == 7 * 86_400
    fill_day(store, registry, "2026-11-13", 3_000)
    client = new_reader()
    assert client.get(f"/api/v1/metrics/browser/estimate?{DAYS}").json["n"] == 3_000

"""However much readers ask for at a time, the dashboard answers: with what it has, or with when."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from itertools import count

import pytest
from flask import Flask
from tests.registries import declared

from deniable import Registry
from deniable_estimator.asking.work import TooHeavy, Workers
from deniable_estimator.dashboard.access.tokens import ApiToken, digest_of_token, token_lines
from deniable_estimator.dashboard.app import close_app

from .conftest import browser_of, dashboard_of, fill_drawn, page_of, program_of

REGISTRY = declared(
    long={"type": "category", "epsilon": 4.0, "values": [f"v{number}" for number in range(2_000)]},
)
PLAN = "size=9000&epsilon=1&lifetime_epsilon=8&sample_rate=0.1&memoize=1"
OTHER = "another-token-of-a-program"


@pytest.fixture
def registry():
    return Registry.parse(REGISTRY)


@pytest.fixture
def store(empty_store, registry):
    """Yesterday 20,000 devices had one of the first ten values."""
    fill_drawn(empty_store, registry, "long", {each: 2_000 * (each < 10) for each in range(2_000)})
    return empty_store


@pytest.fixture
def made(store, registry):
    """Makes an application with such settings, and ends its processes."""
    apps: list[Flask] = []

    def make(**settings):
        lines = token_lines(
            ApiToken("other", digest_of_token(OTHER), frozenset({"plan", "read:estimates"}))
        )
        apps.append(dashboard_of(store, registry, api_tokens=lines, **settings))
        return apps[-1]

    yield make
    for app in apps:
        close_app(app)


@pytest.fixture
def held(monkeypatch):
    """Calculations that do not end before the test lets them; and readers of little patience."""
    gate = threading.Event()
    run = Workers.run

    def wait(self, *arguments, **options):
        assert gate.wait(120)
        return run(self, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Workers, "run", wait)
    monkeypatch.setattr("deniable_estimator.dashboard.source.PAGE_PATIENCE", 0.01)
    monkeypatch.setattr("deniable_estimator.dashboard.source.FILE_PATIENCE", 0.02)
    yield gate
    gate.set()


def test_a_full_queue_says_when(made, held):
    """Page and API answer 503 with Retry-After, the page in words, the API as a problem; once there
    is room again, the same question is answered."""
    app = made(dashboard_queue=2)
    reader, api = browser_of(app), program_of(app)
    for devices in (1001, 1002):
        assert reader.get(f"/plan?{PLAN}&devices={devices}").status_code == 202
    page = reader.get(f"/plan?{PLAN}&devices=1003")
    assert page.status_code == 503
    seconds = int(page.headers["Retry-After"])
    assert page.headers["Refresh"] == str(seconds)
    assert "Long calculations that wait or are under way: 2, as many as there may be." in page.text
    assert f"Ask again in {seconds} s." in page.text
    problem = api.get(f"/api/v1/plan?{PLAN}&devices=1003")
    assert problem.status_code == 503
    assert problem.mimetype == "application/problem+json"
    assert problem.json["type"] == "urn:deniable:problem:busy"
    assert problem.headers["Retry-After"] == str(seconds)
    assert reader.get("/plan?size=10").status_code == 200, "what is short needs no queue"
    held.set()
    assert page_of(api, f"/api/v1/plan?{PLAN}&devices=1003").json["devices"] == 1003


def test_what_is_too_heavy_is_a_wrong_question(made, monkeypatch):
    """A calculation that needs more than one may have is refused as the reader's choice."""

    def run(self, *arguments, **options):
        raise TooHeavy(self.memory, self.seconds)

    monkeypatch.setattr(Workers, "run", run)
    api = program_of(made())
    problem = api.get(f"/api/v1/plan?{PLAN}&devices=1003")
    assert problem.status_code == 400
    assert problem.json["type"] == "urn:deniable:problem:too-heavy"


def test_one_reader_leaves_room_for_others(made, held):
    """A reader has a part of the queue; another token, and each session,
    have theirs."""
    app = made(dashboard_queue=12, dashboard_queue_of_one=2)
    readers = program_of(app), program_of(app, OTHER), browser_of(app), browser_of(app)
    numbers = count(1000)
    for reader, path, status in zip(
        readers, 2 * ["/api/v1/plan"] + 2 * ["/plan"], (503, 503, 202, 202), strict=True
    ):
        for _ in range(2):
            answer = reader.get(f"{path}?{PLAN}&devices={next(numbers)}")
            assert answer.status_code == status
            assert "of yours" not in answer.text
        refused = reader.get(f"{path}?{PLAN}&devices={next(numbers)}")
        assert refused.status_code == 503
        assert "Long calculations of yours that wait or are under way: 2" in refused.text
        assert int(refused.headers["Retry-After"]) >= 1


@pytest.mark.campaign
def test_few_large_pages_are_written_at_a_time(made):
    """Four pages that list every value; the fifth reader is told to come back, and others are not
    concerned."""
    app = made()
    reader, results = browser_of(app), app.extensions["deniable_source"].results
    assert page_of(reader, "/metric/long").status_code == 200
    with ExitStack() as others:
        for _ in range(4):
            others.enter_context(results.large())
        refused = reader.get("/metric/long?lines=all")
        assert (refused.status_code, refused.headers["Retry-After"]) == (503, "1")
        assert reader.get("/metric/long").status_code == 200
    for _ in range(5):
        assert reader.get("/metric/long?lines=all").status_code == 200

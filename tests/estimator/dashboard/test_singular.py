"""One thing is never said in the plural, on pages and in a terminal."""

from __future__ import annotations

import re
from html import unescape

import pytest
from click.testing import CliRunner
from flask.testing import FlaskClient

from deniable import Registry
from deniable_collector.stores import Store
from deniable_estimator.dashboard import create_app
from deniable_estimator.dashboard.settings import DashboardSettings
from deniable_estimator.terminal.plan_command import plan

from .conftest import NOW, TOKEN, fill, text_of

_ONE = re.compile(
    r"(?<![\d.,:])\b1 (?:more |fake )?(?:reports|devices|bytes|windows|days|weeks|months|values"
    r"|cells|counters|metrics|tallies|memos|strings)\b"
)


@pytest.fixture
def reader(empty_store: Store, registry: Registry) -> FlaskClient:
    """Somebody who has signed in to a dashboard over one report of each of two metrics."""
    fill(empty_store, registry, "browser", [1.0, 0.0, 0.0, 0.0], 1)
    fill(empty_store, registry, "dark_mode", [0.0, 1.0], 1)
    app = create_app(
        DashboardSettings(dashboard_token=TOKEN),
        store=empty_store,
        registry=registry,
        clock=lambda: NOW,
    )
    client = app.test_client()
    client.environ_base["HTTP_ACCEPT"] = "text/html"
    assert client.post("/login", data={"token": TOKEN}).status_code == 303
    return client


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/?q=browser",
        "/metric/browser",
        "/metric/browser?shares=normalized",
        "/metric/browser.svg",
        "/metric/browser/trend.svg",
        "/metric/dark_mode",
        "/metric/silent",
        "/plan?size=2&epsilon=1&devices=1",
        "/plan?size=2&epsilon=1&devices=1&lifetime_epsilon=1",
        "/plan?size=3&epsilon=12&devices=1&lifetime_epsilon=12",
    ],
)
def test_a_page_says_one_thing_in_the_singular(reader: FlaskClient, path: str) -> None:
    """Of one report, one byte and one window."""
    page = re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]*>", "", text_of(reader, path))))
    assert [page[m.start() - 80 : m.end() + 60] for m in _ONE.finditer(page)] == []


@pytest.mark.parametrize(
    "words",
    [
        "--size 2 --epsilon 1 --lifetime-epsilon 1 --devices 1",
        "--number --low 0 --high 10 --ask mean --epsilon 1 --lifetime-epsilon 1 --devices 1",
        "--pair 2x2 --epsilon 1 --lifetime-epsilon 1 --devices 1",
        "--discovery --epsilon 4 --lifetime-epsilon 4 --max-length 2 --devices 1",
    ],
)
def test_a_plan_says_one_thing_in_the_singular(words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one device that reports one byte, once."""
    monkeypatch.setenv("COLUMNS", "200")
    done = CliRunner().invoke(plan, words.split())
    assert done.exit_code == 0, done.output
    text = " ".join(done.output.split())
    assert _ONE.findall(text) == []
    assert "each device reports 1 time, over about 1 window" in text

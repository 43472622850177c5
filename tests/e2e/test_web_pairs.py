"""A page that `deniable web` made for a registry with a pair and a discovery, in a real browser,
with a real collector."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from deniable import Registry, windows
from deniable.web_command import web_files
from deniable_collector.stores import open_store

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

METRICS = """
schema = 1
app = "example"
[defaults]
owner = "tests@acme.example"
expires = 2999-12-31

[metrics.plan]
type = "category"
description = "The plan."
epsilon = 2.0
lifetime_epsilon = 80.0
values = ["free", "pro"]

[metrics.dark_mode]
type = "boolean"
description = "Dark mode is on."
epsilon = 2.0
lifetime_epsilon = 80.0

[metrics.both]
type = "pair"
description = "How plan and dark mode go together."
of = ["plan", "dark_mode"]
epsilon = 2.0
lifetime_epsilon = 80.0

[metrics.word]
type = "discovery"
description = "The word that was sought last."
max_length = 4
deny = ["*@*"]
epsilon = 4.0
lifetime_epsilon = 80.0
"""
DAY = 86_400
START = """
    const [endpoint, now] = arguments;
    window.now = now;
    window.telemetry = new deniable.Client(deniable.metrics, {
      endpoint, consent: true, spread: 0, clock: () => window.now,
    });
"""
FLUSH = "const done = arguments[0]; telemetry.flush(20).then(done);"
ACCOUNTS = "const done = arguments[0]; telemetry.accounts().then(done);"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[str]:
    """The address of a site with the files of `deniable web` and a page that loads them."""
    folder = tmp_path / "site"
    folder.mkdir()
    for name, content in web_files(Registry.parse(METRICS)).items():
        (folder / name).write_bytes(content)
    page = '<!doctype html><title>page</title><script src="deniable.min.js"></script>'
    (folder / "index.html").write_text(page, encoding="utf-8")

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, *arguments: object) -> None:
            """Nothing: the tests' output is for the tests."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


def test_two_tabs_answer_a_pair_once(
    site: str,
    tmp_path: Path,
    listening: Callable[..., str],
    open_browser: Callable[[bool], Chrome],
) -> None:
    """One tab records the plan and a word, another the mode; on the next day both flush at once.
    The collector has one report of each metric and one of the pair, and no value stays in the
    browser."""
    registry = Registry.parse(METRICS)
    (tmp_path / "metrics.toml").write_text(METRICS, encoding="utf-8")
    database = f"sqlite:///{tmp_path}/tallies.db"
    endpoint = listening(
        "collect",
        DENIABLE_CORS_ORIGINS=site,
        DENIABLE_REGISTRY=str(tmp_path / "metrics.toml"),
        DENIABLE_STORE=database,
    )
    browser = open_browser(True)
    browser.set_script_timeout(60)
    now = time.time()
    recorded = windows.window_at("day", now - DAY)

    tabs = []
    for number, call in enumerate(('"plan", "pro"', '"dark_mode", true', '"word", "me@b"')):
        if number:
            browser.switch_to.new_window("tab")
        browser.get(site)
        tabs.append(browser.current_window_handle)
        browser.execute_script(START, endpoint, now - DAY)
        browser.execute_script(f"telemetry.record({call});")
        browser.execute_async_script(FLUSH)
    held: list[dict[str, Any]] = browser.execute_async_script(ACCOUNTS)
    values = [each["windows"].get(recorded) for each in held if each["name"] != "both"]
    assert sorted(value[0] for value in values if value) == ["", "pro", "true"]

    for tab in tabs:
        browser.switch_to.window(tab)
        # Not awaited: the tabs work at the same time.
        browser.execute_script(f"window.now = {now}; window.flushed = telemetry.flush(20);")
    for tab in tabs:
        browser.switch_to.window(tab)
        assert browser.execute_async_script("flushed.then(arguments[0]);")
    after: list[dict[str, Any]] = browser.execute_async_script(ACCOUNTS)
    assert {each["name"]: each["windows"] for each in after} == {
        name: {recorded: "answered"} for name in registry.metrics
    }
    assert browser.execute_script("return telemetry.counters;") == {}

    store = open_store(database)
    try:
        for metric in registry:
            tally = store.tally(metric.name, metric.scheme.fingerprint, [recorded])
            assert tally.reports == 1, metric.name
    finally:
        store.close()

"""What leaves a web page for a collector at another origin: beacons and `fetch`, in browsers."""

from __future__ import annotations

import json
import secrets
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest
from tests.tools import leave_out

from deniable import Registry, windows
from deniable_collector.stores import open_store

if TYPE_CHECKING:
    from pathlib import Path

    from selenium.webdriver import Chrome

METRICS = """
schema = 1
app = "example"
[metrics.browser]
owner = "tests@acme.example"
expires = 2999-12-31
type = "category"
description = "The browser in use."
values = ["firefox", "chrome", "safari", "edge", "other"]
window = "month"
aggregate = "first"
answer = "at_once"
epsilon = 2.0
lifetime_epsilon = 8.0
"""
KEY = "key+of/the-example.app=="
ANSWER_SECONDS, SILENCE_SECONDS = 30.0, 3.0

BEACON = """
    const [url, body, type] = arguments;
    return navigator.sendBeacon(url, new Blob([body], {type}));
"""
FETCH = """
    const [url, body, type, key, done] = arguments;
    const headers = {"Content-Type": type, ...(key ? {"Authorization": "Bearer " + key} : {})};
    fetch(url, {method: "POST", body, headers, keepalive: true, credentials: "omit"})
        .then(async answer => done([answer.status, await answer.json()]))
        .catch(error => done([0, String(error)]));
"""
LEAVE = """
    const [url, body, type] = arguments;
    addEventListener("pagehide", () => navigator.sendBeacon(url, new Blob([body], {type})));
"""
LEAVE_FETCH = """
    const [url, body, type] = arguments;
    addEventListener("pagehide", () => fetch(
        url, {method: "POST", body, headers: {"Content-Type": type}, keepalive: true}));
"""


PAGES: dict[str, str] = {}
"""The scripts of pages by their path."""


@pytest.fixture
def site() -> Iterator[str]:
    """The address of a site of pages; `localhost` in it is another origin. Pages under `/quiet` do
    not name themselves to other sites."""
    PAGES.clear()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            if self.path.startswith("/quiet"):
                self.send_header("Referrer-Policy", "no-referrer")
            self.end_headers()
            script = PAGES.get(self.path, "")
            self.wfile.write(
                f"<!doctype html><title>page</title><script>{script}</script>".encode()
            )

        def log_message(self, *arguments: object) -> None:
            """Nothing: the tests' output is for the tests."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


class Receiver:
    """A collector, the batches for it, and how many reports of each window it has counted."""

    def __init__(self, address: str, store: str) -> None:
        self.url = f"{address}/v1/reports"
        self.keyed = f"{self.url}?key=key%2Bof%2Fthe-example.app%3D%3D"
        self._metric = Registry.parse(METRICS)["browser"]
        self._store = store
        self._window = windows.window_at("month", time.time())

    def batch(self) -> str:
        """A batch of one report of this month, which has not ended."""
        report = {"metric": "browser", "scheme": self._metric.scheme.fingerprint,
                  "window": self._window, "columns": 1}  # fmt: skip
        return json.dumps({"batch": secrets.token_hex(16), "reports": [report]})

    @property
    def counted(self) -> int:
        """The reports in the store."""
        store = open_store(self._store)
        try:
            scheme = self._metric.scheme.fingerprint
            return store.tally("browser", scheme, [self._window]).reports
        finally:
            store.close()

    def reaches(self, number: int) -> bool:
        """Whether it counts so many reports within half a minute."""
        deadline = time.monotonic() + ANSWER_SECONDS
        while self.counted < number and time.monotonic() < deadline:
            time.sleep(0.05)
        return self.counted == number

    def stays(self, number: int) -> bool:
        """Whether it counts no more than so many within three seconds."""
        time.sleep(SILENCE_SECONDS)
        return self.counted == number


@pytest.fixture
def receiver(listening: Callable[..., str], tmp_path: Path, site: str) -> Receiver:
    """A real collector with an ingest key, to which pages of `site` may send."""
    (tmp_path / "metrics.toml").write_text(METRICS)
    store = f"sqlite:///{tmp_path / 'store.db'}"
    address = listening(
        "collect",
        DENIABLE_CORS_ORIGINS=site,
        DENIABLE_INGEST_KEYS=KEY,
        DENIABLE_REGISTRY=str(tmp_path / "metrics.toml"),
        DENIABLE_STORE=store,
    )
    return Receiver(address, store)


def test_what_browsers_send_to_another_origin(
    open_browser: Callable[[bool], Chrome], receiver: Receiver, site: str
) -> None:
    """A beacon of text/plain arrives and one of application/json does not; `fetch` with keepalive
    arrives as either, and reads its answer; the key counts in the query and in a header."""
    browser = open_browser(True)
    browser.get(site)
    text, plain = "text/plain;charset=UTF-8", "application/json"

    beacon = receiver.batch()
    assert browser.execute_script(BEACON, receiver.keyed, beacon, text) is True
    assert receiver.reaches(1)
    # The browser asks first, and for a beacon that asks it does not wait.
    browser.execute_script(BEACON, receiver.keyed, receiver.batch(), plain)
    assert receiver.stays(1)
    browser.execute_script(BEACON, receiver.url, receiver.batch(), text)
    assert receiver.stays(1)

    for number, (url, kind, key) in enumerate(
        [(receiver.url, plain, KEY), (receiver.url, text, KEY), (receiver.keyed, plain, "")], 2
    ):
        status, answer = browser.execute_async_script(FETCH, url, receiver.batch(), kind, key)
        assert (status, answer["accepted"]) == (202, 1)
        assert receiver.counted == number
    status, answer = browser.execute_async_script(FETCH, receiver.url, beacon, plain, KEY)
    assert (status, answer["accepted"], answer["duplicate"]) == (202, 0, 1)
    status, answer = browser.execute_async_script(
        FETCH, receiver.keyed, receiver.batch(), plain, "another-key-of-the-app"
    )
    assert (status, answer["type"]) == (401, "urn:deniable:problem:no-ingest-key")
    assert receiver.counted == 4


def test_what_a_page_sends_as_it_goes(
    open_browser: Callable[[bool], Chrome], receiver: Receiver, site: str
) -> None:
    """A beacon and a `fetch` with keepalive that a page sends while it is left arrive."""
    browser = open_browser(True)
    for number, script in enumerate([LEAVE, LEAVE_FETCH], 1):
        browser.get(site)
        browser.execute_script(script, receiver.keyed, receiver.batch(), "text/plain;charset=UTF-8")
        browser.get("about:blank")
        assert receiver.reaches(number)


def test_pages_that_may_not_send(
    open_browser: Callable[[bool], Chrome], receiver: Receiver, site: str
) -> None:
    """Nothing is counted of a page of another origin, whatever it sends."""
    browser = open_browser(True)
    browser.get(site.replace("127.0.0.1", "localhost"))
    text = "text/plain;charset=UTF-8"
    browser.execute_script(BEACON, receiver.keyed, receiver.batch(), text)
    for kind in (text, "application/json"):
        sent = browser.execute_async_script(FETCH, receiver.keyed, receiver.batch(), kind, "")
        assert sent[0] == 0
    assert receiver.stays(0)


@pytest.mark.parametrize(("page", "counted"), [("/open", 3), ("/quiet", 2)])
def test_what_firefox_sends(
    receiver: Receiver, site: str, tmp_path: Path, page: str, counted: int
) -> None:
    """Of a page in Firefox the same arrives: two `fetch` with keepalive, a beacon of text/plain,
    and none of application/json. The beacon of a page that hides its origin is refused."""
    firefox = shutil.which("firefox-esr") or shutil.which("firefox")
    if firefox is None:
        leave_out("firefox-esr")
    batches = [receiver.batch() for _ in range(4)]
    PAGES[page] = f"""
        const [first, second, third, fourth] = {json.dumps(batches)};
        const url = {json.dumps(receiver.keyed)};
        const send = (body, type) => navigator.sendBeacon(url, new Blob([body], {{type}}));
        send(first, "application/json");
        send(second, "text/plain;charset=UTF-8");
        const headers = {{"Content-Type": "application/json"}};
        fetch(url, {{method: "POST", body: third, keepalive: true}});
        fetch(url, {{method: "POST", body: fourth, headers, keepalive: true}});
    """
    command = [firefox, "--headless", "--no-remote", "--profile", str(tmp_path), site + page]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as browser:
        try:
            assert receiver.reaches(counted)
            assert receiver.stays(counted)
        finally:
            browser.terminate()

"""What leaves a web page for a collector at another origin: beacons and `fetch`, in browsers."""

import json
import secrets
import time

import pytest
from tests.ports import until
from tests.registries import declared

from deniable import Registry
from deniable.protocol import windows

from .running import counted, serving

METRICS = declared(
    browser={"type": "category", "values": ["firefox", "chrome", "other"], "window": "month",
             "aggregate": "first", "answer": "at_once"},
)  # fmt: skip
KEY = "key+of/the-example.app=="
SILENCE_SECONDS = 3.0

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


@pytest.fixture
def site(tmp_path):
    """The address of a site of pages; `localhost` in it is another origin."""
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "index.html").write_text("<!doctype html><title>page</title>")
    with serving(folder, {}) as address:
        yield address


class Receiver:
    """A collector, the batches for it, and how many reports of each window it has counted."""

    def __init__(self, address, store):
        self.url = f"{address}/v1/reports"
        self.keyed = f"{self.url}?key=key%2Bof%2Fthe-example.app%3D%3D"
        self._metric = Registry.parse(METRICS)["browser"]
        self._store = store
        self._window = windows.window_at("month", time.time())

    def batch(self):
        """A batch of one report of this month, which has not ended."""
        report = {"metric": "browser", "scheme": self._metric.scheme.fingerprint,
                  "window": self._window, "columns": 1}  # fmt: skip
        return json.dumps({"batch": secrets.token_hex(16), "reports": [report]})

    @property
    def counted(self):
        """The reports in the store."""
        return counted(self._store, self._metric)

    def reaches(self, number):
        """Whether it counts so many reports, and no more."""
        until(lambda: self.counted >= number)
        return self.counted == number

    def stays(self, number):
        """Whether it counts no more than so many within three seconds."""
        time.sleep(SILENCE_SECONDS)
        return self.counted == number


@pytest.fixture
def receiver(listening, tmp_path, site):
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


def test_what_browsers_send_to_another_origin(open_browser, receiver, site):
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


def test_what_a_page_sends_as_it_goes(open_browser, receiver, site):
    """A beacon and a `fetch` with keepalive that a page sends while it is left arrive."""
    browser = open_browser(True)
    for number, script in enumerate([LEAVE, LEAVE_FETCH], 1):
        browser.get(site)
        browser.execute_script(script, receiver.keyed, receiver.batch(), "text/plain;charset=UTF-8")
        browser.get("about:blank")
        assert receiver.reaches(number)


def test_pages_that_may_not_send(open_browser, receiver, site):
    """Nothing is counted of a page of another origin, whatever it sends."""
    browser = open_browser(True)
    browser.get(site.replace("127.0.0.1", "localhost"))
    text = "text/plain;charset=UTF-8"
    browser.execute_script(BEACON, receiver.keyed, receiver.batch(), text)
    for kind in (text, "application/json"):
        sent = browser.execute_async_script(FETCH, receiver.keyed, receiver.batch(), kind, "")
        assert sent[0] == 0
    assert receiver.stays(0)

"""What leaves a web page for a collector at another origin: beacons and `fetch`, in browsers."""

import json
import secrets
import time

from tests.ports import until
from tests.registries import declared

from deniable import Registry
from deniable.protocol import windows

from .running import counted, serving

METRICS = declared(
    browser={"type": "category", "values": ["firefox", "chrome", "other"], "window": "month",
             "aggregate": "first", "answer": "at_once"},
)  # fmt: skip
KEY, ASKED = "key+of/the-example.app==", "?key=key%2Bof%2Fthe-example.app%3D%3D"
TEXT, JSON = "text/plain;charset=UTF-8", "application/json"
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


def test_what_browsers_send_to_another_origin(open_browser, listening, tmp_path):
    """A beacon of text/plain arrives and one of application/json does not; `fetch` with keepalive
    arrives as either, and reads its answer; the key counts in the query and in a header. Of a page
    of an origin that is not listed nothing is counted, whatever it sends."""
    pages, store = tmp_path / "site", f"sqlite:///{tmp_path / 'store.db'}"
    pages.mkdir()
    (pages / "index.html").write_text("<!doctype html><title>page</title>")
    (tmp_path / "metrics.toml").write_text(METRICS)
    metric, browser = Registry.parse(METRICS)["browser"], open_browser(True)
    report = {"metric": "browser", "scheme": metric.scheme.fingerprint,
              "window": windows.window_at("month", time.time()), "columns": 1}  # fmt: skip

    def batch():
        return json.dumps({"batch": secrets.token_hex(16), "reports": [report]})

    with serving(pages, {}) as site:
        address = listening(
            "collect",
            DENIABLE_CORS_ORIGINS=site,
            DENIABLE_INGEST_KEYS=KEY,
            DENIABLE_REGISTRY=str(tmp_path / "metrics.toml"),
            DENIABLE_STORE=store,
        )
        url = f"{address}/v1/reports"
        browser.get(site.replace("127.0.0.1", "localhost"))
        browser.execute_script(BEACON, url + ASKED, batch(), TEXT)
        for kind in (TEXT, JSON):
            sent = browser.execute_async_script(FETCH, url + ASKED, batch(), kind, "")
            assert sent[0] == 0
        browser.get(site)
        # The browser asks first, and for a beacon that asks it does not wait.
        browser.execute_script(BEACON, url + ASKED, batch(), JSON)
        browser.execute_script(BEACON, url, batch(), TEXT)
        time.sleep(SILENCE_SECONDS)
        assert counted(store, metric) == 0

        beacon = batch()
        assert browser.execute_script(BEACON, url + ASKED, beacon, TEXT) is True
        until(lambda: counted(store, metric) == 1)
        for asked, body, kind, key, status, accepted in (
            (url, batch(), JSON, KEY, 202, 1),
            (url, batch(), TEXT, KEY, 202, 1),
            (url + ASKED, batch(), JSON, "", 202, 1),
            (url, beacon, JSON, KEY, 202, 0),
            (url + ASKED, batch(), JSON, "another-key-of-the-app", 401, None),
        ):
            found, answer = browser.execute_async_script(FETCH, asked, body, kind, key)
            assert (found, answer.get("accepted")) == (status, accepted)
    assert counted(store, metric) == 4

"""The live page, the registry that is edited, and the simulated devices."""

import re
import threading
import time
from datetime import date
from types import SimpleNamespace

import numpy as np
import pytest
from werkzeug.test import Client as Browser

from deniable import Registry
from deniable.protocol import windows
from deniable_estimator.asking.query import Days
from deniable_estimator.development import crowd as crowds
from deniable_estimator.development import live
from deniable_estimator.development.server import DevelopmentApp
from deniable_estimator.development.state import Arrivals, RegistryFile
from deniable_estimator.planning.population import made_up

HTML = {"Accept": "text/html"}


def read(browser, path="/live"):
    """A page, as a browser gets it, once it is no longer being calculated."""
    while (answer := browser.get(path, follow_redirects=True, headers=HTML)).status_code == 202:
        time.sleep(0.05)
    assert answer.status_code == 200
    return " ".join(answer.text.split())


def test_a_report_is_shown(browser, post, batch, seen):
    """The page says what a report says; below 100 reports, of which noise would be shown as shares
    beyond 100 %, it has no estimate. A link leads to the metric's page, which counts the report,
    and the page speaks Chinese."""
    body = batch(("browser", "firefox"))
    post(body)
    page = read(browser)
    text = re.sub(r"<[^>]+>", "", page)
    assert f"Reports: 1; batches: 1; bytes in all: {len(body):,}" in text
    assert "This report is 12.2 (e2.50) times likelier from a device with" in text
    assert "Too few for an estimate. Each report is shown by itself." in page
    assert "A metric has an estimate from 100 reports on" in page
    (found,) = seen()["estimates"]
    assert (found["n"], found["answer"], found["pending"]) == (1, None, False)
    (link,) = re.findall(r'href="(/metric/browser[^"]+)"', page)
    assert "1 report" in read(browser, link.replace("&amp;", "&"))
    assert "实时" in read(browser, "/live?lang=zh-Hans")


def test_news_come_at_once(browser, post, batch, app):
    """A page that waits for news is answered when a report arrives."""
    read(browser)
    version = app.arrivals.version
    answers = []

    def ask():
        answers.append(browser.get(f"/live/part?after={version}", headers=HTML))

    waiting = threading.Thread(target=ask)
    waiting.start()
    Browser(app).post("/v1/reports", data=batch(("browser", "firefox")))
    waiting.join(120)
    (answer,) = answers
    assert answer.headers["X-Version"] != str(version)
    assert "firefox" in answer.text


def test_waiting_ends():
    """Nobody waits for ever, and who is behind does not wait."""
    arrivals = Arrivals()
    assert arrivals.wait(arrivals.version, 0.01) == arrivals.version
    arrivals.changed()
    assert arrivals.wait(0, 60) == 1


def test_an_edit_is_loaded(app, file, path, browser, seen):
    """A good edit is in force at once; a bad one is shown with its line, and the last good one
    stays in force; an edit of a list of values counts as one of the registry."""
    assert not file.look()
    app.arrivals.mistake("batch")
    text = path.read_text()
    path.write_text(text.replace("epsilon = 2.5", "epsilon = 99", 1))
    assert file.look()
    assert file.registry["browser"].epsilon == 2.5
    shown = seen()["registry"]
    assert any(
        re.match(r"metrics\.toml:12: error: metrics\.browser\.epsilon", each) for each in shown
    )
    page = read(browser)
    assert "metrics.toml has mistakes" in page
    assert "metrics.toml:12" in page
    (path.parent / "plugins.txt").write_text("acme\nbeta\n")
    added = (
        '[metrics.extra]\ntype = "category"\ndescription = "Extra."\nepsilon = 1.0\n'
        'lifetime_epsilon = 8.0\nvalues_file = "plugins.txt"\n'
    )
    path.write_text(text + added)
    assert file.look()
    app.reload()
    assert seen()["registry"] == seen()["mistakes"] == []
    assert file.registry["extra"].values == ("acme", "beta")
    assert b'"extra"' in browser.get("/deniable.min.js").data
    (path.parent / "plugins.txt").write_text("acme\nbeta\ngamma\n")
    assert file.look()
    assert file.registry["extra"].values == ("acme", "beta", "gamma")
    path.unlink()
    assert file.look()
    assert "cannot be read" in str(file.mistakes[0].message)


def test_it_starts_with_mistakes(tmp_path):
    """A registry that never was without mistakes is shown as such, and the page is there."""
    path = tmp_path / "metrics.toml"
    path.write_text("schema = 1\n<script>")
    file = RegistryFile(path)
    file.look()
    made = DevelopmentApp(file, tmp_path)
    try:
        page = read(Browser(made))
        assert "No report is taken before they are mended" in page
        assert "<script>" not in page.partition("<main")[2]
    finally:
        made.close()


def test_no_memory_of_old_reports(app, file, path, post, batch, seen):
    """A report whose metric is gone from the registry is listed without an estimate, and what its
    scheme says stays, because the store knows the scheme."""
    post(batch(("plugin", "acme")))
    path.write_text(path.read_text().replace("[metrics.plugin]", "[metrics.plugins]"))
    file.look()
    app.reload()
    (report,) = seen()["reports"]
    assert report["says"]["kind"] == "strings"
    assert seen()["estimates"] == []


def add(app, registry, devices):
    """Let simulated devices report; how many metrics they had to report."""
    app.crowd.devices = devices
    return len(list(app.crowd.add(app.store, registry)))


def test_a_crowd_reports(app, file, browser, seen):
    """Devices report every metric, as many as take part, in the window of now and the seven before;
    the estimates hold the made-up shares, and every page says that they are made up.

    Alpha: each of the 5 shares of browser is outside 6 standard errors with probability 2e-9.
    """
    registry = file.registry
    assert add(app, registry, 1_000) == 4
    estimates = {each["metric"]: each for each in seen()["estimates"]}
    assert set(estimates) == {metric.name for metric in registry}
    assert estimates["browser"]["n"] == estimates["browser"]["simulated"] == 1_000
    # Half of them take part in a week.
    assert abs(estimates["dark_mode"]["n"] - 500) < 6 * 250**0.5
    for metric in registry:
        labels = app.store.windows(metric.name, metric.scheme.fingerprint)
        assert len(labels) == crowds.BEFORE + 1
        assert labels[-1] == windows.window_at(metric.window, time.time())
    rows = estimates["browser"]["answer"]["values"]
    shares = {each["value"]: 100 * each["share"] for each in rows}
    truth = 1 / np.arange(1, 6)
    truth = 100 * truth / truth.sum()
    names = ["firefox", "chrome", "safari", "edge", "other"]
    for name, expected in zip(names, truth, strict=True):
        assert abs(shares[name] - expected) < 6 * 2.3, name
    rows = estimates["plugin"]["answer"]["values"]
    assert any(each["value"] == "example-1" for each in rows)
    assert app.crowd.shares == {metric.name: made_up(metric).words for metric in registry}
    assert "Simulated: 1,000 devices" in read(browser)
    assert "Most of it is made up" in read(browser, "/")
    # What was reported is not reported again; a new metric is.
    assert add(app, registry, 1_000) == 0


def test_a_crowd_has_listed_strings(app, file, tmp_path, seen):
    """Listed strings are what simulated devices recorded, however many there are."""
    one = Registry("shop", {name: file.registry[name] for name in ("browser", "plugin")})
    app.crowd.folder = tmp_path
    (tmp_path / "plugin.txt").write_text("acme\nbeta\n")
    add(app, one, 30_000)
    estimates = {each["metric"]: each for each in seen()["estimates"]}
    assert estimates["browser"]["n"] == 30_000
    assert [each["value"] for each in estimates["plugin"]["answer"]["values"]] == ["acme", "beta"]


@pytest.mark.parametrize("name", ["deniable.min.js", "deniable.js", "metrics.js", "metrics.json"])
def test_the_sdk_for_pages(browser, name):
    """It serves the development build with the registry of now to pages that may send, and not to
    other pages that the developer visits."""
    for headers, status in (
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "cross-site", "Referer": "https://evil.example/"}, 403),
        ({"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"}, 403),
        ({"Sec-Fetch-Site": "cross-site", "Referer": "http://localhost:3000/page"}, 200),
        ({"Sec-Fetch-Site": "cross-site", "Origin": "https://app.test"}, 200),
        ({"Sec-Fetch-Site": "same-site"}, 200),
    ):
        answer = browser.get(f"/{name}", headers=headers)
        assert answer.status_code == status, headers
    assert answer.headers.get("Access-Control-Allow-Origin") is None
    answer = browser.get(f"/{name}")
    assert answer.status_code == 200
    assert answer.mimetype == ("application/json" if "json" in name else "text/javascript")
    for header, told in (
        ("Cross-Origin-Resource-Policy", "cross-origin"), ("Cache-Control", "no-store"),
        ("Vary", "Origin, Referer, Sec-Fetch-Site"), ("X-Content-Type-Options", "nosniff"),
    ):  # fmt: skip
        assert answer.headers[header] == told
    if name == "deniable.min.js":
        assert b"DEVELOPMENT MODE" in answer.data


def test_strings_are_looked_for_every_few_seconds(file):
    """What was found stays for some seconds although reports come; then it is looked for again, and
    at once for other days. Without a new report, or without any, nothing is looked for."""
    now, looked = [0.0], []
    days, other = (Days(date(2026, 11, each), date(2026, 11, each)) for each in (1, 2))

    def look():
        looked.append(now[0])
        return SimpleNamespace(answer=SimpleNamespace(n=reading.n, finds=()))

    reading = SimpleNamespace(n=5, days=days, finds=look)
    state = live.Live(file, Arrivals(), crowds.SimulatedCrowd(), lambda: now[0])
    shown = live.ShownEstimate(file.registry["browser"], "2026-11-01", days, 0, 0)
    for at, n, waiting in ((0.0, 5, False), (1.0, 5, False), (2.0, 6, True), (3.5, 6, False)):
        now[0], reading.n = at, n
        assert live.found_so_far(reading, state, shown).pending is waiting, at
    assert looked == [0.0, 3.5]
    live.found_so_far(SimpleNamespace(n=6, days=other, finds=look), state, shown)
    assert looked == [0.0, 3.5, 3.5]
    reading.n = 0
    assert not live.found_so_far(reading, state, shown).pending
    assert len(looked) == 3


def test_the_developer_is_the_operator(browser):
    """Pages open without signing in. Programs may send lists, and no page of another site may."""
    assert read(browser, "/metric/plugin")
    sent = {"data": "acme", "content_type": "text/plain"}
    for headers, status in (
        ({}, 200),
        ({"Origin": "http://localhost", "Sec-Fetch-Site": "same-origin"}, 200),
        ({"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}, 403),
        ({"Origin": "https://evil.example"}, 403),
    ):
        answer = browser.post("/api/v1/metrics/plugin/estimate", headers=headers, **sent)
        assert answer.status_code == status, headers

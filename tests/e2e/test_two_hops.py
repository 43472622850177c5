"""Pages that `deniable compile web --oblivious` made, in real browsers: their reports go through a
real relay to a real gateway, and are counted."""

from __future__ import annotations

import json
import time
from types import SimpleNamespace

import pytest
from tests.ports import until
from tests.registries import declared

from deniable import Registry
from deniable.oblivious import ObliviousTransport
from deniable.protocol import wire
from deniable.tools.compile_command import web_files
from deniable_collector.oblivious.key_file import KeyFile

from .running import counted, firefox, serving

METRICS = declared(
    segments={"platform": ["desktop", "phone"]},
    plan={"type": "category", "values": ["free", "pro"], "lifetime_epsilon": 80.0},
    dark_mode={"type": "boolean", "lifetime_epsilon": 80.0},
    both={"type": "pair", "of": ["plan", "dark_mode"], "lifetime_epsilon": 80.0},
    word={"type": "discovery", "max_length": 4, "lifetime_epsilon": 80.0},
    visit={"type": "boolean", "answer": "at_once", "aggregate": "first", "lifetime_epsilon": 80.0,
           "segments": ["platform"]},
)  # fmt: skip
DAY = 86_400
POLICY = "default-src 'none'; script-src 'self'; connect-src {relay}"
PAGE = '<!doctype html><title>page</title><script src="deniable.min.js"></script>'
"""It loads the SDK with the registry; `app.js`, where a test writes one, uses it."""

START = """
    const [endpoint, relay, gateway, now] = arguments;
    window.now = now;
    window.telemetry = new deniable.Client(deniable.metrics, {
      endpoint, relay, gateway, consent: true, spread: 0, clock: () => window.now,
      segments: {platform: "desktop"},
    });
"""
CAPSULES = """
    const seal = crypto.subtle.encrypt.bind(crypto.subtle);
    crypto.subtle.encrypt = (...given) => seal(...given).finally(() => { window.sealed = true; });
"""
FLUSH = "telemetry.flush(20).then(arguments[0]);"


class Site(SimpleNamespace):
    """A site, and the two hops that its pages send through."""

    def counted(self):
        """How many reports of each metric are counted."""
        return {each.name: counted(self.database, each) for each in Registry.parse(METRICS)}

    def reaches(self, visits):
        """Whether so many visits are counted, and no more."""
        until(lambda: self.counted()["visit"] >= visits)
        return self.counted()["visit"] == visits


@pytest.fixture(params=["x25519", "p256"])
def site(request, tmp_path, listening):
    """A site with a strict policy, whose pages may use the relay and cannot reach the gateway."""
    made = Site(folder=tmp_path / "site", database=f"sqlite:///{tmp_path}/tallies.db")
    made.folder.mkdir()

    for name, content in web_files(Registry.parse(METRICS), oblivious=True).items():
        (made.folder / name).write_bytes(content)
    (made.folder / "index.html").write_text(PAGE, encoding="utf-8")
    (tmp_path / "metrics.toml").write_text(METRICS, encoding="utf-8")
    keys = KeyFile.new(request.param)
    keys.write(tmp_path / "keys.json")
    made.identity = keys.identity

    headers = {}
    with serving(made.folder, headers) as made.address:
        made.collector = listening(
            "collect",
            DENIABLE_REGISTRY=str(tmp_path / "metrics.toml"),
            DENIABLE_STORE=made.database,
            DENIABLE_GATEWAY_KEYS=str(tmp_path / "keys.json"),
        )
        made.relay = listening(
            "relay", DENIABLE_RELAY_GATEWAY=made.collector, DENIABLE_CORS_ORIGINS=made.address
        )
        headers["Content-Security-Policy"] = POLICY.format(relay=made.relay)
        yield made


def test_a_page_in_two_hops(site, open_browser):
    """Pairs, a discovery, segments and what answers at once reach the tally in two hops, from a
    page whose policy lets it reach the relay alone. A report that waits when the page is left goes
    as a beacon, and is counted once."""
    browser = open_browser(True)
    browser.set_script_timeout(60)
    now = time.time()
    place = (site.collector, site.relay, site.identity)
    browser.get(site.address)
    browser.execute_script(START, *place, now - DAY)
    browser.execute_script(
        'for (const [name, value] of [["plan", "pro"], ["dark_mode", true], ["word", "tea"]])'
        " telemetry.record(name, value);"
    )
    browser.execute_async_script(FLUSH)
    browser.execute_script(f"window.now = {now};")
    assert browser.execute_async_script(FLUSH), browser.get_log("browser")
    assert site.counted() == {"plan": 1, "dark_mode": 1, "both": 1, "word": 1, "visit": 0}
    by_python = ObliviousTransport(*place).send(wire.encode_batch(wire.new_batch_id(), []))
    assert (by_python.status, b'"accepted": 0' in by_python.body) == (202, True)

    browser.execute_script(CAPSULES)
    browser.execute_script('telemetry.record("visit", true);')
    # Until the report is stored and in its capsule; it would be sent 0 to 10 s later.
    until(lambda: browser.execute_script("return window.sealed;"))
    browser.get("about:blank")
    assert site.reaches(1)
    browser.get(site.address)
    browser.execute_script(START, *place, now)
    assert browser.execute_async_script(FLUSH)
    assert browser.execute_script("return telemetry.counters;") == {}
    assert site.counted()["visit"] == 1
    browser.execute_script(START, site.collector, site.relay, "B" * 87, now + DAY)
    browser.execute_script('telemetry.record("visit", true);')
    assert not browser.execute_async_script(FLUSH)
    assert browser.execute_script("return telemetry.counters;") == {"network": 1}
    assert site.counted()["visit"] == 1


@pytest.mark.parametrize("site", ["x25519"], indirect=True)
def test_firefox_in_two_hops(site, tmp_path):
    """In Firefox a page's report reaches the tally in two hops too, once by `fetch` and once by a
    beacon."""
    options = {
        "endpoint": site.collector,
        "relay": site.relay,
        "gateway": site.identity,
        "consent": True,
        "spread": 0,
        "segments": {"platform": "phone"},
    }
    # The second day's report is only sealed; then the page says that it is hidden.
    (site.folder / "app.js").write_text(
        f"""
        const now = {time.time()};
        const options = {json.dumps(options)};
        let later = -{DAY};
        const clock = () => now + later;
        const telemetry = new deniable.Client(deniable.metrics, {{...options, clock}});
        telemetry.record("visit", true);
        telemetry.flush(20).then(async () => {{
          later = 0;
          telemetry.record("visit", true);
          while ((await telemetry.sent()).length < 2);
          setTimeout(() => dispatchEvent(new Event("pagehide")), 300);
        }});
        """,
        encoding="utf-8",
    )
    page = PAGE + '<script src="app.js"></script>'
    (site.folder / "firefox.html").write_text(page, encoding="utf-8")
    with firefox(f"{site.address}/firefox.html", tmp_path):
        assert site.reaches(2)

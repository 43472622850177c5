"""A dashboard over a real SQLite store that holds one day of known counts."""

import multiprocessing.util
import os
import re
import shutil
import subprocess
import sys
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import product

import numpy as np
import pytest
from tests.contract.asking import Dashboard, crowd_folder
from tests.ports import until
from tests.registries import declared

from deniable import Registry
from deniable.protocol.types.number import Number
from deniable_collector.settings import Settings
from deniable_collector.stores import open_store
from deniable_collector.tally import Tally, TallyRow
from deniable_estimator.analyses import analysis_of
from deniable_estimator.dashboard import create_app, source
from deniable_estimator.dashboard.overview import page
from deniable_estimator.dashboard.privacy_label import SIZES
from deniable_estimator.dashboard.settings import DashboardSettings
from deniable_estimator.development.crowd import fold_tally
from deniable_estimator.privacy.outsider import outsider_of

TOKEN = "Vq3mS0x-8JtYc_1rKfWz5LbNpH2eGdUa"
NOW = datetime(2026, 11, 21, 9, tzinfo=UTC).timestamp()
YESTERDAY = "2026-11-20"


SEGMENTED = """
[segments.platform]
values = ["web", "desktop"]
[metrics.theme]
type = "category"
description = "Which theme?"
values = ["light", "dark"]
epsilon = 1.0
lifetime_epsilon = 8.0
segments = ["platform"]
"""
"""More of the registry: a metric that is counted by segments."""


class Clock:
    """Seconds that stand still until they are set."""

    def __init__(self, now=0.0):
        self.now = now

    def __call__(self):
        return self.now


REGISTRY = """
schema = 1
app = "example"
[defaults]
owner = "growth@acme.example"
expires = 2027-06-30

[metrics.browser]
type = "category"
description = "Which browser opens links?"
values = ["firefox", "chrome", "<script>alert(1)</script>", "\\"quoted\\" & plain"]
epsilon = 1.0
lifetime_epsilon = 8.0

[metrics.dark_mode]
type = "boolean"
description = "Is dark mode on?"
epsilon = 1.0
lifetime_epsilon = 8.0
sample_rate = 0.02

[metrics.silent]
type = "boolean"
description = "Does <b>anybody</b> report?"
epsilon = 1.0
lifetime_epsilon = 1.0
platform = ["python", "web"]

[metrics.old]
type = "boolean"
description = "Does this still count?"
epsilon = 1.0
lifetime_epsilon = 1.0
expires = 2026-11-01
"""


NUMBERS = declared(
    load={"type": "number", "low": 0.01, "high": 100, "unit": "s", "scale": "log",
          "ask": "distribution"},
    plugins={"type": "number", "low": 0, "high": 40, "integer": True, "ask": "distribution"},
    narrow={"type": "number", "low": 0, "high": 4, "unit": "GB", "ask": ["mean", "distribution"]},
)  # fmt: skip
"""Numbers of each kind."""


def put(store, metric, rows, day=YESTERDAY, segment=0):
    """Add a day's sums to a store; they are of the segment at that place."""
    tally = Tally(metric.name, metric.scheme.fingerprint, (day,), tuple(rows))
    fold_tally(store, tally, NOW, segment)


def fill(store, registry, name, shares, n, day=YESTERDAY, segment=0):
    """Store the tally that `n` devices with these true shares make on average."""
    mechanism = registry[name].scheme.mechanism
    p, q = float(mechanism.p), float(mechanism.q)
    counts = np.array([round(n * (q + share * (p - q))) for share in shares])
    put(store, registry[name], [TallyRow(n, counts)], day, segment)


def fill_numbers(store, registry, name, values, day=YESTERDAY, segment=0):
    """Store the tally that devices with these numbers make, drawn from a seed of its own."""
    metric = registry[name]
    assert isinstance(metric.type, Number)
    distinct, counts = np.unique(values, return_counts=True)
    items = np.array([metric.type.range.position(value) for value in distinct.tolist()])
    rng = np.random.default_rng([7, *map(ord, name + day)])
    rows = analysis_of(metric.scheme.mechanism).sample_rows(items, counts, rng)
    put(store, metric, rows, day, segment)


def fill_drawn(store, registry, name, counts, day=YESTERDAY, segment=0):
    """Store a tally that so many devices with each value make, drawn from a seed of its own. A
    value is a string, or the place of a listed value."""
    rng = np.random.default_rng([9, segment, *map(ord, name + day)])
    drawn = analysis_of(registry[name].scheme.mechanism).sample_rows(
        tuple(counts), np.array([*counts.values()]), rng
    )
    put(store, registry[name], drawn, day, segment)


def fill_usual(store, registry):
    """Store what the usual dashboard has heard."""
    fill(store, registry, "browser", [0.25, 0.74, 0.01, 0.0], 20_000)
    fill(store, registry, "dark_mode", [0.2, 0.8], 20_000)


def dashboard_of(store, registry, clock=lambda: NOW, **settings):
    """A dashboard with the usual token."""
    made = DashboardSettings(**{"dashboard_token": TOKEN, **settings})
    return create_app(made, store=store, registry=registry, clock=clock)


def browser_of(app, token=TOKEN, accept="text/html"):
    """A browser, signed in with this token if there is one."""
    client = app.test_client()
    if accept:
        client.environ_base["HTTP_ACCEPT"] = accept
    if token:
        assert client.post("/login", data={"token": token}).status_code == 303
    return client


def program_of(app, token=TOKEN):
    """A program that shows this token with each request."""
    client = app.test_client()
    client.environ_base["HTTP_AUTHORIZATION"] = f"Bearer {token}"
    return client


@pytest.fixture(autouse=True)
def temporary(tmp_path, monkeypatch):
    """The folder of temporary files, which the dashboards of one test share."""
    # It makes a folder once, and removes it when this process ends: in that of a test, pytest would
    # have removed it before.
    multiprocessing.util.get_temp_dir()
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """Pages wait until all of them is there, however slow the machine is."""
    for each in (page, source):
        monkeypatch.setattr(each, "PAGE_PATIENCE", 60.0)


def page_of(client, path):
    """The page, once it is no longer being calculated."""

    def done():
        page = client.get(path)
        return page if page.status_code not in (202, 503) else None

    return until(done, f"{path} is never done")


def text_of(client, path):
    """Its text."""
    return page_of(client, path).text


@contextmanager
def running_dashboard(folder, **environ):
    """`deniable dashboard` in a folder, at a free port: its address, and its process."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith("DENIABLE_")}
    process = subprocess.Popen(
        [sys.executable, "-c", "import deniable.cli; deniable.cli.main()", "dashboard"],
        stdout=subprocess.PIPE,
        text=True,
        cwd=folder,
        env={
            **kept,
            "DENIABLE_STORE": f"sqlite:///{folder}/tallies.db",
            "DENIABLE_DASHBOARD_BIND": "127.0.0.1:0",
            "DENIABLE_DASHBOARD_TOKEN": TOKEN,
            **environ,
        },
    )
    assert process.stdout is not None
    try:
        lines = (re.search(r"http://\S+", line) for line in process.stdout)
        yield next(found[0] for found in lines if found), process
    finally:
        process.terminate()
        process.communicate(timeout=120)


@pytest.fixture
def token():
    return TOKEN


@pytest.fixture
def registry():
    return Registry.parse(REGISTRY)


@pytest.fixture(scope="session", autouse=True)
def known_figures():
    """What published sums reveal is calculated once, so that no page depends on how long it
    takes."""
    for text in (REGISTRY, NUMBERS):
        registry = Registry.parse(text)
        for metric, size in product(registry, SIZES):
            outsider_of(registry, metric, size)


@pytest.fixture
def empty_store(tmp_path, registry):
    store = open_store(Settings(store=f"sqlite:///{tmp_path}/tallies.db"))
    store.publish((metric.name, metric.scheme) for metric in registry)
    yield store
    store.close()


@pytest.fixture
def store(empty_store, registry):
    fill_usual(empty_store, registry)
    return empty_store


@pytest.fixture
def app(store, registry):
    return dashboard_of(store, registry, dashboard_login_link=True)


@pytest.fixture
def anybody(app):
    """A browser that has not signed in."""
    return browser_of(app, "")


@pytest.fixture
def browser(anybody):
    """A browser that has signed in."""
    assert anybody.post("/login", data={"token": TOKEN}).status_code == 303
    return anybody


@pytest.fixture(scope="module")
def shared_browser(tmp_path_factory):
    """A signed-in browser on a dashboard that all tests of a file only read."""
    registry = Registry.parse(REGISTRY)
    store = open_store(Settings(store=f"sqlite:///{tmp_path_factory.mktemp('shared')}/tallies.db"))
    store.publish((metric.name, metric.scheme) for metric in registry)
    fill_usual(store, registry)
    yield browser_of(dashboard_of(store, registry))
    store.close()


@pytest.fixture
def empty_browser(empty_store, registry):
    """A signed-in browser on a dashboard that has heard nothing."""
    return browser_of(dashboard_of(empty_store, registry), accept="")


@pytest.fixture(scope="module")
def golden(tmp_path_factory):
    """A dashboard over a copy of the crowd of the contract."""
    folder = tmp_path_factory.mktemp("golden") / "crowd"
    made = Dashboard(shutil.copytree(crowd_folder(tmp_path_factory), folder))
    yield made
    made.close()

"""A `deniable dev` without a port: its application, called in this process."""

import json
import time

import pytest
from tests.ports import until
from werkzeug.test import Client as Browser

from deniable.protocol import windows
from deniable.protocol.wire import (
    SealedReport,
    encode_batch,
    mark_development,
    new_batch_id,
    pack_columns,
)
from deniable_estimator.development.server import DevelopmentApp
from deniable_estimator.development.state import RegistryFile

METRICS = """\
schema = 1
app = "shop"
[defaults]
owner = "growth@acme.example"
expires = 2999-12-31
devices = 100_000

[metrics.browser]
type = "category"
description = "The browser."
values = ["firefox", "chrome", "safari", "edge", "other"]
epsilon = 2.5
lifetime_epsilon = 2.5

[metrics.dark_mode]
type = "boolean"
description = "Dark mode."
epsilon = 1.0
lifetime_epsilon = 8.0
sample_rate = 0.5
window = "week"

[metrics.plugin]
type = "string"
description = "A plugin."
epsilon = 3.0
lifetime_epsilon = 8.0

[metrics.size]
type = "number"
description = "How many files are open."
low = 0
high = 100
integer = true
ask = "mean"
epsilon = 2.0
lifetime_epsilon = 8.0
"""


@pytest.fixture
def path(tmp_path):
    """A metrics.toml with a metric of each type."""
    path = tmp_path / "metrics.toml"
    path.write_text(METRICS, encoding="utf-8")
    return path


@pytest.fixture
def file(path):
    """The same, read."""
    file = RegistryFile(path)
    assert file.look()
    assert file.mistakes == ()
    return file


@pytest.fixture
def app(file, tmp_path):
    """The application."""
    made = DevelopmentApp(file, tmp_path, ["https://app.test"])
    yield made
    made.close()


@pytest.fixture
def browser(app):
    """A browser of the developer."""
    return Browser(app)


@pytest.fixture
def post(browser):
    """Posts a body as a device does."""

    def send(body, path="/v1/reports", **headers):
        return browser.post(path, data=body, content_type="application/json", headers=headers)

    return send


@pytest.fixture
def batch(file):
    """Makes a marked batch of reports that a device would make now: metric and value."""

    def make(*records, **changes):
        registry = file.registry
        sealed = []
        for name, value in records:
            metric = registry[name]
            mechanism = metric.scheme.mechanism
            report = mechanism.randomize(metric.item(metric.normalize(value)))
            fields = {
                "metric": name,
                "scheme": metric.scheme.fingerprint,
                "window": windows.window_at(metric.window, time.time()),
                "row": report.row,
                "columns": pack_columns(mechanism.rows[report.row], report),
            }
            sealed.append(SealedReport(**{**fields, **changes}))
        return mark_development(encode_batch(new_batch_id(), sealed))

    return make


@pytest.fixture
def seen(browser):
    """What the live page shows, as JSON."""

    def read():
        found = json.loads(browser.get("/live.json").data)
        return None if any(each["pending"] for each in found["estimates"]) else found

    return lambda: until(read, "an estimate is still being calculated")

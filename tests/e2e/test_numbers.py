"""Numbers from `record()` to the answer: real devices, a real intake and store, the commands."""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from flask import Flask

from deniable import Client, MetricError, Registry
from deniable.transport import Reply
from deniable_collector.app import create_app
from deniable_collector.settings import Settings
from deniable_estimator.terminal import estimate

DAY = 86_400.0
DEVICES = 300

REGISTRY = """
schema = 1
app = "camera"
[defaults]
owner = "growth@acme.example"
expires = 2099-06-30

[metrics.startup_time]
type = "number"
description = "How long does the app take to start?"
low = 0.01
high = 100
scale = "log"
unit = "s"
ask = "distribution"
epsilon = 8.0
lifetime_epsilon = 8.0

[metrics.photos]
type = "number"
description = "How many photos are taken in a day?"
low = 0
high = 20
integer = true
aggregate = "count"
ask = "mean"
epsilon = 8.0
lifetime_epsilon = 8.0

[metrics.battery]
type = "number"
description = "How full is the battery when the day ends?"
low = 0
high = 100
unit = "%"
ask = ["mean", "distribution"]
epsilon = 8.0
lifetime_epsilon = 8.0
"""


class Direct:
    """A transport into the collector's own app, without a network."""

    def __init__(self, app: Flask) -> None:
        self.client = app.test_client()

    def send(self, body: bytes) -> Reply:
        done = self.client.post("/v1/reports", data=body, content_type="application/json")
        return Reply(done.status_code, done.data)


@pytest.fixture
def collected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store into which 300 devices have sent what they recorded on one day: start times from .5
    to 2 s, 0 to 9 photos one by one, batteries from 20 to 60%."""
    monkeypatch.delenv("DO_NOT_TRACK", raising=False)
    monkeypatch.delenv("DENIABLE_DISABLED", raising=False)
    (tmp_path / "metrics.toml").write_text(REGISTRY)
    # The collector has its own clock, so the devices recorded two days ago.
    begin = time.time() - 2 * DAY
    now = [begin]
    app = create_app(
        Settings(
            store=f"sqlite:///{tmp_path}/tallies.db",
            registry=str(tmp_path / "metrics.toml"),
            rate="off",
        )
    )
    for device in range(DEVICES):
        now[0] = begin
        part = device / DEVICES
        client = Client(
            Registry.parse(REGISTRY),
            state_dir=tmp_path / str(device),
            transport=Direct(app),
            clock=lambda: now[0],
            background=False,
        )
        client.record("startup_time", 0.5 * 4**part)
        for _ in range(device % 10):
            client.record("photos", 1)
        client.record("battery", 20 + 40 * part)
        client.flush()
        now[0] += DAY
        client.flush()
        now[0] += DAY
        client.flush()
        assert client.sent()
        client.close()
    return tmp_path


def told(folder: Path, metric: str) -> dict[str, dict[str, float]]:
    """The series of an answer by name."""
    done = CliRunner().invoke(
        estimate,
        [
            *(metric, "--registry", str(folder / "metrics.toml"), "--json"),
            *("--store", f"sqlite:///{folder}/tallies.db"),
        ],
    )
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert document["n"] >= DEVICES * 0.85
    return {row["series"]: row for row in document["series"]}


def test_numbers_arrive(collected: Path) -> None:
    """The true mean and median lie within the answers' intervals, or at most as far beside them as
    these are wide: 4 intervals of level .95 each, missed so far with probability 1e-8."""
    shown = {name: told(collected, name) for name in ("startup_time", "photos", "battery")}
    truth = {
        ("startup_time", "p50"): 1.0,
        ("startup_time", "geometric mean"): 1.0,
        ("photos", "mean"): np.mean([each % 10 for each in range(DEVICES) if each % 10]),
        ("battery", "mean"): 40.0,
        ("battery", "p50"): 40.0,
    }
    for (metric, name), number in truth.items():
        row = shown[metric][name]
        width = row["high"] - row["low"]
        assert row["low"] - width <= number <= row["high"] + width, (metric, name, row)


def test_what_is_no_number_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A text, a bool and NaN raise an error that names the metric and not the value."""
    monkeypatch.delenv("DO_NOT_TRACK", raising=False)
    monkeypatch.delenv("DENIABLE_DISABLED", raising=False)
    client = Client(
        Registry.parse(REGISTRY),
        endpoint="https://t.acme.example",
        state_dir=tmp_path,
        background=False,
    )
    for value in ("12.75", True, float("nan"), None):
        with pytest.raises(MetricError, match="photos") as caught:
            client.record("photos", value)  # type: ignore[arg-type]
        assert "12.75" not in str(caught.value)
    client.record("photos", float("inf"))
    client.close()

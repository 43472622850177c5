"""Numbers with memos from `record()` to the pages: real devices, a real intake and store, the
commands and the dashboard."""

from __future__ import annotations

import json
import sqlite3
import time
from collections import defaultdict
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from flask import Flask
from scipy import stats

from deniable import Client, Registry
from deniable.mechanisms import DBitFlip
from deniable.mechanisms.base import ONE
from deniable.memo import draw
from deniable.replies import Reply
from deniable.wire import unpack_columns
from deniable_collector.app import create_app
from deniable_collector.settings import Settings
from deniable_collector.stores import open_store
from deniable_estimator.dashboard import create_app as create_dashboard
from deniable_estimator.dashboard.settings import DashboardSettings
from deniable_estimator.terminal import estimate, privacy, simulate

DAY = 86_400.0
DEVICES = 120
DAYS = 3
TOKEN = "Vq3mS0x-8JtYc_1rKfWz5LbNpH2eGdUa"

REGISTRY = """
schema = 1
app = "camera"
[defaults]
owner = "growth@acme.example"
expires = 2099-06-30

[metrics.battery]
type = "number"
description = "How full is the battery when the day ends?"
low = 0
high = 100
unit = "%"
ask = "distribution"
cells = 64
longitudinal = "memoize"
epsilon = 5.0
memo_epsilon = 8.0
lifetime_epsilon = 16.0
"""


@dataclass
class Direct:
    """A transport into the collector's own app, without a network, that keeps what was sent."""

    app: Flask
    reports: list[dict[str, Any]] = field(default_factory=list)

    def send(self, body: bytes) -> Reply:
        done = self.app.test_client().post(
            "/v1/reports", data=body, content_type="application/json"
        )
        self.reports += json.loads(body)["reports"]
        return Reply(done.status_code, done.data)


@dataclass
class Run:
    """What a run of devices left: the folder, and for each device its number of each day, its
    reports and its key."""

    folder: Path
    values: list[list[float]]
    reports: list[list[dict[str, Any]]]
    keys: list[bytes]
    words: str

    @property
    def store(self) -> str:
        return f"sqlite:///{self.folder}/tallies.db"

    @property
    def registry(self) -> Path:
        return self.folder / "metrics.toml"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """120 devices record the state of their batteries on three days: most the same each day, from
    20 to 60%, every fourth another on the last day, 30 higher."""
    folder = tmp_path_factory.mktemp("memos")
    (folder / "metrics.toml").write_text(REGISTRY)
    # The collector has its own clock, so the devices recorded some days ago.
    begin = time.time() - (DAYS + 1) * DAY
    now = [begin]
    made = Run(folder, [], [], [], "")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("DO_NOT_TRACK", raising=False)
        patch.delenv("DENIABLE_DISABLED", raising=False)
        app = create_app(Settings(store=made.store, registry=str(made.registry), rate="off"))
        for device in range(DEVICES):
            first = 20 + 40 * device / DEVICES
            values = [first, first, first + 30 * (device % 4 == 0)]
            direct = Direct(app)
            client = Client(
                Registry.parse(REGISTRY),
                state_dir=folder / str(device),
                transport=direct,
                clock=lambda: now[0],
                background=False,
            )
            for day, value in enumerate(values):
                now[0] = begin + day * DAY
                client.record("battery", value)
                client.flush()
            for late in (1, 2):
                now[0] = begin + (DAYS - 1 + late) * DAY
                client.flush()
            made.words = str(client.sent()[0])
            client.close()
            key = key_in(folder / str(device))
            made.values.append(values)
            made.reports.append(sorted(direct.reports, key=lambda each: each["window"]))
            made.keys.append(key)
    return made


def key_in(folder: Path) -> bytes:
    """The memo key of the only metric, from a device's state."""
    (state,) = (path for path in folder.rglob("*") if path.suffix in (".sqlite", ".sqlite3", ".db"))
    with closing(sqlite3.connect(state)) as held:
        ((key,),) = held.execute("SELECT key FROM memo_keys").fetchall()
    assert isinstance(key, bytes)
    return key


def mechanism_of(run: Run) -> DBitFlip:
    mechanism = Registry.load(run.registry)["battery"].scheme.mechanism
    assert isinstance(mechanism, DBitFlip)
    return mechanism


def invoke(command: Any, *arguments: str) -> str:
    done = CliRunner().invoke(command, list(arguments))
    assert done.exit_code == 0, done.output
    return done.stdout


def test_reports_are_noise_on_one_memo(run: Run) -> None:
    """A device keeps its row. Each report is the memo of its number, which its key gives, with
    flipped bits: as many as the fresh round flips, and over all devices memos differ from the truth
    in as many as the permanent round flips (two binomial tests, alpha 1e-6 each)."""
    mechanism = mechanism_of(run)
    scheme = Registry.load(run.registry)["battery"].scheme.fingerprint
    fresh = bits = kept = memos = 0
    for values, reports, key in zip(run.values, run.reports, run.keys, strict=True):
        assert len(reports) == DAYS
        assert len({each.get("row", 0) for each in reports}) == 1
        for value, each in zip(values, reports, strict=True):
            position = mechanism.range.position(value)
            row, memo = draw(key, scheme, mechanism, position)
            assert row == each.get("row", 0)
            columns = unpack_columns(mechanism.rows[row], each["columns"])
            fresh += (columns ^ memo).bit_count()
            bits += mechanism.bits
        entry = mechanism.cell(row, position)
        kept += (memo ^ (1 << entry if entry < mechanism.bits else 0)).bit_count()
        memos += mechanism.bits
    assert stats.binomtest(fresh, bits, mechanism.fresh / ONE).pvalue > 1e-6
    assert stats.binomtest(kept, memos, mechanism.memo / ONE).pvalue > 1e-6


def test_the_tally_is_the_sum_of_what_was_sent(run: Run) -> None:
    """Cell by cell and row by row, in each window, the store holds exactly the bits that devices
    sent."""
    mechanism = mechanism_of(run)
    expected: dict[str, Any] = defaultdict(
        lambda: np.zeros((len(mechanism.rows), mechanism.bits + 1), np.int64)
    )
    for each in (report for reports in run.reports for report in reports):
        columns = unpack_columns(mechanism.rows[each.get("row", 0)], each["columns"])
        ones = [columns >> bit & 1 for bit in range(mechanism.bits)]
        expected[each["window"]][each.get("row", 0)] += [1, *ones]
    assert len(expected) == DAYS
    scheme = Registry.load(run.registry)["battery"].scheme.fingerprint
    with closing(open_store(run.store)) as held:
        for window, counts in expected.items():
            tally = held.tally("battery", scheme, [window])
            found = [[row.reports, *row.cells] for row in tally.rows]
            np.testing.assert_array_equal(np.array(found), counts)


def test_the_answer_holds_the_truth(run: Run) -> None:
    """The median and the mean of all days lie in their intervals or at most as far beside them as
    these are wide; repeated devices are counted as one."""
    document = json.loads(
        invoke(
            estimate,
            *("battery", "--registry", str(run.registry), "--store", run.store, "--json"),
        )
    )
    assert document["n"] >= DEVICES * (DAYS - 1)
    series = {row["series"]: row for row in document["series"]}
    values = np.array(run.values)
    for name, truth in (("mean", values.mean()), ("p50", np.median(values))):
        low, high = series[name]["low"], series[name]["high"]
        assert low - (high - low) <= truth <= high + (high - low)
    assert len(document["cells"]) == 64


def test_what_people_read_of_it(run: Run) -> None:
    """The owner's words, the privacy label, a simulation and the page say what memos mean."""
    assert "changes" in run.words
    assert "memo" in invoke(privacy, "battery", "--registry", str(run.registry))
    drawn = invoke(
        simulate,
        *("battery", "--registry", str(run.registry), "--devices", "100000"),
        *("--normal", "50,10", "--seed", "1", "--json"),
    )
    series = {row["series"]: row for row in json.loads(drawn)["series"]}
    assert series["mean"]["low"] < 50 < series["mean"]["high"]
    assert series["p50"]["low"] <= 50 <= series["p50"]["high"]
    settings = DashboardSettings(dashboard_token=TOKEN, dashboard_login_link=True)
    with closing(open_store(run.store)) as held:
        app = create_dashboard(settings, store=held, registry=Registry.load(run.registry))
        browser = app.test_client()
        browser.post("/login", data={"token": TOKEN})
        page = browser.get("/metric/battery")
    assert page.status_code == 200
    assert "dbitflip" in page.text.lower()

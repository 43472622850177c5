"""The TypeScript SDK in real browsers, with a real collector: what fails loses no report, and
counts none twice."""

import json
import os
import shutil
import sys
from collections import Counter
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.stores import window_reports
from tests.tools import need

from deniable import Registry
from deniable_collector.settings import Settings
from deniable_collector.stores import open_store

from .running import run

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent / "web"
PROGRAMS = {"chrome": "chromium", "firefox": "firefox-esr"}
COMMAND = [sys.executable, "-c", "from deniable.cli import main; main()"]
NAVIGATIONS = int(os.environ.get("DENIABLE_NAVIGATIONS", "60"))
"""1,000 take a quarter of an hour."""


@pytest.fixture(scope="session")
def built():
    """Builds the SDK, and installs what drives the browsers."""
    need("node", "npm")
    for command in (".ci/web build", ".ci/packages tests/e2e"):
        run(command, ROOT, os.environ, 180)


@pytest.fixture(params=PROGRAMS)
def settings(request, built, tmp_path):
    """What each script of the browser tests is told."""
    need(PROGRAMS[request.param])
    program = shutil.which(PROGRAMS[request.param])
    registry = tmp_path / "metrics.json"
    compiling = [*COMMAND, "compile", str(HERE / "registry.toml"), "-o", str(registry)]
    run(compiling, tmp_path, os.environ)
    store = f"sqlite:///{tmp_path}/tallies.db"
    options = ["--registry", str(HERE / "registry.toml"), "--store", store]
    return {
        "browser": request.param,
        "program": program,
        "folder": str(tmp_path),
        "registry": str(registry),
        "collector": [*COMMAND, "collect", *options],
        "environment": {
            "DENIABLE_CORS_ORIGINS": "*",
            "DENIABLE_RATE": "off",
            "DENIABLE_WORKERS": "1",
        },
        "store": store,
        "result": str(tmp_path / "result.json"),
    }


def found_by(script, settings, seconds):
    """What a script found."""
    path = Path(settings["folder"]) / "settings.json"
    path.write_text(json.dumps({**settings, "seconds": seconds}), encoding="utf-8")
    # The script ends by itself in time, and takes browser and collector with it.
    run(["node", HERE / script, path], HERE, os.environ, seconds + 30)
    return json.loads(Path(settings["result"]).read_text(encoding="utf-8"))


def counted(settings):
    """How many reports the collector's store has, by metric and window."""
    with closing(open_store(Settings(store=settings["store"]))) as store:
        return Counter({
            (metric.name, window): number
            for metric in Registry.load(HERE / "registry.toml")
            for of in [(metric.name, metric.scheme.fingerprint)]
            for window, number in window_reports(store, of, store.windows(*of)).items()
        })  # fmt: skip


def waiting_values(state):
    """The metrics of which a device stores a value: an open window has it, or an empty list."""
    return {
        account["name"]
        for account in state["accounts"]
        if any(isinstance(each, list) and each for each in account["windows"].values())
    }


def label(window, day):
    """The window of that day, counted from today."""
    moment = datetime.now(UTC) + timedelta(days=day)
    return moment.strftime({"day": "%Y-%m-%d", "week": "%G-W%V"}[window])


def require_consistency(found, store):
    """What the devices have sealed, what passed the proxy, and what the store has agree."""
    assert found["complaints"] == []
    sealed = Counter()
    for state in found["states"]:
        reports = state["reports"]
        windows = [(each["metric"], each["window"]) for each in reports]
        assert len(windows) == len(set(windows)), "a window was answered twice"
        sealed.update(windows)
        assert {each["status"] for each in reports} <= {"sent"}
        charged = {
            account["name"]: sum(entry[2] for entry in account["ledger"])
            for account in state["accounts"]
        }
        # What left this device, whether it was counted or not.
        left = Counter(
            metric
            for metric, _ in {
                (each["metric"], each["window"])
                for seen in found["seen"]
                if seen["device"] == state["device"]
                for each in json.loads(seen["body"])["reports"]
            }
        )
        for metric, number in left.items():
            assert number <= charged[metric]
        assert charged.get("twice", 0) <= 2
    # Lost or counted twice: the store would have less or more than what was sealed.
    assert store == sealed
    bodies = {}
    answers = {}
    for seen in found["seen"]:
        assert bodies.setdefault(seen["id"], seen["body"]) == seen["body"]
        for each in json.loads(seen["body"])["reports"]:
            key = (seen["device"], each["metric"], each["window"])
            answer = (seen["id"], json.dumps(each))
            assert answers.setdefault(key, answer) == answer, "a report left in two batches"


def test_nothing_is_lost_and_nothing_counts_twice(settings):
    """While tabs, browsers and the collector are killed and the network fails, every report that
    a device has sealed is counted exactly once; no window has two reports, the ledger has at
    least what left the device, and a page that lived a second has answered."""
    seed = int.from_bytes(os.urandom(4), "big")
    print(f"seed {seed}")
    found = found_by(
        "torture.mjs",
        {**settings, "navigations": NAVIGATIONS, "seed": seed},
        seconds=240 + 2 * NAVIGATIONS,
    )
    require_consistency(found, counted(settings))
    answered = {
        (state["device"], each["metric"], each["window"])
        for state in found["states"]
        for each in state["reports"]
    }
    for each in found["due"]:
        device, metric, day = each.split()
        assert (int(device), metric, label("day", int(day))) in answered
    types = Counter(str(seen["type"]).partition(";")[0] for seen in found["seen"])
    assert set(types) == {"text/plain"}, "nothing needs a preflight"
    happened = found["happened"]
    print(json.dumps({**happened, "reports": len(answered), "requests": types}))
    # The driver may lose a browser whose processes are killed, but rarely.
    assert happened["stuck"] <= max(5, NAVIGATIONS / 50)
    if NAVIGATIONS >= 60:
        assert happened["browsersKilled"] >= 4
        for kind in ("closed", "crashed", "left", "reloaded"):
            assert happened[kind], kind


def test_tabs_consent_and_storage(settings):
    """A report of a tab that lived a second arrives; ten tabs answer once; a choice in one tab
    holds in the other; without storage, or against the person's wish, nothing leaves."""
    found = found_by("scenarios.mjs", settings, seconds=180)
    today, week = label("day", 0), label("week", 0)
    at_once = sorted(("browser", "site", "visited"))

    # Nothing left before the tab was closed: the jitter is longer than a second or so.
    brief = found["oneSecond"]
    assert brief["arrived"]
    # Firefox may send a beacon again; the bytes are the same.
    assert sorted(set(brief["metrics"])) == at_once
    assert {each["status"] for each in brief["first"]} == {202}
    assert len({each["id"] for each in found["seen"] if each["device"] == 0}) == 1
    if brief["before"] == 0:
        assert brief["first"][0]["type"].startswith("text/plain")

    assert all(found["tenTabs"]["flushed"])
    many = found["states"][1]
    assert sorted(each["metric"] for each in many["reports"]) == at_once
    assert waiting_values(many) == {"taps"}

    out = found["optOut"]
    assert out["one"] == out["other"] == "no_consent"
    assert out["sent"] == out["before"]
    assert waiting_values(out["state"]) == set()
    assert out["state"]["batches"] == []
    assert all(each["status"] != "queued" for each in out["state"]["reports"])
    # The ledger stays.
    assert sum(len(account["ledger"]) for account in out["state"]["accounts"]) == 3

    deleted = found["deleted"]
    assert deleted["gone"] == "deleted"
    assert (deleted["flushed"], deleted["status"]) == (False, "failed")

    assert found["privacyControl"] == {"status": "disabled", "state": None, "sent": 0}
    assert found["denied"] == {"status": "failed", "sent": 0}
    assert found["noConsent"] == {"status": "no_consent", "state": None, "sent": 0}
    assert {each["status"] for each in found["privateWindow"]["state"]["reports"]} == {"sent"}

    assert found["complaints"] == []
    store = counted(settings)
    assert {window for _, window in store} <= {today, week}
    # The devices 0 and 1 and the private window have one report of each; the others may have one.
    for metric in at_once:
        assert 3 <= store[metric, today] <= 5
    answers = {(each["device"], each["id"]) for each in found["seen"] if each["status"] == 202}
    reports = sum(
        len(json.loads(body)["reports"])
        for body in {each["body"] for each in found["seen"] if each["status"] == 202}
    )
    assert len(answers) == len({batch for _, batch in answers})
    assert store.total() == reports

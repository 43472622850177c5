"""The demo as people run it: real collector, real dashboard, real HTTP, real signals."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import urllib.error
import urllib.request
from contextlib import closing, contextmanager
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from tests.ports import until

import deniable_demo
from deniable import Registry
from deniable.device.transport import Reply
from deniable.protocol.types.pair import Pair
from deniable_collector.intake import Intake
from deniable_collector.settings import Settings
from deniable_collector.stores import open_store
from deniable_demo import fleet, history
from deniable_demo.commands import chunks
from deniable_demo.history import DAYS, complete_days, weeks_since, write_history, write_weeks
from deniable_demo.population import (
    CRASHES,
    DRIFT,
    GROWTH,
    LEAVING,
    RELEASED,
    USAGE,
    conditional_shares,
    draw,
)
from deniable_estimator.asking.comparison import compare
from deniable_estimator.asking.fetch import read, select
from deniable_estimator.asking.query import Days, Query
from deniable_estimator.asking.reader import Reader
from deniable_estimator.watching.rules_file import parse_rules
from deniable_estimator.watching.run import Watcher
from deniable_estimator.watching.seen import WatchState

from .running import ran

DEVICES = 2_400
METRICS = Path(deniable_demo.__file__).with_name("metrics.toml")
REGISTRY = Registry.load(METRICS)


def accepted(body):
    """A collector's reply to a batch that it takes whole."""
    return Reply(202, json.dumps({"batch": json.loads(body)["batch"], "rejected": []}).encode())


@contextmanager
def published(path, registry=REGISTRY):
    """A store with the schemes of a registry."""
    with closing(open_store(Settings(store=f"sqlite:///{path}"))) as store:
        store.publish((metric.name, metric.scheme) for metric in registry)
        yield store


def reported(registry, crowd, now, monkeypatch):
    """What the devices send with the real SDK."""
    sent: list[bytes] = []
    monkeypatch.setattr(fleet.Relay, "forward", lambda relay: None)
    monkeypatch.setattr(
        fleet.Relay, "send", lambda relay, body: sent.append(body) or accepted(body)
    )
    for chunk in chunks(crowd):
        fleet.report_from(str(registry), "http://127.0.0.1:9", chunk, now)
    return sent


def processes_below(folder):
    """The processes whose environment names this temporary folder."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            settings = (entry / "environ").read_bytes().split(b"\0")
            zombie = b") Z " in (entry / "stat").read_bytes()
        except OSError:
            continue
        if f"TMPDIR={folder}".encode() in settings and not zombie:
            found.append(int(entry.name))
    return found


def nothing_stays(folder):
    """A helper of multiprocessing ends just after its parent, when the pipe between them closes."""
    until(lambda: not processes_below(folder), "processes stay")


def test_once_prints_numbers_that_hold(command, environ):
    """`--once --json` prints JSON alone, and every estimate is near the truth.

    Alpha 1e-5 for all 36 comparisons together: 35 shares, six of them in the three groups of a
    segment, and a geometric mean, each within 6 standard errors of the truth (two-sided normal tail
    2e-9, times a hundred for the discreteness of a few hundred reports). The randomness is the
    operating system's, so there is no seed. Of quantiles, whose intervals so few reports leave open
    as often as not, and of the pair's ratios, which are not normal, the truth alone is looked at.
    """
    asked = [*command, "demo", "--once", "--json", "--devices", str(DEVICES)]
    done = ran(asked, None, environ)
    assert done.returncode == 0, done.stderr
    # What its collector logs every day would bury what it shows.
    assert " info " not in done.stderr
    document = json.loads(done.stdout)
    assert list(document) == ["metrics", "changes"]
    compared, groups = 0, dict[str, int]()
    for metric in document["metrics"]:
        rate = REGISTRY[metric["metric"]].rate
        if metric["segment"] is not None:
            groups[metric["segment"]["system"]] = metric["n"]
        elif rate == 1:
            assert metric["n"] == DEVICES
        else:
            assert stats.binomtest(metric["n"], DEVICES, rate).pvalue > 1e-6
        assert 0 < metric["epsilon"] <= (4 if metric["kind"] == "finds" else 2.5)
        if metric["kind"] == "shares":
            assert sum(value["truth"] for value in metric["values"]) == pytest.approx(1)
        elif metric["kind"] == "pair":
            # One conditional share of each cell, which sum to 1 for each plan.
            assert sum(value["truth"] for value in metric["values"]) == pytest.approx(3)
            assert all(" given plan=" in value["value"] for value in metric["values"])
            continue
        elif metric["kind"] == "finds":
            # So few reports may find nothing.
            assert metric["verdict"].startswith("Nobody listed these")
            continue
        else:
            assert (metric["metric"], metric["unit"]) == ("shop_images", "KB")
            truths = [value["truth"] for value in metric["values"][:4]]
            assert truths == sorted(truths)
            assert 500 < truths[0] < 5_000
        for value in metric["values"]:
            if value["value"].startswith("p9") or value["value"] == "p50":
                continue
            assert value["low"] < value["estimate"] < value["high"]
            assert abs(value["estimate"] - value["truth"]) < 6 * value["std_error"], value
            compared += 1
    assert compared == 36
    assert list(groups) == ["windows", "macos", "linux"]
    assert 0 < sum(groups.values()) < DEVICES
    assert list(Path(environ["TMPDIR"]).iterdir()) == []
    nothing_stays(environ["TMPDIR"])


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="looks into /proc")
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_the_staying_demo_shows_itself_and_leaves_nothing(demo, environ, ending, command):
    """The printed link opens the dashboard, and the printed commands ask its store; Ctrl-C ends
    every process and removes every file."""
    process, page, token, _, printed = demo(50)
    newest = datetime.now(UTC).date() - timedelta(days=1)
    request = urllib.request.Request(
        f"{page}/metric/browser.json?from={newest}&to={newest}",
        headers={"Authorization": f"Bearer {token}"},
    )
    with urllib.request.urlopen(request) as answer:
        assert json.load(answer)["n"] == 50
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"{page}/metric/browser.json")
    refused.value.close()
    given, asked = (
        shlex.split(each) for each in re.findall(r"^ +((?:export|deniable) .*)", printed, re.M)
    )
    settings = dict(each.split("=", 1) for each in given[1:])
    found = subprocess.run(
        [*command, *asked[1:]], env=environ | settings, capture_output=True, text=True
    )
    assert found.returncode == 0, found.stderr
    assert found.stdout.startswith("crashed: ")
    assert len(processes_below(environ["TMPDIR"])) >= 5  # demo, and two services of two each
    assert list(Path(environ["TMPDIR"]).iterdir())
    os.killpg(process.pid, ending)
    assert process.wait(timeout=40) == 0
    nothing_stays(environ["TMPDIR"])
    assert list(Path(environ["TMPDIR"]).iterdir()) == []


def test_what_is_made_up_goes_together():
    """The drawn crowd crashes as often on each system as it is made up to, and whoever pays uses
    the app longer. Alpha 1e-4 for the three systems, by binomial tails; seed 1."""
    random = np.random.default_rng(1)
    systems, crashed = map(np.array, CRASHES.draw(40_000, random))
    for system, (_, percent) in CRASHES.percent.items():
        of = crashed[systems == system]
        assert stats.binomtest(int(of.sum()), len(of), percent / 100).pvalue > 1e-4 / 3
    pair = REGISTRY[USAGE.metric].type
    assert isinstance(pair, Pair)
    shares = conditional_shares(pair, *USAGE.draw(40_000, random))
    longest = [shares[f"minutes=60 or more given plan={plan}"] for plan in USAGE.typical]
    assert longest == sorted(longest)
    assert longest[-1] - longest[0] > 0.4


def test_drawn_days_are_like_those_of_the_sdk(tmp_path, monkeypatch):
    """Of every metric, each cell of the tally is as frequent in a drawn day as in one that 4,000
    devices reported with the real SDK. Alpha 1e-4 for all cells together (normal tails); the SDK's
    randomness is the operating system's, the drawn day's has seed 1."""
    newest, crowd = date(2026, 11, 24), 4_000
    assert newest.weekday() < 5, "a working day, as in the population"
    tallies = {}
    now = datetime(newest.year, newest.month, newest.day + 1, 12, tzinfo=UTC).timestamp()
    sent = reported(METRICS, draw(crowd, np.random.default_rng(2)), now, monkeypatch)
    for name in ("reported", "drawn"):
        with published(f"{tmp_path}/{name}.db") as store:
            if name == "reported":
                intake = Intake(REGISTRY, store, max_reports=100, clock=lambda: now)
                intake.take([intake.read(body) for body in sent])
            else:
                rng = np.random.default_rng(1)
                list(write_history(store, REGISTRY, draw(200_000, rng), newest, rng, days=[0]))
            for metric in REGISTRY:
                asked = select(
                    Reader(store), REGISTRY, Query(metric.name, Days(newest, newest))
                ).read()
                tallies[name, metric.name] = asked.parts[0].tally
    p_values = []
    for metric in REGISTRY:
        one, two = (tallies[name, metric.name] for name in ("reported", "drawn"))
        if metric.name in {*REGISTRY.unasked, LEAVING.metric}:
            continue
        assert one.reports
        for ours, theirs in zip(one.rows, two.rows, strict=True):
            n, m = ours.reports, theirs.reports
            p = (ours.cells + theirs.cells) / max(1, n + m)
            # Cells that few devices reach are too discrete for the normal tail.
            often = np.minimum(p, 1 - p) * n > 20
            error = np.sqrt(p * (1 - p) * (1 / max(1, n) + 1 / max(1, m)))[often]
            apart = (ours.cells / max(1, n) - theirs.cells / max(1, m))[often]
            p_values += list(2 * stats.norm.sf(np.abs(apart) / error))
    assert len(p_values) > 30
    assert min(p_values) > 1e-4 / len(p_values)


def test_a_release_after_which_fewer_come_back_is_found(tmp_path):
    """Twelve demos of 50,000 devices (seeds 0 to 11): the planted fall is found in each but one at
    most (it is 5.8 standard errors, and has to be beyond 2.9), and inside its interval in eight at
    least (alpha 2e-4)."""
    newest = date(2026, 11, 24)
    days = weeks_since(newest)
    found, inside = 0, 0
    for seed in range(12):
        with published(f"{tmp_path}/{seed}.db") as store:
            write_weeks(store, REGISTRY, 50_000, newest, np.random.default_rng(seed))
            before, after = (
                read(Reader(store), REGISTRY, Query(LEAVING.metric, each))
                for each in (days.earlier, days)
            )
        changes = compare(before, after)
        place = changes.values.index("age 1")
        found += bool(changes.changed[place])
        truth = LEAVING.after - LEAVING.before
        inside += bool(changes.low[place] <= truth <= changes.high[place])
    assert found >= 11
    assert inside >= 8


def test_the_newest_day_continues_the_memos_of_the_drawn_days(tmp_path, monkeypatch):
    """With memos of much noise and next to none on top, 1,000 devices with the real SDK report what
    they did on the drawn day before, where all of them took part. With memos of their own, counts
    would be 6 to 20 apart (a standard deviation), not .2 to 2."""
    text = METRICS.read_text()
    text = text.replace("epsilon = 2.0\nlongitudinal", "epsilon = 0.999\nlongitudinal", 2)
    path = tmp_path / "metrics.toml"
    path.write_text(text.replace("memo_epsilon = 4.0", "memo_epsilon = 1.0", 2))
    registry = Registry.load(path)
    monkeypatch.setattr(history, "USED", 1.0)
    newest, crowd = date(2026, 11, 24), draw(1_000, np.random.default_rng(3))
    now = datetime(newest.year, newest.month, newest.day + 1, 12, tzinfo=UTC).timestamp()
    kept = [each for each in registry if each.memo_epsilon == 1.0]
    assert [each.name for each in kept] == ["browser", "dark_mode"]
    with published(f"{tmp_path}/tallies.db", registry) as store:
        list(write_history(store, registry, crowd, newest, np.random.default_rng(4), days=[1]))
        for body in reported(path, crowd, now, monkeypatch):
            intake = Intake(registry, store, max_reports=100, clock=lambda: now)
            intake.take([intake.read(body)])
        for metric in kept:
            before, after = (
                select(Reader(store), registry, Query(metric.name, Days(day, day)))
                .read()
                .parts[0]
                .tally.rows[0]
                for day in (newest - timedelta(1), newest)
            )
            assert before.reports == after.reports == crowd.size
            # On the newest day about one device of a thousand has another browser.
            assert np.abs(before.cells - after.cells).max() <= 9
            assert after.cells.max() - after.cells.min() > 50


def test_watch_tells_each_planted_change_once(tmp_path):
    """`deniable watch` after each of the demo's days, on all metrics, with .2 false alarms expected
    in all days: crashes after the release, both sides of the drift of a metric with memos, and the
    numbers that grow, each once; and nothing else. Seed 1; one other in all days has a chance of
    at most .2."""
    rules = 'schema = 1\ndashboard = "https://d.acme.example"\nfalse_alarms = "1 a year"'
    newest, told, state = date(2026, 11, 24), [], WatchState()
    with published(f"{tmp_path}/tallies.db") as store:
        watched = parse_rules(rules, list(REGISTRY), {})
        rng = np.random.default_rng(1)
        crowd = draw(50_000, rng)
        for day in write_history(store, REGISTRY, crowd, newest, rng, range(DAYS, -1, -1)):
            judged = datetime.combine(day, datetime.min.time(), UTC) + timedelta(days=2, hours=1)
            watcher = Watcher(Reader(store), REGISTRY, watched)
            for each in watcher.run(state, judged.timestamp()).messages:
                if each["kind"] == "stale":
                    continue  # the weeks before do not hold every metric
                way = "up" if each["facts"]["difference"] > 0 else "down"
                told.append((each["metric"], each["facts"]["series"], way, newest - day))
    (crashed,) = (ago for metric, *_, ago in told if metric == CRASHES.metric)
    assert timedelta(complete_days(RELEASED)) - crashed <= timedelta(7)
    grown = {series for metric, series, *_ in told if metric == GROWTH.metric}
    assert grown
    assert grown <= {"p75", "p90", "p95"}
    assert sorted(each[:3] for each in told) == sorted(
        [
            (CRASHES.metric, "true", "up"),
            (DRIFT.metric, DRIFT.after, "up"),
            (DRIFT.metric, DRIFT.before, "down"),
            *((GROWTH.metric, series, "up") for series in grown),
        ]
    )

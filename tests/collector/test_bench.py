"""`deniable bench ingest`: a load that is counted, bounded, and careful with people's tallies."""

from __future__ import annotations

import asyncio
import http.server
import json
import threading
import time
from contextlib import closing
from datetime import UTC, datetime
from itertools import pairwise

import pytest
from click.testing import CliRunner

from deniable import Registry, windows
from deniable_collector.bench.commands import bench
from deniable_collector.bench.load import Load, LoadResult, run
from deniable_collector.bench.ramp import climb, send
from deniable_collector.bench.reports import BenchError, MadeUp, choose, open_window
from deniable_collector.intake import Intake
from deniable_collector.stores import open_store

BENCH = """
[metrics.bench_flag]
type = "boolean"
description = "Made-up reports."
epsilon = 1.0
lifetime_epsilon = 1.0

[metrics.bench_word]
type = "string"
description = "Made-up reports."
epsilon = 1.0
lifetime_epsilon = 1.0
"""


@pytest.fixture
def path(tmp_path, metrics):
    """A registry with metrics to measure with, and others."""
    path = tmp_path / "bench.toml"
    path.write_text(metrics + BENCH)
    return str(path)


def ingest(*arguments, **options):
    return CliRunner().invoke(bench, ["ingest", *arguments], **options)


def test_what_it_says_is_what_was_counted(new_collector, path, tmp_path):
    """Each report that it counts as accepted is in the store, of its metrics alone, and none is
    rejected."""
    url = f"sqlite:///{tmp_path / 'bench.db'}"
    collector = new_collector(DENIABLE_STORE=url, DENIABLE_REGISTRY=path)
    result = ingest(
        *("--url", collector.address, "--registry", path, "--seconds", "60"),
        *("--requests", "200", "--connections", "4", "--reports", "7", "--json"),
    )
    assert result.exit_code == 0, result.output
    figures = json.loads(result.stdout)
    assert figures["requests"] == 200
    assert figures["statuses"] == {"202": 200}
    assert figures["reports"] == {"accepted": 1400, "duplicate": 0, "rejected": 0}
    assert figures["errors"] == {}
    waits = figures["latency_ms"]
    assert 0 < waits["p50"] <= waits["p90"] <= waits["p99"] <= waits["max"]
    with closing(open_store(url)) as store:
        held = {
            metric: store.tally(metric, scheme, store.windows(metric, scheme)).reports
            for metric, schemes in store.schemes().items()
            for scheme in schemes
        }
    assert held["bench_flag"] + held["bench_word"] == 1400
    assert min(held["bench_flag"], held["bench_word"]) > 0
    assert sum(held.values()) == 1400


class Server:
    """A collector of which it is known how much it takes: `rate` batches a second, each answered
    `wait` seconds after it came, by a sender that is `busy` with each for so many seconds of its
    processes' time."""

    def __init__(self, rate=1e9, wait=0.02, busy=0.0, most=1e9, problem=None):
        self.rate, self.wait, self.busy, self.most = rate, wait, busy, most
        self.problem = problem

    async def send(self, connections, processes, requests):
        could = min(connections / self.wait, self.rate)
        if self.busy:
            could = min(could, processes / self.busy)
        outcome = LoadResult(seconds=1.0, busy=could * self.busy / processes)
        refused = max(0, int(could - self.most))
        outcome.statuses.update({202: int(could) - refused, 429: refused})
        if refused:
            outcome.problems[self.problem] = refused
        return outcome


@pytest.mark.parametrize(
    ("server", "limit", "connections", "processes"),
    [
        (Server(rate=11_000), "collector", 512, 1),
        (Server(rate=11_000, busy=0.0001), "collector", 512, 2),
        (Server(rate=11_000, busy=0.0004), "sender", 256, 4),
        (Server(wait=0.5), "connections", 1024, 1),
        (Server(most=20, problem="too-many-requests"), "refusals", 32, 1),
    ],
)
def test_the_load_is_raised_until_a_limit_is_met(server, limit, connections, processes):
    """Connections are doubled until the collector answers no more, and processes where the sender
    is busy; the limit that ends it is the one that is there."""
    steps, found = asyncio.run(climb(server.send, 10**9, processors=4))
    assert found == limit
    assert (steps[-1].connections, steps[-1].processes) == (connections, processes)
    assert steps[0].connections == 32


def test_it_finds_more_than_the_wait_for_a_commit(new_collector, path):
    """Against a real collector connections are raised past the first 32, which wait for the tick;
    the figures are those of the best step, and the limit is named."""
    collector = new_collector(
        DENIABLE_REGISTRY=path, DENIABLE_TICK="500", DENIABLE_MAX_CONNECTIONS="2000"
    )
    asked = ("--url", collector.address, "--registry", path, "--seconds", "1", "--requests", "3000")
    result = ingest(*asked, "--json")
    assert result.exit_code == 0, result.output
    figures = json.loads(result.stdout)
    # How fast each step is depends on the machine; `climb` is tested with rates that are known.
    connections = [each["connections"] for each in figures["steps"]]
    assert connections[0] == 32
    assert all(later in (one, 2 * one) for one, later in pairwise(connections))
    assert all(each["acknowledged_per_second"] > 0 for each in figures["steps"])
    assert figures["limit"] in ("requests", "sender", "collector", "connections")
    assert figures["limit_detail"]
    assert figures["requests"] <= 3000


def test_a_rate_of_the_collector_s_is_named(new_collector, path):
    """What the collector refuses is the limit, and the setting is named; nothing is measured at
    other numbers."""
    collector = new_collector(DENIABLE_REGISTRY=path, DENIABLE_RATE="20/second")
    result = ingest("--url", collector.address, "--registry", path, "--seconds", "0.5")
    assert result.exit_code == 0, result.output
    assert "DENIABLE_RATE=off" in result.output
    assert "status 429" in result.output


def test_refusals_are_explained_at_one_number_of_connections(new_collector, path):
    """Without a search for the limit, too, it is said what refused the batches."""
    collector = new_collector(DENIABLE_REGISTRY=path, DENIABLE_RATE="1/minute")
    asked = ("--url", collector.address, "--registry", path, "--seconds", "0.5")
    result = ingest(*asked, "--connections", "2")
    assert "status 429" in result.output
    assert "refused by         the rate of a network (DENIABLE_RATE)" in result.output


def test_a_collector_that_is_not_there_is_told(path):
    """Where nothing listens, that is said in words, and no batch was acknowledged."""
    asked = ("--url", "http://127.0.0.1:1", "--registry", path, "--seconds", "0.2")
    result = ingest(*asked)
    assert result.exit_code == 1
    assert "nothing can be reached" in result.output
    assert "from 1 process for" in result.output


def test_several_processes_send(new_collector, path):
    """Loads of several processes add up to one outcome, within the number of requests."""
    collector = new_collector(DENIABLE_REGISTRY=path)
    body = MadeUp(choose(Registry.load(path), ()), 3, time.time())
    load = Load(collector.address + "/v1/reports", seconds=20, requests=100, connections=8)
    outcome = asyncio.run(send(load, body, 2))
    assert dict(outcome.statuses) == {202: 100}
    assert (outcome.accepted, len(outcome.waits)) == (300, 100)
    assert 0 < outcome.busy < 1


def test_a_rate_is_kept(new_collector, path):
    """With a rate and an end in time, no more requests are sent than are due by then."""
    collector = new_collector(DENIABLE_REGISTRY=path)
    result = ingest(
        *("--url", collector.address, "--registry", path, "--seconds", "1"),
        *("--rate", "20", "--connections", "2", "--json"),
    )
    assert json.loads(result.stdout)["requests"] == 20


def test_a_key_is_sent_along(new_collector, path):
    """Where the collector asks for a key, the one in DENIABLE_INGEST_KEY opens it; without it
    every answer is 401, which is said and is no success."""
    key = "k" * 20
    collector = new_collector(DENIABLE_REGISTRY=path, DENIABLE_INGEST_KEYS=key)
    asked = ("--url", collector.address, "--registry", path, "--requests", "5", "--json")
    result = ingest(*asked)
    assert (result.exit_code, json.loads(result.stdout)["statuses"]) == (1, {"401": 5})
    result = ingest(*asked, env={"DENIABLE_INGEST_KEY": key})
    assert (result.exit_code, json.loads(result.stdout)["statuses"]) == (0, {"202": 5})
    assert key not in result.output


def test_it_asks_before_it_spoils_tallies(path):
    """Other metrics than bench_* are never taken by default; named, they need an agreement,
    and without a terminal to ask at, --yes. Nothing is sent before."""
    nowhere = ("--url", "http://127.0.0.1:9", "--registry", path, "--seconds", "0.3")
    result = ingest(*nowhere, "--metric", "browser")
    assert result.exit_code == 2
    assert "made-up reports to the tallies of browser" in result.output
    assert "--yes" in result.output
    result = ingest(*nowhere, "--metric", "browser", "--yes", "--json")
    assert (result.exit_code, json.loads(result.stdout)["statuses"]) == (1, {})
    assert json.loads(result.stdout)["errors"]["ClientConnectorError"] > 0
    assert "no batch was acknowledged" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--url", "ftp://x"], "must be http"),
        (["--url", "http://x", "--metric", "nothing"], "declares no metric nothing"),
        (["--url", "http://x", "--connections", "0"], "not in the range"),
        (["--url", "http://x", "--seconds", "99999"], "not in the range"),
        (["--url", "http://x", "--requests", "99999999"], "not in the range"),
    ],
)
def test_mistakes(path, arguments, words):
    """A mistake ends the command with words that help."""
    result = ingest("--registry", path, *arguments)
    assert result.exit_code != 0
    assert words in result.output


def test_a_registry_without_bench_metrics(registry):
    """Without a metric to measure with, the error says what to add."""
    with pytest.raises(BenchError, match="begins with bench_"):
        choose(registry, ())


def test_windows_are_accepted(path, tmp_path):
    """On every day of a month, what it makes of a daily or weekly metric is accepted by the
    collector's own intake."""
    registry = Registry.load(path)
    with closing(open_store(f"sqlite:///{tmp_path / 'days.db'}")) as store:
        for day in range(1, 32):
            now = datetime(2026, 12, day, 13, tzinfo=UTC).timestamp()
            intake = Intake(registry, store, clock=lambda now=now: now)
            for metric in registry:
                label = open_window(metric, now)
                assert label is not None
                assert windows.kind_of(label) == metric.window
                batch = intake.read(MadeUp([metric], 3, now)())
                assert (batch.reports, batch.rejected) == (3, ())


def test_months_without_a_window(registry):
    """A month's reports are taken for a week around its end; on other days there is no window,
    and none once the metric has expired."""
    monthly = Registry.parse(
        "schema = 1\napp = 'example'\n"
        "[defaults]\nowner = 'x@acme.example'\nexpires = 2026-12-31\n" + BENCH.replace(
            "lifetime", 'window = "month"\nlifetime', 1)
    )["bench_flag"]  # fmt: skip
    at = [datetime(2026, 12, day, 13, tzinfo=UTC).timestamp() for day in (3, 15, 31)]
    assert [open_window(monthly, now) for now in at] == ["2026-11", None, "2026-12"]
    assert open_window(monthly, datetime(2027, 3, 2, tzinfo=UTC).timestamp()) is None
    with pytest.raises(BenchError, match="no window that takes reports"):
        MadeUp([monthly], 1, at[1])


def test_a_collector_that_answers_nonsense(babbler):
    """Statuses are counted as they come; a 202 that is no receipt is an error."""
    outcome = LoadResult()
    load = Load(babbler, seconds=30, requests=3, connections=1)
    asyncio.run(run(load, lambda: b"{}", outcome))
    assert dict(outcome.statuses) == {202: 3}
    assert dict(outcome.errors) == {"a response that is no receipt": 3}


@pytest.fixture
def babbler():
    """A server that says 202 and nothing else."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(202)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *arguments):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/v1/reports"
        server.shutdown()
        thread.join()

"""What the overview of 500 metrics with 365 days costs in CPU and bytes, beside plain ways.

Half of the metrics are booleans and half have 12 values; each has 5,000 reports a day. In one of 50
the leader rose by 4 points seven days ago, so that something needs attention. Pages are asked of
the WSGI application in this process, as browsers do, with gzip. CPU is told twice: of the thread
that responds, and of all threads until the calculations in the background have ended.

    first view       nothing is known yet: the dashboard has just started, and calculates meanwhile
    ready            the first view once these have ended; nothing was kept for the page itself
    one window       a view after one window of one metric has changed
    all windows      a view after yesterday's window of every metric has changed
    search, list...  the same page in another view

Baselines in the same run: a Flask page that only renders as many bytes from as many parts; and the
former way, which reads and estimates the 28 days of each of the 50 metrics of a page while it is
asked for, without trends, changes or attention.
Run: python benchmarks/overview.py [--redis] [--metrics 500] [--days 365]
"""

from __future__ import annotations

import argparse
import gzip
import json
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import numpy as np
from flask import Flask, render_template_string
from flask.testing import FlaskClient
from rich.console import Console
from rich.table import Table

from deniable import Metric, Registry
from deniable_collector.stores import Store, open_store
from deniable_collector.stores.commits import Commit, Increment, TallyKey, TallyRowKey
from deniable_estimator.analyses.sampling import sample_tally
from deniable_estimator.dashboard import create_app
from deniable_estimator.dashboard.app import close_app
from deniable_estimator.dashboard.settings import DashboardSettings
from deniable_estimator.planning.population import zipf_shares
from deniable_estimator.questions.reading import read

TOKEN = secrets.token_urlsafe(32)
TODAY = date(2026, 11, 21)
NOW = datetime(2026, 11, 21, 9, tzinfo=UTC).timestamp()
REPORTS = 5_000
DRAWN = 63
"""So many of the newest days are drawn anew; older ones repeat them, and cost no less to read."""
ROUNDS = 5
PAGES = (
    ("overview", "/"),
    ("list", "/?view=list"),
    ("list, largest change first", "/?view=list&sort=change"),
    ("search for a value", "/?q=value+7"),
    ("page 7, 91 days, known", "/?page=7&from=2026-08-22&to=2026-11-20"),
)


def registry(metrics: int) -> Registry:
    lines = [
        "schema = 1",
        'app = "example"',
        "[defaults]",
        'owner = "a@acme.example"',
        "expires = 2027-06-30",
    ]
    for place in range(metrics):
        kind = "boolean" if place % 2 else "category"
        lines += [f"[metrics.{kind}_{place}]", f'type = "{kind}"']
        lines.append(f'description = "Which {place}?"')
        if kind == "category":
            lines.append(f"values = {json.dumps([f'value {each}' for each in range(12)])}")
        lines += ["epsilon = 2.0", "lifetime_epsilon = 8.0", "sample_rate = 0.1"]
    return Registry.parse("\n".join(lines))


def fill(store: Store, declared: Registry, days: int) -> None:
    store.publish({metric.name: [metric.scheme] for metric in declared})
    rng = np.random.default_rng(1)
    drawn: list[dict[str, Increment]] = []
    for ago in range(1, days + 1):
        day = (TODAY - timedelta(days=ago)).isoformat()
        if ago <= DRAWN:
            drawn.append({m.name: drawn_day(m, i, ago, rng) for i, m in enumerate(declared)})
        made = drawn[(ago - 1) % len(drawn)]
        increments = {
            TallyRowKey(TallyKey(m.name, m.scheme.fingerprint, day), 0): made[m.name]
            for m in declared
        }
        store.fold(Commit((secrets.token_hex(16),), increments), NOW)
        print(f"\r{ago} of {days} days", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)


def drawn_day(metric: Metric, place: int, ago: int, rng: np.random.Generator) -> Increment:
    """What one day of a metric adds."""
    shares = zipf_shares(len(metric.values), 1.1)
    if place % 50 == 0 and ago <= 7:
        shares = shares * 0.96
        shares[0] += 0.04
    counts = rng.multinomial(REPORTS, shares / shares.sum())
    tally = sample_tally(metric.scheme, counts, rng, metric=metric.name, window="2026-11-20")
    (row,) = tally.rows
    return Increment(len(row.cells), row.reports, range(len(row.cells)), row.cells)


def visitor(store: Store, declared: Registry) -> FlaskClient:
    """A signed-in browser at an application that has answered nothing yet."""
    settings = DashboardSettings(dashboard_token=TOKEN)
    app: Flask = create_app(settings, store=store, registry=declared, clock=lambda: NOW)
    for name in app.jinja_env.list_templates():
        app.jinja_env.get_template(name)  # As gunicorn's worker does before it responds.
    client = app.test_client()
    client.post("/login", data={"token": TOKEN})
    client.environ_base["HTTP_ACCEPT_ENCODING"] = "gzip"
    return client


def settle(client: FlaskClient) -> None:
    """Wait until nothing is calculated in the background."""
    kept = client.application.extensions["deniable_summaries"]
    while kept.progress[1]:
        time.sleep(0.02)


class Cost:
    """CPU in milliseconds: of the thread that responds, and of the process."""

    def __init__(self) -> None:
        self.thread = self.all = 0.0
        self.sent = b""

    @classmethod
    def of(cls, client: FlaskClient, path: str) -> Cost:
        found = cls()
        thread, process = time.thread_time(), time.process_time()
        answer = client.get(path)
        found.thread = (time.thread_time() - thread) * 1000
        settle(client)
        found.all = (time.process_time() - process) * 1000
        assert answer.status_code in (200, 202), answer.status
        found.sent = answer.data
        return found


def change(store: Store, declared: Registry, count: int) -> None:
    """One more report of yesterday for so many metrics."""
    day = (TODAY - timedelta(days=1)).isoformat()
    increments = {}
    for metric in list(declared)[:count]:
        key = TallyRowKey(TallyKey(metric.name, metric.scheme.fingerprint, day), 0)
        increments[key] = Increment(metric.scheme.mechanism.rows[0].width, 1, (0,), (1,))
    store.fold(Commit((secrets.token_hex(16),), increments), NOW)


def row(table: Table, label: str, costs: list[Cost]) -> None:
    best = min(costs, key=lambda each: each.thread)
    whole = gzip.decompress(best.sent) if best.sent[:2] == b"\x1f\x8b" else best.sent
    table.add_row(
        label,
        f"{best.thread:,.0f}",
        f"{min(each.all for each in costs):,.0f}",
        f"{len(best.sent) / 1000:,.1f}" if whole else "",
        f"{len(whole) / 1000:,.1f}" if whole else "",
    )


def measure(table: Table, store: Store, declared: Registry) -> None:
    client = visitor(store, declared)
    row(table, "first view", [Cost.of(client, "/")])
    ready = []
    kept = client.application.extensions["deniable_summaries"]
    for _ in range(ROUNDS):
        fresh = visitor(store, declared)
        fresh.application.extensions["deniable_summaries"] = kept
        ready.append(Cost.of(fresh, "/"))
    row(table, "ready", ready)
    for label, count in (("one window", 1), ("all windows", len(list(declared)))):
        costs = []
        for _ in range(ROUNDS):
            change(store, declared, count)
            costs.append(Cost.of(client, "/"))
            # What a later view would calculate is part of the price of the change.
            while kept._rests_until > kept._clock():
                kept._rests_until = 0.0
            costs[-1].all += Cost.of(client, "/").all - ready[-1].all
        row(table, label, costs)
    for label, path in PAGES[1:]:
        Cost.of(client, path)
        row(table, label, [Cost.of(client, path) for _ in range(ROUNDS)])
    size = client.application.extensions["deniable_source"].decodes.size
    print(f"kept estimates and windows: {size / 1e6:.0f} MB", file=sys.stderr)
    close_app(client.application)


def baseline_page(table: Table, parts: int, size: int) -> None:
    """A page of as many bytes, made of as many parts, by Flask and Jinja alone."""
    app = Flask(__name__)
    text = "{% for each in parts %}<li>{{ each }}</li>{% endfor %}"

    @app.get("/")
    def page() -> str:
        return render_template_string(text, parts=["x" * (size // parts - 9)] * parts)

    client = app.test_client()

    def ask() -> Cost:
        found = Cost()
        begin = time.thread_time()
        answer = client.get("/")
        found.thread = found.all = (time.thread_time() - begin) * 1000
        found.sent = gzip.compress(answer.data, 5)
        return found

    row(table, "baseline: Flask renders as many bytes", [ask() for _ in range(ROUNDS)])


def baseline_estimates(table: Table, store: Store, declared: Registry) -> None:
    """The estimates of 50 metrics over 28 days, read and written as JSON while they are waited
    for."""
    first = TODAY - timedelta(days=28)

    def ask() -> Cost:
        found = Cost()
        begin = time.thread_time()
        for metric in list(declared)[:50]:
            json.dumps(read(store, declared, metric.name, first, TODAY).to_dict())
        found.thread = found.all = (time.thread_time() - begin) * 1000
        return found

    row(table, "baseline: 50 estimates as JSON, no page", [ask() for _ in range(ROUNDS)])


@contextmanager
def opened(folder: str, redis: bool) -> Iterator[Store]:
    if not redis:
        store = open_store(f"sqlite:///{folder}/tallies.db")
        yield store
        store.close()
        return
    binary = shutil.which("redis-server")
    if binary is None:
        sys.exit("this benchmark needs redis-server")
    address = f"{folder}/redis.sock"
    options = ["--port", "0", "--unixsocket", address, "--save", "", "--appendonly", "no"]
    server = subprocess.Popen([binary, *options], stdout=subprocess.DEVNULL)
    try:
        while not Path(address).exists():
            time.sleep(0.05)
        store = open_store(f"unix://{address}")
        yield store
        store.close()
    finally:
        server.terminate()
        server.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--redis", action="store_true", help="measure Redis in place of SQLite")
    parser.add_argument("--metrics", type=int, default=500)
    parser.add_argument("--days", type=int, default=365)
    asked = parser.parse_args()
    table = Table(title="CPU in milliseconds, and kilobytes of a response")
    for name in ("page", "thread", "all", "sent (gzip)", "whole"):
        table.add_column(name, justify="left" if name == "page" else "right")
    declared = registry(asked.metrics)
    with tempfile.TemporaryDirectory() as folder, opened(folder, asked.redis) as store:
        fill(store, declared, asked.days)
        baseline_page(table, 50, 120_000)
        baseline_estimates(table, store, declared)
        measure(table, store, declared)
    Console(width=100).print(table)


if __name__ == "__main__":
    main()

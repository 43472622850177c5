"""What the dashboard's pages cost in server CPU and bytes, beside plain ways in the same run.

50 metrics with 30 days of answers each, one of them over 1,000 values, in SQLite. Pages are
asked of the WSGI application in this process, as browsers do, with gzip. *Uncached* has no
estimate at hand; *again* is a reload; *compiling* is the page of an application that has yet to
compile its templates, as gunicorn's worker does before it answers. The baselines: the
estimates alone, read and written as JSON without any page; and the page that lists every value.
Run: python benchmarks/dashboard.py
"""

from __future__ import annotations

import gzip
import json
import secrets
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import numpy as np
from flask import Flask
from flask.testing import FlaskClient
from rich.console import Console
from rich.table import Table

from hearsay import Registry
from hearsay_collector.stores import Store, open_store
from hearsay_collector.stores.base import Commit, Increment, TallyKey, TallyRowKey
from hearsay_estimator.dashboard import create_app
from hearsay_estimator.dashboard.settings import Settings
from hearsay_estimator.population import zipf_shares
from hearsay_estimator.reading import read
from hearsay_estimator.sampling import sample_tally

TOKEN = secrets.token_hex(16)
TODAY = date(2026, 11, 21)
NOW = datetime(2026, 11, 21, 9, tzinfo=UTC).timestamp()
DAYS = 30
DEVICES = 20_000
ROUNDS = 7
PAGES = (
    ("overview, 50 metrics", "/"),
    ("metric, 1,000 values", "/metric/large"),
    ("the same, every value listed", "/metric/large?lines=all"),
    ("metric, 12 values", "/metric/category_0"),
    ("metric, boolean", "/metric/boolean_1"),
    ("comparison, 1,000 values", "/metric/large/compare?from=2026-11-11&to=2026-11-20"),
    ("planner", "/plan"),
    ("chart of 1,000 values as PNG", "/metric/large.png"),
)


def registry() -> Registry:
    lines = ["schema = 1", "[defaults]", 'owner = "a@acme.example"', "expires = 2027-06-30"]
    numbers = "epsilon = 2.0\nlifetime_epsilon = 8.0\nsample_rate = 0.1"
    for place in range(49):
        kind = "boolean" if place % 2 else "category"
        lines += [
            f"[metrics.{kind}_{place}]",
            f'type = "{kind}"',
            f'description = "Which {place}?"',
        ]
        if kind == "category":
            lines.append(f"values = {json.dumps([f'value {each}' for each in range(12)])}")
        lines.append(numbers)
    values = json.dumps([f"value number {each}" for each in range(1000)])
    lines += ["[metrics.large]", 'type = "category"', 'description = "Which of many?"']
    return Registry.parse("\n".join([*lines, f"values = {values}", numbers]))


def fill(store: Store, declared: Registry) -> None:
    store.publish({metric.name: [metric.scheme] for metric in declared})
    rng = np.random.default_rng(1)
    for metric in declared:
        assert metric.values is not None
        shares = zipf_shares(len(metric.values), 1.1)
        for ago in range(1, DAYS + 1):
            day = (TODAY - timedelta(days=ago)).isoformat()
            counts = rng.multinomial(DEVICES, shares)
            tally = sample_tally(metric.scheme, counts, rng, metric=metric.name, window=day)
            increments = {}
            for number, row in enumerate(tally.rows):
                columns = np.flatnonzero(row.cells)
                key = TallyRowKey(TallyKey(metric.name, tally.scheme, day), number)
                increments[key] = Increment(
                    len(row.cells), row.reports, columns.tolist(), row.cells[columns].tolist()
                )
            store.fold(Commit((secrets.token_hex(16),), increments), NOW)


def milliseconds(call: Callable[[], object]) -> float:
    begin = time.process_time()
    call()
    return (time.process_time() - begin) * 1000


def visitor(store: Store, declared: Registry) -> FlaskClient:
    """A signed-in browser at an application that has answered nothing yet."""
    app: Flask = create_app(
        Settings(dashboard_token=TOKEN), store=store, registry=declared, clock=lambda: NOW
    )
    client = app.test_client()
    client.post("/login", data={"token": TOKEN})
    client.environ_base["HTTP_ACCEPT_ENCODING"] = "gzip"
    return client


def ask(client: FlaskClient, path: str) -> bytes:
    answer = client.get(path)
    assert answer.status_code == 200, answer.status
    return answer.data


def measure(store: Store, declared: Registry, path: str) -> list[str]:
    visitors = [visitor(store, declared) for _ in range(3)]
    first = min(milliseconds(lambda client=client: ask(client, path)) for client in visitors)
    uncached, again = [], []
    for _ in range(ROUNDS):
        # An application whose templates are compiled is given the empty memory of another.
        warm, empty = visitor(store, declared), visitor(store, declared)
        ask(warm, path)
        source = empty.application.extensions["hearsay_source"]
        warm.application.extensions["hearsay_source"] = source
        uncached.append(milliseconds(lambda warm=warm: ask(warm, path)))
        again.append(milliseconds(lambda warm=warm: ask(warm, path)))
    sent = ask(warm, path)
    whole = gzip.decompress(sent) if sent[:2] == b"\x1f\x8b" else sent
    figures = [f"{each:.0f}" for each in (min(uncached), min(again), first)]
    return [*figures, f"{len(sent) / 1000:,.1f}", f"{len(whole) / 1000:,.1f}"]


def estimates(store: Store, declared: Registry, names: list[str]) -> None:
    """What any page stands on: read, estimate, write down."""
    first = TODAY - timedelta(days=DAYS - 1)
    for name in names:
        json.dumps(read(store, declared, name, first, TODAY).to_dict())


def main() -> None:
    table = Table(title="CPU of the server in milliseconds, and kilobytes of an answer")
    for name in ("page", "uncached", "again", "compiling", "sent (gzip)", "whole"):
        table.add_column(name, justify="left" if name == "page" else "right")
    with tempfile.TemporaryDirectory() as folder:
        store, declared = open_store(f"sqlite:///{Path(folder)}/tallies.db"), registry()
        fill(store, declared)
        for label, names in (
            ("baseline: 50 estimates as JSON, no page", list(declared.metrics)),
            ("baseline: the estimate of 1,000 values as JSON", ["large"]),
        ):
            least = min(
                milliseconds(lambda names=names: estimates(store, declared, names))
                for _ in range(ROUNDS)
            )
            table.add_row(label, f"{least:.0f}", "", "", "", "")
        for label, path in PAGES:
            table.add_row(label, *measure(store, declared, path))
        store.close()
    Console(width=110).print(table)


if __name__ == "__main__":
    main()

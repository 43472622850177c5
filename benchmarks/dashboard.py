"""What the dashboard's pages cost in server CPU and bytes, beside plain ways in the same run.

50 metrics with 56 days of reports each, one of them over 1,000 values, in SQLite. Pages are
asked of the WSGI application in this process, as browsers do, with gzip. Two more metrics ask for
strings, over 20 windows, with 1,000 and with 1,000,000 candidates in the operator's list; their
pages are asked for again until they are there. *Uncached* has no estimate at hand, and has looked
at no window; *again* is a reload; *compiling* is the page of an application that has yet to
compile its templates, as gunicorn's worker does before it responds. The baselines: the estimates
alone, read and written as JSON without any page; and the page that lists every value. The overview
has a benchmark of its own, overview.py.
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

from deniable import Registry
from deniable_collector.stores import Store, open_store
from deniable_collector.stores.commits import Commit, Increment, TallyKey, TallyRowKey
from deniable_estimator.analyses.sampling import sample_tally
from deniable_estimator.dashboard import create_app
from deniable_estimator.dashboard.settings import DashboardSettings
from deniable_estimator.planning.population import zipf_shares
from deniable_estimator.questions.reading import read

TOKEN = secrets.token_urlsafe(32)
TODAY = date(2026, 11, 21)
NOW = datetime(2026, 11, 21, 9, tzinfo=UTC).timestamp()
DAYS = 56
SHOWN = 28
DEVICES = 20_000
ROUNDS = 7
STRINGS = {"site": 1_000, "domain": 1_000_000}
STRING_WINDOWS = 20
STRING_ROUNDS = 2
PAGES = (
    ("metric, 1,000 values", "/metric/large"),
    ("the same, every value listed", "/metric/large?lines=all"),
    ("metric, 12 values", "/metric/category_0"),
    ("metric, boolean", "/metric/boolean_1"),
    ("comparison, 1,000 values", "/metric/large/compare?from=2026-11-11&to=2026-11-20"),
    ("planner", "/plan"),
    ("chart of 1,000 values as PNG", "/metric/large.png"),
)
STRING_PAGES = (
    ("strings, 1,000 candidates, 20 windows", "/metric/site"),
    ("strings, 1,000,000 candidates, 20 windows", "/metric/domain"),
)


def registry() -> Registry:
    lines = [
        "schema = 1",
        'app = "example"',
        "[defaults]",
        'owner = "a@acme.example"',
        "expires = 2027-06-30",
    ]
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
    lines += [f"values = {values}", numbers]
    for name in STRINGS:
        lines += [f"[metrics.{name}]", 'type = "string"', 'description = "Which site?"', numbers]
    return Registry.parse("\n".join(lines))


def candidates(name: str) -> list[str]:
    return [f"s{rank}.example" for rank in range(STRINGS[name])]


def fill(store: Store, declared: Registry) -> None:
    store.publish({metric.name: [metric.scheme] for metric in declared})
    rng = np.random.default_rng(1)
    for metric in declared:
        # Of strings as many are in use as a device may meet; the list names many more.
        values = None if metric.values else candidates(metric.name)[:1_000]
        shares = zipf_shares(len(metric.values or values or ()), 1.1)
        for ago in range(1, (DAYS if metric.values else STRING_WINDOWS) + 1):
            day = (TODAY - timedelta(days=ago)).isoformat()
            counts = rng.multinomial(DEVICES, shares)
            tally = sample_tally(
                metric.scheme, counts, rng, values=values, metric=metric.name, window=day
            )
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


def visitor(store: Store, declared: Registry, folder: str = "") -> FlaskClient:
    """A signed-in browser at an application that has answered nothing yet."""
    settings = DashboardSettings(dashboard_token=TOKEN, candidates_dir=folder)
    app: Flask = create_app(settings, store=store, registry=declared, clock=lambda: NOW)
    client = app.test_client()
    client.post("/login", data={"token": TOKEN})
    client.environ_base["HTTP_ACCEPT_ENCODING"] = "gzip"
    return client


def ask(client: FlaskClient, path: str) -> bytes:
    while (answer := client.get(path)).status_code == 202:
        time.sleep(0.2)
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
        source = empty.application.extensions["deniable_source"]
        warm.application.extensions["deniable_source"] = source
        uncached.append(milliseconds(lambda warm=warm: ask(warm, path)))
        again.append(milliseconds(lambda warm=warm: ask(warm, path)))
    return row((uncached, again), ask(warm, path), first)


def measure_strings(store: Store, declared: Registry, path: str, folder: str) -> list[str]:
    """Without the time of templates, which is that of the other pages."""
    uncached, again = [], []
    for _ in range(STRING_ROUNDS):
        client = visitor(store, declared, folder)
        uncached.append(milliseconds(lambda client=client: ask(client, path)))
        again += [milliseconds(lambda client=client: ask(client, path)) for _ in range(ROUNDS)]
    return row((uncached, again), ask(client, path))


def row(figures: tuple[list[float], ...], sent: bytes, first: float | None = None) -> list[str]:
    whole = gzip.decompress(sent) if sent[:2] == b"\x1f\x8b" else sent
    told = [f"{min(each):.0f}" for each in figures] + ["" if first is None else f"{first:.0f}"]
    return [*told, f"{len(sent) / 1000:,.1f}", f"{len(whole) / 1000:,.1f}"]


def estimates(store: Store, declared: Registry, names: list[str]) -> None:
    """What any page stands on: read, estimate, write down."""
    first = TODAY - timedelta(days=SHOWN)
    for name in names:
        json.dumps(read(store, declared, name, first, TODAY).to_dict())


def main() -> None:
    table = Table(title="CPU of the server in milliseconds, and kilobytes of a response")
    for name in ("page", "uncached", "again", "compiling", "sent (gzip)", "whole"):
        table.add_column(name, justify="left" if name == "page" else "right")
    with tempfile.TemporaryDirectory() as folder:
        store, declared = open_store(f"sqlite:///{Path(folder)}/tallies.db"), registry()
        fill(store, declared)
        for name in STRINGS:
            Path(folder, f"{name}.txt").write_text("\n".join(candidates(name)), encoding="utf-8")
        least = min(
            milliseconds(lambda: estimates(store, declared, ["large"])) for _ in range(ROUNDS)
        )
        label = "baseline: the estimate of 1,000 values as JSON"
        table.add_row(label, f"{least:.0f}", "", "", "", "")
        for label, path in PAGES:
            table.add_row(label, *measure(store, declared, path))
        for label, path in STRING_PAGES:
            table.add_row(label, *measure_strings(store, declared, path, folder))
        store.close()
    Console(width=110).print(table)


if __name__ == "__main__":
    main()

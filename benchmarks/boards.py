"""What a board of 12 charts costs in server CPU and bytes, beside plain ways in the same run.

24 metrics (12 booleans, 12 categories of 12 values) with 365 days of reports each, in SQLite. The
board has 12 charts of 12 of them over 28 days: 4 trends by day, 4 charts of shares, 2 tables and 2
headlines; a second board has 12 trends. 200 annotations are in force. Pages are asked of the WSGI
application in this process, with gzip and with its templates compiled. *Uncached* has no estimate
at hand, and has looked at no window; *again* is a reload. The baselines: the estimates, and the
trends, of the 12 metrics as JSON without any page; and the pages of these 12 metrics.
Run: python benchmarks/boards.py
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
from deniable_estimator.questions.trend import trend

TOKEN = secrets.token_urlsafe(32)
TODAY = date(2026, 11, 21)
NOW = datetime(2026, 11, 21, 9, tzinfo=UTC).timestamp()
DAYS = 365
SHOWN = 28
DEVICES = 20_000
ROUNDS = 5
METRICS = 24
CHARTS = [f"m{place}" for place in range(12)]
VIEWS = ("trend",) * 4 + ("shares",) * 4 + ("table",) * 2 + ("headline",) * 2


def registry() -> Registry:
    lines = ["schema = 1", 'app = "example"', "[defaults]", 'owner = "a"', "expires = 2027-06-30"]
    for place in range(METRICS):
        lines += [f"[metrics.m{place}]", 'description = "Which?"', "sample_rate = 0.1"]
        lines += ["epsilon = 2.0", "lifetime_epsilon = 8.0"]
        if place % 2:
            lines.append('type = "boolean"')
        else:
            values = json.dumps([f"value {each}" for each in range(12)])
            lines += ['type = "category"', f"values = {values}"]
    return Registry.parse("\n".join(lines))


def fill(store: Store, declared: Registry) -> None:
    store.publish({metric.name: [metric.scheme] for metric in declared})
    rng = np.random.default_rng(1)
    for metric in declared:
        shares = zipf_shares(len(metric.values), 1.1)
        increments = {}
        for ago in range(1, DAYS + 1):
            day = (TODAY - timedelta(days=ago)).isoformat()
            counts = rng.multinomial(DEVICES, shares)
            tally = sample_tally(metric.scheme, counts, rng, metric=metric.name, window=day)
            for number, row in enumerate(tally.rows):
                columns = np.flatnonzero(row.cells)
                key = TallyRowKey(TallyKey(metric.name, tally.scheme, day), number)
                increments[key] = Increment(
                    len(row.cells), row.reports, columns.tolist(), row.cells[columns].tolist()
                )
        store.fold(Commit((secrets.token_hex(16),), increments), NOW)


def board(views: tuple[str, ...]) -> str:
    items = (
        f'[[items]]\nmetric = "{name}"\nview = "{view}"\n'
        for name, view in zip(CHARTS, views, strict=True)
    )
    return 'schema = 1\ntitle = "Board"\n' + "".join(items)


def annotations() -> str:
    days = (TODAY - timedelta(days=each % DAYS) for each in range(200))
    entries = (f'[[annotations]]\ndate = {day}\ntext = "Release"\n' for day in days)
    return "schema = 1\n" + "".join(entries)


def milliseconds(call: Callable[[], object]) -> float:
    begin = time.process_time()
    call()
    return (time.process_time() - begin) * 1000


def visitor(store: Store, declared: Registry, folder: Path) -> FlaskClient:
    settings = DashboardSettings(
        dashboard_token=TOKEN, boards=str(folder), annotations=str(folder.parent / "a.toml")
    )
    client = create_app(settings, store=store, registry=declared, clock=lambda: NOW).test_client()
    client.post("/login", data={"token": TOKEN})
    client.environ_base["HTTP_ACCEPT_ENCODING"] = "gzip"
    return client


def ask(client: FlaskClient, paths: list[str]) -> bytes:
    found = b""
    for path in paths:
        answer = client.get(path)
        assert answer.status_code == 200, answer.status
        found += answer.data
    return found


def measure(store: Store, declared: Registry, folder: Path, paths: list[str]) -> list[str]:
    uncached, again = [], []
    for _ in range(ROUNDS):
        # An application whose templates are compiled is given the empty memory of another.
        warm, empty = (visitor(store, declared, folder) for _ in range(2))
        ask(warm, paths)
        source = empty.application.extensions["deniable_source"]
        warm.application.extensions["deniable_source"] = source
        uncached.append(milliseconds(lambda warm=warm: ask(warm, paths)))
        again.append(milliseconds(lambda warm=warm: ask(warm, paths)))
    sent = ask(warm, paths)
    whole = gzip.decompress(sent)
    sizes = (f"{len(sent) / 1000:,.1f}", f"{len(whole) / 1000:,.1f}")
    return [f"{min(uncached):.0f}", f"{min(again):.0f}", *sizes]


def main() -> None:
    table = Table(title="CPU of the server in milliseconds, and kilobytes of a response")
    for name in ("page", "uncached", "again", "sent (gzip)", "whole"):
        table.add_column(name, justify="left" if name == "page" else "right")
    first, last = TODAY - timedelta(days=SHOWN), TODAY - timedelta(days=1)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place, "boards")
        folder.mkdir()
        (folder / "mixed.toml").write_text(board(VIEWS), encoding="utf-8")
        (folder / "trends.toml").write_text(board(("trend",) * 12), encoding="utf-8")
        Path(place, "a.toml").write_text(annotations(), encoding="utf-8")
        store, declared = open_store(f"sqlite:///{place}/tallies.db"), registry()
        fill(store, declared)
        baselines: dict[str, Callable[[str], object]] = {
            "baseline: 12 estimates as JSON, no page": lambda name: json.dumps(
                read(store, declared, name, first, last).to_dict()
            ),
            "baseline: 12 trends as JSON, no page": lambda name: json.dumps(
                trend(store, declared, name, first, last, now=NOW).to_dict()
            ),
        }
        for label, call in baselines.items():
            least = min(
                milliseconds(lambda call=call: [call(each) for each in CHARTS])
                for _ in range(ROUNDS)
            )
            table.add_row(label, f"{least:.0f}", "", "", "")
        pages = {
            "board, 12 charts of all views": ["/boards/mixed"],
            "board, 12 trends": ["/boards/trends"],
            "list of boards": ["/boards"],
            "one metric's page": ["/metric/m0"],
            "the pages of the 12 metrics": [f"/metric/{each}" for each in CHARTS],
        }
        for label, paths in pages.items():
            table.add_row(label, *measure(store, declared, folder, paths))
        store.close()
    Console(width=110).print(table)


if __name__ == "__main__":
    main()

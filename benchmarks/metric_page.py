"""What a metric's page costs in CPU and bytes with 500 metrics and 365 days, beside plain ways.

Half of the metrics are booleans, half have 12 values, and one has 1,000; each has 20,000 reports a
day, in SQLite. The page is asked of the WSGI application in this process, as a browser does, with
gzip. *Uncached* has no estimate at hand and has looked at no window; its templates are compiled, as
gunicorn's worker does before it responds. *Again* is a reload. The baselines of the same run: the
estimate and the trend of the same days, read and written as JSON without any page; and a loop of
1,000,000 additions, which tells how busy the machine is. *One after the other*: the mean of years
by day of 60 metrics, none of which was asked for before, with Python's garbage collector as in a
new process and as in gunicorn's worker.
Run: python benchmarks/metric_page.py
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
from deniable_collector.garbage import collect_seldom
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
METRICS, DAYS, DEVICES = 500, 365, 20_000
DRAWN = 30
"""So many days are drawn; others repeat them, and cost no less to read."""
ROUNDS = 5
LAST = TODAY - timedelta(days=1)
YEAR = f"from={TODAY - timedelta(days=364)}&to={LAST}"
PAGES = (
    ("12 values, 28 days", "/metric/category_0"),
    ("12 values, 364 days by week", f"/metric/category_0?{YEAR}"),
    ("the same, eight values drawn", f"/metric/category_0?{YEAR}&"
     + "&".join(f"value=value+{each}" for each in range(8))),
    ("boolean, 28 days", "/metric/boolean_1"),
    ("boolean, 364 days by week", f"/metric/boolean_1?{YEAR}"),
    ("1,000 values, 28 days", "/metric/large"),
    ("1,000 values, sorted by change", "/metric/large?sort=change"),
    ("12 values, 364 days by day", f"/metric/category_0?{YEAR}&by=day"),
)  # fmt: skip


def registry() -> Registry:
    lines = ["schema = 1", 'app = "example"', "[defaults]"]
    lines += ['owner = "a@acme.example"', "expires = 2027-06-30"]
    values = {"category": 12, "large": 1_000}
    for place in range(METRICS):
        kind = "large" if place == METRICS - 1 else "boolean" if place % 2 else "category"
        name = kind if kind == "large" else f"{kind}_{place}"
        lines += [f"[metrics.{name}]", f'description = "Which {place}?"']
        lines.append(f'type = "{"boolean" if kind == "boolean" else "category"}"')
        if kind != "boolean":
            lines.append(
                f"values = {json.dumps([f'value {each}' for each in range(values[kind])])}"
            )
        lines += ["epsilon = 2.0", "lifetime_epsilon = 8.0", "sample_rate = 0.1"]
    return Registry.parse("\n".join(lines))


def fill(store: Store, declared: Registry) -> None:
    store.publish({metric.name: [metric.scheme] for metric in declared})
    rng = np.random.default_rng(1)
    drawn: dict[tuple[int, int], Increment] = {}
    for ago in range(1, DAYS + 1):
        day = (TODAY - timedelta(days=ago)).isoformat()
        increments = {}
        for metric in declared:
            known = (len(metric.values), ago % DRAWN)
            if known not in drawn:
                counts = rng.multinomial(DEVICES, zipf_shares(len(metric.values), 1.1))
                tally = sample_tally(metric.scheme, counts, rng, metric=metric.name, window=day)
                (row,) = tally.rows
                used = np.flatnonzero(row.cells)
                drawn[known] = Increment(
                    len(row.cells), row.reports, used.tolist(), row.cells[used].tolist()
                )
            key = TallyRowKey(TallyKey(metric.name, metric.scheme.fingerprint, day), 0)
            increments[key] = drawn[known]
        store.fold(Commit((secrets.token_hex(16),), increments), NOW)


def visitor(store: Store, declared: Registry) -> FlaskClient:
    """A signed-in browser at an application that has answered nothing yet."""
    settings = DashboardSettings(dashboard_token=TOKEN)
    app: Flask = create_app(settings, store=store, registry=declared, clock=lambda: NOW)
    for name in app.jinja_env.list_templates():
        app.jinja_env.get_template(name)
    client = app.test_client()
    client.post("/login", data={"token": TOKEN})
    client.environ_base["HTTP_ACCEPT_ENCODING"] = "gzip"
    return client


def milliseconds(call: Callable[[], object]) -> float:
    begin = time.thread_time()
    call()
    return (time.thread_time() - begin) * 1000


def additions() -> int:
    total = 0
    for each in range(1_000_000):
        total += each
    return total


def plain(store: Store, declared: Registry, name: str, days: int) -> None:
    """What the page stands on: the estimate, and the trend by week or day."""
    first = TODAY - timedelta(days=days)
    json.dumps(read(store, declared, name, first, LAST, now=NOW).to_dict())
    by = "week" if days > 92 else "day"
    json.dumps(trend(store, declared, name, first, LAST, by=by, now=NOW).to_dict())


def one_after_the_other(
    store: Store, declared: Registry, first: Callable[[], None] | None
) -> float:
    """The mean of the pages of 60 metrics at one application, in milliseconds."""
    client = visitor(store, declared)
    if first:
        first()
    pages = [f"/metric/category_{2 * each}?{YEAR}&by=day" for each in range(60)]
    return sum(milliseconds(lambda p=page: client.get(p)) for page in pages) / len(pages)


def main() -> None:
    table = Table(title="CPU of a page in milliseconds, and kilobytes of a response")
    for name in ("page", "uncached", "again", "sent (gzip)", "whole"):
        table.add_column(name, justify="left" if name == "page" else "right")
    with tempfile.TemporaryDirectory() as folder:
        store, declared = open_store(f"sqlite:///{Path(folder)}/tallies.db"), registry()
        fill(store, declared)
        least = min(milliseconds(additions) for _ in range(ROUNDS))
        table.add_row("baseline: 1,000,000 additions", f"{least:.0f}", "", "", "")
        for days in (28, 364):
            least = min(
                milliseconds(lambda d=days: plain(store, declared, "category_0", d))
                for _ in range(ROUNDS)
            )
            label = f"baseline: estimate and trend of {days} days as JSON, no page"
            table.add_row(label, f"{least:.0f}", "", "", "")
        for label, path in PAGES:
            uncached, again, sent = [], [], b""
            for _ in range(ROUNDS):
                client = visitor(store, declared)
                uncached.append(milliseconds(lambda c=client, p=path: c.get(p)))
                again.append(milliseconds(lambda c=client, p=path: c.get(p)))
                answer = client.get(path)
                assert answer.status_code == 200, answer.status
                sent = answer.data
            whole = gzip.decompress(sent) if sent[:2] == b"\x1f\x8b" else sent
            table.add_row(
                label,
                *(f"{min(each):.0f}" for each in (uncached, again)),
                *(f"{len(each) / 1000:,.1f}" for each in (sent, whole)),
            )
        for label, first in (("as in a new process", None), ("as in the worker", collect_seldom)):
            mean = one_after_the_other(store, declared, first)
            table.add_row(f"60 years by day in turn, collector {label}", f"{mean:.0f}", "", "", "")
        store.close()
    Console(width=110).print(table)


if __name__ == "__main__":
    main()

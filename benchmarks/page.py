"""What the dashboard's pages cost in CPU and bytes with 500 metrics and 365 days.

Half of the metrics are booleans, half have 12 values, and one has 1,000; each has 20,000 reports a
day, in SQLite. Pages are asked of the WSGI application in this process, as a browser does, with
gzip. *Uncached* has no estimate at hand and has looked at no window; its templates are compiled, as
gunicorn's worker does before it responds. *Again* is a reload. The overview's *uncached* is the
first view after its summaries are calculated. The baselines of the same run: the estimate and the
trend of the same days, read and written as JSON without any page; and a loop of 1,000,000
additions, which tells how busy the machine is.
"""

from __future__ import annotations

import gzip
import json
import secrets
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta

import numpy as np
from flask import Flask
from flask.testing import FlaskClient

from common.tables import Table, run
from deniable import Registry
from deniable_collector.settings import Settings
from deniable_collector.stores import Store, open_store
from deniable_collector.stores.commits import Commit, TallyKey
from deniable_collector.stores.vectors import addition_of
from deniable_collector.tally import TallyRow
from deniable_estimator.analyses import sample_tally
from deniable_estimator.asking.fetch import read
from deniable_estimator.asking.query import Days, Query
from deniable_estimator.asking.reader import Reader
from deniable_estimator.asking.trend import trend
from deniable_estimator.dashboard import create_app
from deniable_estimator.dashboard.settings import DashboardSettings
from deniable_estimator.planning.population import zipf_shares

TOKEN = secrets.token_urlsafe(32)
TODAY = date(2026, 11, 21)
NOW = datetime(2026, 11, 21, 9, tzinfo=UTC).timestamp()
METRICS, DEVICES = 500, 20_000
DRAWN = 30
"""So many days are drawn; others repeat them, and cost no less to read."""
ROUNDS = 5
LAST = TODAY - timedelta(days=1)
YEAR = f"from={TODAY - timedelta(days=364)}&to={LAST}"
MIDDLE = f"since={TODAY - timedelta(days=183)}"
PAGES = (
    ("overview", "/"),
    ("12 values, 28 days", "/metric/category_0"),
    ("12 values, 364 days by week", f"/metric/category_0?{YEAR}"),
    ("12 values, since the middle of them", f"/metric/category_0?{MIDDLE}"),
    ("the same, eight values drawn", f"/metric/category_0?{YEAR}&"
     + "&".join(f"value=value+{each}" for each in range(8))),
    ("boolean, 28 days", "/metric/boolean_1"),
    ("boolean, 364 days by week", f"/metric/boolean_1?{YEAR}"),
    ("boolean, since the middle of them", f"/metric/boolean_1?{MIDDLE}"),
    ("1,000 values, 28 days", "/metric/large"),
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
            listed = [f"value {each}" for each in range(values[kind])]
            lines.append(f"values = {json.dumps(listed)}")
        lines += ["epsilon = 2.0", "lifetime_epsilon = 8.0", "sample_rate = 0.1"]
    return Registry.parse("\n".join(lines))


def fill(store: Store, declared: Registry, days: int) -> None:
    store.publish((metric.name, metric.scheme) for metric in declared)
    rng = np.random.default_rng(1)
    drawn: dict[tuple[int, int], TallyRow] = {}
    for ago in range(1, days + 1):
        day = (TODAY - timedelta(days=ago)).isoformat()
        additions = {}
        for metric in declared:
            known = (len(metric.values), ago % DRAWN)
            if known not in drawn:
                counts = rng.multinomial(DEVICES, zipf_shares(len(metric.values), 1.1))
                tally = sample_tally(metric.scheme, counts, rng, metric=metric.name, window=day)
                (drawn[known],) = tally.rows
            key = TallyKey(metric.name, metric.scheme.fingerprint, day)
            additions[key] = addition_of(store.shape(key[:2]), {0: drawn[known]})
        store.fold(Commit((secrets.token_hex(16),), additions), NOW)


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
    asked = Reader(store), declared, Query(name, Days(first, LAST))
    json.dumps(read(*asked, now=NOW).to_dict())
    json.dumps(trend(*asked, by="week" if days > 92 else "day", now=NOW).to_dict())


def asked(store: Store, declared: Registry, path: str) -> tuple[float, float, bytes]:
    """Milliseconds of a page at a new application, and of a reload; and its bytes."""
    client = visitor(store, declared)
    while path == "/" and client.get(path).status_code == 202:
        time.sleep(1)  # the first view has started the summaries in the background
    uncached = milliseconds(lambda: client.get(path))
    again = milliseconds(lambda: client.get(path))
    answer = client.get(path)
    assert answer.status_code == 200, answer.status
    return uncached, again, answer.data


def pages(quick: bool) -> Iterator[Table]:
    table = Table("page", "CPU of a page in milliseconds, and kilobytes of a response")
    rounds = 1 if quick else ROUNDS
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(Settings(store=f"sqlite:///{folder}/tallies.db"))
        declared = registry()
        fill(store, declared, 28 if quick else 365)
        baselines: dict[str, Callable[[], object]] = {"1,000,000 additions": additions}
        for days in (28, 364):
            baselines[f"estimate and trend of {days} days as JSON, no page"] = lambda days=days: (
                plain(store, declared, "category_0", days)
            )
        for label, call in baselines.items():
            least = min(milliseconds(call) for _ in range(rounds))
            table.add(page=label, uncached=least, again=None, gzip=None, whole=None)
        for label, path in PAGES:
            found = [asked(store, declared, path) for _ in range(1 if path == "/" else rounds)]
            sent = found[0][2]
            whole = gzip.decompress(sent) if sent[:2] == b"\x1f\x8b" else sent
            table.add(
                page=label,
                uncached=min(each[0] for each in found),
                again=min(each[1] for each in found),
                gzip=len(sent) / 1000,
                whole=len(whole) / 1000,
            )
        store.close()
    yield table


if __name__ == "__main__":
    run(__doc__, {"pages": pages})

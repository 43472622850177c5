"""What a shared link costs beside the same page for somebody who has signed in, in the same run.

One metric of 12 values and one of 1,000, with 56 days of reports each, in SQLite. Pages are asked
of the WSGI application in this process, again and again, so that no estimate is calculated anew. A
link is looked up in a file of 10,000, and its page is gone through for what leads elsewhere. Who
signs in by a token of one's own is looked up among 1,000 people, whose hashes are all compared.
Run: python benchmarks/shared_links.py
"""

from __future__ import annotations

import secrets
import sqlite3
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from deniable import Registry
from deniable_collector.stores import open_store
from deniable_collector.stores.commits import Commit, Increment, TallyKey, TallyRowKey
from deniable_estimator.analyses.sampling import sample_tally
from deniable_estimator.dashboard import create_app
from deniable_estimator.dashboard.access.people import MOST_PEOPLE, hash_token
from deniable_estimator.dashboard.settings import DashboardSettings
from deniable_estimator.dashboard.sharing.links import MOST_LINKS, SharedLinks

TOKEN = secrets.token_urlsafe(32)
TODAY = date(2026, 11, 21)
NOW = datetime(2026, 11, 21, 9, tzinfo=UTC).timestamp()
ROUNDS = 30
REGISTRY = "\n".join(
    [
        'schema = 1\napp = "example"\n[defaults]\nowner = "me"\nexpires = 2027-06-30',
        *(
            f'[metrics.{name}]\ntype = "category"\ndescription = "?"\n'
            "epsilon = 2.0\nlifetime_epsilon = 16.0\n"
            f"values = {[f'value_{number}' for number in range(size)]}"
            for name, size in (("small", 12), ("large", 1_000))
        ),
    ]
)


def cost(work: Callable[[], object]) -> float:
    """CPU milliseconds of one call: the smallest of some."""
    took = []
    for _ in range(ROUNDS):
        begun = time.process_time()
        work()
        took.append(time.process_time() - begun)
    return 1_000 * min(took)


def main() -> None:
    folder = Path(tempfile.mkdtemp(prefix="deniable-shared-links-"))
    registry = Registry.parse(REGISTRY)
    store = open_store(f"sqlite:///{folder}/tallies.db")
    store.publish({metric.name: [metric.scheme] for metric in registry})
    rng = np.random.default_rng(1)
    for metric in registry:
        for back in range(1, 57):
            day = str(TODAY - timedelta(days=back))
            counts = rng.multinomial(20_000, [1 / len(metric.values)] * len(metric.values))
            tally = sample_tally(metric.scheme, counts, rng, metric=metric.name, window=day)
            increments = {
                TallyRowKey(TallyKey(metric.name, tally.scheme, day), number): Increment(
                    len(row.cells), row.reports, list(range(len(row.cells))), row.cells.tolist()
                )
                for number, row in enumerate(tally.rows)
            }
            store.fold(Commit((secrets.token_hex(16),), increments), NOW)
    people = folder / "people.toml"
    people.write_text(
        "schema = 1\n"
        + "".join(
            f'[people.p{number}]\nrole = "reader"\ntoken = "{hash_token(f"token {number}")}"\n'
            for number in range(MOST_PEOPLE)
        )
    )
    links = SharedLinks(str(folder / "links.db"))
    small, large = (
        links.make(
            f"/metric/{name}", "", maker="a", note="", today=TODAY, days=30, unfinished=False
        )[1]
        for name in ("small", "large")
    )
    with closing(sqlite3.connect(links.path)) as file, file:
        file.executemany(
            "INSERT INTO links SELECT ?, ?, path, query, maker, note, made, until, unfinished "
            "FROM links WHERE rowid = 1",
            [(secrets.token_bytes(32), secrets.token_hex(6)) for _ in range(MOST_LINKS - 2)],
        )
    settings = DashboardSettings(
        dashboard_token=TOKEN, dashboard_links=links.path, dashboard_people=str(people)
    )
    app = create_app(settings, store=store, registry=registry, clock=lambda: NOW)
    reader, anybody = app.test_client(), app.test_client()
    for client in (reader, anybody):
        client.environ_base.update(HTTP_ACCEPT="text/html", HTTP_ACCEPT_ENCODING="gzip")
    reader.post("/login", data={"token": TOKEN})
    table = Table("what", "ms of CPU", "KB before compression")

    def row(what: str, work: Callable[[], object], size: str = "") -> None:
        table.add_row(what, f"{cost(work):.2f}", size)

    pages = {
        "baseline: 12 values, signed in": (reader, "/metric/small"),
        "12 values, by a link": (anybody, f"/shared/{small}"),
        "baseline: 1,000 values, signed in": (reader, "/metric/large"),
        "1,000 values, by a link": (anybody, f"/shared/{large}"),
        "a link that opens nothing": (anybody, "/shared/made-up"),
    }
    for what, (client, path) in pages.items():
        size = len(client.get(path, headers={"Accept-Encoding": "identity"}).get_data())
        row(what, lambda client=client, path=path: client.get(path), f"{size / 1_000:.1f}")
    bearer = {"Authorization": f"Bearer token {MOST_PEOPLE - 1}"}
    own = {"Authorization": f"Bearer {TOKEN}"}
    row(
        "baseline: an error of the API, dashboard's token",
        lambda: reader.get("/api/v1/x", headers=own),
    )
    row("the same, the last of 1,000 people", lambda: reader.get("/api/v1/x", headers=bearer))
    Console().print(table)


if __name__ == "__main__":
    main()

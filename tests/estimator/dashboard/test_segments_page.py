"""The page, the files and the API of a metric by segments."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flask import Flask

from deniable import Registry
from deniable_collector.stores import Store, open_store
from deniable_collector.stores.commits import Commit, Increment, TallyKey, TallyRowKey
from deniable_estimator.analyses import analysis_of
from deniable_estimator.dashboard import create_app
from deniable_estimator.dashboard.settings import DashboardSettings

from .conftest import NOW, TOKEN, YESTERDAY

REGISTRY = """
schema = 1
app = "example"
[defaults]
owner = "growth@acme.example"
expires = 2027-06-30
[segments.platform]
values = ["ios", "android", "<script>alert(1)</script>"]
other = "other"
[segments.plan]
values = ["free", "paid"]
[metrics.theme]
type = "category"
description = "The theme."
values = ["light", "dark", "<b>sepia</b>"]
epsilon = 3.0
lifetime_epsilon = 8.0
segments = ["platform", "plan"]
[metrics.size]
type = "number"
description = "The size."
low = 0
high = 10
unit = "cm"
ask = "mean"
epsilon = 3.0
lifetime_epsilon = 8.0
segments = ["plan"]
[metrics.plugin]
type = "string"
description = "The plugin."
epsilon = 3.0
lifetime_epsilon = 8.0
segments = ["plan"]
[metrics.plain]
type = "boolean"
description = "Without segments."
epsilon = 3.0
lifetime_epsilon = 8.0
"""


@pytest.fixture
def segment_store(tmp_path: Path) -> Iterator[Store]:
    """One day: dark themes are likelier on Android, and numbers larger for those who pay."""
    registry, rng = Registry.parse(REGISTRY), np.random.default_rng(5)
    with closing(open_store(f"sqlite:///{tmp_path / 'segments.db'}")) as store:
        store.publish({each.name: [each.scheme] for each in registry})
        crowds: list[tuple[str, int, Any, list[int]]] = [
            ("size", place, np.array([2 << 28, 3 << 28])[:2], counts)
            for place, counts in enumerate([[9000, 1000], [1000, 9000]])
        ]
        for place in range(8):
            n = (8000, 4000, 600, 30)[place // 2]
            dark = n * (6 if place // 2 == 1 else 3) // 10
            crowds.append(("theme", place, np.arange(3), [n - dark - n // 10, dark, n // 10]))
        for number, (name, place, items, counts) in enumerate(crowds):
            scheme = registry[name].scheme
            key = TallyKey(name, scheme.fingerprint, YESTERDAY)
            rows = analysis_of(scheme.mechanism).sample_rows(items, np.array(counts), rng)
            increments = {}
            for each, row in enumerate(rows):
                columns = np.flatnonzero(row.cells)
                increments[TallyRowKey(key, place * len(rows) + each)] = Increment(
                    len(row.cells), row.reports, columns, row.cells[columns]
                )
            store.fold(Commit((f"{number:032x}",), increments), NOW)
        yield store


@pytest.fixture
def segment_app(segment_store: Store) -> Flask:
    settings = DashboardSettings(dashboard_token=TOKEN)
    registry = Registry.parse(REGISTRY)
    return create_app(settings, store=segment_store, registry=registry, clock=lambda: NOW)


def test_the_api(segment_app: Flask) -> None:
    """By segments, within one, over time; and each wrong question with its reason."""
    client = segment_app.test_client()
    headers = {"Authorization": f"Bearer {TOKEN}"}

    def ask(path: str) -> Any:
        return client.get(f"/api/v1/metrics/{path}", headers=headers)

    found = ask("theme/segments?by=platform").json
    assert [each["segment"]["platform"] for each in found["segments"]][:2] == ["ios", "android"]
    assert found["reference"] == {"platform": "ios"}
    assert {each["value"]: each["differs"] for each in found["tests"]}["dark"] is True
    within = ask("theme/segments?by=platform&where=plan=paid&against=platform=android").json
    assert (within["where"], within["reference"]) == ({"plan": "paid"}, {"platform": "android"})
    assert ask("theme/estimate?where=platform=ios&where=plan=paid").json["n"] == 8000
    assert ask("theme/estimate").json["n"] == 25_260
    trend = ask("theme/trend?where=platform=android&by=day").json
    assert [each["n"] for each in trend["periods"] if each["n"]] == [8000]
    named = ask("plugin/segments?by=plan&value=a&value=b").json
    assert named["total"]["n"] == 0
    tag = ask("theme/segments?by=platform").headers["ETag"]
    again = client.get(
        "/api/v1/metrics/theme/segments?by=platform", headers={**headers, "If-None-Match": tag}
    )
    assert again.status_code == 304
    for path, status, told in (
        ("theme/segments?by=shoe", 400, "counted by platform, plan"),
        ("theme/segments?by=platform&where=plan", 400, "like platform=web"),
        ("theme/segments?by=platform&against=platform=tv", 400, "platform=tv"),
        ("theme/segments", 400, "lacks the field `by`"),
        ("theme/estimate?where=plan=gold", 400, "plan has no value gold"),
        ("theme/trend?where=shoe=red", 400, "not counted by a segment shoe"),
        ("plain/segments?by=platform", 409, "not counted by segments"),
    ):
        answer = ask(path)
        assert answer.status_code == status, path
        assert answer.json["type"].startswith("urn:deniable:problem:"), path
        assert told in answer.text, path


def test_two_combinations_of_one_name(tmp_path: Path) -> None:
    """Values that hold a comma make two combinations read alike; each has its own difference, and
    the address names each by itself."""
    text = (
        'schema = 1\napp = "x"\n[defaults]\nowner = "a@b.example"\nexpires = 2027-06-30\n'
        '[segments.one]\nvalues = ["a", "a, b"]\n[segments.two]\nvalues = ["b, c", "c"]\n'
        '[metrics.yes]\ntype = "boolean"\ndescription = "Yes."\nepsilon = 3.0\n'
        'lifetime_epsilon = 8.0\nsegments = ["one", "two"]\n'
    )
    registry, rng = Registry.parse(text), np.random.default_rng(3)
    scheme = registry["yes"].scheme
    with closing(open_store(f"sqlite:///{tmp_path / 'x.db'}")) as store:
        store.publish({"yes": [scheme]})
        key = TallyKey("yes", scheme.fingerprint, YESTERDAY)
        for place, yes in enumerate((9000, 5000, 5000, 1000)):
            (row,) = analysis_of(scheme.mechanism).sample_rows(
                np.arange(2), np.array([yes, 10_000 - yes]), rng
            )
            columns = np.flatnonzero(row.cells)
            change = Increment(len(row.cells), row.reports, columns, row.cells[columns])
            increments = {TallyRowKey(key, place): change}
            store.fold(Commit((f"{place:032x}",), increments), NOW)
        settings = DashboardSettings(dashboard_token=TOKEN)
        app = create_app(settings, store=store, registry=registry, clock=lambda: NOW)
        client, headers = app.test_client(), {"Authorization": f"Bearer {TOKEN}"}
        api = "/api/v1/metrics/yes/segments?by=one&by=two&against=one=a&against=two=c"
        found = client.get(api, headers=headers).json
        alike = {
            (each["segment"]["one"], each["segment"]["two"]): each["values"][0]["difference"]
            for each in found["differences"]
        }
        assert len(alike) == 3
        assert alike["a", "b, c"] > 0.2 > alike["a, b", "c"] + 0.4
        page = client.get("/metric/yes/segments?by=one,two", headers=headers).text
        values = re.findall(r'<option value="(\[[^"]*)"', page)
        assert len(set(values)) == 3
        assert '<option value="a, c"' in page

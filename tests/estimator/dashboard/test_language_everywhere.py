"""All pages in Chinese that `test_language.py` has no data for: segments, pairs, discoveries,
boards, releases, links, annotations and the planners."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flask import Flask
from flask.testing import FlaskClient

from deniable import Registry
from deniable_collector.stores import Store, open_store
from deniable_collector.stores.commits import Commit, Increment, TallyKey, TallyRowKey
from deniable_estimator.analyses import analysis_of
from deniable_estimator.dashboard import create_app
from deniable_estimator.dashboard.settings import DashboardSettings
from deniable_estimator.releasing.ledger import ReleaseLedger
from deniable_estimator.releasing.making import release
from deniable_estimator.releasing.preparing import prepare
from deniable_estimator.releasing.request import ReleaseRequest

from .conftest import NOW, TOKEN, text_of
from .test_language import english

REGISTRY = """
schema = 1
app = "example"
[defaults]
owner = "队@例"
expires = 2027-06-30

[segments.n0]
values = ["甲", "乙"]
other = "余"

[metrics.m2]
epsilon = 3.0
lifetime_epsilon = 80.0
type = "category"
description = "问题一"
values = ["子", "丑", "寅"]
segments = ["n0"]

[metrics.m3]
epsilon = 2.0
lifetime_epsilon = 80.0
type = "boolean"
description = "问题二"

[metrics.m4]
epsilon = 2.0
lifetime_epsilon = 80.0
type = "category"
description = "问题三"
values = ["卯", "辰", "巳"]

[metrics.m5]
epsilon = 2.0
lifetime_epsilon = 80.0
type = "pair"
of = ["m4", "m3"]
description = "问题四"

[metrics.m6]
epsilon = 4.0
lifetime_epsilon = 80.0
type = "discovery"
description = "问题五"
max_length = 8

[metrics.n1]
epsilon = 2.0
lifetime_epsilon = 80.0
type = "number"
description = "问题六"
low = 0
high = 50
unit = "个"
ask = ["mean", "distribution"]
segments = ["n0"]

[metrics.n2]
epsilon = 2.0
lifetime_epsilon = 80.0
type = "number"
description = "问题七"
low = 0
high = 50
ask = "mean"

[metrics.m7]
epsilon = 2.0
lifetime_epsilon = 80.0
type = "pair"
of = ["m9", "n3"]
description = "问题八"
forget = "marginals"

[metrics.m9]
epsilon = 2.0
lifetime_epsilon = 80.0
type = "category"
description = "问题十一"
values = ["午", "未", "申"]

[metrics.n3]
epsilon = 2.0
lifetime_epsilon = 80.0
type = "boolean"
description = "问题十二"

[metrics.n4]
epsilon = 2.0
lifetime_epsilon = 80.0
type = "number"
description = "问题十三"
low = 0
high = 50
unit = "个"
ask = "mean"

[metrics.m1]
epsilon = 3.0
lifetime_epsilon = 80.0
type = "pair"
of = ["n4", "m3"]
bins = { n4 = [5, 20] }
description = "问题十四"
forget = "marginals"

[metrics.m8]
epsilon = 2.0
lifetime_epsilon = 80.0
type = "boolean"
description = "问题九"
window = "week"

[metrics.m0]
epsilon = 2.0
lifetime_epsilon = 80.0
type = "boolean"
description = "问题十"
window = "month"
"""

DAYS = [f"2026-11-{day:02}" for day in range(3, 21)]

ANNOTATIONS = """
schema = 1
[[annotations]]
date = 2026-11-18
text = "发布"
[[annotations]]
date = 2026-11-10
text = "更新"
metrics = ["m3"]
"""

BOARD = """
schema = 1
title = "本周"
[[items]]
text = "文字"
[[items]]
metric = "m3"
[[items]]
metric = "m5"
[[items]]
metric = "n1"
[[items]]
metric = "m6"
[[items]]
metric = "m3"
view = "trend"
days = 7
"""

LATER = NOW + 12 * 86_400
"""When all windows of the store are settled."""


def _fill(store: Store, registry: Registry, name: str, counts: Any, day: str, place: int) -> None:
    """Store what devices report with these numbers of each item; of the segment at that place."""
    scheme = registry[name].scheme
    items = [*counts] if name == "m6" else np.arange(len(counts))
    numbers = np.array([*counts.values()] if name == "m6" else counts)
    if name.startswith("n"):
        items = np.array([1 << 28, 1 << 29])[: len(counts)]
    rng = np.random.default_rng([place, *map(ord, name + day)])
    rows = analysis_of(scheme.mechanism).sample_rows(items, numbers, rng)
    increments = {}
    for number, row in enumerate(rows):
        if row.reports:
            used = np.flatnonzero(row.cells)
            key = TallyRowKey(TallyKey(name, scheme.fingerprint, day), place * len(rows) + number)
            increments[key] = Increment(
                len(row.cells), row.reports, used.tolist(), row.cells[used].tolist()
            )
    store.fold(Commit((secrets.token_hex(16),), increments), NOW)


@pytest.fixture(scope="module")
def store_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with some weeks of everything, a ledger with releases, a board and annotations."""
    folder = tmp_path_factory.mktemp("everywhere")
    registry = Registry.parse(REGISTRY)
    (folder / "boards").mkdir()
    (folder / "boards" / "b1.toml").write_text(BOARD, encoding="utf-8")
    (folder / "annotations.toml").write_text(ANNOTATIONS, encoding="utf-8")
    with closing(open_store(f"sqlite:///{folder}/tallies.db")) as store:
        store.publish({each.name: [each.scheme] for each in registry})
        for number, day in enumerate(DAYS):
            for place in range(3):
                _fill(store, registry, "m2", [900, 100 * number, 200 * place], day, place)
                _fill(store, registry, "n1", [500 + 50 * place, 900 - 40 * number], day, place)
            _fill(store, registry, "m3", [2000 + 50 * number, 3000], day, 0)
            _fill(store, registry, "m5", [3000, 500, 200, 900, 100 * number, 900], day, 0)
            _fill(store, registry, "m7", [2000, 500, 200, 900, 300, 900], day, 0)
            _fill(store, registry, "m1", [2000, 500, 200, 900, 300, 900], day, 0)
            _fill(store, registry, "n2", [3000, 1000 + 100 * number], day, 0)
        _fill(store, registry, "m6", {"你": 9000, "好": 8000, "": 500}, DAYS[-1], 0)
        for label in ("2026-W44", "2026-W45", "2026-W46"):
            _fill(store, registry, "m8", [2000, 3000], label, 0)
        for label in ("2026-09", "2026-10"):
            _fill(store, registry, "m0", [2000, 3000], label, 0)
        ledger = ReleaseLedger(folder / "releases.sqlite", 1e-6, 90.0)
        with closing(ledger):
            for metric, more in (
                ("m3", {}),
                ("m3", {"epsilon": Fraction(1, 2), "form": "trend"}),
                ("m9", {}),
                ("m5", {}),
                ("m2", {"where": {"n0": "甲"}}),
                ("m3", {"epsilon": Fraction(1, 3), "form": "leader"}),
                ("n2", {"epsilon": Fraction(1, 2), "method": "gaussian"}),
                ("m8", {"epsilon": Fraction(1, 2)}),
                ("m0", {}),
                ("m1", {}),
                ("n4", {}),
            ):
                request = ReleaseRequest(metric, **more)
                release(prepare(store, registry, request, LATER), ledger, now=LATER)
    return folder


@pytest.fixture
def everything(store_path: Path) -> Iterator[Flask]:
    with closing(open_store(f"sqlite:///{store_path}/tallies.db")) as store:
        settings = DashboardSettings(
            dashboard_token=TOKEN,
            dashboard_links=str(store_path / "links.db"),
            dashboard_frame_ancestors="https://other.example",
            releases=str(store_path / "releases.sqlite"),
            release_budget=90.0,
            boards=str(store_path / "boards"),
            annotations=str(store_path / "annotations.toml"),
        )
        registry = Registry.parse(REGISTRY)
        yield create_app(settings, store=store, registry=registry, clock=lambda: LATER)


@pytest.fixture
def reader(everything: Flask) -> FlaskClient:
    """Somebody who has signed in with a browser that asks for Chinese."""
    client = everything.test_client()
    client.environ_base["HTTP_ACCEPT"] = "text/html"
    client.environ_base["HTTP_ACCEPT_LANGUAGE"] = "zh-CN,zh;q=0.9,en;q=0.5"
    assert client.post("/login", data={"token": TOKEN}).status_code == 303
    return client


PAGES = [
    "/",
    "/?view=list",
    "/boards",
    "/boards/b1",
    "/links",
    "/metric/m0",
    "/metric/m1",
    "/metric/m1?given=m3",
    "/metric/m1?value=n4=below%205%20given%20m3=true",
    "/metric/m1/compare?from=2026-11-20&to=2026-11-20",
    "/metric/m2/segments",
    "/metric/m2?n0=%E7%94%B2",
    "/metric/m3/compare",
    "/metric/m5",
    "/metric/m5/compare?from=2026-11-12&to=2026-11-20",
    "/metric/m6/strings",
    "/metric/m7",
    "/metric/m8",
    "/metric/m9",
    "/metric/n1",
    "/metric/n1/segments",
    "/metric/n4",
    "/metric/n4?value=below%205&value=5%20to%2020&by=week",
    "/metric/n4/compare?from=2026-11-20&to=2026-11-20",
    "/plan/lifetime?devices=1000&lifetime_epsilon=8",
    "/plan/number?devices=100000&epsilon=1&low=0&high=10",
    "/plan/pair?devices=100000&epsilon=1&rows=3&columns=4",
    "/released/m1",
    "/released/n2",
    "/releases",
    "/share?view=/boards/b1",
    "/share?view=/metric/n4",
    "/share?view=/released/m3",
]

_SAID = re.compile(r"Cramér’s V|SHA-256|\bTARGET\b|\bb1\b|(/releases/)?\b[0-9a-f]{24}\b")
"""What a page may say besides: names of statistics, digests and files, and what is to be typed."""


def _is_chinese(reader: FlaskClient, path: str) -> str:
    page = text_of(reader, path)
    assert english(_SAID.sub("", page)) == [], path
    return page


@pytest.mark.parametrize("path", PAGES)
def test_a_page_in_chinese_has_no_english_in_it(reader: FlaskClient, path: str) -> None:
    """Neither in sentences, nor in the names of ranges and of a pair's numbers."""
    page = _is_chinese(reader, path)
    assert '<html lang="zh-Hans">' in page


def test_every_release_is_in_chinese(reader: FlaskClient) -> None:
    """Its page, and the form and the page of a link to it."""
    found = re.findall(r'href="(/releases/[0-9a-f]+)"', reader.get("/releases").text)
    assert len(found) == 11
    for path in found:
        _is_chinese(reader, path)
    _is_chinese(reader, f"/share?view={found[0]}")
    made = reader.post("/share", data={"view": found[0], "days": "5", "part": "page"}).text
    opened = re.search(r'value="(/shared/[^"]+)"', made)
    assert opened
    _is_chinese(reader, opened[1])
    _is_chinese(reader, "/links")


def test_ranges_are_named_in_the_language_of_the_page(reader: FlaskClient) -> None:
    """A range is in words on the page, and in its address, its files and the English page as it is
    declared."""
    page = text_of(reader, "/metric/n4")
    assert "低于 5" in page
    assert "20 及以上" in page
    assert 'value="below 5"' in page
    assert "below 5" in reader.get("/metric/n4.csv").text
    assert "低于 5" not in reader.get("/metric/n4.csv").text
    assert "below 5" in text_of(reader, "/metric/n4?lang=en")


def test_pictures_of_ranges_are_in_chinese(reader: FlaskClient) -> None:
    """Also where a name is cut to its room."""
    for path in (
        "/metric/n4.svg",
        "/metric/m1.svg",
        "/metric/m1/trend.svg",
        "/metric/n4/trend.svg",
    ):
        _is_chinese(reader, path)

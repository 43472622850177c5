"""A reload reads no tally, and is never out of date."""

import json

import pytest
from tests.registries import declared

from deniable import Registry
from deniable_estimator.asking.fetch import read
from deniable_estimator.asking.query import Query
from deniable_estimator.asking.reader import Reader

from .conftest import TOKEN, YESTERDAY, dashboard_of, fill_drawn, page_of, program_of, text_of

REGISTRY = declared(
    color={"type": "category", "epsilon": 4.0, "values": ["red", "green", "blue"]},
    site={"type": "string", "epsilon": 4.0},
    mood={"type": "category", "epsilon": 1.0, "values": ["good", "bad", "none"],
          "longitudinal": "memoize", "lifetime_epsilon": 4.0},
)  # fmt: skip
DAYS = ("2026-11-18", "2026-11-19", YESTERDAY)
PATHS = (
    "/",
    "/metric/color",
    "/metric/mood",
    "/metric/site",
    "/metric/site?by=day",
    "/metric/site.csv",
    "/metric/color.svg",
    "/api/v1/metrics",
    "/api/v1/metrics/site/estimate",
    "/api/v1/metrics/mood/estimate",
    "/api/v1/metrics/color/trend?by=day",
    "/api/v1/metrics/color/comparison?from=2026-11-20",
)


@pytest.fixture
def registry():
    return Registry.parse(REGISTRY)


def report(store, registry, name, day, counts):
    """So many devices report each of the values, or two sites."""
    named = ["a.example", "b.example"] if name == "site" else range(len(counts))
    fill_drawn(store, registry, name, dict(zip(named, counts, strict=True)), day)


@pytest.fixture
def store(empty_store, registry):
    for day in DAYS:
        report(empty_store, registry, "color", day, [300, 200, 100])
        report(empty_store, registry, "mood", day, [300, 200, 100])
        report(empty_store, registry, "site", day, [3_000, 1_000])
    return empty_store


@pytest.fixture
def client(store, registry, tmp_path):
    """A visitor who is signed in, and holds the token of a program too."""
    (tmp_path / "site.txt").write_text("a.example\nb.example\nc.example\n")
    client = program_of(dashboard_of(store, registry, candidates_dir=str(tmp_path)))
    client.post("/login", data={"token": TOKEN})
    return client


@pytest.mark.parametrize("path", PATHS)
def test_a_reload_reads_no_tally(client, store, monkeypatch, path):
    """What was calculated is told again from memory, on pages, in files and by the API; a
    condition on the tag, too, is responded to without."""
    first = page_of(client, path)
    assert first.status_code == 200
    tally, seen = store.tally, []
    monkeypatch.setattr(store, "tally", lambda *asked: seen.append(asked) or tally(*asked))
    assert page_of(client, path).text == first.text
    tag = client.get(path).headers.get("ETag")
    if tag is not None:
        assert client.get(path, headers={"If-None-Match": tag}).status_code == 304
    assert seen == []


@pytest.mark.parametrize(("name", "counts"), [("color", [50, 0, 0]), ("site", [500, 0])])
def test_a_reload_is_never_out_of_date(client, store, registry, name, counts):
    """After each fold, drop and beginning again of a window as it was, the API tells what the
    store holds by then, and so does the list of metrics."""

    def agrees():
        strings = None if registry[name].values else ["a.example", "b.example", "c.example"]
        expected = read(Reader(store), registry, Query(name, candidates=strings))
        told = json.loads(text_of(client, f"/api/v1/metrics/{name}/estimate"))
        assert told["n"] == expected.n
        assert [each["share"] for each in told["values"]] == pytest.approx(expected.share.tolist())
        listed = client.get("/api/v1/metrics").get_json()["metrics"]
        assert {each["name"]: each["n"] for each in listed}[name] == expected.n
        return expected.n

    ns = [agrees()]
    for _ in range(2):
        report(store, registry, name, DAYS[0], counts)
        ns.append(agrees())
    assert ns == sorted(set(ns))
    # 2026-11-20 00:00 UTC: two of the three windows had ended.
    assert store.drop(1_795_132_800.0) > 0
    assert agrees() < ns[0]
    report(store, registry, name, DAYS[0], counts)
    first = agrees()
    store.drop(1_795_132_800.0)
    # As many commits and reports as before, but of other values.
    report(store, registry, name, DAYS[0], counts[::-1])
    assert agrees() == first

"""/api/v1/overview: what the overview says, with codes in place of sentences."""

from __future__ import annotations

import csv
import io

from deniable_collector.stores import Store

from .conftest import fill, program_of
from .test_overview_page import SHARES, declared, visit, weeks
from .test_tokens import made, reader


def test_it_tells_changes_and_reasons_as_codes(empty_store: Store) -> None:
    """Numbers, change and reasons are those of the page, each with its days; CSV has the codes."""
    registry = declared("well", "moved", "gone", more={"gone": "expires = 2026-11-01"})
    client = visit(empty_store, registry)
    weeks(empty_store, registry, "well")
    weeks(empty_store, registry, "moved", newest=[0.33, 0.57, 0.1])
    asking = program_of(client.application)
    answer = asking.get("/api/v1/overview")
    assert answer.status_code == 200
    document = answer.json
    assert document["outdated"] == 0
    well, moved, gone = document["metrics"]
    assert (well["series"], well["n"], well["attention"]) == ("chrome", 560_000, [])
    assert well["low"] < 0.6 < well["high"]
    assert well["change"]["changed"] is False
    assert (well["change"]["from"], well["change"]["to"]) == ("2026-11-09", "2026-11-15")
    assert moved["change"]["changed"] is True
    assert moved["change"]["low"] < moved["change"]["difference"] < moved["change"]["high"]
    assert {each["code"] for each in moved["attention"]} == {"change"}
    assert moved["attention"][0]["facts"]["series"] in ("Firefox", "chrome")
    assert gone["attention"] == [
        {
            "code": "expires",
            "text": "expired on 2026-11-01: devices have stopped reporting",
            "from": None,
            "to": None,
            "facts": {"expires": "2026-11-01", "days": -20},
        }
    ]
    rows = list(csv.DictReader(io.StringIO(asking.get("/api/v1/overview?format=csv").text)))
    changed = [(each["name"], each["changed"].casefold()) for each in rows]
    assert changed == [("well", "false"), ("moved", "true"), ("gone", "")]
    assert rows[2]["attention"] == "expires"
    found = asking.get("/api/v1/overview?state=attention&sort=name&q=which").json["metrics"]
    assert [each["name"] for each in found] == ["gone", "moved"]


def test_its_version_is_its_content(empty_store: Store) -> None:
    """The same content is 304; a report changes it. What cannot be asked is refused."""
    registry = declared("well", "fine")
    asking = program_of(visit(empty_store, registry).application)
    tag = asking.get("/api/v1/overview").headers["ETag"]
    known = {"If-None-Match": tag}
    assert asking.get("/api/v1/overview", headers=known).status_code == 304
    fill(empty_store, registry, "well", SHARES, 20_000)
    assert asking.get("/api/v1/overview", headers=known).status_code == 200
    for query in ("state=sad", "sort=up", "page=2", "view=list", "from=soon", "q=" + "x" * 201):
        assert asking.get(f"/api/v1/overview?{query}").status_code == 400, query


def test_a_token_sees_its_metrics_alone(empty_store: Store) -> None:
    """A token that is limited to some metrics is told of these, and one without the scope of
    nothing."""
    registry = declared("well", "fine")
    empty_store.publish({metric.name: [metric.scheme] for metric in registry})
    token, lines = made("--scope", "read:estimates", "--metric", "well")
    some = reader(empty_store, lines, token, registry).get("/api/v1/overview")
    assert [each["name"] for each in some.json["metrics"]] == ["well"]
    token, lines = made("--scope", "plan")
    plan = reader(empty_store, lines, token, registry).get("/api/v1/overview")
    assert plan.status_code == 403

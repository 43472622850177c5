"""The read API: what programs are told, in which form, and how often they must ask."""

import gzip

import pytest

from deniable import Registry

from .conftest import NOW, REGISTRY, dashboard_of, fill, program_of

BROWSER = "/api/v1/metrics/browser"


@pytest.fixture
def program(app, store, registry):
    """A program with the dashboard's token; browsers were counted on two days."""
    fill(store, registry, "browser", [0.35, 0.64, 0.01, 0.0], 20_000, "2026-11-13")
    return program_of(app)


def test_a_response_that_has_not_changed_is_not_sent_again(program, store, registry):
    """The tag stays as long as tallies and question do, whatever else is counted meanwhile; a
    report more, another form or another parameter is another tag."""
    for path in (
        "/api/v1/metrics",
        BROWSER,
        f"{BROWSER}/estimate",
        f"{BROWSER}/trend",
        f"{BROWSER}/comparison?from=2026-11-15",
        f"{BROWSER}/privacy",
        "/api/v1/privacy",
        "/api/v1/overview",
        "/api/v1/plan?size=10&epsilon=1&devices=1000",
    ):
        first = program.get(path)
        tag = first.headers["ETag"]
        assert not tag.startswith("W/")
        assert first.headers["Cache-Control"] == "private, no-cache"
        assert {"Accept", "Authorization", "Cookie"} <= set(first.vary)
        again = program.get(path, headers={"If-None-Match": tag})
        assert (again.status_code, again.data, again.headers["ETag"]) == (304, b"", tag)
    tag = program.get(f"{BROWSER}/estimate").headers["ETag"]
    for other in ("?level=0.9", "?format=csv", "?limit=2"):
        assert program.get(f"{BROWSER}/estimate{other}").headers["ETag"] != tag
    fill(store, registry, "dark_mode", [0.2, 0.8], 100)
    same = program.get(f"{BROWSER}/estimate", headers={"If-None-Match": tag})
    assert same.status_code == 304
    fill(store, registry, "browser", [0.25, 0.74, 0.01, 0.0], 1_000)
    changed = program.get(f"{BROWSER}/estimate", headers={"If-None-Match": tag})
    assert changed.status_code == 200
    assert changed.json["n"] == 41_000


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/metrics?q=anybody",
        f"{BROWSER}/estimate",
        f"{BROWSER}/trend",
        f"{BROWSER}/comparison?from=2026-11-15&to=2026-11-20",
    ],
)
def test_midnight_changes_the_tag_of_the_last_days(store, registry, path):
    """The days that a response is about are part of its tag: those of the days up to now are asked
    for again on the next day, although no report has come; those of named days are not."""
    fill(store, registry, "browser", [0.35, 0.64, 0.01, 0.0], 20_000, "2026-11-10")
    now = [NOW]
    program = program_of(dashboard_of(store, registry, clock=lambda: now[0]))
    first = program.get(path)
    assert first.status_code == 200
    known = {"If-None-Match": first.headers["ETag"]}
    assert program.get(path, headers=known).status_code == 304
    now[0] += 86_400
    second = program.get(path, headers=known)
    if "to=2026-11-20" in path:
        assert second.status_code == 304
        return
    assert second.status_code == 200
    assert second.json != first.json


def test_a_changed_declaration_changes_the_tag(store):
    """The registry is part of the response, and so are settings: both are part of the tag."""
    tags = set()
    for text, chosen in (
        (REGISTRY, {}),
        (REGISTRY.replace("Which browser", "What browser"), {}),
        (REGISTRY, {"fakes": 0.02}),
    ):
        program = program_of(dashboard_of(store, Registry.parse(text), **chosen))
        tags.add(program.get(f"{BROWSER}/estimate").headers["ETag"])
    assert len(tags) == 3


def test_a_compressed_response_has_a_tag_of_its_own(program):
    """A strong tag stands for bytes: compressed ones have another, equally good for asking."""
    packed = {"Accept-Encoding": "gzip"}
    plain, first, second = (
        program.get("/api/v1/privacy", headers=headers) for headers in ({}, packed, packed)
    )
    assert first.headers["Content-Encoding"] == "gzip"
    assert first.data == second.data
    assert gzip.decompress(first.data) == plain.data
    assert first.headers["ETag"] != plain.headers["ETag"]
    again = program.get(
        "/api/v1/privacy", headers={**packed, "If-None-Match": first.headers["ETag"]}
    )
    assert again.status_code == 304
    assert again.headers["ETag"] == first.headers["ETag"]


def test_the_form_is_negotiated(program):
    """JSON for whoever has no wish, CSV by the Accept header or by `format`, which wins."""
    path = f"{BROWSER}/estimate"
    for accept, kind in (
        ("*/*", "application/json"),
        ("text/csv", "text/csv"),
        ("application/json;q=0.5, text/csv", "text/csv"),
        ("text/html,*/*;q=0.8", "application/json"),
    ):
        assert program.get(path, headers={"Accept": accept}).mimetype == kind
    assert program.get(f"{path}?format=json", headers={"Accept": "text/csv"}).is_json
    for bad, accept in ((path, "image/png"), (BROWSER, "text/csv")):
        refused = program.get(bad, headers={"Accept": accept})
        assert refused.status_code == 406
        assert refused.json["type"] == "urn:deniable:problem:not-acceptable"

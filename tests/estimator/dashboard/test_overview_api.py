"""/api/v1/overview: what the overview says, with codes in place of sentences."""

from .conftest import fill, program_of
from .test_overview_page import SHARES, declared, visit
from .test_tokens import made, reader


def test_its_version_is_its_content(empty_store):
    """The same content is 304; a report changes it."""
    registry = declared("well", "fine")
    asking = program_of(visit(empty_store, registry).application)
    tag = asking.get("/api/v1/overview").headers["ETag"]
    known = {"If-None-Match": tag}
    assert asking.get("/api/v1/overview", headers=known).status_code == 304
    fill(empty_store, registry, "well", SHARES, 20_000)
    assert asking.get("/api/v1/overview", headers=known).status_code == 200


def test_a_token_sees_its_metrics_alone(empty_store):
    """A token that is limited to some metrics is told of these."""
    registry = declared("well", "fine")
    empty_store.publish({metric.name: [metric.scheme] for metric in registry})
    token, lines = made("--scope", "read:estimates", "--metric", "well")
    some = reader(empty_store, lines, token, registry).get("/api/v1/overview")
    assert [each["name"] for each in some.json["metrics"]] == ["well"]

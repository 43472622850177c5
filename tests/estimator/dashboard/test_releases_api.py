"""Releases in the read API: what is listed, what they spend, and who sees which."""

import json
from fractions import Fraction

import pytest
from click.testing import CliRunner

from deniable_estimator.dashboard.commands import new as new_token
from deniable_estimator.releasing.manifest import verify

from .conftest import TOKEN, Clock, dashboard_of, program_of
from .test_released import LATER, ledger, make

__all__ = ["ledger", "make"]


@pytest.fixture
def reader(store, registry, ledger):
    """A program with a token of these options; without any, with the dashboard's own."""

    def new(*options, **settings):
        secret, lines = TOKEN, ""
        if options:
            result = CliRunner().invoke(new_token, ["--name", "x", *options, "--json"])
            made = json.loads(result.stdout)
            secret, lines = made["token"], made["lines"]
        app = dashboard_of(
            store,
            registry,
            Clock(LATER),
            **{"releases": str(ledger), "api_tokens": lines, **settings},
        )
        return program_of(app, secret)

    return new


def test_a_release_is_its_document_and_its_table(make, reader):
    """Byte by byte as they were made, so that whoever fetches them can verify them; asked again
    with the ETag, the response is 304."""
    made, client = make("browser", Fraction(1, 2)), reader()
    document = client.get(f"/api/v1/releases/{made.id}")
    table = client.get(f"/api/v1/releases/{made.id}?format=csv")
    assert document.text == made.document
    assert table.text == made.csv
    assert verify(document.get_data(), table.get_data(), None)["id"] == made.id
    again = client.get(
        f"/api/v1/releases/{made.id}", headers={"If-None-Match": document.headers["ETag"]}
    )
    assert (again.status_code, again.get_data()) == (304, b"")
    assert table.headers["ETag"] != document.headers["ETag"]


def test_a_token_sees_the_releases_of_its_metrics(make, reader):
    """Of others it learns neither name, number nor spending, and the total is not told."""
    mine, other = make("browser", None), make("dark_mode", Fraction(1, 2))
    client = reader("--scope", "read:releases", "--metric", "brow*")
    found = client.get("/api/v1/releases").json
    assert [each["id"] for each in found["releases"]] == [mine.id]
    assert found["total"] is None
    assert list(found["metrics"]) == ["browser"]
    assert client.get(f"/api/v1/releases/{mine.id}").status_code == 200
    assert client.get(f"/api/v1/releases/{other.id}").status_code == 404
    assert client.get("/api/v1/releases?metric=dark_mode").status_code == 403
    nobody = reader("--scope", "read:releases", "--metric", "nothing_*")
    assert nobody.get("/api/v1/releases").json == {"releases": [], "total": None, "metrics": {}}


def test_without_a_ledger_the_error_names_the_setting(reader, ledger):
    """No setting is a conflict, no file yet an empty list, a broken file an error of the server."""
    for path in ("/api/v1/releases", "/api/v1/releases/abc"):
        refused = reader(releases="").get(path)
        assert refused.status_code == 409
        assert "DENIABLE_RELEASES" in refused.json["detail"]
    assert reader().get("/api/v1/releases").json["releases"] == []
    assert "/api/v1/releases lists" in reader().get("/api/v1/releases/abc").json["detail"]
    ledger.write_text("this is no database, but a text that is long enough to be taken for one")
    assert reader().get("/api/v1/releases").status_code == 503
    assert reader().get("/api/v1/releases/abc").status_code == 503


def test_a_program_that_publishes_releases_needs_no_sums(make, reader):
    """The scope read:releases opens no estimate, and read:estimates no release."""
    made = make("browser", None)
    client = reader("--scope", "read:releases")
    assert client.get(f"/api/v1/releases/{made.id}").status_code == 200
    assert client.get("/api/v1/metrics/browser/estimate").status_code == 403
    client = reader("--scope", "read:estimates", "--scope", "read:metrics", "--scope", "plan")
    for path in ("/api/v1/releases", f"/api/v1/releases/{made.id}"):
        refused = client.get(path)
        assert refused.json["type"] == "urn:deniable:problem:missing-scope"
        assert refused.json["scope"] == "read:releases"

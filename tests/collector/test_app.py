"""The collector over HTTP: every route, every problem, and what it never says."""

import json
import logging
from contextlib import closing
from unittest.mock import Mock

import pytest

from deniable_collector.settings import Settings
from deniable_collector.stores import StoreError, StoreUnavailable, open_store

MARKER = "marker-7f3a"


@pytest.fixture
def client(new_client):
    return new_client(max_body=20_000, max_reports=20)


@pytest.fixture
def body(new_id, report):
    return json.dumps({"batch": new_id(), "reports": [report, {}, report]}).encode()


def problem(response, status, code):
    """Check that a response is a problem document of that kind, and return it."""
    assert response.status_code == status
    assert response.content_type == "application/problem+json"
    assert response.json["type"] == f"urn:deniable:problem:{code}"
    assert response.json["status"] == status
    assert response.json["title"]
    assert response.json["detail"]
    return response.json


def post(client, body, **options):
    return client.post("/v1/reports", data=body, content_type="application/json", **options)


def test_a_batch_is_answered_after_its_commit(client, counted, body):
    """202 says what was accepted and what was not; by then the tally holds it."""
    response = post(client, body)
    assert response.status_code == 202
    assert response.json == {
        "batch": json.loads(body)["batch"],
        "accepted": 2,
        "duplicate": 0,
        "rejected": [
            {"index": 1, "reason": "malformed", "detail": response.json["rejected"][0]["detail"]}
        ],
        "refused": {"malformed": 1},
    }
    assert counted() == 2
    again = post(client, body)
    assert again.status_code == 202
    assert (again.json["accepted"], again.json["duplicate"]) == (0, 2)
    assert counted() == 2


def test_what_is_no_batch_by_its_method(client):
    """The path of batches takes POST alone, and says so."""
    for method in ("GET", "HEAD", "PUT"):
        response = client.open("/v1/reports", method=method)
        assert (response.status_code, response.headers["Allow"]) == (405, "OPTIONS, POST")
    problem(client.get("/v1/reports"), 405, "http-405")
    asked = client.open("/v1/reports", method="OPTIONS")
    assert (asked.status_code, asked.headers["Allow"], asked.data) == (200, "OPTIONS, POST", b"")


def test_a_store_that_is_down(client, store, body, monkeypatch):
    """Without its store the collector lives, is not ready, and asks devices to come back."""

    down = Mock(side_effect=StoreUnavailable("down", retry_after=7))
    client.get("/readyz")
    monkeypatch.setattr(store, "fold", down)
    monkeypatch.setattr(store, "ping", down)
    for response in (post(client, body), client.get("/readyz")):
        problem(response, 503, "store-unavailable")
        assert response.headers["Retry-After"] == "7"
    assert client.get("/readyz").json["detail"] == "down"
    assert client.get("/healthz").status_code == 200


def test_a_store_that_is_away_at_the_start(serve, registry, tmp_path, body):
    """The collector starts without its store, and takes batches as soon as it is there."""
    folder = tmp_path / "later"
    with closing(open_store(Settings(store=f"sqlite:///{folder / 'store.db'}"))) as store:
        client = serve(registry, store)
        assert client.get("/healthz").status_code == 200
        problem(post(client, body), 503, "store-unavailable")
        folder.mkdir()
        assert post(client, body).status_code == 202


def test_a_store_that_refuses(client, store, body, monkeypatch, caplog):
    """A store at its limit is the operator's trouble: 500, and the reason in the log."""

    monkeypatch.setattr(store, "fold", Mock(side_effect=StoreError("a counter is at its top")))
    problem(post(client, body), 500, "store-refused")
    assert "at its top" in caplog.text


def test_a_bug_is_a_problem_without_what_was_sent(client, store, body, monkeypatch, caplog):
    """An error that nobody foresaw is a 500; its log says where, and nothing that was sent."""

    def bug(*arguments):
        raise RuntimeError(MARKER)

    monkeypatch.setattr(store, "fold", bug)
    monkeypatch.setitem(client.app.pages, b"/healthz", bug)
    for answer in (post(client, body), client.get("/healthz")):
        assert MARKER not in json.dumps(problem(answer, 500, "internal"))
    assert "RuntimeError at test_app.py" in caplog.text
    assert MARKER not in caplog.text


def test_nothing_of_a_request_is_logged_or_answered(client, store, caplog, monkeypatch, tmp_path):
    """Markers in path, query, headers and body turn up in no log, response or file."""
    caplog.set_level(logging.DEBUG)
    client.get("/readyz")
    headers = {
        "User-Agent": MARKER,
        "X-Forwarded-For": MARKER,
        "Cookie": f"a={MARKER}",
        "Authorization": MARKER,
        f"X-{MARKER}": MARKER,
    }
    environ = {"REMOTE_ADDR": "203.0.113.77"}
    report = {"metric": MARKER, "scheme": MARKER, "window": MARKER, "columns": MARKER}
    bodies = [
        MARKER.encode(),
        json.dumps({"batch": MARKER, "reports": []}).encode(),
        json.dumps({"batch": "0" * 32, "reports": [report, MARKER, {MARKER: MARKER}]}).encode(),
        json.dumps({"batch": "0" * 32, "reports": [], MARKER: 1}).encode(),
    ]
    answers = [
        post(client, body, headers=headers, environ_base=environ, query_string={"q": MARKER})
        for body in bodies
    ]
    answers.append(client.get(f"/{MARKER}", headers=headers, environ_base=environ))
    answers.append(post(client, b"", headers={"Content-Encoding": MARKER}))
    texts = [caplog.text, *(answer.text + str(answer.headers) for answer in answers)]
    for place in (MARKER, "203.0.113.77"):
        assert not any(place in text for text in texts)
        assert not any(place.encode() in file.read_bytes() for file in tmp_path.iterdir())

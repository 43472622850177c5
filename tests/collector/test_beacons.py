"""What pages send without asking first: JSON as text, of pages that may send, with their key."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable_collector.collector import Collector as Service
from deniable_collector.serving import admission
from deniable_collector.serving.http import is_text, media_type, token
from deniable_collector.serving.wsgi import WsgiHandler

from .test_admission import KEY, OTHER, hashed

TEXT, JSON = "text/plain;charset=UTF-8", "application/json"
OURS, THEIRS = "https://app.example", "https://evil.example"


def send(client, body, content_type=TEXT, path="/v1/reports", **headers):
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    return client.post(path, data=body, content_type=content_type, headers=named)


@given(st.text(st.characters(max_codepoint=255), max_size=40))
def test_no_header_is_both(value):
    """Whatever stands in Content-Type, it is text for us exactly if the part before the first
    semicolon says so and no other charset than UTF-8 is named; and reading it raises nothing."""
    for whole in (value, f"text/plain;{value}"):
        told = is_text(whole)
        kind = media_type(whole)
        names = [each.partition("=") for each in token(whole).split(";")[1:]]
        others = [
            text for name, _, text in names
            if name.strip(" \t") == "charset" and text.strip(' \t"') not in ("utf-8", "utf8")
        ]  # fmt: skip
        assert told == (kind == "text/plain" and not others)


def test_pages_of_other_origins_may_send_no_text(new_client, new_body, counted):
    """Text of a page whose origin is not listed is refused, and nothing of it counted, whatever it
    claims; of a listed one, of the collector's own, and of no page at all it is counted."""
    client = new_client(cors_origins=(OURS,))
    for headers in (
        {"Origin": THEIRS},
        {"Origin": "null"},
        {"Origin": THEIRS, "Sec-Fetch-Site": "same-site"},
        {"Origin": THEIRS, "Sec-Fetch-Site": "cross-site"},
        {"Origin": f"{OURS}, {THEIRS}"},
        {"Origin": f"{OURS}.evil.example"},
    ):
        refused = send(client, new_body(), **headers)
        assert refused.status_code == 403
        assert refused.json["type"] == "urn:deniable:problem:origin-not-allowed"
        assert headers["Origin"] not in refused.text
        assert "Access-Control-Allow-Origin" not in refused.headers
    good = [{"Origin": OURS}, {"Origin": THEIRS, "Sec-Fetch-Site": "same-origin"}, {}]
    for headers in good:
        answer = send(client, new_body(), **headers)
        assert (answer.status_code, answer.json["accepted"]) == (202, 1)
        allowed = OURS if headers.get("Origin") == OURS else None
        assert answer.headers.get("Access-Control-Allow-Origin") == allowed
    assert counted() == len(good)


@pytest.mark.parametrize("listed", [(), (OURS,)])
def test_a_refused_origin_is_logged_once(new_client, new_body, monkeypatch, caplog, listed):
    """The operator reads which pages were turned away, as they ask and as they send text: each
    origin once, and only so many. What is no origin of a page is not repeated."""
    monkeypatch.setattr(admission, "_told", set())
    client = new_client(cors_origins=listed)
    evil = [f"https://{number}.example" for number in range(30)]
    with caplog.at_level("WARNING", "deniable_collector"):
        for origin in (THEIRS, THEIRS, "null", "https://a.example/a?secret", "x" * 300, *evil):
            send(client, new_body(), Origin=origin)
            client.open("/v1/reports", method="OPTIONS", headers={"Origin": origin})
        client.open("/v1/reports", method="OPTIONS", headers={"Origin": evil[0]})
    told = [
        record.fields["origin"] for record in caplog.records if record.event == "origin-refused"
    ]
    assert told == [THEIRS, *evil[:19]]


def test_a_listed_origin_is_not_logged(new_client, monkeypatch, caplog):
    """Pages that may send leave nothing in the log."""
    monkeypatch.setattr(admission, "_told", set())
    client = new_client(cors_origins=(OURS,))
    with caplog.at_level("WARNING", "deniable_collector"):
        client.open("/v1/reports", method="OPTIONS", headers={"Origin": OURS})
        client.post("/v1/reports", data=b"{}", content_type=JSON, headers={"Origin": OURS})
    assert not [record for record in caplog.records if record.name == "deniable_collector"]


def test_a_page_is_answered_on_the_fast_path(new_client, new_body, monkeypatch):
    """What pages send, as text and as JSON, needs no way around; listed pages may read the
    response, others may send JSON alone."""
    client = new_client(cors_origins=(OURS,))
    send(client, new_body())
    slow = []
    monkeypatch.setattr(Service, "_slowly", lambda *call: slow.append(call))
    monkeypatch.setattr(WsgiHandler, "handle", lambda *call: slow.append(call))
    for content_type in (TEXT, "text/plain;charset=utf-8", JSON):
        answer = send(client, new_body(), content_type, Origin=OURS)
        assert (answer.status_code, answer.json["accepted"]) == (202, 1)
        assert answer.headers["Access-Control-Allow-Origin"] == OURS
        assert answer.headers["Vary"] == "Origin"
    answer = send(client, new_body(), JSON, Origin=THEIRS)
    assert (answer.status_code, answer.headers["Vary"]) == (202, "Origin")
    assert "Access-Control-Allow-Origin" not in answer.headers
    assert send(client, new_body(), Origin=THEIRS).status_code == 403
    assert slow == []


PLUS = "key+of/the-app.example=="


@pytest.mark.parametrize(
    ("query", "headers", "status"),
    [
        (f"key={KEY}", {}, 202),
        (f"a=b&key={KEY}", {}, 202),
        (f"key={PLUS}", {}, 202),
        ("key=key%2Bof%2Fthe-app.example%3D%3D", {}, 202),
        ("key=wrong-key-of-the-app", {}, 401),
        ("", {}, 401),
        ("key=", {}, 401),
        (f"Key={KEY}", {}, 401),
        (f"key={KEY}&key={KEY}", {}, 401),
        (f"key=wrong-key-of-the-app&key={KEY}", {}, 401),
        (f"key={KEY}", {"Authorization": "Bearer wrong-key-of-the-app"}, 401),
        (f"key={KEY}", {"Authorization": "Basic YTpi"}, 401),
        (f"key={KEY}", {"X-Deniable-Key": "wrong-key-of-the-app"}, 401),
        ("key=wrong-key-of-the-app", {"Authorization": f"Bearer {KEY}"}, 202),
        ("key=wrong-key-of-the-app", {"X-Deniable-Key": KEY}, 202),
        ("key=%FF%00%zz", {}, 401),
    ],
)
def test_a_key_in_the_query(new_client, new_body, query, headers, status):
    """A key in the query counts where no header has one, exactly once, and a wrong one nowhere; no
    answer repeats it."""
    client = new_client(ingest_keys=hashed(KEY, PLUS, OTHER))
    named = {name.replace("-", "_"): text for name, text in headers.items()}
    for content_type in (TEXT, JSON):
        answer = send(client, new_body(), content_type, f"/v1/reports?{query}", **named)
        assert answer.status_code == status
        assert KEY not in answer.text
        assert "wrong-key" not in answer.text

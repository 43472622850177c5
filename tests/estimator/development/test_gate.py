"""The door of `deniable dev`: what it takes, from whom, and what it tells the developer."""

from __future__ import annotations

import gzip
import json

import pytest
from tests.registries import declared

from deniable import Registry, TransportError
from deniable.device.development import TROUBLES
from deniable.device.transport import Reply, read_reply
from deniable.protocol.wire import unmarked
from deniable_estimator.development.state import Mistake, advice_on

REGISTRY = Registry.parse(
    declared(
        yes={"type": "boolean"},
        few={"type": "category", "values": ["a", "b"]},
        many={"type": "category", "values": [f"v{number}" for number in range(30)]},
        word={"type": "string"},
        found={"type": "discovery", "max_length": 4, "lifetime_epsilon": 40.0, "epsilon": 4.0},
        whole={"type": "number", "low": 0, "high": 9, "integer": True, "ask": "mean"},
        two={"type": "pair", "of": ["yes", "few"]},
    )
)


def problem(response):
    """The code of a problem document."""
    found: str = json.loads(response.data)["type"].rpartition(":")[2]
    return found


def test_marked_reports_are_counted_and_shown(post, batch, seen):
    """Reports of every type, of windows that have not ended, are counted once, and shown with row,
    columns, bytes and meaning, the newest first."""
    values = [("browser", "firefox"), ("dark_mode", True), ("plugin", "acme"), ("size", 3)]
    body = batch(*values)
    first = post(body)
    assert (first.status_code, json.loads(first.data)["accepted"]) == (202, 4)
    assert json.loads(post(body).data)["duplicate"] == 4
    document = seen()
    assert [each["metric"] for each in document["reports"]] == [name for name, _ in values][::-1]
    sent = json.loads(body)["reports"][::-1]
    for shown, report in zip(document["reports"], sent, strict=True):
        assert shown["columns"] == report["columns"]
        assert shown["row"] == report.get("row", 0)
        assert shown["bytes"] == len(json.dumps(report, separators=(",", ":")))
        assert shown["says"]["groups"]
    assert [each["n"] for each in document["estimates"]] == [1] * 4
    assert document["mistakes"] == []


def test_nothing_without_the_mark(post, batch, seen):
    """A plain batch, a compressed one, a binary one and an empty body are refused, with a code for
    which no SDK drops a batch: a real report waits for its own collector."""
    body = unmarked(batch(("browser", "firefox")))
    bodies = [body, gzip.compress(body), b"DNYB\x01", b"", b" " + batch(("browser", "firefox"))]
    for each in bodies:
        answer = post(each)
        assert (answer.status_code, problem(answer)) == (403, "development-only")
        with pytest.raises(TransportError) as kept:
            read_reply(Reply(answer.status_code, answer.data), "0" * 32, lambda: 0.0)
        assert not kept.value.final
    (mistake,) = seen()["mistakes"]
    assert (mistake["code"], mistake["times"]) == ("not_development", len(bodies))
    assert "DENIABLE_DEV" in mistake["advice"]


def test_what_is_left_out_is_explained(post, batch, seen):
    """Rejected reports and refused batches are shown with what to do, and are not counted."""
    post(batch(("browser", "firefox"), metric="browsr"))
    post(batch(("browser", "firefox"), scheme="0" * 12))
    post(batch(("browser", "firefox"), window="2020-01-01"))
    post(batch(("browser", "firefox"), row=9))
    post(batch(("browser", "firefox"), columns=99))
    post(b'{"development":true,"batch":"x","reports":[]}')
    post(b'{"development":true,"development":true,"batch":"x","reports":[]}')
    told = {each["code"]: each for each in seen()["mistakes"]}
    assert set(told) == {
        "unknown_metric",
        "unknown_scheme",
        "window_too_old",
        "bad_row",
        "bad_columns",
        "batch",
    }
    assert "Did you mean “browser”?" in told["unknown_metric"]["advice"]
    assert "Restart the app" in told["unknown_scheme"]["advice"]
    assert told["batch"]["times"] == 2
    assert all(each["text"] and each["advice"] for each in told.values())
    assert seen()["reports"] == []


@pytest.mark.parametrize(
    ("origin", "allowed"),
    [
        ("http://localhost:3000", True),
        ("http://[::1]:8000", True),
        ("https://app.test", True),
        ("https://evil.example", False),
        ("http://localhost.evil.example", False),
        ("http://127.0.0.1.evil.example:80", False),
        ("https://app.test.evil.example", False),
        ("null", False),
        ("", False),
    ],
)
def test_which_pages_may_send(post, browser, batch, origin, allowed):
    """Pages of this machine, and of origins that were named, may send and read the answer; any
    other page that the developer visits may not, with or without asking before."""
    asked = browser.options("/v1/reports", headers={"Origin": origin})
    answer = post(batch(("browser", "firefox")), Origin=origin)
    assert answer.status_code == (202 if allowed else 403)
    assert asked.status_code == (204 if allowed else 403)
    allows = {"Origin": origin, "Private-Network": "true"} if allowed else {}
    asks = {"Methods": "POST", "Headers": "authorization, content-type, x-deniable-key"}
    for each, expected in ((answer, allows), (asked, {**allows, **(asks if allowed else {})})):
        start = "Access-Control-Allow-"
        told = {name.removeprefix(start): text for name, text in each.headers if start in name}
        assert told == expected
        assert each.headers.get("Access-Control-Expose-Headers") == (
            "Retry-After" if allowed else None
        )
        kept = [each.headers[name] for name in ("Vary", "Cache-Control", "X-Content-Type-Options")]
        assert kept == ["Origin", "no-store", "nosniff"]


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example:8099", "0.0.0.0:8099"])
def test_other_names_are_refused(browser, host):
    """A site that gives its own name the address of this machine reads nothing."""
    for path in ("/live", "/live.json", "/v1/reports", "/login", "/metrics.json"):
        answer = browser.get(path, headers={"Host": host})
        assert (answer.status_code, b"deniable" in answer.data) == (403, False)


def test_mistakes_of_clients(post, seen):
    """What a client refuses is shown, with the values that a metric takes; what is no such message
    is refused."""
    known = [("refused_value", name) for name in ("browser", "dark_mode", "size", "plugin")]
    known += [("unknown_metric", "browsr"), ("no_consent", None), ("disabled", None)]
    for code, metric in known:
        body = {"development": True, "trouble": {"code": code, "metric": metric}}
        assert post(json.dumps(body).encode(), TROUBLES).status_code == 204
    told = {(each["code"], each["metric"]): each["advice"] for each in seen()["mistakes"]}
    assert set(told) == set(known)
    assert "firefox, chrome, safari, edge, other" in told["refused_value", "browser"]
    for body in (
        b"",
        b"[]",
        b'{"trouble":{"code":"no_consent","metric":null}}',
        b'{"development":true,"trouble":{"code":"nonsense","metric":null}}',
        b'{"development":true,"trouble":{"code":"no_consent","metric":3}}',
        b'{"development":true,"trouble":{"code":["no_consent"],"metric":null}}',
    ):
        assert post(body, TROUBLES).status_code == 400
    assert post(b" " * 5000, TROUBLES).status_code == 413
    assert len(seen()["mistakes"]) == len(known)


def test_hostile_names(post, batch, browser, seen):
    """A name of markup, of another direction or of 3 KB is shown as text, and cut; one with half of
    a UTF-16 pair, told by a client or in a report, with a question mark; none gets into a command
    that a developer may copy."""
    for name in ("<script>alert(1)</script>", "\u202eevil", "x; rm -rf ~", "n" * 3000, "?\ud800"):
        body = {"development": True, "trouble": {"code": "unknown_metric", "metric": name}}
        assert post(json.dumps(body).encode(), TROUBLES).status_code == 204
    sent = batch(("browser", "firefox")).replace(b'"metric":"browser"', b'"metric":"sent\\ud800"')
    assert json.loads(post(sent).data)["rejected"]
    page = browser.get("/live", follow_redirects=True, headers={"Accept": "text/html"}).text
    assert "<script>alert" not in page
    assert "n" * 101 not in page
    assert "“??”" in page
    assert "sent?" in page
    assert not any("deniable add" in each["advice"] for each in seen()["mistakes"])


def test_other_methods_and_large_bodies(post, browser):
    """Only POST sends, and no body above a mebibyte is read."""
    assert browser.get("/v1/reports").status_code == 405
    assert browser.put("/v1/reports").status_code == 405
    assert post(b" " * ((1 << 20) + 1)).status_code == 413
    assert browser.get("/v1/registry").status_code == 200
    assert browser.get("/healthz").status_code == 200


def test_a_flood_is_forgotten(post, batch, seen, browser):
    """Of many reports and mistakes the newest are kept, and all reports are counted."""
    for _ in range(3):
        assert post(batch(*[("browser", "firefox")] * 100)).status_code == 202
    for number in range(300):
        body = {"development": True, "trouble": {"code": "unknown_metric", "metric": f"m{number}"}}
        post(json.dumps(body).encode(), TROUBLES)
    document = seen()
    assert len(document["reports"]) == len(document["mistakes"]) == 20
    assert document["mistakes"][0]["metric"] == "m299"
    assert document["estimates"][0]["n"] == 300


METRICS = {
    "unknown_metric": ("yess", "Zoom!", "zoom"),
    "refused_value": ("yes", "few", "many", "word", "found", "whole", "two"),
    **dict.fromkeys(("undeclared_value", "expired_metric", "unknown_scheme"), ("few",)),
    "window_too_old": ("few",),
}
"""The metrics that each mistake is made with; the other mistakes are about none."""
ALONE = ("missing_segment", "no_consent", "disabled", "not_development", "origin", "batch")


def test_each_mistake_has_its_advice(stays):
    """The words name the metric, and the advice fits what it takes."""
    made = [(code, name) for code, names in METRICS.items() for name in names]
    found = []
    for code, name in (*made, *((code, None) for code in ALONE)):
        told, advice = advice_on(Mistake(code, name, "<detail>", 0.0), REGISTRY)
        found += [f"{code}: {told}", f"    {advice}"]
    stays("advice.txt", found)

"""What a reply means: a published receipt or problem, whatever else answers, and the wait."""

import json
from email.utils import formatdate
from pathlib import Path

import pytest

from deniable import TransportError
from deniable.device.transport import Reply, read_reply, retry_seconds

VECTORS = json.loads(
    (Path(__file__).parents[2] / "client" / "vectors" / "wire.json").read_text(encoding="utf-8")
)["answers"]


@pytest.mark.parametrize("case", VECTORS["counted"], ids=lambda case: case["why"])
def test_vectors_of_receipts(case):
    """A published receipt leaves out the reports that it should, each of them."""
    found = read_reply(Reply(case["status"], case["body"].encode()), case["batch"], lambda: 0.0)
    assert {str(index): reason for index, reason in found.items()} == case["left_out"]


@pytest.mark.parametrize("case", VECTORS["problems"], ids=lambda case: case["why"])
def test_vectors_of_problems(case):
    """A published problem ends the batch, or lets it wait as long as it asks for, as published. One
    that is final is the collector's own."""
    with pytest.raises(TransportError) as caught:
        read_reply(Reply(case["status"], case["body"].encode(), "60"), case["batch"], lambda: 0.0)
    assert caught.value.final is case["final"]
    assert caught.value.retry_after == (None if case["final"] else 60.0)
    assert not (caught.value.final and caught.value.foreign)


@pytest.mark.parametrize(
    ("status", "body"),
    [
        *((status, b"<!doctype html>") for status in (200, 301, 400, 413, 503)),
        (404, b'{"type": "https://proxy.example/problems/malformed-batch"}'),
        (400, b'{"type": "about:blank", "status": 400}'),
        (400, b'{"type": ["urn:deniable:problem:not-json"]}'),
        (400, b'"urn:deniable:problem:not-json"'),
        (202, b"not json"),
        (202, b"[]"),
        (202, b'{"batch": "another", "rejected": []}'),
        (202, b"[" * 100_000),
        (202, b'{"batch": "b", "rejected": [{"index": Infinity, "reason": "x"}]}'),
        (202, b'{"batch": "b", "rejected": [{"index": 1e999, "reason": "x"}]}'),
    ],
    ids=lambda each: ascii(each)[:60],
)
def test_all_else_may_be_retried(status, body):
    """Whatever responds in the collector's place neither acknowledges a batch nor gives it up; the
    error carries the wait that was asked for."""
    with pytest.raises(TransportError) as caught:
        read_reply(Reply(status, body, "60"), "b", lambda: 0.0)
    assert not caught.value.final
    assert caught.value.foreign
    assert caught.value.retry_after == 60.0


@pytest.mark.parametrize(
    ("header", "wait"), [(None, None), ("60", 60.0), (formatdate(1_000_090, usegmt=True), 90.0)]
)
def test_a_problem_that_passes_says_when_to_try_again(header, wait):
    """A problem of the collector that is not the batch's keeps the wait that was asked for, in
    seconds or up to a moment, and is the collector's own."""
    body = b'{"type": "urn:deniable:problem:store-unavailable"}'
    with pytest.raises(TransportError, match="store-unavailable") as caught:
        read_reply(Reply(503, body, header), "b", lambda: 1_000_000.0)
    assert not caught.value.final
    assert not caught.value.foreign
    assert caught.value.retry_after == wait


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("120", 120.0),
        (" 0 ", 0.0),
        (formatdate(1_000_090, usegmt=True), 90.0),
        (formatdate(999_000, usegmt=True), 0.0),
        ("soon", None),
        ("-5", None),
        ("9" * 400, 999_999_999.0),
        ("Fri, 99 Foo 2026 00:00:00 GMT", None),
    ],
)
def test_retry_after(header, seconds):
    """Seconds and HTTP dates are understood; what is neither asks for nothing."""
    assert retry_seconds(header, 1_000_000.0) == seconds

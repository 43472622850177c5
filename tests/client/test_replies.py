"""What a reply means: a published receipt or problem, whatever else answers, and the wait."""

from __future__ import annotations

import json
import re
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest

from deniable import TransportError
from deniable.replies import _FINAL, Reply, read_reply, retry_seconds

VECTORS = json.loads(
    (Path(__file__).parents[2] / "client" / "vectors" / "wire.json").read_text(encoding="utf-8")
)["answers"]


@pytest.mark.parametrize("case", VECTORS["counted"], ids=lambda case: case["why"])
def test_vectors_of_receipts(case: dict[str, Any]) -> None:
    """A published receipt leaves out the reports that it should, each of them."""
    found = read_reply(Reply(case["status"], case["body"].encode()), case["batch"], lambda: 0.0)
    assert {str(index): reason for index, reason in found.items()} == case["left_out"]


@pytest.mark.parametrize("case", VECTORS["problems"], ids=lambda case: case["why"])
def test_vectors_of_problems(case: dict[str, Any]) -> None:
    """A published problem ends the batch, or lets it wait, as published."""
    with pytest.raises(TransportError) as caught:
        read_reply(Reply(case["status"], case["body"].encode()), case["batch"], lambda: 0.0)
    assert caught.value.final is case["final"]


def test_a_202_names_what_was_left_out() -> None:
    """The rejected reports of an acknowledgement come back by index."""
    body = b'{"batch": "b", "rejected": [{"index": 3, "reason": "bad_row", "detail": "..."}]}'
    assert read_reply(Reply(202, body), "b", lambda: 0.0) == {3: "bad_row"}


@pytest.mark.parametrize(("status", "code"), [(400, "not-json"), (413, "too-many-reports")])
def test_a_problem_of_the_batch_is_final(status: int, code: str) -> None:
    """The error of such a refusal says that it is final, and asks for no wait."""
    body = f'{{"type": "urn:deniable:problem:{code}"}}'.encode()
    with pytest.raises(TransportError) as caught:
        read_reply(Reply(status, body, "60"), "b", lambda: 0.0)
    assert caught.value.final
    assert not caught.value.foreign
    assert caught.value.retry_after is None


def test_every_problem_of_the_protocol_is_known() -> None:
    """The codes that end a batch are those that docs/protocol.md says a sender must correct."""
    text = (Path(__file__).parents[2] / "docs" / "protocol.md").read_text(encoding="utf-8")
    rows = [line.split("|") for line in text.splitlines() if line.startswith(("| 400", "| 413"))]
    codes = {code for row in rows for code in re.findall(r"`([a-z-]+)`", row[2])}
    assert codes - {"not-http"} == _FINAL


@pytest.mark.parametrize("status", [200, 301, 400, 401, 404, 407, 408, 413, 429, 500, 503])
def test_all_else_may_be_retried(status: int) -> None:
    """The error carries the wait that was asked for."""
    with pytest.raises(TransportError) as caught:
        read_reply(Reply(status, b"", "60"), "b", lambda: 0.0)
    assert not caught.value.final
    assert caught.value.retry_after == 60.0


@pytest.mark.parametrize(
    ("header", "wait"), [(None, None), ("60", 60.0), (formatdate(1_000_090, usegmt=True), 90.0)]
)
@pytest.mark.parametrize("status", [429, 503])
def test_a_problem_that_passes_says_when_to_try_again(
    status: int, header: str | None, wait: float | None
) -> None:
    """A problem of the collector that is not the batch's keeps the wait that was asked for, in
    seconds or up to a moment, and is the collector's own."""
    body = b'{"type": "urn:deniable:problem:store-unavailable"}'
    with pytest.raises(TransportError, match=f"store-unavailable .status {status}") as caught:
        read_reply(Reply(status, body, header), "b", lambda: 1_000_000.0)
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
def test_retry_after(header: str | None, seconds: float | None) -> None:
    """Seconds and HTTP dates are understood; what is neither asks for nothing."""
    assert retry_seconds(header, 1_000_000.0) == seconds

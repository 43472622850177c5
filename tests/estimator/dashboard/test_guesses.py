"""Wrong tokens by themselves: what is counted, when it is told, and for how long one waits."""

from __future__ import annotations

from typing import Any

import pytest
from flask import Request
from werkzeug.test import EnvironBuilder

from deniable_estimator.dashboard.access import guesses as module
from deniable_estimator.dashboard.access.guesses import Guesses
from deniable_estimator.dashboard.problems import ApiProblem

from .conftest import Clock


def asked(address: str, forwarded: str | None = None) -> Request:
    """A request from an address."""
    headers = {} if forwarded is None else {"X-Forwarded-For": forwarded}
    return Request(
        EnvironBuilder(headers=headers, environ_base={"REMOTE_ADDR": address}).get_environ()
    )


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Wrong tokens and slowed networks of each line in the log."""
    lines: list[tuple[int, int]] = []

    def tell(level: str, event: str, text: str, **fields: Any) -> None:
        assert (level, event) == ("warning", "wrong-token")
        wrong, slowed = fields["wrong"], fields["networks_slowed"]
        assert text == (
            f"within a minute {wrong} wrong tokens were shown to the dashboard, and {slowed} "
            "networks have to wait for showing too many"
        )
        lines.append((wrong, slowed))

    monkeypatch.setattr(module, "tell", tell)
    return lines


def test_a_minute_is_told_as_one_number(clock: Clock, told: list[tuple[int, int]]) -> None:
    """What is counted begins anew a minute after its first, and not before; at 1, 10 and 100 it
    is told."""
    guesses = Guesses("1000/minute", 0, clock)
    clock.now = 5.0
    for _ in range(3):
        guesses.wrong(asked("203.0.113.5"))
    clock.now = 64.5
    for _ in range(8):
        guesses.wrong(asked("203.0.113.5"))
    assert told == [(1, 0), (10, 0)]
    clock.now = 65.0
    for _ in range(101):
        guesses.wrong(asked("203.0.113.5"))
    assert told[2:] == [(1, 0), (10, 0), (100, 0)]


def test_slowed_networks_are_told(clock: Clock, told: list[tuple[int, int]]) -> None:
    """A network counts once, when it reaches the rate; the first and the tenth are told, and a
    minute later the count begins anew."""
    guesses = Guesses("2/minute", 0, clock)
    for network in range(12):
        for _ in range(4):
            guesses.wrong(asked(f"203.0.{network}.5"))
    assert told == [(1, 0), (2, 1), (10, 3), (38, 10)]
    clock.now = 60.0
    guesses.wrong(asked("203.0.0.5"))
    guesses.wrong(asked("203.0.0.5"))
    assert told[4:] == [(1, 0), (2, 1)]


def test_whole_seconds_are_told(clock: Clock, told: list[tuple[int, int]]) -> None:
    """Who has to wait 59.5 seconds is told to wait 60, by header and text; a right token then
    counts as nothing."""
    guesses = Guesses("2/minute", 0, clock)
    guesses.wrong(asked("203.0.113.5"))
    guesses.check(asked("203.0.113.5"))
    guesses.wrong(asked("203.0.113.5"))
    clock.now = 0.5
    for _ in range(2):
        with pytest.raises(ApiProblem) as caught:
            guesses.check(asked("203.0.113.99"))
    problem = caught.value
    assert (problem.code, problem.retry_after) == (429, 60)
    assert problem.kind == "urn:deniable:problem:too-many-guesses"
    assert "Wait 60 s" in str(problem.description)
    clock.now = 59.75
    with pytest.raises(ApiProblem) as caught:
        guesses.check(asked("203.0.113.99"))
    assert caught.value.retry_after == 1
    clock.now = 60.5
    guesses.check(asked("203.0.113.5"))


def test_addresses_behind_proxies(clock: Clock, told: list[tuple[int, int]]) -> None:
    """Without trusted proxies the peer counts, whatever it claims; with one, what that saw, or the
    peer if it says nothing."""
    direct, behind = Guesses("1/minute", 0, clock), Guesses("1/minute", 1, clock)
    direct.wrong(asked("203.0.113.5", "198.51.100.1"))
    direct.check(asked("198.51.100.1", "203.0.113.5"))
    with pytest.raises(ApiProblem):
        direct.check(asked("203.0.113.5", "192.0.2.1"))
    behind.wrong(asked("203.0.113.5", "192.0.2.9, 198.51.100.1"))
    behind.check(asked("203.0.113.5"))
    with pytest.raises(ApiProblem):
        behind.check(asked("10.0.0.1", "198.51.100.1"))

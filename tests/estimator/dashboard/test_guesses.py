"""Wrong tokens by themselves: which are told to wait, for how long, and what the log says."""

import pytest
from flask import Request
from werkzeug.test import EnvironBuilder

from deniable_estimator.dashboard.access import trust as module
from deniable_estimator.dashboard.access.trust import Guesses
from deniable_estimator.dashboard.problems import ApiProblem

from .conftest import Clock


def asked(address, forwarded=None):
    """A request from an address."""
    headers = {} if forwarded is None else {"X-Forwarded-For": forwarded}
    return Request(
        EnvironBuilder(headers=headers, environ_base={"REMOTE_ADDR": address}).get_environ()
    )


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def told(monkeypatch):
    """Wrong tokens of each line in the log."""
    lines = []

    def tell(level, event, text, *, wrong):
        assert (level, event) == ("warning", "wrong-token")
        assert text == f"wrong tokens shown to the dashboard within a minute: {wrong}"
        lines.append(wrong)

    monkeypatch.setattr(module, "tell", tell)
    return lines


def wrong(guesses, address, forwarded=None):
    """The seconds that a wrong token is told to wait; 0 if it is told that it is wrong."""
    found = []
    try:
        guesses.wrong(asked(address, forwarded))
    except ApiProblem as problem:
        found.append(problem)
    for problem in found:
        assert problem.code == 429
        assert problem.kind == "urn:deniable:problem:too-many-guesses"
        assert f"Wait {problem.retry_after} s" in str(problem.description)
    return sum(problem.retry_after or 0 for problem in found)


def test_a_minute_is_told_as_one_number(clock, told):
    """What is counted begins anew a minute after its first, and not before; at 1, 10 and 100 it
    is told."""
    guesses = Guesses(0, clock)
    clock.now = 5.0
    for _ in range(3):
        wrong(guesses, "203.0.113.5")
    clock.now = 64.5
    for _ in range(8):
        wrong(guesses, "203.0.113.5")
    assert told == [1, 10]
    clock.now = 65.0
    for _ in range(101):
        wrong(guesses, "203.0.113.5")
    assert told[2:] == [1, 10, 100]


def test_whole_seconds_are_told(clock, told):
    """The eleventh of a minute is told to wait: 60 s where 59.5 are left; then all begin again."""
    guesses = Guesses(0, clock)
    assert [wrong(guesses, "203.0.113.5") for _ in range(10)] == [0] * 10
    clock.now = 0.5
    assert wrong(guesses, "203.0.113.99") == 60
    assert wrong(guesses, "203.0.114.5") == 0
    clock.now = 59.75
    assert wrong(guesses, "203.0.113.5") == 1
    clock.now = 60.5
    assert wrong(guesses, "203.0.113.5") == 0


def test_addresses_behind_proxies(clock, told):
    """Without trusted proxies the peer counts, whatever it claims; with one, what that saw, or the
    peer if it says nothing."""
    direct, behind = Guesses(0, clock), Guesses(1, clock)
    for _ in range(10):
        assert not wrong(direct, "203.0.113.5", "198.51.100.1")
        assert not wrong(behind, "203.0.113.5", "192.0.2.9, 198.51.100.1")
    assert not wrong(direct, "198.51.100.1", "203.0.113.5")
    assert wrong(direct, "203.0.113.5", "192.0.2.1")
    assert not wrong(behind, "203.0.113.5")
    assert wrong(behind, "10.0.0.1", "198.51.100.1")

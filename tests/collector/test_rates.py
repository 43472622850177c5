"""How often a network may do something."""

from __future__ import annotations

import pytest

from deniable_collector.serving import rates
from deniable_collector.serving.rates import NetworkRate, Peer


def test_a_network_waits_once_it_has_reached_the_rate() -> None:
    """A neighbour in the /24 waits too, another network does not, and after the time of the rate
    all begin again."""
    now = 0.0
    rate = NetworkRate("3/minute", lambda: now)
    assert [rate.hit(Peer("203.0.113.5")) for _ in range(4)] == [True, True, True, False]
    now = 20.0
    assert not rate.hit(Peer("203.0.113.99"))
    assert rate.seconds_left() == 40
    assert all(rate.hit(Peer(each)) for each in ("203.0.114.5", "2001:db8::1", ""))
    now = 60.0
    assert rate.hit(Peer("203.0.113.5"))


def test_memory_of_networks_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many networks are counted, no more than a fixed number is remembered, none by its
    address."""
    monkeypatch.setattr(rates, "_MOST_NETWORKS", 8)
    rate = NetworkRate("3/minute")
    for number in range(100):
        rate.hit(Peer(f"203.0.{number}.5"))
    assert 0 < len(rate._counts) <= 8
    assert not any(b"203.0" in key for key in rate._counts)

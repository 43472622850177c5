"""The rate of what is counted only once it has been done, by network."""

from __future__ import annotations

import pytest

from deniable_collector.serving import rates
from deniable_collector.serving.rates import NetworkRate


def test_a_network_waits_once_it_has_reached_the_rate() -> None:
    """Asking costs nothing; the last one that is allowed is told; a neighbour in the /24 waits too,
    another network does not, and after the time of the rate all begin again."""
    now = 0.0
    rate = NetworkRate("3/minute", lambda: now)
    for _ in range(10):
        assert rate.wait("203.0.113.5") == 0
    assert [rate.count("203.0.113.5") for _ in range(4)] == [False, False, True, False]
    now = 20.0
    assert rate.wait("203.0.113.99") == 40
    assert rate.wait("203.0.114.5") == rate.wait("2001:db8::1") == rate.wait("") == 0
    now = 61.0
    assert rate.wait("203.0.113.5") == 0


def test_memory_of_networks_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many networks are counted, no more than a fixed number is remembered, none by its
    address."""
    monkeypatch.setattr(rates, "_MOST_NETWORKS", 8)
    rate = NetworkRate("3/minute")
    for number in range(100):
        rate.count(f"203.0.{number}.5")
    assert 0 < len(rate._counts) <= 8
    assert not any(b"203.0" in key for key in rate._counts)

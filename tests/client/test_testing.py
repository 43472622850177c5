"""MemoryClient: the same checks as the client, records in memory, helpers that can fail."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from deniable import Client, MetricError, Registry
from deniable.testing import MemoryClient, MemoryRecord


@pytest.fixture
def telemetry(registry: Registry, clock: Any) -> MemoryClient:
    """A client in memory."""
    return MemoryClient(registry, clock=clock)


def test_records_are_kept_in_order(telemetry: MemoryClient) -> None:
    """Each call leaves the metric, the normalized value and the window."""
    telemetry.record("browser", "chrome")
    telemetry.record("dark_mode", True)
    telemetry.record("browser", "lynx")
    assert telemetry.records == [
        MemoryRecord("browser", "chrome", "2027-01-04"),
        MemoryRecord("dark_mode", "true", "2027-01-04"),
        MemoryRecord("browser", "other", "2027-01-04"),
    ]
    assert telemetry.values("browser") == ["chrome", "other"]
    telemetry.assert_recorded("dark_mode", True)
    telemetry.assert_recorded("browser", "chrome")


def test_helpers_fail_when_they_should(telemetry: MemoryClient) -> None:
    """The assertions fail, and name what was found instead."""
    telemetry.assert_nothing_recorded()
    telemetry.record("browser", "chrome")
    telemetry.assert_nothing_recorded("dark_mode")
    with pytest.raises(AssertionError, match="chrome"):
        telemetry.assert_recorded("browser", "edge")
    with pytest.raises(AssertionError, match="chrome"):
        telemetry.assert_nothing_recorded()
    with pytest.raises(MetricError):
        telemetry.assert_recorded("colour", "red")


def test_mistakes_raise_as_in_the_client(telemetry: MemoryClient) -> None:
    """Unknown metrics and wrong types raise MetricError."""
    for name, value in (("colour", "red"), ("dark_mode", "yes")):
        with pytest.raises(MetricError):
            telemetry.record(name, value)


def test_consent_and_expiry_hold(telemetry: MemoryClient, clock: Any) -> None:
    """Nothing is kept without consent or after a metric's last day."""
    with telemetry:
        telemetry.record("browser", "chrome")
        telemetry.opt_out()
        telemetry.record("browser", "chrome")
        telemetry.assert_nothing_recorded()
        telemetry.opt_in()
        clock.days(365 * 5)
        telemetry.record("browser", "chrome")
        telemetry.assert_nothing_recorded()
    assert telemetry.flush()
    assert telemetry.sent() == []


@pytest.mark.parametrize("name", ["record", "flush", "close", "sent", "opt_in", "opt_out"])
def test_it_stands_in_for_the_client(name: str) -> None:
    """Its methods take what the client's take."""
    theirs, ours = getattr(Client, name), getattr(MemoryClient, name)
    assert inspect.signature(ours) == inspect.signature(theirs)

"""MemoryClient: the same checks as the client, records in memory, helpers that can fail."""

import inspect

import pytest

from deniable import Client, MetricError, Registry, UndeclaredValueWarning
from deniable.testing import MemoryClient, MemoryRecord

from .conftest import metrics_toml


@pytest.fixture
def telemetry(registry, clock, monkeypatch):
    """A client in memory."""
    for name in ("DO_NOT_TRACK", "DENIABLE_DISABLED"):
        monkeypatch.delenv(name, raising=False)
    return MemoryClient(registry, clock=clock)


def test_records_are_kept_in_order(telemetry):
    """Each call leaves the metric, the normalized value and the window."""
    telemetry.record("browser", "chrome")
    telemetry.record("dark_mode", True)
    with pytest.warns(UndeclaredValueWarning, match="browser") as warned:
        telemetry.record("browser", "lynx")
    assert "lynx" not in str(warned[0].message)
    assert telemetry.counters == {"other": 1}
    assert telemetry.records == [
        MemoryRecord("browser", "chrome", "2027-01-04"),
        MemoryRecord("dark_mode", "true", "2027-01-04"),
        MemoryRecord("browser", "other", "2027-01-04"),
    ]
    assert telemetry.values("browser") == ["chrome", "other"]
    telemetry.assert_recorded("dark_mode", True)
    telemetry.assert_recorded("browser", "chrome")


def test_values_that_do_not_fit_are_told(telemetry):
    """Such a value is not listed. The warning names metric and reason, and never the value."""
    with pytest.warns(UndeclaredValueWarning, match="dark_mode.*dropped") as warned:
        telemetry.record("dark_mode", "secret")
    assert "secret" not in str(warned[0].message)
    with pytest.raises(MetricError):
        telemetry.record("colour", "red")
    telemetry.assert_nothing_recorded()
    assert telemetry.counters == {"refused": 1, "mistake": 1}


def test_a_segment_that_was_not_told_is_named(clock):
    """A metric with a segment that the client was not told records nothing, and the assertion says
    why."""
    text = metrics_toml(dark_mode={"segments": ["platform"]})
    registry = Registry.parse(text + '[segments.platform]\nvalues = ["ios", "web"]\n')
    telemetry = MemoryClient(registry, clock=clock)
    telemetry.record("dark_mode", True)
    with pytest.raises(AssertionError, match="segment 'platform': is not known"):
        telemetry.assert_recorded("dark_mode", True)


def test_helpers_fail_when_they_should(telemetry):
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
    # A mistyped name must not let a test pass.
    for look in (telemetry.values, telemetry.assert_nothing_recorded):
        with pytest.raises(MetricError):
            look("colour")


def test_it_has_every_member_of_the_client():
    """What is public in the client is there, and takes the same."""
    for name in [each for each in dir(Client) if not each.startswith("_")]:
        theirs, ours = getattr(Client, name), getattr(MemoryClient, name)
        if callable(theirs):
            assert inspect.signature(ours) == inspect.signature(theirs)


def test_consent_and_expiry_hold(telemetry, clock):
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

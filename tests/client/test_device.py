"""The device step by step: the times it chooses, and what it does with a file that is damaged."""

from __future__ import annotations

import math
from typing import cast

import pytest

from deniable import TransportError
from deniable.device.device import Device
from deniable.device.open_windows import Record
from deniable.device.state import State
from deniable.protocol import windows

ALL = (1 << 53) - 1


class Drawn:
    """A source of bits that are all ones, or all zeros, and counts what times take of it."""

    def __init__(self, ones):
        self.ones = ones
        self.counts: list[int] = []

    def __call__(self, count):
        self.counts.append(count)
        return (1 << count) - 1 if self.ones else 0


@pytest.fixture(params=[True, False], ids=["latest", "earliest"])
def device(request, registry, collector, clock):
    """A device in memory, whose delays are the longest or the shortest."""
    state = State(None)
    bits = Drawn(request.param)
    yield Device(registry, state, collector, clock=clock, bits=bits, spread=7_200.0)
    state.close()


def record(device, clock, value="chrome"):
    """Record, and let the window end."""
    metric = device.registry["browser"]
    device.write([Record(metric, value, "2027-01-04", False)])
    clock.days(1)


def share(device):
    """The part of a delay that the bits choose."""
    return ALL / (1 << 53) if cast(Drawn, device.bits).ones else 0.0


def test_reports_wait_for_a_part_of_the_spread(device, clock):
    """All 53 bits of a number below 1 spread the sending over the time that was asked for."""
    record(device, clock)
    bits = cast(Drawn, device.bits)
    bits.counts.clear()
    assert device.seconds_to_send() == math.inf
    assert device.write([]) == (0, 1)
    assert bits.counts[0] == 53
    assert device.seconds_to_send() == pytest.approx(7200 * share(device), rel=1e-12)


def test_backoff_doubles_up_to_an_hour(device, clock, collector):
    """After n failures the next attempt comes within 2**n seconds, and within an hour."""
    record(device, clock)
    device.write([])
    for failures in range(15):
        clock.days(1)
        collector.replies = [TransportError("down")]
        batch = device.take(urgent=False)
        assert batch is not None
        assert batch.failures == failures
        with pytest.raises(TransportError, match="down"):
            device.deliver(batch)
        bound = min(2.0**failures, 3600.0)
        assert device.seconds_to_send() == pytest.approx(bound * share(device), rel=1e-12)


@pytest.mark.parametrize(("days", "delayed"), [(3, False), (3 - 1e-5, True)])
def test_a_report_of_a_window_long_ended_is_due_at_once(days, delayed, registry, live):
    """An app that runs briefly every few days loses no report: from two days after the window's
    end on there is no delay. Its draw is made all the same."""
    began = windows.start("2027-01-04")
    life = live(registry, Drawn(ones=True))
    life.device.spread = 3600.0
    life.use(began, "chrome", "browser")
    sealed = began + 86_400.0 * days
    life.wait(sealed)
    ((ready,),) = life.rows("SELECT ready FROM reports")
    assert (ready > sealed) is delayed


@pytest.mark.parametrize(("days", "reported"), [(7, ["2027-01-04"]), (7 + 1e-5, [])])
def test_a_device_that_was_off_for_long_is_not_charged(days, reported, registry, live):
    """What ended more than six days ago is closed without a report, which the collector would
    refuse, and costs nothing."""
    life = live(registry, Drawn(ones=False))
    began = windows.start("2027-01-04")
    life.use(began, "chrome", "browser")
    life.wait(began + 86_400.0 * days)
    assert life.reported("browser") == reported
    assert life.rows("SELECT count(*) FROM open_values") == [(0,)]
    assert len(life.rows("SELECT * FROM ledger")) == len(reported)

"""The device step by step: the times it chooses, and what it does with a file that is damaged."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any, cast

import pytest

from deniable import Registry, StateError, TransportError, outbox
from deniable.device import LONGEST_BACKOFF, Device
from deniable.recording import Record
from deniable.replies import Reply
from deniable.state import State

ALL = (1 << 53) - 1


class Drawn:
    """A source of bits that are all ones, or all zeros, and counts what times take of it."""

    def __init__(self, ones: bool) -> None:
        self.ones = ones
        self.counts: list[int] = []

    def __call__(self, count: int) -> int:
        self.counts.append(count)
        return (1 << count) - 1 if self.ones else 0


@pytest.fixture(params=[True, False], ids=["latest", "earliest"])
def device(request: Any, registry: Registry, collector: Any, clock: Any) -> Iterator[Device]:
    """A device in memory, whose delays are the longest or the shortest."""
    state = State(None)
    bits = Drawn(request.param)
    yield Device(registry, state, collector, clock=clock, bits=bits, spread=7_200.0)
    state.close()


def record(device: Device, clock: Any, value: str = "chrome") -> None:
    """Record, and let the window end."""
    metric = device.registry["browser"]
    device.write([Record(metric, value, "2027-01-04", False)])
    clock.days(1)


def share(device: Device) -> float:
    """The part of a delay that the bits choose."""
    return ALL / (1 << 53) if cast(Drawn, device.bits).ones else 0.0


def test_reports_wait_for_a_part_of_the_spread(device: Device, clock: Any) -> None:
    """All 53 bits of a number below 1 spread the sending over the time that was asked for."""
    record(device, clock)
    bits = cast(Drawn, device.bits)
    bits.counts.clear()
    assert device.seconds_to_send() is None
    assert device.seconds_to_write() == 0.0
    assert device.write([]) == (0, 1)
    assert bits.counts[0] == 53
    assert device.seconds_to_write() is None
    assert device.seconds_to_send() == pytest.approx(7200 * share(device), rel=1e-12)


def test_backoff_doubles_up_to_an_hour(device: Device, clock: Any, collector: Any) -> None:
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
    assert LONGEST_BACKOFF == 3600


def test_what_a_collector_does_not_know_yet_waits_for_half_an_hour_or_a_whole_one(
    device: Device, clock: Any, collector: Any
) -> None:
    """A report that was left out for a reason that passes is due after 30 to 60 minutes."""
    record(device, clock)
    device.write([])
    clock.days(1)
    batch = device.take(urgent=False)
    assert batch is not None
    collector.rejected = [{"index": 0, "reason": "unknown_metric"}]
    (told,) = device.deliver(batch)
    assert told.waits
    assert device.waiting() == 1
    assert device.seconds_to_send() == pytest.approx(1800 * (1 + share(device)), rel=1e-12)


def test_a_batch_that_is_refused_is_not_tried_again(
    device: Device, clock: Any, collector: Any
) -> None:
    """A problem that the same bytes would meet again ends the batch, with its reason for the
    owner; one that passes does not."""
    record(device, clock)
    device.write([])
    clock.days(1)
    for kind, status, waiting in (("store-unavailable", 503, 1), ("malformed-batch", 400, 0)):
        problem = json.dumps({"type": f"urn:deniable:problem:{kind}"}).encode()
        collector.replies = [Reply(status, problem)]
        batch = device.take(urgent=True)
        assert batch is not None
        with pytest.raises(TransportError) as caught:
            device.deliver(batch)
        assert caught.value.final is (waiting == 0)
        assert device.waiting() == waiting
    (entry,) = device.entries()
    assert entry.status == "rejected"
    assert "malformed-batch" in (entry.reason or "")
    assert device.take(urgent=True) is None


def test_without_an_endpoint_nothing_is_delivered(device: Device) -> None:
    """It says so, and the batch waits."""
    device.transport = None
    with pytest.raises(TransportError, match="no endpoint"):
        device.deliver(outbox.OutgoingBatch("0" * 32, b"", 0))


class Damaged:
    """A state that cannot be read."""

    def __init__(self, damaged: bool, blanks: bool) -> None:
        self.damaged, self.blanks, self.blanked = damaged, blanks, 0

    def transaction(self) -> AbstractContextManager[Any]:
        raise StateError("it cannot be read", damaged=self.damaged)

    def blank(self) -> bool:
        self.blanked += 1
        return self.blanks

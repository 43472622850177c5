"""Metrics that are answered at once: the first record of a window leaves, and nothing else does."""

import random

import pytest

from deniable import Registry, TransportError
from deniable.device import outbox
from deniable.device.device import Device
from deniable.device.open_windows import Record
from deniable.device.outbox import JITTER
from deniable.device.state import State
from deniable.protocol.wire import SealedReport

from .conftest import metrics_toml

SOON = {"aggregate": "first", "answer": "at_once"}
REGISTRY = metrics_toml(
    tool={
        **SOON,
        "type": "category",
        "values": ["build", "check", "other"],
        "lifetime_epsilon": 3.0,
    },
    word={**SOON, "type": "string", "epsilon": 4.0, "lifetime_epsilon": 400.0},
    late={"answer": "at_close"},
)


@pytest.fixture
def registry():
    """Three metrics that are answered at once, and one that is not."""
    return Registry.parse(REGISTRY)


def test_no_value_reaches_the_disk(make_client, registry, clock, tmp_path):
    """No statement that the state executes holds the value, and no byte of its files does."""
    client = make_client()
    secret = "xylophone-4711"
    client.record("word", "another")
    client.flush()
    clock.days(1)
    statements = []
    with client._state.transaction() as connection:
        connection.set_trace_callback(statements.append)
    client._device.write([Record(registry["word"], secret, "2027-01-05")])
    assert len(client.sent()) == 2
    for path in (tmp_path / "state").iterdir():
        assert secret.encode() not in path.read_bytes()
    memory = State(None)
    with memory.transaction() as connection:
        connection.set_trace_callback(statements.append)
    device = Device(
        registry, memory, None, clock=clock, bits=random.Random(1).getrandbits, spread=0.0
    )
    device.write([Record(registry["word"], secret, "2027-01-05")])
    with memory.transaction() as connection:
        assert outbox.queued(connection) == 1
    assert any("INSERT INTO reports" in each for each in statements)
    assert not any(secret in each for each in statements)
    memory.close()


def test_closing_sends_what_is_answered_at_once_and_nothing_else(make_client, collector, clock):
    """`close` does not wait for the jitter; a report at the close of a window keeps its spread,
    also a short one."""
    client = make_client(spread=9.0)
    client.record("late", True)
    client.flush()
    clock.days(1)
    client.record("tool", "build")
    client._write()
    client._send_step(urgent=False)
    assert collector.reports == []
    client.close()
    assert [each["metric"] for each in collector.reports] == ["tool"]
    later = make_client(spread=9.0)
    clock.now += 9
    later.flush()
    assert [each["metric"] for each in collector.reports] == ["tool", "late"]


def test_closing_does_not_override_the_collector(make_client, collector, clock):
    """A backoff holds at the close as well, and the next run sends the same bytes."""
    client = make_client(on_trouble=lambda _: None)
    client.record("tool", "build")
    collector.replies = [TransportError("down", retry_after=300.0)]
    assert not client.flush()
    client.close()
    assert len(collector.bodies) == 1
    clock.now += 301
    later = make_client()
    assert later.flush()
    assert collector.bodies[0] == collector.bodies[1]


def test_only_the_jitter_is_cut_short(clock):
    """`hurry` moves no report that waits for longer, for another reason, or of another metric."""
    state = State(None)
    sealed = SealedReport("tool", "0" * 12, "2027-01-04", 0, 0)
    with state.transaction() as connection:
        for metric, wait, reason in (
            ("tool", JITTER, None),
            ("tool", JITTER + 0.001, None),
            ("tool", 5.0, "unknown_metric"),
            ("late", 5.0, None),
            ("tool", -5.0, None),
        ):
            outbox.queue(connection, sealed._replace(metric=metric), clock() + wait)
            connection.execute(
                "UPDATE reports SET reason = ? WHERE id = last_insert_rowid()", (reason,)
            )
        outbox.hurry(connection, ["tool"], clock())
        left = connection.execute("SELECT ready - ? FROM reports ORDER BY id", (clock(),))
        assert [each for (each,) in left] == pytest.approx([0.0, JITTER + 0.001, 5.0, 5.0, -5.0])
    state.close()

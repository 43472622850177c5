"""The outbox: same bytes in every retry, backoff with jitter, bounds, and a report's fate."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from deniable import Client, RejectedError, TransportError
from deniable.device import outbox
from deniable.device.state import State
from deniable.device.transport import Reply
from deniable.protocol.wire import SealedReport

MakeClient = Callable[..., Client]


@pytest.fixture
def waiting(make_client, clock):
    """A client with one sealed report in its outbox."""
    client = make_client(on_trouble=None)
    client.record("browser", "chrome")
    client._write()
    clock.days(1)
    client._write()
    return client


def status(client):
    """Status and reason of every report, the oldest first."""
    return [(each.status, each.reason) for each in reversed(client.sent())]


def pause(client):
    """When backoff ends and when Retry-After ends."""
    with client._state.transaction() as connection:
        until, asked = connection.execute("SELECT until, asked FROM pauses").fetchone()
    return until, asked


def fill(client, count):
    """Put so many reports straight into the outbox."""
    metric = client.registry["browser"]
    with client._state.transaction() as connection:
        outbox.describe(connection, metric)
        for index in range(count):
            report = SealedReport("browser", metric.scheme.fingerprint, f"w{index}", 0, index % 5)
            outbox.queue(connection, report, 0.0)


HTML = b"<!doctype html><title>Not found</title>"


def test_a_wrong_endpoint_is_told_once(make_client, clock, collector, caplog):
    """Responses that are not a collector's are counted as `endpoint`, logged once with what to do,
    and given to `on_trouble` each time."""
    troubles: list[Exception] = []
    client = make_client(on_trouble=troubles.append)
    client.record("browser", "chrome")
    clock.days(1)
    collector.replies = [TransportError("down"), Reply(404, HTML), Reply(403, HTML)]
    for _ in range(3):
        assert not client.flush()
    assert client.counters == {"network": 1, "endpoint": 2}
    logged = [each.getMessage() for each in caplog.records if "endpoint" in each.getMessage()]
    assert len(logged) == 1
    assert "check the endpoint" in logged[0]
    assert [isinstance(each, TransportError) and each.foreign for each in troubles] == [
        False,
        True,
        True,
    ]


def test_reports_that_are_left_out_are_known_by_index(make_client, clock, collector):
    """A 202 that leaves out two reports: one waits for a collector that is behind, the other is
    rejected, each is told with its reason, and the third is sent."""
    troubles: list[Exception] = []
    client = make_client(on_trouble=troubles.append)
    client.record("browser", "chrome")
    client.record("dark_mode", True)
    clock.days(1)
    client.record("browser", "chrome")
    client._write()
    clock.days(1)
    collector.rejected = [
        {"index": 1, "reason": "bad_columns", "detail": "..."},
        {"index": 2, "reason": "unknown_scheme", "detail": "..."},
    ]
    assert not client.flush()
    assert [report["metric"] for report in collector.reports] == ["browser", "dark_mode", "browser"]
    fates = [("sent", None), ("rejected", "bad_columns"), ("queued", "unknown_scheme")]
    assert status(client) == fates
    assert client.counters == {"rejected": 1, "unknown_scheme": 1}
    assert all(isinstance(each, RejectedError) for each in troubles)
    told = [(each.metric, each.reason, each.waits) for each in troubles]
    assert told == [("dark_mode", "bad_columns", False), ("browser", "unknown_scheme", True)]


@pytest.mark.parametrize("reason", ["unknown_scheme", "bad_columns", None])
def test_what_is_taken_back_while_it_is_sent_does_not_wait_again(waiting, collector, reason):
    """Whatever the collector says of it, a report that was withdrawn meanwhile stays unanswered."""

    def send(body):
        waiting.opt_out()
        rejected = [{"index": 0, "reason": reason}] if reason else []
        receipt = {"batch": json.loads(body)["batch"], "rejected": rejected}
        return Reply(202, json.dumps(receipt).encode())

    waiting._device.transport.send = send
    waiting.flush()
    waiting.opt_in()
    assert status(waiting) == [("unanswered", None)]
    assert waiting.flush()


def test_a_reason_cannot_write_into_logs(waiting, collector):
    """Whatever responds in the collector's name, its reason is shown as a code or not at all."""
    collector.rejected = [{"index": 0, "reason": "x\nfake log line", "detail": "..."}]
    assert waiting.flush()
    assert status(waiting) == [("rejected", "unknown_reason")]


def test_backoff_may_be_longer_than_retry_after(waiting, collector, clock):
    """The thread waits for the longer one of the two, flush for what was asked."""
    waiting._device.bits = lambda count: (1 << count) - 1
    collector.replies = [Reply(503)] * 9 + [Reply(503, retry_after="120")]
    for _ in range(10):
        assert not waiting.flush()
    until, asked = pause(waiting)
    assert asked == clock.now + 120
    assert until == pytest.approx(clock.now + 2**9)


def test_a_clock_set_back_does_not_hold_for_years(waiting, collector, clock):
    """Times written under a clock that was far ahead are ignored after it was set right."""
    clock.days(3650)
    collector.replies = [Reply(503, retry_after="999999999")]
    assert not waiting.flush()
    clock.days(-3650)
    assert waiting._device.take(urgent=False) is not None
    assert waiting.flush()


def test_the_outbox_is_bounded(make_client, monkeypatch, collector):
    """Beyond its bound the oldest reports are dropped and counted, a stored batch as a whole."""
    monkeypatch.setattr(outbox, "QUEUED_REPORTS", 150)
    client = make_client(on_trouble=None)
    fill(client, 120)
    collector.replies = [TransportError("down")]
    client.flush()  # the oldest 100 are now in a batch
    fill(client, 40)
    client._write()
    assert client.counters["dropped"] == 100
    with client._state.transaction() as connection:
        assert outbox.queued(connection) == 60
    assert client.flush()
    assert [len(json.loads(body)["reports"]) for body in collector.bodies] == [100, 60]
    assert status(client)[0] == ("dropped", "outbox_full")


def test_a_batch_that_is_refused_for_good_delays_none(make_client, collector):
    """The next one is sent by the same flush."""
    client = make_client(on_trouble=None)
    fill(client, 120)
    collector.replies = [Reply(400, b'{"type": "urn:deniable:problem:malformed-batch"}')]
    assert client.flush()
    assert len(collector.bodies) == 2
    assert client.counters == {"rejected": 1}


def test_nothing_leaves_once_the_owner_has_switched_off(make_client, collector, tmp_path):
    """The switch is looked at before each batch, also when the app does not write."""
    client = make_client()
    fill(client, 120)

    class Switching:
        def send(self, body):
            State(tmp_path / "state").switch(on=False)
            return collector.send(body)

    client._device.transport = Switching()
    client.flush()
    assert len(collector.bodies) == 1


def test_history_is_bounded(make_client, monkeypatch):
    """Of reports that were sent only the newest are remembered."""
    monkeypatch.setattr(outbox, "HISTORY_REPORTS", 30)
    client = make_client()
    fill(client, 50)
    client.flush()
    fill(client, 3)
    client._write()
    assert [report.window for report in client.sent()][:4] == ["w2", "w1", "w0", "w49"]
    assert len(client.sent()) == 33


def test_without_an_endpoint_reports_wait(make_client, clock, collector):
    """A client without endpoint seals and keeps, and does not look each second for what it cannot
    send; one with an endpoint sends it later."""
    client = make_client(transport=None)
    client.record("browser", "chrome")
    clock.days(1)
    assert not client.flush()
    clock.now += 3_600
    assert client._send_step(urgent=False) == (False, 600.0)
    assert status(client) == [("queued", None)]
    assert make_client().flush()
    assert len(collector.reports) == 1


@pytest.mark.parametrize(("spare", "kept"), [(0, True), (-1, False)])
def test_a_long_definition_is_not_kept(make_client, monkeypatch, spare, kept):
    """The scheme of a report is kept for its owner up to so many bytes: 65,536."""
    assert outbox._LARGEST_DEFINITION == 1 << 16
    client = make_client()
    definition = client.registry["browser"].scheme.canonical().decode()
    monkeypatch.setattr(outbox, "_LARGEST_DEFINITION", len(definition) + spare)
    fill(client, 1)
    (entry,) = client._owned().entries
    assert entry.description == client.registry["browser"].description
    assert entry.definition == (definition if kept else None)

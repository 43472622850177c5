"""The outbox: same bytes in every retry, backoff with jitter, bounds, and a report's fate."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from deniable import Client, RejectedError, TransportError
from deniable.device import outbox
from deniable.device.device import FIRST_BACKOFF
from deniable.device.transport import Reply
from deniable.protocol import windows
from deniable.protocol.wire import LATEST, SealedReport

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


def test_rejected_reports_are_known_by_index(make_client, clock, collector):
    """A 202 that leaves out index 1 marks that report rejected, with its reason, and it alone."""
    troubles: list[Exception] = []
    client = make_client(on_trouble=troubles.append)
    client.record("browser", "chrome")
    client.record("dark_mode", True)
    clock.days(1)
    collector.rejected = [{"index": 1, "reason": "bad_columns", "detail": "..."}]
    assert client.flush()
    assert [report["metric"] for report in collector.reports] == ["browser", "dark_mode"]
    assert status(client) == [("sent", None), ("rejected", "bad_columns")]
    assert client.counters == {"rejected": 1}
    (told,) = troubles
    assert isinstance(told, RejectedError)
    assert (told.metric, told.reason, told.waits) == ("dark_mode", "bad_columns", False)


def test_it_waits_until_the_window_is_too_old(make_client, clock, collector):
    """Six days after its window a report that the collector never knew is given up, and told."""
    troubles: list[Exception] = []
    client = make_client(on_trouble=troubles.append)
    client.record("browser", "chrome")
    clock.days(0.5)
    collector.rejected = [{"index": 0, "reason": "unknown_scheme", "detail": "..."}]
    while client.sent() == [] or client.sent()[0].status == "queued":
        client.flush()
        clock.days(0.25)
        assert clock.now < windows.end("2027-01-04") + 7 * 86_400
    assert status(client) == [("rejected", "unknown_scheme")]
    assert clock.now - 0.25 * 86_400 > windows.end("2027-01-04") + LATEST
    assert client.counters["rejected"] == 1
    assert client.counters["unknown_scheme"] >= 20
    assert [isinstance(each, RejectedError) and each.waits for each in troubles][-2:] == [
        True,
        False,
    ]


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
    assert until == pytest.approx(clock.now + FIRST_BACKOFF * 2**9)


def test_a_clock_set_back_does_not_hold_for_years(waiting, collector, clock):
    """Times written under a clock that was far ahead are ignored after it was set right."""
    clock.days(3650)
    collector.replies = [Reply(503, retry_after="999999999")]
    assert not waiting.flush()
    clock.days(-3650)
    assert waiting._device.take(urgent=False) is not None
    assert waiting.flush()


def test_one_bad_batch_does_not_hold_up_the_rest(make_client, collector, clock):
    """Fresh reports overtake a batch that fails, and failing batches take turns."""
    client = make_client(on_trouble=None)
    device = client._device
    fill(client, 200)
    tried = []
    for _ in range(3):
        batch = device.take(urgent=False)
        assert batch is not None
        tried.append(batch.id)
        collector.replies = [Reply(500)]
        with pytest.raises(TransportError):
            device.deliver(batch)
        clock.now += 10_000
    assert tried[0] != tried[1]
    assert tried[2] == tried[0]
    fill(client, 1)
    batch = device.take(urgent=False)
    assert batch is not None
    assert batch.id not in tried


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
    """A client without endpoint seals and keeps; one with an endpoint sends it later."""
    client = make_client(transport=None)
    client.record("browser", "chrome")
    clock.days(1)
    assert not client.flush()
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


def test_clearing_and_withdrawing_leave_what_they_say(waiting, collector):
    """Withdrawing forgets batches and reports that were not sent, except that those of a batch
    without a response stay listed; clearing leaves no row of batch, report or scheme."""
    collector.replies = [TransportError("down")]
    assert not waiting.flush()
    fill(waiting, 3)

    def rows():
        with waiting._state.transaction() as connection:
            return {
                table: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
                for table in ("batches", "reports", "schemes")
            }

    assert rows() == {"batches": 1, "reports": 4, "schemes": 1}
    with waiting._state.transaction() as connection:
        outbox.withdraw(connection)
    assert rows() == {"batches": 0, "reports": 1, "schemes": 1}
    assert status(waiting) == [("unanswered", None)]
    with waiting._state.transaction() as connection:
        outbox.clear(connection)
    assert rows() == {"batches": 0, "reports": 0, "schemes": 0}


def test_a_refusal_ends_the_pause(waiting, collector, clock):
    """A collector that refuses a batch for good is there: what waits beside it is due at once, and
    the next failure is the first again."""
    waiting._device.bits = lambda count: (1 << count) - 1
    collector.replies = [TransportError("down")] * 3
    for _ in range(3):
        assert not waiting.flush()
    fill(waiting, 1)
    with waiting._state.transaction() as connection:
        until, asked = connection.execute("SELECT until, asked FROM pauses").fetchone()
        # The fresh report is due, and waits for the pause to end all the same.
        assert outbox.next_attempt(connection) == until > clock.now >= asked
        outbox.refuse(connection, "0" * 32, "malformed-batch")
        assert connection.execute("SELECT * FROM pauses").fetchone() == (0, 0, 0)
        assert outbox.next_attempt(connection) == 0


def test_an_acknowledgement_ends_the_pause(waiting):
    """A collector that has taken a batch is there: what other batches wait for is over."""
    with waiting._state.transaction() as connection:
        outbox.pause(connection, "0" * 32, 7e9, 8e9)
        assert connection.execute("SELECT * FROM pauses").fetchone() == (1, 7e9, 8e9)
        assert outbox.acknowledge(connection, "0" * 32, {}, 1e9, 2e9) == []
        assert connection.execute("SELECT * FROM pauses").fetchone() == (0, 0, 0)

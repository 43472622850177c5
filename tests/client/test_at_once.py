"""Metrics that are answered at once: the first record of a window leaves, and nothing else does."""

from __future__ import annotations

import dataclasses
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deniable import Client, Registry, TransportError, outbox
from deniable.device import Device
from deniable.ledger import Ledger
from deniable.open_windows import waiting
from deniable.outbox import JITTER
from deniable.randomness import PRECISION, coin
from deniable.recording import Record
from deniable.state import State
from deniable.testing import MemoryClient
from deniable.wire import SealedReport, pack_columns

MakeClient = Callable[..., Client]

REGISTRY = """
schema = 1
app = "example"
[defaults]
owner = "growth@acme.example"
expires = 2030-06-30
aggregate = "first"
answer = "at_once"

[metrics.tool]
type = "category"
description = "The command that was run first."
values = ["build", "check", "other"]
epsilon = 1.0
lifetime_epsilon = 3.0

[metrics.word]
type = "string"
description = "A word."
epsilon = 4.0
lifetime_epsilon = 400.0

[metrics.kept]
type = "boolean"
description = "Dark mode, with memory."
window = "month"
longitudinal = "memoize"
mechanism = "rappor"
epsilon = 1.0
lifetime_epsilon = 2.0

[metrics.late]
type = "boolean"
description = "Dark mode, at the close."
answer = "at_close"
epsilon = 1.0
lifetime_epsilon = 100.0
"""


@pytest.fixture
def registry() -> Registry:
    """Three metrics that are answered at once, and one that is not."""
    return Registry.parse(REGISTRY)


def changed(registry: Registry, name: str, **changes: Any) -> Registry:
    """The registry with one metric changed."""
    metric = dataclasses.replace(registry[name], **changes)
    return dataclasses.replace(registry, metrics={**registry.metrics, name: metric})


def charged(client: Client, name: str) -> int:
    """How many reports of a metric the ledger knows."""
    with client._state.transaction() as connection:
        return Ledger(connection).reports(name)


def open_values(client: Client) -> int:
    """How many values wait."""
    with client._state.transaction() as connection:
        return waiting(connection)


def stored(client: Client, query: str) -> list[tuple[Any, ...]]:
    """Rows of the state."""
    with client._state.transaction() as connection:
        return connection.execute(query).fetchall()


def test_the_first_record_is_sent_while_its_window_is_open(
    make_client: MakeClient, collector: Any
) -> None:
    """One record is one report of the window that runs, charged once; later records of that
    window change nothing, in the same transaction or another; the next window has its own."""
    client = make_client()
    client.record("tool", "build")
    client.record("tool", "check")
    assert client.flush()
    client.record("tool", "other")
    assert client.flush()
    assert [(each["metric"], each["window"]) for each in collector.reports] == [
        ("tool", "2027-01-04")
    ]
    assert charged(client, "tool") == 1
    assert open_values(client) == 0


def test_each_window_has_its_own_answer(
    make_client: MakeClient, collector: Any, clock: Any
) -> None:
    """A day later there is one more report, until the lifetime is spent; the windows that the
    ledger refuses are no reports."""
    client = make_client()
    for _ in range(6):
        client.record("tool", "build")
        client.flush()
        clock.days(1)
    assert [each["window"] for each in collector.reports] == [
        "2027-01-04",
        "2027-01-05",
        "2027-01-06",
    ]
    assert charged(client, "tool") == 3
    assert open_values(client) == 0


@pytest.mark.parametrize("name", ["tool", "kept"])
def test_the_report_is_of_the_first_value(
    registry: Registry, clock: Any, collector: Any, name: str
) -> None:
    """From the same bits, a first record gives the same report whatever is recorded after it."""
    first, *others = {"tool": ["build", "check", "other"], "kept": ["true", "false"]}[name]
    reports = []
    for later in ([], others, [first, *others]):
        state = State(None)
        device = Device(
            registry, state, collector, clock=clock, bits=random.Random(3).getrandbits, spread=0.0
        )
        window = {"tool": "2027-01-04", "kept": "2027-01"}[name]
        device.write([Record(registry[name], text, window) for text in [first, *later]])
        (entry,) = device.entries()
        reports.append(entry.report)
        state.close()
    assert reports[0] == reports[1] == reports[2]


def test_the_report_is_what_the_mechanism_draws(registry: Registry, clock: Any) -> None:
    """After the coin and the jitter, the bits go to the mechanism, as at the close of a window."""
    for seed in range(50):
        metric = registry["tool"]
        mechanism = metric.scheme.mechanism
        bits = random.Random(seed).getrandbits
        coin(1 << PRECISION, bits)
        bits(53)
        expected = mechanism.randomize(metric.item("build"), bits)
        state = State(None)
        source = random.Random(seed).getrandbits
        device = Device(registry, state, None, clock=clock, bits=source, spread=0.0)
        device.write([Record(metric, "build", "2027-01-04")])
        (entry,) = device.entries()
        assert entry.report.columns == pack_columns(mechanism.rows[expected.row], expected)
        state.close()


def test_no_value_reaches_the_disk(
    make_client: MakeClient, registry: Registry, clock: Any, tmp_path: Path
) -> None:
    """No statement that the state executes holds the value, and no byte of its files does."""
    client = make_client()
    secret = "xylophone-4711"
    client.record("word", "another")
    client.flush()
    clock.days(1)
    statements: list[str] = []
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
    assert device.waiting() == 1
    assert any("INSERT INTO reports" in each for each in statements)
    assert not any(secret in each for each in statements)
    memory.close()


def test_a_coin_that_falls_tails_keeps_nothing(
    make_client: MakeClient, registry: Registry, collector: Any, clock: Any
) -> None:
    """The device takes part in a share of sample_rate of the windows, drawn once for each.

    400 windows at rate 0.25, seed 4: the count is Binomial(400, 1/4), outside [65, 135] with
    probability below 1e-4.
    """
    sampled = changed(registry, "word", sample_rate=0.25, lifetime_epsilon=10_000.0)
    client = make_client(registry=sampled, state_dir=":memory:")
    for _ in range(400):
        for _ in range(5):
            client.record("word", "a")
            client.flush()
        clock.days(1)
    assert 65 <= len(collector.reports) <= 135
    assert charged(client, "word") == len(collector.reports)


class Noting:
    """Seeded bits; it notes how many each draw takes."""

    def __init__(self) -> None:
        self.counts: list[int] = []
        self._bits = random.Random(3).getrandbits

    def __call__(self, count: int) -> int:
        self.counts.append(count)
        return self._bits(count)


def test_draws_have_one_order(registry: Registry, clock: Any) -> None:
    """The order that other implementations follow: the coin of each new window, the jitter
    before the first report of the call, the reports, and then the delay of ended windows."""
    registry = changed(registry, "tool", sample_rate=0.5)
    registry = changed(registry, "late", sample_rate=0.25)
    tool, word, today = registry["tool"], registry["word"], "2027-01-04"
    expected, bits = Noting(), Noting()
    coin(1 << (PRECISION - 2), expected)
    assert coin(1 << (PRECISION - 1), expected), "this seed's second coin is heads"
    expected(53)
    tool.scheme.mechanism.randomize(tool.item("build"), expected)
    coin(1 << PRECISION, expected)
    word.scheme.mechanism.randomize(word.item("a"), expected)
    expected(53)
    state = State(None)
    device = Device(registry, state, None, clock=clock, bits=bits, spread=100.0)
    first = Record(tool, "build", today)
    device.write([Record(registry["late"], "true", today), first, Record(word, "a", today), first])
    assert bits.counts == expected.counts
    bits.counts.clear()
    device.write([first])
    assert bits.counts == [53]  # no answer, so no jitter
    state.close()


@pytest.mark.parametrize("ones", [False, True], ids=["earliest", "latest"])
def test_the_jitter_is_ten_seconds(registry: Registry, clock: Any, ones: bool) -> None:
    """A report that is answered at once is due after a uniform part of ten seconds."""
    assert JITTER == 10
    state = State(None)

    def bits(count: int) -> int:
        return (1 << 53) - 1 if ones and count == 53 else 0

    device = Device(registry, state, None, clock=clock, bits=bits, spread=3_600.0)
    device.write([Record(registry["tool"], "build", "2027-01-04")])
    due = device.seconds_to_send()
    assert due == pytest.approx(JITTER * ((1 << 53) - 1) / (1 << 53) if ones else 0.0)
    assert (device.take(urgent=False) is None) is ones
    clock.now += 10
    assert (device.take(urgent=False) is None) is not ones
    state.close()


def test_closing_sends_what_is_answered_at_once_and_nothing_else(
    make_client: MakeClient, collector: Any, clock: Any
) -> None:
    """`close` does not wait for the jitter; a report at the close of a window keeps its spread."""
    client = make_client(spread=3_600.0)
    client.record("late", True)
    client.flush()
    clock.days(1)
    client.record("tool", "build")
    client.close()
    assert [each["metric"] for each in collector.reports] == ["tool"]
    later = make_client(spread=3_600.0)
    assert [each.status for each in later.sent()] == ["queued", "sent"] or [
        each.status for each in later.sent()
    ] == ["sent", "queued"]
    clock.now += 3_600
    later.flush()
    assert [each["metric"] for each in collector.reports] == ["tool", "late"]


def test_a_tool_that_runs_once_is_counted(tmp_path: Path, clock: Any, collector: Any) -> None:
    """With threads, as an app runs: record, close, and the report has left."""
    registry = Registry.parse(REGISTRY)
    client = Client(registry, state_dir=tmp_path, clock=clock, transport=collector)
    client.record("tool", "build")
    client.close(30.0)
    assert [each["metric"] for each in collector.reports] == ["tool"]


def test_a_running_app_sends_after_the_jitter(
    tmp_path: Path, collector: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With threads and the machine's clock: nobody asks for it, and the report leaves while the
    window and the app are still open."""
    monkeypatch.setattr(outbox, "JITTER", 0.5)
    client = Client(Registry.parse(REGISTRY), state_dir=tmp_path, transport=collector)
    client.record("kept", True)
    deadline = time.monotonic() + 30
    while not collector.reports and time.monotonic() < deadline:
        time.sleep(0.05)
    assert [each["metric"] for each in collector.reports] == ["kept"]
    client.close()
    assert len(collector.bodies) == 1


def test_the_owner_sees_what_was_reported(make_client: MakeClient, clock: Any) -> None:
    """The list of reports and the owner's page name the report and its window; no value waits."""
    client = make_client()
    client.record("tool", "build")
    client.flush()
    (sent,) = client.sent()
    assert (sent.metric, sent.window, sent.status) == ("tool", "2027-01-04", "sent")
    page = client.owner_page()
    assert "The command that was run first." in page
    assert client._device.owned()[1] == 0


def test_the_memory_client_lists_every_call(registry: Registry) -> None:
    """It lists all calls; the first of a window is the one that a device would report."""
    client = MemoryClient(registry)
    client.record("tool", "build")
    client.record("tool", "check")
    assert client.values("tool") == ["build", "check"]
    client.close()


def test_closing_does_not_override_the_collector(
    make_client: MakeClient, collector: Any, clock: Any
) -> None:
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


def test_only_the_jitter_is_cut_short(registry: Registry, clock: Any, bits: Any) -> None:
    """`hurry` moves no report that waits for longer, for another reason, or of another metric."""
    state = State(None)
    device = Device(registry, state, None, clock=clock, bits=bits, spread=0.0)
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
    device.hurry()
    with state.transaction() as connection:
        left = connection.execute("SELECT ready - ? FROM reports ORDER BY id", (clock(),))
        assert [each for (each,) in left] == pytest.approx([0.0, JITTER + 0.001, 5.0, 5.0, -5.0])
    state.close()


def test_the_collector_may_be_behind(make_client: MakeClient, collector: Any, clock: Any) -> None:
    """A collector that does not know yet that the metric is answered at once leaves the report
    out; it is sent again until the window is six days past its end."""
    client = make_client(on_trouble=lambda _: None)
    client.record("tool", "build")
    collector.rejected = [{"index": 0, "reason": "window_not_closed"}]
    assert not client.flush()
    clock.now += 3_600
    collector.rejected = []
    assert client.flush()
    assert len(collector.reports) == 2
    assert collector.reports[0] == collector.reports[1]
    assert charged(client, "tool") == 1


def test_opting_out_and_in_gives_no_second_answer(
    make_client: MakeClient, collector: Any, clock: Any
) -> None:
    """An unsent report is deleted with the consent, and its window stays answered."""
    client = make_client(spread=0.0)
    client.record("tool", "build")
    client._write_step(False)
    client.opt_out()
    client.opt_in()
    client.record("tool", "check")
    client.flush()
    assert collector.reports == []
    assert charged(client, "tool") == 1


def test_a_window_that_consent_left_open_is_answered(
    make_client: MakeClient, registry: Registry, collector: Any
) -> None:
    """A window without a value, from a time when the metric was answered at the close, takes its
    first record at once."""
    before = make_client(registry=changed(registry, "tool", answer="at_close"))
    before.record("tool", "build")
    before.flush()
    before.opt_out()
    before.close()
    after = make_client()
    after.record("tool", "check")
    after.flush()
    assert [each["window"] for each in collector.reports] == ["2027-01-04"]


def test_an_open_window_without_epsilon_is_closed(
    make_client: MakeClient, registry: Registry, collector: Any
) -> None:
    """If the ledger does not allow the report of an open window, the window ends without one,
    and no value is kept."""
    before = make_client(registry=changed(registry, "tool", answer="at_close"))
    before.record("tool", "build")
    before.flush()
    before.opt_out()
    before.close()
    after = make_client(registry=dataclasses.replace(registry, lifetime_epsilon=0.5))
    after.record("tool", "check")
    after.flush()
    assert collector.reports == []
    assert open_values(after) == 0
    assert stored(after, "SELECT state FROM windows") == [("unanswered",)]


def test_a_value_that_waits_is_answered_at_the_close(
    make_client: MakeClient, registry: Registry, collector: Any, clock: Any
) -> None:
    """An app is upgraded to at_once inside a window: the value that waits was promised to leave
    after its window, so it does, and the next window is answered at once."""
    before = make_client(registry=changed(registry, "tool", answer="at_close"))
    before.record("tool", "build")
    before.flush()
    before.close()
    after = make_client(spread=0.0)
    after.record("tool", "check")
    after.flush()
    assert collector.reports == []
    assert stored(after, "SELECT value FROM open_values") == [("build",)]
    clock.days(1)
    after.record("tool", "check")
    after.flush()
    assert sorted(each["window"] for each in collector.reports) == ["2027-01-04", "2027-01-05"]
    assert charged(after, "tool") == 2


def test_back_to_the_close_gives_no_second_answer(
    make_client: MakeClient, registry: Registry, collector: Any, clock: Any
) -> None:
    """An app goes back to at_close inside a window that was answered: nothing more of it."""
    before = make_client()
    before.record("tool", "build")
    before.flush()
    before.close()
    after = make_client(registry=changed(registry, "tool", answer="at_close"), spread=0.0)
    after.record("tool", "check")
    after.flush()
    assert open_values(after) == 0
    clock.days(1)
    after.record("tool", "check")
    after.flush()
    clock.days(1)
    after.flush()
    assert [each["window"] for each in collector.reports] == ["2027-01-04", "2027-01-05"]


def test_weeks_and_months_are_answered_at_once(
    make_client: MakeClient, collector: Any, clock: Any
) -> None:
    """A metric with memory and a month's window: one report at the month's first record."""
    client = make_client()
    for _ in range(40):
        client.record("kept", True)
        client.flush()
        clock.days(1)
    assert [each["window"] for each in collector.reports] == ["2027-01", "2027-02"]


def test_a_failed_write_is_all_or_nothing(
    make_client: MakeClient, collector: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If any step after randomizing fails, nothing is charged or queued and the window is not
    answered; the record is still in memory, and is answered when the disk works again."""
    troubles: list[Exception] = []
    client = make_client(on_trouble=troubles.append)
    client.record("tool", "build")
    with monkeypatch.context() as broken:
        broken.setattr(outbox, "trim", lambda _: 1 / 0)
        client.flush()
    assert troubles
    assert stored(client, "SELECT * FROM windows") == []
    assert stored(client, "SELECT * FROM reports") == []
    assert charged(client, "tool") == 0
    assert client.flush()
    assert len(collector.reports) == 1
    assert charged(client, "tool") == 1


def test_a_fork_answers_once(tmp_path: Path) -> None:
    """Parent and child record the same window: one report, charged once."""
    (tmp_path / "metrics.toml").write_text(REGISTRY)
    script = (
        "import os, sys, deniable\n"
        "client = deniable.Client(sys.argv[1] + '/metrics.toml', None, sys.argv[1],"
        " clock=lambda: 1.8e9)\n"
        "client.record('late', True)\n"
        "client.flush(30)\n"
        "child = os.fork()\n"
        "client.record('tool', 'build')\n"
        "assert not client.flush(30)\n"
        "client.close()\n"
        "if child:\n"
        "    assert os.waitpid(child, 0)[1] == 0\n"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=True, timeout=60)
    state = State(tmp_path)
    with state.transaction() as connection:
        rows = connection.execute("SELECT metric, window, status FROM reports").fetchall()
        assert Ledger(connection).reports("tool") == 1
    state.close()
    assert rows == [("tool", "2027-01-15", "queued")]


KILLED = """
import os, signal, sys
from pathlib import Path
import deniable
from deniable import state_file
from deniable.recording import Record
from deniable.state import State
from deniable.testing import MemoryClient

registry = deniable.Registry.load(sys.argv[1])
for turn in range(1, 1000):
    folder = Path(sys.argv[2], str(turn))
    start = State(folder, "example")
    with start.transaction():
        pass
    start.close()
    child = os.fork()
    if child == 0:
        left = turn
        def count(statement):
            global left
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
        connect = state_file._connect
        def watched(database):
            connection = connect(database)
            connection.set_trace_callback(count)
            return connection
        state_file._connect = watched
        client = deniable.Client(registry, None, folder, clock=lambda: 1.8e9, background=False)
        client.record("tool", "build")
        os._exit(0 if client._write_step(False) else 1)
    status = os.waitpid(child, 0)[1]
    if not os.WIFSIGNALED(status):
        sys.exit(os.WEXITSTATUS(status))
sys.exit(2)
"""


@pytest.mark.campaign
def test_killed_at_any_statement_it_is_all_or_nothing(tmp_path: Path) -> None:
    """A process that is killed at the Nth statement of its write, for every N: either the window
    is answered, the report queued and the ledger charged, or there is no trace of them."""
    (tmp_path / "metrics.toml").write_text(REGISTRY)
    folders = tmp_path / "states"
    subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path / "metrics.toml"), str(folders)],
        check=True,
        timeout=150,
    )
    found = []
    for turn in range(1, 1 + len(list(folders.iterdir()))):
        state = State(folders / str(turn), "example")
        with state.transaction() as connection:
            (reports,) = connection.execute("SELECT count(*) FROM reports").fetchone()
            answered = connection.execute("SELECT state FROM windows").fetchall()
            found.append((reports, answered, Ledger(connection).reports("tool")))
            assert waiting(connection) == 0
        state.close()
    nothing, everything = (0, [], 0), (1, [("answered",)], 1)
    assert all(each in (nothing, everything) for each in found)
    assert found[0] == nothing
    assert found[-1] == everything, "the last turn was not killed"
    assert found.count(nothing) > 10

"""Client: what an app may rely on, from record to close."""

from __future__ import annotations

import logging
import math
import os
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from tests.ports import until

import deniable
from deniable import Client, MetricError, Registry, StateError, TransportError
from deniable.device import client as client_module
from deniable.device import worker
from deniable.device.ledger import Ledger
from deniable.device.state import FILE_NAME, State
from deniable.testing import MemoryClient

from .conftest import metrics_toml, run_app

_NOT_DECLARED = (
    "telemetry: a call names a metric or segment that is not declared; with strict=True it raises"
)

MakeClient = Callable[..., Client]


MARKED = metrics_toml(browser={"type": "string", "lifetime_epsilon": 9.0})


def statuses(client):
    """The status of every report, the oldest first."""
    return [report.status for report in reversed(client.sent())]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("dark_mode", "yes"),
        ("dark_mode", 1),
        ("browser", True),
        *((name, True) for name in ("colour", ["x"], {}, None, 7)),
    ],
)
def test_a_mistake_never_raises_in_production(make_client, name, value, caplog):
    """A metric that is not declared, what is no name, and a value that does not fit are counted and
    dropped. The first two are logged once, without the name: it may be a value."""
    troubles: list[Exception] = []
    client = make_client(on_trouble=troubles.append)
    client.record(name, value)
    client.record(name, value)
    kind = "refused" if name in ("dark_mode", "browser") else "mistake"
    assert client.counters == {kind: 2}
    assert [type(each) for each in troubles] == [MetricError, MetricError]
    told = [each.getMessage() for each in caplog.records]
    assert told == ([] if kind == "refused" else [_NOT_DECLARED])


@pytest.mark.parametrize("name", ["colour", ["x"], {}, None, 7])
def test_a_strict_client_raises_for_what_is_not_declared(make_client, name):
    """With strict=True a metric that is not declared raises; a value that does not fit is dropped
    there too, because it depends on the device."""
    client = make_client(strict=True, on_trouble=lambda error: None)
    with pytest.raises(MetricError):
        client.record(name, True)
    client.record("browser", math.nan)
    assert client.counters == {"mistake": 1, "refused": 1}


def test_consent_must_be_given(make_client):
    """Without the argument there is no client, and the message says what to pass."""
    with pytest.raises(TypeError, match=r"ask the person first.*consent=True") as caught:
        Client(make_client().registry, state_dir=":memory:")
    assert "object" not in str(caught.value)


def test_an_expired_metric_is_silently_not_recorded(make_client, clock, collector):
    """After the day on which it expires, a metric is counted as expired and never reported."""
    client = make_client()
    clock.days(365 * 5)
    client.record("browser", "chrome")
    clock.days(1)
    assert client.flush()
    assert client.counters == {"expired": 1}
    assert collector.bodies == []


def test_without_consent_nothing_is_kept(make_client, clock, collector, tmp_path):
    """consent=False keeps no record, not even a state file; opting in records."""
    client = make_client(consent=False)
    client.record("browser", "chrome")
    clock.days(1)
    assert client.flush()
    assert client.status == "no_consent"
    assert not (tmp_path / "state").exists()
    client.opt_in()
    assert client.consent
    client.record("browser", "chrome")
    clock.days(1)
    assert client.flush()
    assert [report["window"] for report in collector.reports] == ["2027-01-05"]


@pytest.mark.parametrize("consent", ["no", "", 0, 1, None])
def test_consent_is_yes_or_no(make_client, consent):
    """Anything but True and False is refused: "no" would count as true."""
    with pytest.raises(TypeError, match="consent must be True or False"):
        make_client(consent=consent)
    with pytest.raises(TypeError, match="consent must be True or False"):
        MemoryClient(make_client().registry, consent=consent)


@pytest.mark.parametrize("refused", ["consent", "DO_NOT_TRACK", "DENIABLE_DISABLED", "switch"])
def test_nothing_recorded_earlier_outlives_consent(
    make_client, monkeypatch, clock, collector, tmp_path, refused
):
    """A client that starts without consent takes an open value and an unsent report off the disk
    at once; after the next consent neither is reported, and the ledger has what was spent."""
    registry = Registry.parse(MARKED)
    client = make_client(registry=registry)
    client.record("browser", "marker-of-monday")
    client._write()
    clock.days(1)
    client._write()  # sealed, and not sent
    client.record("browser", "marker-of-tuesday")
    client.close()
    collector.bodies.clear()  # `close` may have made an attempt
    client = make_client(registry=registry, on_trouble=None)
    collector.replies = [TransportError("down")] * 9
    client.record("browser", "marker-of-wednesday")
    client.flush()

    def on_disk():
        return b"".join(path.read_bytes() for path in (tmp_path / "state").iterdir())

    assert b"marker-of-" in on_disk()
    client._state.close()  # the process ends without `close`
    collector.replies = []
    collector.bodies.clear()
    if refused == "switch":
        State(tmp_path / "state").switch(on=False)
    elif refused != "consent":
        monkeypatch.setenv(refused, "1")
    silent = make_client(registry=registry, consent=refused != "consent")
    assert b"marker-of-" not in on_disk()
    with silent._state.transaction() as connection:
        assert connection.execute("SELECT count(*) FROM open_values").fetchone() == (0,)
        queued = "SELECT count(*) FROM reports WHERE status = 'queued'"
        assert connection.execute(queued).fetchone() == (0,)
    clock.days(1)
    silent.flush()
    silent.close()
    if refused == "switch":
        State(tmp_path / "state").switch(on=True)
    elif refused != "consent":
        monkeypatch.delenv(refused)
    client = make_client(registry=registry)
    assert client.status == "on"
    assert client.flush()
    assert collector.bodies == []
    with client._state.transaction() as connection:
        assert Ledger(connection).reports()["browser"] == 1


@pytest.mark.parametrize("variable", ["DO_NOT_TRACK", "DENIABLE_DISABLED"])
def test_the_environment_switches_it_off(make_client, monkeypatch, tmp_path, variable):
    """DO_NOT_TRACK=1 and DENIABLE_DISABLED=1 keep everything from disk; "0" does not."""
    monkeypatch.setenv(variable, "1")
    client = make_client()
    client.record("browser", "chrome")
    assert client.flush()
    assert client.status == "disabled"
    assert not (tmp_path / "state").exists()
    monkeypatch.setenv(variable, "0")
    assert make_client().status == "on"


def test_trouble_is_logged_once_and_never_raised(make_client, tmp_path, caplog, clock, collector):
    """A disk that cannot be written is logged once, counted each time, and shows no value; what
    waits is written once the disk can be reached again."""
    blocker = tmp_path / "file"
    blocker.write_text("in the way")
    client = make_client(state_dir=blocker / "state", on_trouble=None)
    with caplog.at_level(logging.DEBUG):
        for _ in range(3):
            client.record("browser", "chrome")
            assert not client.flush()
    assert client.counters["disk"] >= 3
    (message,) = [record for record in caplog.records if record.name == "deniable"]
    assert "chrome" not in message.getMessage()
    assert client.sent() == []
    blocker.unlink()
    clock.days(1)
    assert client.flush()
    assert len(collector.reports) == 1


def test_on_trouble_hands_out_what_is_swallowed(make_client, clock, collector):
    """The error that the app never sees is given to on_trouble, and may be raised from there."""

    def raise_it(error):
        raise error

    client = make_client(on_trouble=raise_it)
    collector.replies = [ZeroDivisionError(), ZeroDivisionError()]
    client.record("browser", "chrome")
    clock.days(1)
    with pytest.raises(ZeroDivisionError):
        client.flush()
    silent = make_client(on_trouble=None)
    assert not silent.flush()
    assert silent.counters == {"internal": 1}


def test_the_queue_is_bounded(make_client, monkeypatch):
    """Records beyond the bound are dropped and counted; those before it are kept."""
    monkeypatch.setattr(client_module, "MAX_RECORDS", 5)
    client = make_client(on_trouble=None)
    for _ in range(8):
        client.record("browser", "chrome")
    assert client.counters == {"overflow": 3}


def test_a_damaged_state_stops_everything(make_client, tmp_path, clock, collector):
    """With a damaged file nothing is recorded, sent or recreated, and the status says so."""
    client = make_client()
    client.record("browser", "chrome")
    clock.days(1)
    client.close()
    path = tmp_path / "state" / FILE_NAME
    before = b"not a database" * 1000
    path.write_bytes(before)
    sent_before = len(collector.bodies)
    troubles: list[Exception] = []
    client = make_client(on_trouble=troubles.append)
    client.record("browser", "chrome")
    assert not client.flush()
    client.record("browser", "chrome")
    assert not client.flush()
    assert client.status == "failed"
    assert client.sent() == []
    client.close()
    assert path.read_bytes() == before
    assert len(collector.bodies) == sent_before
    assert {type(error) for error in troubles} == {StateError}


def test_without_a_home_it_fails_closed(make_client, monkeypatch):
    """A user without a home directory, and no state_dir, means no telemetry and no crash."""
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    client = make_client(state_dir=None, on_trouble=None)
    client.record("browser", "chrome")
    assert not client.flush()
    assert client.status == "failed"


def test_sent_says_what_a_report_reveals(make_client, clock):
    """sent() gives each value's exact likelihood, and the sentence has the same numbers."""
    client = make_client()
    client.record("browser", "chrome")
    clock.days(1)
    client.flush()
    (report,) = client.sent()
    mechanism = client.registry["browser"].scheme.mechanism
    assert (report.metric, report.description) == ("browser", "The browser in use.")
    found = Counter(report.likelihoods.values())
    assert found == {mechanism.p: 1, (1 - mechanism.p) / 4: 4}
    said = max(report.likelihoods, key=report.likelihoods.__getitem__)
    assert report.words == (
        f"your device said “{said}”; it would say so 40.5% of the time if that were true "
        "and 14.9% if it were not"
    )


def test_sent_outlives_the_scheme(make_client, clock):
    """A report is explained by the scheme it was made under, even after that has changed."""
    client = make_client()
    client.record("browser", "chrome")
    clock.days(1)
    client.flush()
    before = client.sent()
    newer = Registry.parse(metrics_toml(browser={"type": "category", "values": ["x", "y"]}))
    assert make_client(registry=newer).sent() == before


def test_close_writes_and_ends(make_client, clock, collector):
    """close() brings records to the disk; afterwards records are ignored."""
    with make_client() as client:
        client.record("browser", "chrome")
    assert client.status == "closed"
    client.record("browser", "edge")
    client.close()
    clock.days(1)
    assert make_client().flush()
    assert len(collector.reports) == 1


def test_undeclared_values_are_counted(make_client, clock, collector, recwarn):
    """What `other` swallows is counted, case by case; the count stays in the process, and nothing
    is said outside Python's development mode."""
    client = make_client()
    for value in ("firefox", "Firefox", "lynx", "other", "chrome"):
        client.record("browser", value)
    assert client.counters == {"other": 2}
    clock.days(1)
    assert client.flush()
    assert b"counters" not in collector.bodies[0]
    assert list(recwarn) == []


def test_development_tells_of_undeclared_values(tmp_path):
    """`python -X dev` names the metric and the line that recorded, and not the value."""
    browser = {"type": "category", "values": ["firefox", "other"], "expires": "2999-01-01"}
    script = (
        "import deniable\n"
        "with deniable.Client('metrics.toml', state_dir=':memory:', consent=True) as client:\n"
        "    client.record('browser', 'Firefox')\n"
    )
    modes = ((), ("-X", "dev"))
    registry = metrics_toml(browser=browser)
    said = {mode: run_app(tmp_path, registry, script, *mode) for mode in modes}
    assert said[()] == ""
    assert "app.py:3: UndeclaredValueWarning: metric 'browser': a value" in said["-X", "dev"]
    assert "Firefox" not in said["-X", "dev"].replace("'Firefox'", "", 1)  # the line of code


def test_a_notebook_cell_may_run_again(make_client, clock, collector, tmp_path):
    """A cell that makes a client and records, run three times, leaves one client and its threads:
    those before wrote what they had and ended, and the window gets one report of all records."""
    before = {thread.ident for thread in threading.enumerate()}
    scope: dict[str, Any] = {"deniable": deniable, "registry": make_client().registry}
    scope |= {"clock": clock, "collector": collector, "folder": tmp_path / "state"}
    cell = (
        "telemetry = deniable.Client(\n"
        "    registry, state_dir=folder, clock=clock, transport=collector, consent=True\n"
        ")\n"
        "telemetry.record('dark_mode', True)\n"
    )
    for _ in range(3):
        exec(cell, scope)
    client = scope["telemetry"]
    assert client.flush(30)
    until(lambda: len({thread.ident for thread in threading.enumerate()} - before) <= 2)
    with client._state.transaction() as connection:
        assert connection.execute("SELECT records FROM open_values").fetchall() == [(3,)]
    clock.days(1)
    assert client.flush(30)
    assert len(collector.reports) == 1
    client.close(30)


@pytest.mark.parametrize("spread", [-1.0, 1e6, float("nan")])
def test_a_senseless_spread_is_refused(make_client, spread):
    """A spread that is negative, longer than a day or no number raises."""
    with pytest.raises(ValueError, match="spread"):
        make_client(spread=spread)


def test_a_new_client_resumes_what_an_old_one_left(make_client, clock, collector):
    """A client that records nothing still seals and sends what lies in its state file."""
    with make_client() as client:
        client.record("browser", "chrome")
    clock.days(1)
    client = make_client(background=True, spread=0.0)
    until(lambda: collector.bodies)
    client.close(30)
    assert len(collector.reports) == 1


def test_a_slow_network_keeps_nothing_from_the_disk(make_client, clock, collector, tmp_path):
    """While a request hangs, flush returns False, a record reaches the disk, and close brings the
    last ones there."""
    entered, release = threading.Event(), threading.Event()

    class Hanging:
        def send(self, body):
            entered.set()
            release.wait(120)
            raise TransportError("too late")

    registry = Registry.parse(metrics_toml(browser={"type": "string"}, dark_mode={}))
    options = {"transport": Hanging(), "on_trouble": None, "spread": 0.0}
    client = make_client(registry=registry, background=True, **options)
    client.record("browser", "chrome")
    assert client.flush(30)
    clock.days(1)
    assert not client.flush(0.01)
    assert entered.wait(120)
    client.record("browser", "a-marker")
    until(lambda: b"a-marker" in (tmp_path / "state" / FILE_NAME).read_bytes())
    client.record("dark_mode", True)
    client.close(0.01)
    release.set()
    client._sender.stop(time.monotonic() + 30)
    clock.days(1)
    assert make_client(registry=registry).flush()
    assert {report["metric"] for report in collector.reports} == {"browser", "dark_mode"}


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_the_thread_returns_after_an_error_was_raised_in_it(make_client, clock, collector):
    """When on_trouble raises in the thread, who waits is told, and the next work restarts it."""

    def raise_it(error):
        raise error

    client = make_client(background=True, on_trouble=raise_it)
    client.record("browser", "chrome")
    assert client.flush(30)
    clock.days(1)
    collector.replies = [TransportError("down")]
    client._sender.wake()
    thread = client._sender._thread
    assert thread is not None
    assert not client.flush(30)
    # What it raised is reported as it ends, and would be another test's warning.
    thread.join(120)
    assert client.flush(30)
    assert len(collector.bodies) == 2
    client.close(30)


def test_flush_after_close_has_nothing_to_do(make_client):
    """A closed client's flush returns at once, with and without a thread."""
    for background in (True, False):
        client = make_client(background=background)
        client.record("browser", "chrome")
        client.close(30)
        assert client.flush(None)


def test_sent_leaves_no_trace(make_client, tmp_path, clock):
    """Neither asking what was sent nor a flush without a record creates a file, and asking works
    after close without opening it for good."""
    client = make_client()
    assert client.sent() == []
    assert client.flush()
    assert not (tmp_path / "state").exists()
    client.record("browser", "chrome")
    clock.days(1)
    assert client.flush()
    client.close()
    assert statuses(client) == ["sent"]
    assert client._state._connection is None


def test_an_app_without_logging_prints_nothing(tmp_path):
    """Trouble in an app that imports logging and does not configure it stays off its terminal."""
    script = (
        "import logging, deniable\n"
        "c = deniable.Client('metrics.toml', state_dir='metrics.toml', clock=lambda: 1.79e9,"
        " consent=True)\n"
        "c.record('dark', True)\n"
        "assert not c.flush(30)\n"
        "assert c.counters['disk']\n"
    )
    assert run_app(tmp_path, metrics_toml(dark={}), script) == ""


def test_atexit_brings_records_to_the_disk(tmp_path):
    """A script that records and ends, without close, has its value on the disk."""
    script = (
        "import deniable\n"
        "c = deniable.Client('metrics.toml', state_dir='.', clock=lambda: 1.79e9, consent=True)\n"
        "c.record('dark', True)\n"
    )
    run_app(tmp_path, metrics_toml(dark={}), script, "-W", "error")
    state = State(tmp_path)
    with state.transaction() as connection:
        assert connection.execute("SELECT value FROM open_values").fetchall() == [("true",)]
    state.close()


def in_child(work):
    """Run `work` in a forked child, and fail unless it returns."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(pid, 0)[1] == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_fork_records_nothing_twice(make_client, clock, collector):
    """Records queued before a fork are written by the parent alone; the child goes on with
    its own thread and connection."""
    client = make_client(background=True)
    client.record("dark_mode", False)
    assert client.flush(30)  # the thread runs, the file is open
    queued = client._device.admit("dark_mode", False)
    assert queued is not None
    client._records.extend([queued] * 5)  # in the queue, and the thread not yet told

    def child():
        assert client._state._connection is None
        assert not client._writer.started
        client.record("dark_mode", False)
        assert client.flush(30)
        client.close(30)

    in_child(child)
    assert client.flush(30)
    with client._state.transaction() as connection:
        ((records,),) = connection.execute("SELECT records FROM open_values").fetchall()
    assert records == 1 + 5 + 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_two_clients_of_one_state_survive_a_fork(make_client, tmp_path):
    """Each of them closes the state before the fork, and none waits for the other."""
    state = State(tmp_path / "state")
    clients = [make_client(state_dir=state) for _ in range(2)]
    clients[0].record("dark_mode", True)
    in_child(clients[1].flush)
    assert [each.flush() for each in clients] == [True, True]


def test_a_fork_waits_for_the_writers_of_all_clients_first(make_client, tmp_path, monkeypatch):
    """One that writes is not kept from the state that it shares with another client."""
    state = State(tmp_path / "state")
    clients = [make_client(state_dir=state) for _ in range(2)]
    writing, written = threading.Event(), threading.Event()

    def write():
        with clients[1]._writing.held(0.0):
            writing.set()
            time.sleep(0.1)
            with state.transaction():
                written.set()

    thread = threading.Thread(target=write)
    thread.start()
    assert writing.wait(30)
    with monkeypatch.context() as patched:
        patched.setattr(worker, "_living", clients)
        worker._before_fork()
        worker._after_fork(child=False)
    thread.join()
    assert written.is_set()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_state_in_memory_stays_with_the_parent(make_client):
    """A forked copy of a ledger in memory is refused, in the child alone."""
    client = make_client(state_dir=":memory:")
    client.record("dark_mode", True)
    assert client.flush()

    def child():
        assert client.status == "failed"

    in_child(child)
    assert client.status == "on"

"""A client beside a disk, a network, a signal or an owner that comes at a bad moment."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from queue import SimpleQueue

import pytest
from tests.ports import until

from deniable import Client, Registry, TransportError
from deniable.device import state, worker
from deniable.device.state import FILE_NAME, Lock, State
from deniable.device.transport import HttpTransport

from .conftest import locked, metrics_toml, raw_server, run_app

MakeClient = Callable[..., Client]

MARKED = metrics_toml(page={"type": "string"})
SECRET = "a-marker-of-the-tests"


def holds_secret(folder):
    """Whether any file in the folder holds the recorded value."""
    return any(SECRET.encode() in path.read_bytes() for path in folder.iterdir())


@pytest.fixture
def marked():
    """One metric of any string."""
    return Registry.parse(MARKED)


@pytest.fixture
def impatient(monkeypatch):
    """No statement waits for another process."""
    monkeypatch.setattr(
        state, "wait_until", lambda each, deadline: each.execute("PRAGMA busy_timeout = 0")
    )


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("way", ["opt_out", "erase", "switch"])
def test_what_is_taken_back_under_a_lock_goes_as_soon_as_it_can(
    make_client, marked, clock, collector, tmp_path, way
):
    """A withdrawal that meets a file in use is repeated before anything else happens: nothing is
    kept or sent until it is done, and agreeing again does not bring the value back."""
    client = make_client(registry=marked, on_trouble=None)
    client.record("page", SECRET)
    assert client.flush()
    folder = tmp_path / "state"
    with locked(folder / FILE_NAME):
        if way == "switch":
            client._state.switch(on=False)
            client.flush()
            client._state.switch(on=True)
        else:
            getattr(client, way)()
        assert client.counters["disk"] >= 1
        assert holds_secret(folder)
        client.opt_in()
        assert client.status == "no_consent"
        client.record("page", SECRET)
        assert not client.flush()
    client.opt_in()
    assert client.status == "on"
    assert client.flush()
    assert not holds_secret(folder)
    clock.days(1)
    assert client.flush()
    assert collector.bodies == []
    client.record("page", "another")
    clock.days(1)
    assert client.flush()
    assert len(collector.reports) == 1


@pytest.mark.usefixtures("impatient")
def test_an_erasure_that_waits_stays_one(make_client, marked, tmp_path):
    """Who opts out while an erasure waits for the disk has still asked for the erasure."""
    client = make_client(registry=marked, on_trouble=None)
    client.record("page", SECRET)
    assert client.flush()
    with locked(tmp_path / "state" / FILE_NAME):
        client.erase()
        client.opt_out()
    client.flush()
    with client._state.transaction() as connection:
        assert connection.execute("SELECT erased FROM device").fetchone() != (None,)


@pytest.mark.usefixtures("impatient")
def test_closing_repeats_a_deletion(make_client, marked, tmp_path, monkeypatch):
    """What could not be deleted when telemetry was found switched off is when the client ends."""
    with make_client(registry=marked) as client:
        client.record("page", SECRET)
    monkeypatch.setenv("DO_NOT_TRACK", "1")
    with locked(tmp_path / "state" / FILE_NAME):
        silent = make_client(registry=marked, on_trouble=None)
        assert holds_secret(tmp_path / "state")
    silent.close()
    assert not holds_secret(tmp_path / "state")


@pytest.mark.parametrize("pending", ["nothing", "record", "opt_out", "erase"])
def test_closing_takes_no_longer_than_it_says(make_client, marked, tmp_path, monkeypatch, pending):
    """While another process holds the state, all steps of `close` together wait for its timeout and
    no longer. The clock goes on by what each statement is allowed to wait."""
    client = make_client(registry=marked, on_trouble=None)
    client.record("page", SECRET)
    client.flush()
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])

    def wait(connection, deadline):
        now[0] = max(now[0], deadline)
        connection.execute("PRAGMA busy_timeout = 0")

    monkeypatch.setattr(state, "wait_until", wait)
    with locked(tmp_path / "state" / FILE_NAME):
        if pending == "record":
            client.record("page", SECRET)
        elif pending != "nothing":
            getattr(client, pending)()
        began = now[0]
        client.close(timeout=2)
    assert began < now[0] <= began + 2
    assert client.counters["disk"] >= 1


def test_closing_waits_for_no_thread_longer_than_it_says(make_client, marked, monkeypatch):
    """A thread that holds the state, as the writer does while it waits for another process, is not
    waited for beyond the timeout of `close` either."""
    client = make_client(registry=marked, background=True, on_trouble=None)
    client.record("page", SECRET)
    assert client.flush(30)
    entered, release = threading.Event(), threading.Event()

    def hold():
        with client._state.transaction():
            entered.set()
            release.wait(60)

    holder = threading.Thread(target=hold)
    holder.start()
    assert entered.wait(120)
    patience: list[float] = []
    held = Lock.held

    def noted(self, seconds):
        if threading.current_thread() is threading.main_thread():
            patience.append(seconds)
        return held(self, seconds)

    monkeypatch.setattr(Lock, "held", noted)
    client.close(timeout=0.1)
    release.set()
    holder.join()
    assert patience
    assert max(patience) <= 0.1


@pytest.mark.usefixtures("impatient")
def test_a_deletion_that_fails_is_tried_again_after_a_minute(
    make_client, marked, tmp_path, monkeypatch
):
    """While the disk does not work, the writer waits a minute between its attempts."""
    waits: SimpleQueue[float | None] = SimpleQueue()

    class Watched(SimpleQueue[bool]):
        def get(self, block=True, timeout=None):
            if self.empty():
                waits.put(timeout)
            return super().get(block, timeout)

    monkeypatch.setattr(worker, "SimpleQueue", Watched)
    client = make_client(registry=marked, background=True, on_trouble=None)
    client.record("page", SECRET)
    assert client.flush(30)
    with locked(tmp_path / "state" / FILE_NAME):
        client.opt_out()
        while waits.get(timeout=30) != 60:
            pass


def test_a_switch_is_heeded_by_the_last_write(make_client, marked, tmp_path):
    """What is recorded after the owner has switched off reaches no disk, whether the client is
    closed or let go."""
    for ending in ("close", "let go"):
        client = make_client(registry=marked)
        client.record("page", "before")
        assert client.flush()
        State(tmp_path / "state").switch(on=False)
        client.record("page", SECRET)
        client.close() if ending == "close" else client.__del__()
        assert not holds_secret(tmp_path / "state")
        State(tmp_path / "state").switch(on=True)


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 202 Accepted\r\nX: ",
        b"HTTP/1.1 100 Continue\r\n\r\n",
        b"HTTP/1.1 202 Accepted\r\n\r\n",
    ],
)
def test_a_reply_that_drips_is_given_up(answer):
    """A server that sends a byte now and then, or goes on announcing an answer, is hung up on
    after three times the timeout."""
    stop = threading.Event()

    def drip(connection):
        while not stop.wait(0.01):
            connection.sendall(answer)

    with raw_server(drip) as address:
        with pytest.raises(TransportError):
            HttpTransport(address, timeout=0.1).send(b"x")
        stop.set()


SIGNALLED = """
import os, signal, sys, threading, time
import deniable
from deniable.device.transport import Reply
registry = deniable.Registry.load(sys.argv[1] + "/metrics.toml")
client = deniable.Client(
    registry, state_dir=sys.argv[1] + "/state", on_trouble=lambda e: None, consent=True
)
client.record("page", "x")
client.flush(30)
def handle(number, frame):
    client.close(0.5)
    os._exit(0)
signal.signal(signal.SIGTERM, handle)
print("ready", flush=True)
end = time.monotonic() + 30
while time.monotonic() < end:
    if sys.argv[2] == "consent":
        client.opt_out(); client.opt_in()
    elif sys.argv[2] == "record":
        client.record("page", "x")
    else:
        getattr(client, sys.argv[2])()
"""


@pytest.mark.campaign
@pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals")
@pytest.mark.parametrize("call", ["erase", "sent", "consent", "owner_page", "flush", "record"])
def test_a_handler_that_closes_never_waits_for_itself(tmp_path, call):
    """SIGTERM, twice, at five moments inside any call: the handler's `close` returns, and the
    process ends."""
    (tmp_path / "metrics.toml").write_text(MARKED)
    (tmp_path / "app.py").write_text(SIGNALLED)
    environ = {**os.environ, "DO_NOT_TRACK": "0", "PYTHONPATH": os.pathsep.join(sys.path)}
    rng = random.Random(8)
    for _ in range(5):
        app = subprocess.Popen(
            [sys.executable, tmp_path / "app.py", tmp_path, call],
            stdout=subprocess.PIPE,
            env=environ,
        )
        assert app.stdout is not None
        assert app.stdout.readline() == b"ready\n"
        time.sleep(rng.random() * 0.05)
        app.send_signal(signal.SIGTERM)
        time.sleep(0.003)
        app.send_signal(signal.SIGTERM)
        try:
            assert app.wait(120) == 0
        finally:
            app.kill()
            app.wait()
            app.stdout.close()


WORKERS = """
import multiprocessing as mp
from concurrent.futures import ProcessPoolExecutor
import deniable
client = deniable.Client("metrics.toml", state_dir="state", consent=True)
def work(number):
    client.record("page", f"page {number}")
if __name__ == "__main__":
    mp.set_start_method("fork")
    for number in range(3):
        process = mp.Process(target=work, args=(number,))
        process.start()
        process.join()
        assert process.exitcode == 0
    with ProcessPoolExecutor(2) as pool:
        list(pool.map(work, range(6)))
    client.close()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_workers_of_multiprocessing_write_what_they_have(tmp_path):
    """Records of processes and pools that end normally are kept, all of them."""
    run_app(tmp_path, MARKED, WORKERS)
    kept = State(tmp_path / "state")
    with kept.transaction() as connection:
        assert connection.execute("SELECT records FROM open_values").fetchall() == [(9,)]
    kept.close()


def test_nobody_waits_for_a_lock_in_vain():
    """A call that has interrupted the holder of a lock is told at once, and another thread when
    its patience ends."""
    lock, told = Lock(), list[str]()

    def wait():
        with pytest.raises(BlockingIOError) as caught, lock.held(0.0):
            pass
        told.append(str(caught.value))

    with lock.held(60.0):
        with pytest.raises(BlockingIOError, match="interrupted"), lock.held(3_600.0):
            pass
        thread = threading.Thread(target=wait)
        thread.start()
        thread.join()
    assert told == ["the state is in use by another thread"]
    with lock.held(0.0):
        pass


def test_a_failed_transaction_is_undone_whoever_holds_its_error(tmp_path):
    """A cursor in the frames of the error does not keep others from beginning."""
    found, held = State(tmp_path), []
    try:
        with found.transaction() as connection:
            held.append(connection.execute("SELECT name FROM sqlite_master"))
            held[0].fetchone()
            raise ZeroDivisionError
    except ZeroDivisionError as error:
        held.append(error)
    with locked(tmp_path / FILE_NAME):
        assert held


def test_a_state_that_leads_nowhere_is_not_made_elsewhere(tmp_path):
    """A link to a file that is missing is the disk's trouble, and no empty file comes of it."""
    (tmp_path / FILE_NAME).symlink_to(tmp_path / "gone")
    found = State(tmp_path)
    with pytest.raises(sqlite3.OperationalError), found.transaction():
        pass
    assert not (tmp_path / "gone").exists()
    assert found.failure is None


def test_what_a_segment_lacks_tells_no_value(make_client):
    """The trouble holds no frame with the value, and there is none where telemetry is off."""
    text = metrics_toml(page={"type": "string", "segments": ["platform"]})
    registry = Registry.parse(text + '[segments.platform]\nvalues = ["ios", "web"]\n')
    troubles = []
    client = make_client(registry=registry, on_trouble=troubles.append)
    client.record("page", SECRET)
    (error,) = troubles
    assert error.__traceback__ is None
    client.opt_out()
    client.record("page", SECRET)
    assert len(troubles) == 1


@pytest.mark.parametrize("trouble", ["mistake", "disk", "state"])
@pytest.mark.parametrize("consent", [True, False])
def test_no_trouble_hands_out_a_value(make_client, marked, tmp_path, trouble, consent):
    """No kind of trouble has frames, its own or of those before it, which hold true values."""
    troubles = []
    client = make_client(registry=marked, on_trouble=troubles.append, consent=consent)
    path = tmp_path / "state" / FILE_NAME
    path.parent.mkdir(exist_ok=True)
    if trouble == "disk":
        path.mkdir()
    elif trouble == "state":
        path.write_bytes(bytes(9999))
    client.record("unknown" if trouble == "mistake" else "page", SECRET)
    client.sent()
    client.flush()
    assert client.counters[trouble]
    for error in troubles:
        assert error.__traceback__ is error.__context__ is error.__cause__ is None


def test_a_thread_that_outlasts_the_end_leaves_no_file_open(make_client, marked, clock):
    """What is sent when `close` gives up is finished, and then the state is closed."""
    sending, may_end = threading.Event(), threading.Event()

    class Slow:
        def send(self, body):
            sending.set()
            may_end.wait(30)
            raise TransportError("late")

    client = make_client(registry=marked, transport=Slow(), background=True, on_trouble=None)
    client.record("page", SECRET)
    assert client._writer.run(None)
    clock.days(1)
    client._writer.run(None)
    clock.days(1)
    client._sender.wake()
    assert sending.wait(30)
    client.close(0.0)
    may_end.set()
    until(lambda: not client._sender.started, "the thread did not end")
    assert client._state._connection is None

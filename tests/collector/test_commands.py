"""`deniable collect`, as it really runs: its options, its address, its processes."""

import gc
import os
import secrets
import socket
import sys
from contextlib import closing

import pytest
from click.testing import CliRunner
from tests.e2e.running import run

from deniable_collector.commands import collect
from deniable_collector.serving.gunicorn import check_addresses
from deniable_collector.serving.gunicorn_worker import collect_seldom
from deniable_collector.settings import SettingsError

from .devices import fetch, post


@pytest.mark.stores("redis")
def test_it_serves_and_ends(new_collector, home, new_body):
    """A collector that was started takes a batch, and leaves on SIGTERM with exit 0."""
    collector = new_collector(**home.environ)
    assert fetch(f"{collector.address}/readyz") == (200, b'{"status": "ready"}')
    status, answer = post(collector.address, new_body())
    assert (status, answer["accepted"]) == (202, 1)
    assert collector.stop() == 0


_DURING_THE_FORK = """
import os, signal
from {conf} import *
graceful_timeout = 3_600

def post_fork(server, worker):
    if worker.age == 1:
        os.kill(os.getpid(), signal.SIGTERM)

def worker_exit(server, worker):
    if worker.age == 1:
        os.kill(server.pid, signal.SIGTERM)
"""


@pytest.mark.parametrize(
    ("conf", "app"),
    [
        ("deniable_collector.gunicorn_conf", "deniable_collector.collector:app()"),
        ("deniable_estimator.dashboard.gunicorn_conf", "deniable_estimator.dashboard:create_app()"),
    ],
)
def test_a_signal_during_the_fork_ends_a_worker(tmp_path, metrics, conf, app):
    """A worker that is told to end before it listens to signals ends; the grace period, of an hour
    here, is not waited for."""
    (tmp_path / "metrics.toml").write_text(metrics)
    (tmp_path / "conf.py").write_text(_DURING_THE_FORK.format(conf=conf))
    places = dict.fromkeys(("DENIABLE_BIND", "DENIABLE_DASHBOARD_BIND"), "127.0.0.1:0")
    token = {"DENIABLE_WORKERS": "1", "DENIABLE_DASHBOARD_TOKEN": secrets.token_urlsafe(32)}
    command = [sys.executable, "-m", "gunicorn", "-c", "conf.py", app]
    run(command, tmp_path, {**os.environ, **places, **token}, 300)


@pytest.fixture
def execve(monkeypatch):
    """What `collect` would become, instead of becoming it."""
    calls = []
    monkeypatch.setattr(os, "execve", lambda *call: calls.append(call))
    # Somebody may listen at the default one here.
    monkeypatch.setenv("DENIABLE_BIND", "127.0.0.1:0")
    return calls


def test_options_win_over_the_environment(execve, monkeypatch, tmp_path, metrics):
    """Options reach the workers as variables, and win over variables and files of that name."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.toml").write_text(metrics)
    monkeypatch.setenv("DENIABLE_STORE_FILE", "/none")
    monkeypatch.setenv("DENIABLE_WORKERS", "7")
    arguments = ["--registry", "m.toml", "--store", "sqlite:///x.db", "--workers", "3"]
    result = CliRunner().invoke(collect, arguments)
    assert result.exit_code == 0, result.output
    ((_, _, environ),) = execve
    assert environ["DENIABLE_WORKERS"] == "3"
    assert environ["DENIABLE_STORE"] == "sqlite:///x.db"
    assert "DENIABLE_STORE_FILE" not in environ
    assert (tmp_path / "x.db").exists()


@pytest.fixture
def port():
    """A port at which somebody listens."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        yield server.getsockname()[1]


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("127.0.0.1:{port}", "another program listens"),
        ("0.0.0.0:{port}", "another program listens"),
        ("192.0.2.1:8080", "this machine does not have"),
        ("nowhere.invalid:8080", "host that is not known"),
        ("unix:/none/of/that.sock", "folder that is not there"),
    ],
)
def test_what_is_wrong_with_an_address(port, address, words):
    """Each way in which listening fails has its own words, and the name of the setting."""
    with pytest.raises(SettingsError) as caught:
        check_addresses({"DENIABLE_BIND": address.format(port=port)})
    (told,) = caught.value.problems
    assert told.startswith("DENIABLE_BIND ")
    assert words in told


def test_addresses_that_are_free(tmp_path, port, monkeypatch):
    """A free port, port 0, no address, a socket's path, and what systemd hands over are fine;
    looking leaves nothing behind."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        free = server.getsockname()[1]
    for address in (f"127.0.0.1:{free}", "127.0.0.1:0", "", f"unix:{tmp_path}/s"):
        for _ in range(2):
            check_addresses({"DENIABLE_BIND": address})
    monkeypatch.setenv("LISTEN_FDS", "1")
    check_addresses({"DENIABLE_BIND": f"127.0.0.1:{port}"})


def test_what_there_is_is_not_scanned_again():
    """What was made before is never scanned again, and what is new after more than Python's own
    number of objects."""
    frozen, usual = gc.get_freeze_count(), gc.get_threshold()
    try:
        collect_seldom()
        assert gc.get_freeze_count() > frozen
        assert gc.get_threshold()[0] > usual[0]
        ring = []
        ring.append(ring)
        del ring
        assert gc.collect() > 0
    finally:
        gc.unfreeze()
        gc.set_threshold(*usual)

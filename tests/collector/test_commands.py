"""`deniable collect`, as it really runs."""

import os
import secrets
import subprocess
import sys

import pytest
from click.testing import CliRunner

from deniable_collector.commands import collect

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
    ended = subprocess.run(
        [sys.executable, "-m", "gunicorn", "-c", "conf.py", app],
        cwd=tmp_path,
        env={**os.environ, **places, **token},
        stderr=subprocess.PIPE,
        text=True,
        timeout=300,
    )
    assert ended.returncode == 0, ended.stderr


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

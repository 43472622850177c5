"""`deniable collect`, as it really runs."""

from __future__ import annotations

import os
import signal
import socket

import pytest
from click.testing import CliRunner

from deniable_collector import commands
from deniable_collector.commands import collect

from .devices import fetch


@pytest.fixture
def body(new_body):
    return new_body()


@pytest.mark.stores("redis")
def test_it_serves_and_ends(new_collector, home, body):
    """A collector that was started takes a batch, and leaves on SIGTERM with exit 0."""
    collector = new_collector(**home.environ)
    assert fetch(f"{collector.address}/readyz") == (200, {"status": "ready"})
    status, answer = fetch(f"{collector.address}/v1/reports", body)
    assert (status, answer["accepted"]) == (202, 1)
    assert collector.stop() == 0


@pytest.mark.campaign
def test_what_was_begun_is_answered_before_it_ends(new_collector, home, body, until):
    """On SIGTERM a collector takes no new connection, answers the request whose body is still
    on its way, and then leaves with exit 0."""
    collector = new_collector(**home.environ, DENIABLE_WORKERS="1")
    host, port = collector.address.removeprefix("http://").split(":")
    fetch(f"{collector.address}/readyz")

    def refused():
        try:
            socket.create_connection((host, int(port)), timeout=5).close()
        except OSError:
            return True
        return False

    with socket.create_connection((host, int(port)), timeout=30) as connection:
        connection.sendall(
            b"POST /v1/reports HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            b"Content-Length: %d\r\n\r\n" % len(body) + body[:20]
        )
        # Another answer shows that the worker's loop has had the time to read this.
        fetch(f"{collector.address}/healthz")
        os.kill(collector.process.pid, signal.SIGTERM)
        until(refused, "it goes on listening")
        connection.sendall(body[20:])
        answer = b""
        while piece := connection.recv(1 << 16):
            answer += piece
    assert answer.startswith(b"HTTP/1.1 202")
    assert b'"accepted": 1' in answer
    assert collector.stop() == 0


@pytest.fixture
def execve(monkeypatch):
    """What `collect` would become, instead of becoming it."""
    calls = []
    monkeypatch.setattr(commands.os, "execve", lambda *call: calls.append(call))
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


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--workers", "0"], "DENIABLE_WORKERS must be"),
        (["--bind", "nowhere"], "DENIABLE_BIND must be"),
        (["--store", "oracle://hush"], "sqlite:///relative.db"),
        (["--registry", "none.toml"], "none.toml"),
        (["--registry", "bad.toml"], "schema = 1"),
    ],
)
def test_mistakes_are_told_before_anything_runs(
    execve, monkeypatch, tmp_path, metrics, arguments, words
):
    """A mistake in settings or registry ends the command with words that help."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "metrics.toml").write_text(metrics)
    (tmp_path / "bad.toml").write_text(metrics.replace("schema = 1", "schema = 2"))
    result = CliRunner().invoke(collect, arguments)
    assert result.exit_code == 1
    assert words in result.output
    assert "hush" not in result.output
    assert not execve


def test_a_store_that_is_down_is_a_warning(execve, monkeypatch, tmp_path, metrics):
    """Devices keep their batches meanwhile, so the collector starts and says what is wrong."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "metrics.toml").write_text(metrics)
    result = CliRunner().invoke(collect, ["--store", "sqlite:///none/x.db"])
    assert result.exit_code == 0
    assert "warning" in result.output
    assert execve

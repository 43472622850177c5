"""MemoryClient: the same checks as the client, records in memory, helpers that can fail."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from deniable import Client, MetricError, Registry, UndeclaredValueWarning
from deniable.testing import MemoryClient, MemoryRecord


@pytest.fixture
def telemetry(registry: Registry, clock: Any, monkeypatch: pytest.MonkeyPatch) -> MemoryClient:
    """A client in memory."""
    for name in ("DO_NOT_TRACK", "DENIABLE_DISABLED"):
        monkeypatch.delenv(name, raising=False)
    return MemoryClient(registry, clock=clock)


def test_records_are_kept_in_order(telemetry: MemoryClient) -> None:
    """Each call leaves the metric, the normalized value and the window."""
    telemetry.record("browser", "chrome")
    telemetry.record("dark_mode", True)
    with pytest.warns(UndeclaredValueWarning, match="browser") as warned:
        telemetry.record("browser", "lynx")
    assert "lynx" not in str(warned[0].message)
    assert telemetry.counters == {"other": 1}
    assert telemetry.records == [
        MemoryRecord("browser", "chrome", "2027-01-04"),
        MemoryRecord("dark_mode", "true", "2027-01-04"),
        MemoryRecord("browser", "other", "2027-01-04"),
    ]
    assert telemetry.values("browser") == ["chrome", "other"]
    telemetry.assert_recorded("dark_mode", True)
    telemetry.assert_recorded("browser", "chrome")


def test_helpers_fail_when_they_should(telemetry: MemoryClient) -> None:
    """The assertions fail, and name what was found instead."""
    telemetry.assert_nothing_recorded()
    telemetry.record("browser", "chrome")
    telemetry.assert_nothing_recorded("dark_mode")
    with pytest.raises(AssertionError, match="chrome"):
        telemetry.assert_recorded("browser", "edge")
    with pytest.raises(AssertionError, match="chrome"):
        telemetry.assert_nothing_recorded()
    with pytest.raises(MetricError):
        telemetry.assert_recorded("colour", "red")
    # A mistyped name must not let a test pass.
    for look in (telemetry.values, telemetry.assert_nothing_recorded):
        with pytest.raises(MetricError):
            look("colour")


def test_mistakes_raise_as_in_the_client(telemetry: MemoryClient) -> None:
    """Unknown metrics and wrong types raise MetricError."""
    for name, value in (("colour", "red"), ("dark_mode", "yes")):
        with pytest.raises(MetricError):
            telemetry.record(name, value)


def test_consent_and_expiry_hold(telemetry: MemoryClient, clock: Any) -> None:
    """Nothing is kept without consent or after a metric's last day."""
    with telemetry:
        telemetry.record("browser", "chrome")
        telemetry.opt_out()
        telemetry.record("browser", "chrome")
        telemetry.assert_nothing_recorded()
        telemetry.opt_in()
        clock.days(365 * 5)
        telemetry.record("browser", "chrome")
        telemetry.assert_nothing_recorded()
    assert telemetry.flush()
    assert telemetry.sent() == []


def test_it_honours_do_not_track(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the environment says so, nothing is kept, as in the client."""
    monkeypatch.setenv("DO_NOT_TRACK", "1")
    telemetry = MemoryClient(registry)
    telemetry.record("browser", "chrome")
    assert telemetry.status == "disabled"
    telemetry.assert_nothing_recorded()


def test_erasing_forgets_the_records(telemetry: MemoryClient) -> None:
    """`erase` empties it, and records go on."""
    telemetry.record("browser", "chrome")
    telemetry.erase()
    telemetry.assert_nothing_recorded()
    telemetry.record("browser", "edge")
    assert telemetry.values("browser") == ["edge"]


def test_it_touches_no_disk(registry: Registry, tmp_path: Path, monkeypatch: Any) -> None:
    """No file appears, whatever is asked of it."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with MemoryClient(registry) as telemetry:
        telemetry.record("browser", "chrome")
        telemetry.flush()
        assert "has not reported anything" in telemetry.owner_page()
        assert telemetry.sent() == []
        telemetry.opt_out()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_goes_on_recording(telemetry: MemoryClient) -> None:
    """A forked child of a test has a client that works, with the records so far."""
    telemetry.record("browser", "chrome")
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            telemetry.record("browser", "edge")
            code = 0 if telemetry.values("browser") == ["chrome", "edge"] else 2
        finally:
            os._exit(code)
    assert os.waitpid(pid, 0)[1] == 0


USES = """
from deniable import Client
from deniable.testing import MemoryClient


def app(telemetry: Client) -> str:
    telemetry.record("browser", "chrome")
    telemetry.erase()
    return f"{telemetry.status} {telemetry.consent} {telemetry.counters} {telemetry.owner_page()}"


app(MemoryClient("metrics.toml"))
"""


def test_a_type_checker_accepts_it_as_a_client(tmp_path: Path) -> None:
    """An app that asks for a Client takes a MemoryClient, says mypy in strict mode."""
    (tmp_path / "app.py").write_text(USES)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file=", "app.py"],
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": str(Path(__file__).parents[2] / "client")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "no issues found" in done.stdout


def test_it_has_every_member_of_the_client() -> None:
    """What is public in the client is there, and takes the same."""
    for name in [each for each in dir(Client) if not each.startswith("_")]:
        theirs, ours = getattr(Client, name), getattr(MemoryClient, name)
        if callable(theirs):
            assert inspect.signature(ours) == inspect.signature(theirs)

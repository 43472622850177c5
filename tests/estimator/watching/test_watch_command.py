"""`deniable watch` as cron and systemd call it, with a real webhook and a real mail server."""

import json
import os
import signal
import subprocess
import sys

import pytest
from click.testing import CliRunner
from tests.ports import until

from deniable_estimator.watching.commands import FAILED, TOLD, watch

RULES = """
schema = 1
dashboard = "https://d.acme.example"
only = ["browser"]
[defaults]
stale_days = 1
expires_days = 366
"""


@pytest.fixture
def write(tmp_path):
    """Write the rules, with more at their end."""

    def write(more=""):
        path = tmp_path / "rules.toml"
        path.write_text(RULES + more)
        return path

    return write


@pytest.fixture
def call(registry_file, store_url, write):
    """Run `deniable watch` on rules with more at their end: call(more, *arguments, **environ)."""

    def run(more, *arguments, **environ):
        given = ["--registry", str(registry_file), "--store", store_url, *arguments]
        return CliRunner().invoke(watch, [str(write(more)), *given], env=environ)

    return run


@pytest.fixture
def quiet_store(report):
    """A store whose only day is long ago, so that the metric is stale whatever the clock says."""
    report(-400)


@pytest.mark.usefixtures("quiet_store")
def test_once(call, hook, tmp_path):
    """It exits with 4 when it has told something, then with 0; the hook gets it once."""
    more = '[channels.ops]\nwebhook = "${HOOK}"\n'
    first = call(more, "--once", HOOK=hook.address)
    assert first.exit_code == TOLD, first.output
    assert "browser: no reports since 2025-08-31" in first.stdout
    assert "https://d.acme.example/metric/browser" in first.stdout
    assert "secret-path" not in first.output
    assert "secret-path" not in (tmp_path / "rules.toml.state").read_text()
    second = call(more, "--once", HOOK=hook.address)
    assert (second.exit_code, second.output) == (0, "")
    (body,) = map(json.loads, hook.bodies)
    assert {each["kind"] for each in body["messages"]} >= {"stale"}
    keys = {"id", "metric", "kind", "text", "since", "link", "facts", "body"}
    assert all(set(each) == keys for each in body["messages"])


@pytest.mark.usefixtures("quiet_store")
def test_a_failure_has_its_own_exit_code(call):
    """It exits with 5 when a channel failed, and says which without its address."""
    more = '[channels.ops]\nwebhook = "http://127.0.0.1:9/secret-path"\n'
    for _ in range(2):
        result = call(more, "--once")
        assert result.exit_code == FAILED
        assert "channel 'ops' failed: it cannot be reached" in result.stderr
        assert "secret" not in result.output


@pytest.mark.campaign
@pytest.mark.usefixtures("quiet_store")
def test_a_service_ends_cleanly(write, registry_file, store_url, tmp_path):
    """It tells, waits, and ends with 0 at once on SIGTERM; meanwhile a second one is refused only
    while a run is under way."""
    path = write("")
    process = subprocess.Popen(
        [
            *(sys.executable, "-c", "from deniable.cli import main; main()", "watch", str(path)),
            *("--registry", str(registry_file), "--store", store_url, "--every", "1h"),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert process.stdout is not None
    assert "browser: " in process.stdout.readline()
    state = tmp_path / "rules.toml.state"
    until(state.exists)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, "")


@pytest.mark.usefixtures("quiet_store")
def test_two_runs_do_not_tell_the_same(call, tmp_path):
    """While one run holds the state, another is refused."""
    import fcntl

    with (tmp_path / "rules.toml.state.lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        result = call("", "--once")
    assert result.exit_code == 1
    assert "another deniable watch uses" in result.output
    assert call("", "--once").exit_code == TOLD

"""Secrets come from the environment or from files, and are printed nowhere."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from deniable_collector.settings import Settings, SettingsError

ROOT = Path(__file__).parents[2]
SECRET = "hush-hush-very-secret"
SECRETS = {
    "DENIABLE_STORE": f"redis://user:{SECRET}@127.0.0.1:1/0",
    "DENIABLE_REDIS_PASSWORD": SECRET,
    "DENIABLE_INGEST_KEYS": f"{SECRET}-1,{SECRET}-2",
}


def run(folder, *arguments, **environ):
    """What a command prints, output and errors together."""
    command = [sys.executable, "-c", "from deniable.cli import main; main()", *arguments]
    done = subprocess.run(
        command,
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", **environ},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
    )
    return done.stdout


def test_settings_hide_their_secrets():
    """Neither repr nor the settings in force nor their table show a secret; keys are not even
    kept."""
    settings = Settings.from_env(SECRETS)
    for text in (repr(settings), str(settings), json.dumps(settings.in_force(), default=str)):
        assert SECRET not in text
    assert SECRET not in repr(settings.ingest_keys)
    assert SECRET not in repr(Settings.table())


@pytest.mark.parametrize("name", [name for name in SECRETS if name != "DENIABLE_STORE"])
def test_a_bad_secret_is_not_repeated(name, tmp_path):
    """An error about a secret names its variable and not its value, from a file too."""
    bad = {"DENIABLE_INGEST_KEYS": f"{SECRET} with spaces"}.get(name)
    if bad is not None:
        with pytest.raises(SettingsError) as caught:
            Settings.from_env({name: bad})
        assert name in str(caught.value)
        assert SECRET not in str(caught.value)
    path = tmp_path / "secret"
    path.write_text(SECRETS[name])
    with pytest.raises(SettingsError) as caught:
        Settings.from_env({name: SECRETS[name], f"{name}_FILE": str(path)})
    assert SECRET not in str(caught.value)


def test_commands_do_not_print_secrets(tmp_path):
    """Neither help nor any error of the collector's command shows a secret of the environment."""
    shown = run(tmp_path, "collect", "--help", **SECRETS)
    assert "Usage" in shown
    missing = run(tmp_path, "collect", **SECRETS)
    assert "metrics.toml" in missing
    wrong = run(tmp_path, "collect", **SECRETS, DENIABLE_WORKERS="none", DENIABLE_RATE="much")
    assert "DENIABLE_WORKERS" in wrong
    odd = {"DENIABLE_STORE": f"mysql://user:{SECRET}@host/0"}
    (tmp_path / "metrics.toml").write_text("schema = 1\napp = 'example'\n[metrics]\n")
    refused = run(tmp_path, "collect", **odd)
    assert "Error" in refused
    for text in (shown, missing, wrong, refused):
        assert SECRET not in text


@pytest.mark.parametrize("name", ["DENIABLE_STORE", "DENIABLE_REDIS_PASSWORD"])
def test_a_running_collector_does_not_print_secrets(new_collector, name):
    """Start, settings in force, a store that cannot be reached, and stop: no line has a secret."""
    store = {"DENIABLE_STORE": "redis://127.0.0.1:1/0", name: SECRETS[name]}
    keys = SECRETS["DENIABLE_INGEST_KEYS"]
    collector = new_collector(**store, DENIABLE_INGEST_KEYS=keys)
    collector.stop()
    assert "started" in collector.log
    assert SECRET not in collector.log + collector.output

"""The dashboard's settings and its command."""

from __future__ import annotations

import os
import re
import secrets
import shlex
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from deniable import Registry
from deniable_collector import settings as collector
from deniable_collector.settings import SettingsError
from deniable_collector.stores import Store
from deniable_estimator.dashboard import create_app
from deniable_estimator.dashboard.commands import dashboard
from deniable_estimator.dashboard.settings import DashboardSettings

from .conftest import TOKEN

GOOD = (
    'schema = 1\napp = "example"\n'
    '[metrics.m]\ntype = "boolean"\ndescription = "?"\nowner = "me"\n'
    "expires = 2027-06-30\nepsilon = 1.0\nlifetime_epsilon = 8.0\n"
)


def test_the_token_may_stand_in_a_file(tmp_path: Path) -> None:
    """A secret that is mounted as a file is read without its line break."""
    path = tmp_path / "token"
    path.write_text(f"{TOKEN}\n")
    settings = DashboardSettings.from_env({"DENIABLE_DASHBOARD_TOKEN_FILE": str(path)})
    assert settings.dashboard_token == TOKEN
    assert TOKEN not in repr(settings)


def test_the_collector_knows_the_dashboard_s_names() -> None:
    """A collector with the dashboard's variables in its environment takes none for a mistake; the
    dashboard refuses its own where they are misspelt."""
    names = {name for name, _, _ in DashboardSettings.table()}
    mine = names - {name for name, _, _ in collector.Settings.table()}
    assert len(mine) > 5
    assert collector.Settings.strangers(dict.fromkeys(mine, "1")) == []
    assert collector.Settings.from_env(dict.fromkeys(mine, "1")) == collector.Settings()
    with pytest.raises(SettingsError, match="write DENIABLE_DASHBOARD_TOKEN"):
        DashboardSettings.from_env({"DENIABLE_DASHBOARD_TOKN": "1"})


@pytest.mark.parametrize(
    "token",
    [
        "short",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "0123456789abcdef0123456789abcdef",
        "correct horse battery staple",
        "Password2026!Password2026!",
        "abCdEf12",
    ],
)
def test_a_token_that_can_be_guessed_is_refused(token: str) -> None:
    """Short ones, repeated ones, rows and words; the message has a command whose token is taken,
    and does not repeat the bad one."""
    with pytest.raises(SettingsError, match="DENIABLE_DASHBOARD_TOKEN can be guessed") as caught:
        DashboardSettings.from_env({"DENIABLE_DASHBOARD_TOKEN": token})
    assert token not in str(caught.value)
    command = re.search(r"`(.+)`", str(caught.value))
    assert command is not None
    made = subprocess.check_output(shlex.split(command[1]), text=True).strip()
    assert DashboardSettings.from_env({"DENIABLE_DASHBOARD_TOKEN": made}).dashboard_token == made


@pytest.mark.parametrize("count", [16, 32, 64])
def test_a_random_token_is_taken(count: int) -> None:
    """So many random bytes, as hexadecimal digits; of 16, zxcvbn underestimates fewer than one in
    a million below the limit."""
    made = secrets.token_hex(count)
    assert DashboardSettings.from_env({"DENIABLE_DASHBOARD_TOKEN": made}).dashboard_token == made


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("PUBLIC_URL", "deniable.acme.example"),
        ("PUBLIC_URL", "https://deniable.acme.example/"),
        ("PUBLIC_URL", 'https://x.example" onload="'),
    ],
)
def test_addresses_are_checked(name: str, text: str) -> None:
    """What is no address is refused at the start."""
    with pytest.raises(SettingsError, match=f"DENIABLE_{name} must be"):
        DashboardSettings.from_env({f"DENIABLE_{name}": text})
    good = "https://[2001:db8::1]:8443"
    assert DashboardSettings.from_env({f"DENIABLE_{name}": good})


def test_no_dashboard_opens_without_a_token(empty_store: Store, registry: Registry) -> None:
    """An empty token must not mean that anybody may enter."""
    with pytest.raises(SettingsError, match="DENIABLE_DASHBOARD_TOKEN"):
        create_app(DashboardSettings(), store=empty_store, registry=registry)


def test_the_command_makes_a_token_and_becomes_gunicorn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a token one is made, printed and handed on; options win over the environment."""
    (tmp_path / "metrics.toml").write_text(GOOD)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DENIABLE_STORE", "sqlite:///other.db")
    monkeypatch.delenv("DENIABLE_DASHBOARD_TOKEN", raising=False)
    became: list[dict[str, str]] = []
    monkeypatch.setattr(os, "execve", lambda path, arguments, environ: became.append(environ))
    result = CliRunner().invoke(
        dashboard, ["--store", "sqlite:///mine.db", "--bind", "localhost:0"]
    )
    assert result.exit_code == 0, result.output
    (environ,) = became
    token = environ["DENIABLE_DASHBOARD_TOKEN"]
    assert len(token) >= 16
    assert token in result.output
    assert environ["DENIABLE_STORE"] == "sqlite:///mine.db"
    assert environ["DENIABLE_DASHBOARD_BIND"] == "localhost:0"


@pytest.mark.parametrize(
    ("text", "size"), [("1048576", 1 << 20), ("64 MiB", 64 << 20), ("2 GiB", 2 << 30)]
)
def test_sizes_are_written_with_or_without_units(text: str, size: int) -> None:
    """Bytes, KiB, MiB or GiB, for the cache and for uploads alike."""
    names = ("DENIABLE_DASHBOARD_CACHE", "DENIABLE_DASHBOARD_UPLOAD")
    settings = DashboardSettings.from_env(dict.fromkeys(names, text))
    assert (settings.dashboard_cache, settings.dashboard_upload) == (size, size)

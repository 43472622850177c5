"""The dashboard's settings and its command."""

import os
import re
import secrets
import shlex
import subprocess

import pytest
from click.testing import CliRunner

from deniable_collector import settings as collector
from deniable_collector.settings import SettingsError
from deniable_estimator.dashboard import create_app
from deniable_estimator.dashboard.commands import dashboard
from deniable_estimator.dashboard.settings import DashboardSettings

from .conftest import REGISTRY, TOKEN


def test_the_token_may_stand_in_a_file(tmp_path):
    """A secret that is mounted as a file is read without its line break."""
    path = tmp_path / "token"
    path.write_text(f"{TOKEN}\n")
    settings = DashboardSettings.from_env({"DENIABLE_DASHBOARD_TOKEN_FILE": str(path)})
    assert settings.dashboard_token == TOKEN
    assert TOKEN not in repr(settings)


def test_the_collector_knows_the_dashboard_s_names():
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
def test_a_token_that_can_be_guessed_is_refused(token):
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
def test_a_random_token_is_taken(count):
    """So many random bytes, as hexadecimal digits; of 16, zxcvbn underestimates fewer than one in
    a million below the limit."""
    made = secrets.token_hex(count)
    assert DashboardSettings.from_env({"DENIABLE_DASHBOARD_TOKEN": made}).dashboard_token == made


_SWITCH, _PART = "must be 1 or 0", "must be a number between 0 and 1"
_ABOVE, _ORIGIN = "must be an epsilon above 0", "must be origins"
_ADDRESS = "https://[2001:db8::1]:8443"
CHOICES = [
    ("SHARE_RELEASES", "share_releases", {"1": True, "0": False}, ["yes", "", "2"], _SWITCH),
    ("FAKES", "fakes", {"0.05": 0.05, ".5": 0.5}, ["0", "0.0", "1", "-0.1", "1%", "nan"], _PART),
    ("RELEASE_BUDGET", "release_budget", {"2.5": 2.5, "1e-3": 0.001}, ["0", "inf", "x"], _ABOVE),
    (
        *("RELEASE_DELTA", "release_delta", {"1e-6": 1e-6, "0.001": 0.001, "1e-30": 1e-30}),
        *(["0.0011", "1e-31", "nan", "."], "must be a probability"),
    ),
    (
        *("DASHBOARD_LINK_DAYS", "dashboard_link_days", {"1": 1, "3660": 3660}),
        *(["0", "3661", "-1", "10000"], "must be a whole number from 1 to 3660"),
    ),
    (
        *("DASHBOARD_MEMORY", "dashboard_memory", {"512 MiB": 1 << 29}),
        *(["511 MiB", "1 KiB"], "must be at least 512 MiB"),
    ),
    (
        *("DASHBOARD_CACHE", "dashboard_cache"),
        {"1024": 1024, "2 KiB": 2 << 10, "64 MiB": 64 << 20, "1024 GiB": 1 << 40},
        *(["1023", "1025 GiB", "1 TiB"], "must be a size"),
    ),
    ("DASHBOARD_UPLOAD", "dashboard_upload", {"64 MiB": 64 << 20}, ["1 TiB"], "must be a size"),
    (
        *("PUBLIC_URL", "public_url", {_ADDRESS: _ADDRESS}),
        ["deniable.acme.example", f"{_ADDRESS}/", 'https://x.example" onload="'],
        "must be",
    ),
    (
        *("DASHBOARD_FRAME_ANCESTORS", "dashboard_frame_ancestors"),
        {"http://A.example, https://b.example:8443": "http://A.example https://b.example:8443"},
        *(["*", "https://*.example", "https://a.example/", "https://a.example x"], _ORIGIN),
    ),
    *(
        (f"DASHBOARD_{name}", f"dashboard_{name.lower()}", {str(low): low, str(high): high}, bad,
         f"must be a whole number from {low} to {high}")
        for name, low, high in (
            ("STRINGS", 1, 1_000_000), ("WORKERS", 1, 64), ("SECONDS", 1, 3600), ("QUEUE", 1, 1000),
            ("QUEUE_OF_ONE", 1, 1000),
        )
        for bad in ([str(low - 1), str(high + 1), "many"],)
    ),
]  # fmt: skip


@pytest.mark.parametrize(("name", "field", "good", "bad", "told"), CHOICES)
def test_what_a_setting_takes(name, field, good, bad, told):
    """The bounds are taken, and what lies beyond them is refused in words."""
    for text, value in good.items():
        assert getattr(DashboardSettings.from_env({f"DENIABLE_{name}": text}), field) == value
    for text in bad:
        if text:
            with pytest.raises(SettingsError, match=f"DENIABLE_{name} {told}"):
                DashboardSettings.from_env({f"DENIABLE_{name}": text})


def test_files_and_folders(tmp_path):
    """A folder must be there, and be no file."""
    inside, away = str(tmp_path / "a.toml"), str(tmp_path / "away" / "a.toml")
    for name in ("CANDIDATES_DIR", "BOARDS"):
        assert DashboardSettings.from_env({f"DENIABLE_{name}": str(tmp_path)})
        for each in (away, inside):
            with pytest.raises(SettingsError, match=f"DENIABLE_{name} must be a f"):
                DashboardSettings.from_env({f"DENIABLE_{name}": each})


def test_no_dashboard_opens_without_a_token(empty_store, registry):
    """An empty token must not mean that anybody may enter."""
    with pytest.raises(SettingsError, match="DENIABLE_DASHBOARD_TOKEN"):
        create_app(DashboardSettings(), store=empty_store, registry=registry)


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Calls `deniable dashboard`; the result, and the environments of the gunicorns that it
    became."""
    (tmp_path / "metrics.toml").write_text(REGISTRY)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DENIABLE_STORE", "sqlite:///other.db")
    monkeypatch.delenv("DENIABLE_DASHBOARD_TOKEN", raising=False)
    became = []
    monkeypatch.setattr(os, "execve", lambda path, arguments, environ: became.append(environ))
    options = ["--store", "sqlite:///mine.db", "--bind", "localhost:0"]
    return lambda: (CliRunner().invoke(dashboard, options), became)


def test_the_command_makes_a_token_and_becomes_gunicorn(run):
    """Without a token one is made, printed and handed on; options win over the environment."""
    result, became = run()
    assert result.exit_code == 0, result.output
    (environ,) = became
    token = environ["DENIABLE_DASHBOARD_TOKEN"]
    assert len(token) >= 16
    assert token in result.output
    assert environ["DENIABLE_STORE"] == "sqlite:///mine.db"
    assert environ["DENIABLE_DASHBOARD_BIND"] == "localhost:0"


@pytest.mark.parametrize(
    ("file", "told"),
    [
        ("deniable-data", "the folder deniable-data cannot be made: File exists"),
        ("deniable-data/links.db", "deniable-data/links.db cannot be opened: file is not a da"),
        ("deniable-data/sessions.db", "sessions.db cannot be opened: file is not a database"),
        ("deniable-data/links.db/folder", "deniable-data/links.db cannot be opened: Is a dir"),
    ],
)
def test_what_is_kept_is_opened_before_anything_starts(run, tmp_path, file, told):
    """A folder of data that is none, and a damaged file in it, end the command as a setting does,
    before it has printed a token."""
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / file).write_text("It is no database, and no TOML either. " * 50)
    result, became = run()
    assert not became
    assert result.exit_code == 1
    assert told in result.output
    assert "token:" not in result.output
    assert "Traceback" not in result.output

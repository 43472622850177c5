"""Settings from the environment. Secrets come from there or from files, and are printed nowhere."""

import json

import click
import pytest
from click.testing import CliRunner

from deniable_collector.options import registry_option
from deniable_collector.settings import Settings, SettingsError

from .test_admission import hashed


def test_defaults():
    """An empty environment makes the documented defaults, and empty variables count as none."""
    assert Settings.from_env({}) == Settings.from_env({"DENIABLE_WORKERS": ""}) == Settings()
    assert repr(Settings()) == (
        "Settings(registry='metrics.toml', redis_prefix='deniable', shards=1, redis_replicas=0, "
        "keep_days=0, journal_seconds=60, bind='127.0.0.1:8080', workers=2, max_body=1048576, "
        "max_reports=1000, queue=33554432, trusted_proxies=0, metrics_bind='', log_format='text', "
        "request_timeout=30, keep_alive=15, max_connections=900, network_connections=600, "
        "rate='20/second', cors_origins=(), gateway_keys='')"
    )


EACH = {
    "registry": ("/etc/metrics.toml", "/etc/metrics.toml"),
    "store": ("redis://r", "redis://r"),
    "redis_prefix": ("acme:deniable", "acme:deniable"),
    "shards": ("16", 16),
    "redis_password": ("hush", "hush"),
    "redis_replicas": ("1", 1),
    "keep_days": ("400", 400),
    "journal_seconds": ("120", 120),
    "bind": ("[::1]:9000", "[::1]:9000"),
    "workers": ("4", 4),
    "max_body": ("64 KiB", 65_536),
    "max_reports": ("10", 10),
    "queue": ("1 MiB", 1_048_576),
    "trusted_proxies": ("1", 1),
    "metrics_bind": ("127.0.0.1:9464", "127.0.0.1:9464"),
    "log_format": ("json", "json"),
    "request_timeout": ("6", 6),
    "keep_alive": ("7", 7),
    "network_connections": ("5", 5),
    "max_connections": ("800", 800),
    "rate": ("600/minute", "600/minute"),
    "ingest_keys": (
        "# for phones\nfirst-key-of-the-app,\nsecond-key-of-the-app=",
        hashed("first-key-of-the-app", "second-key-of-the-app="),
    ),
    "cors_origins": (
        "https://app.example, http://localhost:3000",
        ("https://app.example", "http://localhost:3000"),
    ),
    "gateway_keys": ("/run/keys.json", "/run/keys.json"),
    "relay_keys": ("a-key-for-the-relay", hashed("a-key-for-the-relay")),
}


def test_all_of_them():
    """Every setting has its variable."""
    environ = {f"DENIABLE_{name.upper()}": text for name, (text, _) in EACH.items()}
    assert Settings.from_env(environ) == Settings(
        **{name: each for name, (_, each) in EACH.items()}
    )
    assert {name for name, _, _ in Settings.table()} == set(environ)
    assert all(summary for _, _, summary in Settings.table())


BOUNDS = {
    "workers": (1, 256),
    "shards": (1, 1024),
    "redis_replicas": (0, 16),
    "keep_days": (0, 36_500),
    "journal_seconds": (0, 86_400),
    "trusted_proxies": (0, 10),
    "request_timeout": (1, 3600),
    "keep_alive": (1, 3600),
    "max_reports": (1, 1_000_000),
    **dict.fromkeys(("max_connections", "network_connections"), (1, 1_000_000)),
}
TAKEN = [
    *(("max_body", each, 1 << 20) for each in ("1048576", "1024 kib")),
    *(("max_body", "1KiB", 1 << 10), ("max_body", "256 MiB", 1 << 28)),
    *(("bind", each, each) for each in ("0.0.0.0:65535", "unix:/run/d")),
    *((name, str(each), each) for name, bounds in BOUNDS.items() for each in bounds),
]


@pytest.mark.parametrize(("name", "text", "value"), TAKEN)
def test_what_is_taken(name, text, value):
    """A size may be written in bytes, KiB or MiB; the least and the most are no mistakes."""
    assert getattr(Settings.from_env({f"DENIABLE_{name.upper()}": text}), name) == value


WRONG = {
    "WORKERS": ["two", "1.5", "9" * 5000, "٣"],
    "MAX_BODY": ["1023", "1 GB", "1 GiB", "-1", "257 MiB", "999999999 MiB"],
    "BIND": ["8080", "localhost", ":8080", "host:65536", "a b:1", "unix:"],
    "REDIS_PREFIX": ["{0}", "a b", "*", "x" * 65],
    "JOURNAL_SECONDS": ["1", "a minute", "1.5"],
    "KEEP_DAYS": ["7", "1", "-8", "a year"],
    "RATE": ["600", "0/minute", "600/year", "600 per minute", "-1/second"],
    "INGEST_KEYS": ["short", "a-key-that-is-long-enough, short", "# a-remark-alone", ","],
    "CORS_ORIGINS": [
        *("app.example", "https://app.example/", "https://A.example", "*, https://b.example"),
    ],
    "METRICS_BIND": ["9464", "host:0", "host:99999", "unix:/x", "127.0.0.1:8080"],
    "LOG_FORMAT": ["JSON", "logfmt"],
    # Nearly the name of a setting.
    **{name: ["hush"] for name in ("STOR", "TRUSTED_PROXY", "REDIS_PASSWORT_FILE")},
}


def test_wrong_values(stays):
    """A wrong value is an error that names its variable, and the least and the most; so is a
    variable whose name is nearly a setting's, and its value, which may be a secret, is not
    repeated. `settings.txt` has the messages."""
    given = [(name, value) for name, values in WRONG.items() for value in values]
    for name, (lowest, highest) in BOUNDS.items():
        given += [(name.upper(), str(value)) for value in (lowest - 1, highest + 1)]
    lines = []
    for name, value in given:
        with pytest.raises(SettingsError) as caught:
            Settings.from_env({f"DENIABLE_{name}": value})
        (told,) = caught.value.problems
        assert "hush" not in told
        lines.append(f"{value[:40]}: {told}")
    stays("settings.txt", lines)


def test_all_mistakes_at_once():
    """Every wrong setting is reported, not the first alone."""
    environ = {"DENIABLE_WORKERS": "0", "DENIABLE_BIND": "x", "DENIABLE_MAX_BODY": "y"}
    with pytest.raises(SettingsError) as caught:
        Settings.from_env(environ)
    assert len(caught.value.problems) == 3
    assert all(name in str(caught.value) for name in environ)


def test_secrets_from_files(tmp_path):
    """A variable may name a file instead, which holds its value, also of a registry's path; both at
    once, or no such file, is a mistake."""
    path = tmp_path / "secret"
    path.write_text("redis://:hush@host/0\n")
    environ = {"DENIABLE_STORE_FILE": str(path)}
    assert Settings.from_env(environ).store == "redis://:hush@host/0"
    with pytest.raises(SettingsError, match="both set"):
        Settings.from_env({**environ, "DENIABLE_STORE": "redis://other"})
    with pytest.raises(SettingsError, match="DENIABLE_STORE_FILE: No such file"):
        Settings.from_env({"DENIABLE_STORE_FILE": str(tmp_path / "none")})
    path.write_text("\n")
    with pytest.raises(SettingsError, match="it is empty"):
        Settings.from_env(environ)
    path.write_bytes(b"\xff")
    with pytest.raises(SettingsError, match="not UTF-8"):
        Settings.from_env(environ)
    path.write_text("schema = 1\napp = 'editor'\n")
    with pytest.raises(SettingsError, match=r"must be one path.* DENIABLE_REGISTRY_FILE"):
        Settings.from_env({"DENIABLE_REGISTRY_FILE": str(path)})


@pytest.mark.parametrize(
    ("name", "meant"), [("DENIABLE_PROXIES", "DENIABLE_TRUSTED_PROXIES"), ("DENIABLE_PORT", "")]
)
def test_an_unknown_setting_is_told(name, meant):
    """Another unknown variable stops nothing, as it may be somebody else's, and is told; the name
    of the nearest setting with it, if there is one."""
    assert Settings.from_env({name: "1"}) == Settings()
    (told,) = Settings.strangers({name: "1", "PATH": "/", "DENIABLE_WORKERS": "1"})
    assert name in told
    assert meant in told
    assert ("DENIABLE_" in told.replace(name, "")) == bool(meant)


@pytest.mark.parametrize(
    "name",
    ["DENIABLE_DASHBOARD_TOKEN", "DENIABLE_API_TOKENS_FILE", "DENIABLE_DISABLED",
     "DENIABLE_INGEST_KEY", "DENIABLE_FAKES"],
)  # fmt: skip
def test_settings_of_others_are_known(name):
    """One environment may hold what the dashboard, the SDK and the commands read as well."""
    assert Settings.from_env({name: "1"}) == Settings()
    assert Settings.strangers({name: "1"}) == []


@click.command()
@registry_option
def show(registry):
    """A command that reads a registry."""
    click.echo(registry)


def test_options_follow_the_rule_of_files(tmp_path, monkeypatch):
    """A command's option takes its variable from a NAME_FILE too, and from one of both alone."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "path").write_text("mine.toml\n")
    (tmp_path / "mine.toml").write_text("schema = 1\napp = 'editor'\n")

    def told(**environ):
        return CliRunner().invoke(show, env=environ).output

    assert told() == "metrics.toml\n"
    assert told(DENIABLE_REGISTRY="mine.toml") == "mine.toml\n"
    assert told(DENIABLE_REGISTRY_FILE="path") == "mine.toml\n"
    assert "both set" in told(DENIABLE_REGISTRY_FILE="path", DENIABLE_REGISTRY="mine.toml")
    assert "must be one path" in told(DENIABLE_REGISTRY_FILE="mine.toml")


SECRET = "hush-hush-very-secret"
SECRETS = {
    "DENIABLE_STORE": f"redis://user:{SECRET}@127.0.0.1:1/0",
    "DENIABLE_REDIS_PASSWORD": SECRET,
    "DENIABLE_INGEST_KEYS": f"{SECRET}-1,{SECRET}-2",
}


def test_settings_hide_their_secrets():
    """Neither repr nor the settings in force nor their table show a secret; keys are not even
    kept."""
    settings = Settings.from_env(SECRETS)
    for text in (repr(settings), str(settings), json.dumps(settings.in_force(), default=str)):
        assert SECRET not in text
    assert SECRET not in repr(settings.ingest_keys)
    assert SECRET not in repr(Settings.table())


@pytest.mark.parametrize("name", SECRETS)
@pytest.mark.parametrize("given", [{}, {"DENIABLE_INGEST_KEYS": f"{SECRET} with spaces"}])
def test_a_bad_secret_is_not_repeated(name, given, tmp_path):
    """An error about a secret names its variable and not its value, from a file too."""
    path = tmp_path / "secret"
    path.write_text(SECRETS[name])
    with pytest.raises(SettingsError) as caught:
        Settings.from_env({**SECRETS, **given, f"{name}_FILE": str(path)})
    assert all(each in str(caught.value) for each in (name, *given))
    assert SECRET not in str(caught.value)


def test_a_running_collector_does_not_print_secrets(new_collector):
    """It starts with a store that cannot be reached, as devices keep their batches meanwhile, and
    warns of it. Of its start, settings in force and stop no line has a secret."""
    environ = {name: SECRETS[name] for name in ("DENIABLE_STORE", "DENIABLE_INGEST_KEYS")}
    collector = new_collector(**environ)
    collector.stop()
    assert "started" in collector.log
    assert "warning" in collector.log + collector.output
    assert SECRET not in collector.log + collector.output

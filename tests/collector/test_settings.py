"""Settings from the environment."""

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
    for bind in ("0.0.0.0:65535", "unix:/run/d"):
        assert Settings.from_env({"DENIABLE_BIND": bind}).bind == bind


@pytest.mark.parametrize(
    ("text", "size"),
    [("1048576", 1 << 20), ("1024 kib", 1 << 20), ("1KiB", 1 << 10), ("256 MiB", 1 << 28)],
)
def test_sizes(text, size):
    """A size may be written in bytes, KiB or MiB, from the least to the most."""
    assert Settings.from_env({"DENIABLE_MAX_BODY": text}).max_body == size


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("WORKERS", ["two", "1.5", "9" * 5000, "٣"]),
        ("MAX_BODY", ["1023", "1 GB", "1 GiB", "-1", "257 MiB", "999999999 MiB"]),
        ("BIND", ["8080", "localhost", ":8080", "host:65536", "a b:1", "unix:"]),
        ("REDIS_PREFIX", ["{0}", "a b", "*", "x" * 65]),
        ("JOURNAL_SECONDS", ["1", "a minute", "1.5"]),
        ("KEEP_DAYS", ["7", "1", "-8", "a year"]),
        ("RATE", ["600", "0/minute", "600/year", "600 per minute", "-1/second"]),
        ("INGEST_KEYS", ["short", "a-key-that-is-long-enough, short", "# a-remark-alone", ","]),
        (
            "CORS_ORIGINS",
            ["app.example", "https://app.example/", "https://A.example", "*, https://b.example"],
        ),
        ("METRICS_BIND", ["9464", "host:0", "host:99999", "unix:/x", "127.0.0.1:8080"]),
        ("LOG_FORMAT", ["JSON", "logfmt"]),
    ],
)
def test_bad_values(name, values):
    """A wrong value is an error that names its variable."""
    for value in values:
        with pytest.raises(SettingsError, match=f"DENIABLE_{name} must be"):
            Settings.from_env({f"DENIABLE_{name}": value})


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


@pytest.mark.parametrize(("name", "bounds"), BOUNDS.items())
def test_the_bounds_are_taken(name, bounds):
    """The least and the most of a setting are no mistakes, and the message of others names both."""
    variable, (lowest, highest) = f"DENIABLE_{name.upper()}", bounds
    for value in bounds:
        assert getattr(Settings.from_env({variable: str(value)}), name) == value
    for value in (lowest - 1, highest + 1):
        with pytest.raises(SettingsError, match=f"a whole number from {lowest} to {highest}$"):
            Settings.from_env({variable: str(value)})


def test_all_mistakes_at_once():
    """Every wrong setting is reported, not the first alone."""
    environ = {"DENIABLE_WORKERS": "0", "DENIABLE_BIND": "x", "DENIABLE_MAX_BODY": "y"}
    with pytest.raises(SettingsError) as caught:
        Settings.from_env(environ)
    assert len(caught.value.problems) == 3
    assert all(name in str(caught.value) for name in environ)


def test_secrets_from_files(tmp_path):
    """A variable may name a file instead; both at once, or no such file, is a mistake."""
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


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("DENIABLE_STOR", "DENIABLE_STORE"),
        ("DENIABLE_TRUSTED_PROXY", "DENIABLE_TRUSTED_PROXIES"),
        ("DENIABLE_REDIS_PASSWORT_FILE", "DENIABLE_REDIS_PASSWORD_FILE"),
    ],
)
def test_a_misspelt_setting_is_refused(name, meant):
    """A variable whose name is nearly a setting's is a mistake that names the setting; its value,
    which may be a secret, is not repeated."""
    with pytest.raises(SettingsError) as caught:
        Settings.from_env({name: "hush"})
    assert caught.value.problems == (f"{name} is no setting: write {meant}",)


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


def test_a_file_that_is_the_registry_itself(tmp_path):
    """DENIABLE_REGISTRY_FILE is a file that holds the registry's path, as with every NAME_FILE;
    who gives the registry itself is told so."""
    path = tmp_path / "path"
    path.write_text("/etc/deniable/metrics.toml\n")
    environ = {"DENIABLE_REGISTRY_FILE": str(path)}
    assert Settings.from_env(environ).registry == "/etc/deniable/metrics.toml"
    path.write_text("schema = 1\napp = 'editor'\n")
    with pytest.raises(SettingsError, match="DENIABLE_REGISTRY must be one path") as caught:
        Settings.from_env(environ)
    assert "DENIABLE_REGISTRY_FILE" in str(caught.value)


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

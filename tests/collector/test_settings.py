"""Settings from the environment."""

from __future__ import annotations

import hashlib

import pytest

from hearsay_collector.settings import Settings, SettingsError


def test_defaults():
    """An empty environment makes the documented defaults, and empty variables count as none."""
    assert Settings.from_env({}) == Settings.from_env({"HEARSAY_WORKERS": ""}) == Settings()
    assert Settings().max_body == 1_048_576
    assert Settings().bind == "127.0.0.1:8080"


def test_all_of_them():
    """Every setting has its variable."""
    environ = {
        "HEARSAY_REGISTRY": "/etc/metrics.toml",
        "HEARSAY_STORE": "redis://r",
        "HEARSAY_REDIS_PREFIX": "acme:hearsay",
        "HEARSAY_SHARDS": "16",
        "HEARSAY_REDIS_USER": "collector",
        "HEARSAY_REDIS_PASSWORD": "hush",
        "HEARSAY_REDIS_CA": "/tls/ca.pem",
        "HEARSAY_REDIS_CERT": "/tls/cert.pem",
        "HEARSAY_REDIS_KEY": "/tls/key.pem",
        "HEARSAY_REDIS_REPLICAS": "1",
        "HEARSAY_KEEP_DAYS": "400",
        "HEARSAY_BIND": "[::1]:9000",
        "HEARSAY_WORKERS": "4",
        "HEARSAY_THREADS": "3",
        "HEARSAY_MAX_BODY": "64 KiB",
        "HEARSAY_MAX_REPORTS": "10",
        "HEARSAY_MAX_BINARY_BODY": "8 MiB",
        "HEARSAY_MAX_BINARY_REPORTS": "20",
        "HEARSAY_TICK": "0",
        "HEARSAY_QUEUE": "1 MiB",
        "HEARSAY_TRUSTED_PROXIES": "1",
        "HEARSAY_METRICS_BIND": "127.0.0.1:9464",
        "HEARSAY_LOG_FORMAT": "json",
        "HEARSAY_MAX_METRICS": "500",
        "HEARSAY_MAX_HEADER": "8 KiB",
        "HEARSAY_MAX_HEADERS": "32",
        "HEARSAY_REQUEST_TIMEOUT": "6",
        "HEARSAY_KEEP_ALIVE": "7",
        "HEARSAY_MAX_CONNECTIONS": "800",
        "HEARSAY_BACKLOG": "9",
        "HEARSAY_RATE": "600/minute",
        "HEARSAY_INGEST_KEYS": "# for phones\nfirst-key-of-the-app,\nsecond-key-of-the-app=",
        "HEARSAY_CORS_ORIGINS": "https://app.example, http://localhost:3000",
    }
    assert Settings.from_env(environ) == Settings(
        *("/etc/metrics.toml", "redis://r", "acme:hearsay", 16, "collector", "hush"),
        *("/tls/ca.pem", "/tls/cert.pem", "/tls/key.pem", 1, 400, "[::1]:9000", 4, 3),
        *(65_536, 10, 8_388_608, 20, 0, 1_048_576, 1),
        metrics_bind="127.0.0.1:9464",
        log_format="json",
        max_metrics=500,
        max_header=8192,
        max_headers=32,
        request_timeout=6,
        keep_alive=7,
        max_connections=800,
        backlog=9,
        rate="600/minute",
        ingest_keys=tuple(
            hashlib.sha256(key).digest()
            for key in (b"first-key-of-the-app", b"second-key-of-the-app=")
        ),
        cors_origins=("https://app.example", "http://localhost:3000"),
    )
    assert {name for name, _, _ in Settings.table()} == set(environ)
    assert all(summary for _, _, summary in Settings.table())


@pytest.mark.parametrize("text", ["1048576", "1024KiB", "1024 kib", "1 MiB"])
def test_sizes(text):
    """A size may be written in bytes, KiB or MiB."""
    assert Settings.from_env({"HEARSAY_MAX_BODY": text}).max_body == 1_048_576


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("WORKERS", ["0", "-1", "two", "1.5", "257", "9" * 5000, "٣"]),
        ("MAX_BODY", ["10", "1 GB", "1 GiB", "-1", "999999999 MiB"]),
        ("BIND", ["8080", "localhost", ":8080", "host:99999", "a b:1", "unix:"]),
        ("REDIS_PREFIX", ["{0}", "a b", "*", "x" * 65]),
        ("SHARDS", ["0"]),
        ("MAX_METRICS", ["99"]),
        ("REDIS_REPLICAS", ["-1", "17"]),
        ("KEEP_DAYS", ["7", "1", "-8", "36501", "a year"]),
        ("TRUSTED_PROXIES", ["yes"]),
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
        with pytest.raises(SettingsError, match=f"HEARSAY_{name} must be"):
            Settings.from_env({f"HEARSAY_{name}": value})


def test_all_mistakes_at_once():
    """Every wrong setting is reported, not the first alone."""
    environ = {"HEARSAY_WORKERS": "0", "HEARSAY_BIND": "x", "HEARSAY_MAX_BODY": "y"}
    with pytest.raises(SettingsError) as caught:
        Settings.from_env(environ)
    assert len(caught.value.problems) == 3
    assert all(name in str(caught.value) for name in environ)


def test_secrets_from_files(tmp_path):
    """A variable may name a file instead; both at once, or no such file, is a mistake."""
    path = tmp_path / "secret"
    path.write_text("redis://:hush@host/0\n")
    environ = {"HEARSAY_STORE_FILE": str(path)}
    assert Settings.from_env(environ).store == "redis://:hush@host/0"
    with pytest.raises(SettingsError, match="both set"):
        Settings.from_env({**environ, "HEARSAY_STORE": "redis://other"})
    with pytest.raises(SettingsError, match="HEARSAY_STORE_FILE: No such file"):
        Settings.from_env({"HEARSAY_STORE_FILE": str(tmp_path / "none")})
    path.write_text("\n")
    with pytest.raises(SettingsError, match="it is empty"):
        Settings.from_env(environ)
    path.write_bytes(b"\xff")
    with pytest.raises(SettingsError, match="not UTF-8"):
        Settings.from_env(environ)


def test_the_store_s_password_is_not_shown():
    """The address of the store, which may hold a password, is not part of the settings' text,
    and neither is the password given apart."""
    assert "hush" not in repr(Settings(store="redis://:hush@host/0", redis_password="hush"))

"""`deniable doctor` finds the mistakes of the first hour, each made for real."""

from __future__ import annotations

import http.server
import json
import os
import pwd
import shutil
import socket
import ssl
import threading
import time
from contextlib import contextmanager
from email.utils import formatdate
from pathlib import Path
from unittest import mock

import pytest
import redis
from click.testing import CliRunner

from deniable import Client, Registry
from deniable.tools.doctor import endpoint
from deniable.tools.doctor.command import doctor
from deniable.tools.sent_command import main as sent
from deniable_collector.operation import operator_checks

from .conftest import METRICS


@pytest.fixture(autouse=True)
def clean(monkeypatch, tmp_path, metrics):
    """A folder with a registry and a home, and none of our variables."""
    for name in [*os.environ]:
        if name.startswith("DENIABLE_") or name == "DO_NOT_TRACK":
            monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    Path("metrics.toml").write_text(metrics)


def run(*words):
    """The exit code, and the results by check and code."""
    done = CliRunner().invoke(doctor, [*map(str, words), "--json"])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.output
    found = {(e["check"], e["code"]): e for e in json.loads(done.stdout)["results"]}
    for each in found.values():
        assert each["message"]
        assert each["advice"] or each["level"] == "ok", each
    return done.exit_code, found


def edit(old, new):
    """Change the registry."""
    file = Path("metrics.toml")
    file.write_text(file.read_text().replace(old, new))


def record(value=True, **options):
    """What an app does with a value."""
    with Client("metrics.toml", **{"consent": True, **options}) as client:
        client.record("dark_mode", value)


def errors(found):
    return {code for (_, code), each in found.items() if each["level"] == "error"}


@contextmanager
def serving(status, body, *tls, ready=None, **headers):
    """A web server that is no collector, and sends the same to everyone; to who asks whether it is
    ready another status, if there is one."""

    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response_only(ready if ready and self.path == "/readyz" else status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET

        def log_message(self, format, *args):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    if tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*tls)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        server.handle_error = lambda *_: None  # type: ignore[method-assign]
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http{'s' * bool(tls)}://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


# ---- the device's side


def test_a_good_installation_has_no_error(running):
    """With a value recorded and a collector of the same registry nothing is wrong, exit 0."""
    record()
    code, found = run("--endpoint", running.address)
    assert (code, errors(found)) == (0, set())
    assert {key for key, e in found.items() if e["level"] != "ok"} == {("registry", "lint")}
    assert {("registry", "accepted"), ("state", "values_wait")} <= {*found}


def test_nobody_knows_where_the_state_is(monkeypatch):
    """Without a home directory --state-dir is asked for."""

    for name in ("XDG_STATE_HOME", "HOME"):
        monkeypatch.delenv(name)
    monkeypatch.setattr(pwd, "getpwuid", mock.Mock(side_effect=KeyError))
    code, found = run()
    assert (code, errors(found)) == (1, {"no_folder"})


def test_what_lint_warns_of():
    """It is named; a registry whose metrics are all over is an error."""
    code, found = run()
    assert (code, errors(found)) == (0, set())
    assert found["registry", "lint"]["message"].endswith("metrics.country")
    edit("2999-06-30", "2020-01-01")
    code, found = run()
    assert (code, errors(found)) == (1, {"expired"})


def test_consent_was_forgotten():
    """What a client without consent was given is found as "nothing was ever recorded"."""
    for consent in (False, True, False):
        record(consent=consent)  # Without consent, it also deletes what there was.
        assert (("state", "nothing_recorded") in run()[1]) is not consent


def test_damaged_and_foreign_states():
    """A damaged state and another app's are errors with different advice."""
    record(state_dir="state")
    (file,) = Path("state").glob("*.sqlite3")
    whole = file.read_bytes()
    file.write_bytes(whole[:4096] + os.urandom(4096) + whole[8192:])
    assert errors(run("--state-dir", "state")[1]) == {"damaged"}
    file.write_bytes(whole)
    edit('app = "example"', 'app = "another"')
    assert errors(run("--state-dir", "state")[1]) == {"foreign_state"}


def test_switched_off():
    """A device whose owner has switched reporting off is found."""
    Path("state").mkdir()
    assert sent(["--switch-off", "--state-dir", "state"]) in (0, None)
    code, found = run("--state-dir", "state")
    assert (code, errors(found)) == (1, {"switched_off"})


def test_what_waits_was_sent_refused_and_spent(running):
    """Reports that wait, that were sent or refused with their reason, and a budget that is spent
    are told."""
    edit("lifetime_epsilon = 8.0", "lifetime_epsilon = 4.0")
    for address, days in ((running.address, 20), (running.address, 1), (None, 18)):
        now = [time.time() - days * 86_400]
        with Client(
            "metrics.toml",
            address,
            state_dir="state",
            clock=lambda now=now: now[0],
            background=False,
            consent=True,
        ) as client:
            client.record("browser", "firefox")
            client.flush()
            now[0] += 86_400
            client.flush()
    found = run("--state-dir", "state")[1]
    assert found["state", "sent"]["level"] == "ok"
    assert "window_too_old" in found["state", "rejected"]["message"]
    assert "browser" in found["state", "spent"]["message"]


def test_clear_text_beyond_this_machine():
    """http:// to another host is a warning, and to this one none; a name that is not known is
    an error."""
    code, found = run("--endpoint", "http://nowhere.invalid")
    assert found["endpoint", "no_tls"]["level"] == "warning"
    assert code == 1
    assert errors(found) == {"unknown_host"}


def test_no_response(monkeypatch):
    """A server that takes the connection and says nothing is an error after the timeout."""
    monkeypatch.setattr(endpoint, "TIMEOUT", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        found = run("--endpoint", f"http://127.0.0.1:{silent.getsockname()[1]}")[1]
    assert errors(found) == {"unreachable"}


@pytest.mark.parametrize(
    ("status", "body", "headers", "code", "told"),
    [
        (200, b"<!doctype html><html>Sign in</html>", {}, "not_a_collector", ""),
        (200, b'{"metrics": 3}', {}, "not_a_collector", ""),
        (202, b'{"batch": 3}', {}, "not_a_collector", ""),
        (503, b'{"type": "urn:deniable:problem:queue-full"}', {}, "refused_batch", "queue-full"),
        (301, b"", {"Location": "https://t.acme.example/v1/reports?a=b"}, "redirect",
         "to https://t.acme.example/v1/reports,"),
        (302, b"", {"Location": "a b\u001b"}, "redirect", ""),
    ],
)  # fmt: skip
def test_a_page_of_a_proxy(status, body, headers, code, told):
    """A login page with status 200 is no collector, nor is JSON of something else, nor a server
    whose responses to reports are no collector's; a redirect is told with where it leads, without
    its query and without what a terminal would obey."""
    with serving(status, body, **headers) as address:
        found = run("--endpoint", address)[1]
    assert errors(found) == {code}
    assert told in str(found)
    assert "\\x1b" not in str(found)


def test_a_path_too_much(running):
    """The address of the route in place of the collector's is found."""
    assert errors(run("--endpoint", f"{running.address}/v1/reports")[1]) == {"wrong_path"}


def test_an_ingest_key(new_collector, monkeypatch):
    """A missing key, a wrong key and the right one are told apart."""
    key = "a-key-of-the-editor-app"
    address = new_collector(DENIABLE_INGEST_KEYS=key, DENIABLE_WORKERS="1").address
    told = []
    for given in ("", "a-key-of-another-app", key):
        monkeypatch.setenv("DENIABLE_INGEST_KEY", given)
        found = run("--endpoint", address)[1]
        assert "another-app" not in str(found)
        told.append(found.get(("endpoint", "ingest_key"), {}).get("message", ""))
    assert ("asks for" in told[0], "does not accept" in told[1], told[2]) == (True, True, "")
    assert ("registry", "accepted") in found


@pytest.mark.parametrize(
    ("metric", "old", "new"),
    [
        ("browser (unknown_scheme)", "epsilon = 2.0", "epsilon = 1.5"),
        ("light_mode (unknown_metric)", "[metrics.dark_mode]", "[metrics.light_mode]"),
    ],
)
def test_another_registry(running, metric, old, new):
    """A metric that the collector does not know and one with other parameters are named, with the
    collector's reason."""
    edit(old, new)
    found = run("--endpoint", running.address)[1]
    assert errors(found) == {"another_registry"}
    assert metric in found["registry", "another_registry"]["message"]


def test_a_folder_that_cannot_be_written():
    """A state folder in which no file can be made is an error, and so is a link to nothing."""
    Path("state").write_text("")
    assert errors(run("--state-dir", "state")[1]) == {"not_writable"}
    Path("link").symlink_to("gone")
    assert errors(run("--state-dir", "link")[1]) == {"not_writable"}


def test_mistakes_of_tls(certificates):
    """A certificate that nobody has signed, and a port that does not speak TLS."""
    tls = certificates / "server.pem", certificates / "server.key"
    with serving(200, b"", *tls) as address:
        assert errors(run("--endpoint", address)[1]) == {"certificate"}
    with serving(200, b"") as address:
        assert errors(run("--endpoint", address.replace("http", "https"))[1]) == {"not_tls"}


@pytest.mark.parametrize("days", [3, -9])
def test_a_wrong_clock(running, days):
    """A device whose clock is days off learns it once, and that no report would be taken."""
    registry = Registry.parse(METRICS[: METRICS.index("[metrics.browser]")])
    clock = lambda: time.time() + days * 86_400  # noqa: E731
    found = [*endpoint.check_endpoint(registry, running.address, None, clock)]
    assert [each.code for each in found] == ["collector", "skew"]


def test_a_clock_that_is_some_minutes_off():
    """Five minutes are a warning."""
    skew = endpoint.skew_of(formatdate(1_800_000_000, usegmt=True), 1_800_000_300.0)
    (found,) = endpoint.check_clock("the collector's", skew)
    assert (found.level, "300 s ahead" in found.message) == ("warning", True)
    assert endpoint.skew_of("yesterday", 0.0) == 0


# ---- the operator's side


def test_a_good_collector(running, monkeypatch):
    """Beside a running collector with this registry and a hard token nothing is wrong."""
    monkeypatch.setenv("DENIABLE_STORE", f"sqlite:///{running.folder}/deniable.db")
    monkeypatch.setenv("DENIABLE_BIND", running.environ["DENIABLE_BIND"])
    monkeypatch.setenv("DENIABLE_DASHBOARD_TOKEN", "pP3Zt8qXWc_kV7yLr2NfGh5sBd9mJa4uTe6")
    code, found = run("--operator")
    assert (code, errors(found)) == (0, set())
    expected = {("store", "store"), ("store", "durable"), ("collector", "running")}
    assert expected | {("dashboard", "token")} <= {*found}


def test_a_reload_that_was_forgotten(running, monkeypatch):
    """A collector that runs with another registry than the file's is found."""
    monkeypatch.setenv("DENIABLE_BIND", running.environ["DENIABLE_BIND"])
    edit("epsilon = 2.0", "epsilon = 1.5")
    found = run("--operator")[1]
    assert "browser" in found["collector", "old_registry"]["message"]


def test_values_that_do_not_fit():
    """The device's side names the metric and how many values it has refused, and no value."""
    record("secret")
    record(None)
    found = run()[1]["state", "values_refused"]
    assert "dark_mode (2)" in found["message"]
    assert "secret" not in str(found)


def test_a_store_that_is_not_there(monkeypatch, tmp_path):
    """A store to be made is a note and is not made; without its folder it is an error."""
    assert run("--operator")[1]["store", "new_store"]["level"] == "note"
    assert not Path("deniable.db").exists()
    monkeypatch.setenv("DENIABLE_STORE", "sqlite:////nowhere/at/all/deniable.db")
    assert errors(run("--operator")[1]) == {"store_away"}
    monkeypatch.setenv("DENIABLE_STORE", "redis://127.0.0.1:1/0")
    assert errors(run("--operator")[1]) == {"store_away"}
    Path("deniable.db").write_bytes(b"no database" * 1000)
    monkeypatch.setenv("DENIABLE_STORE", "sqlite:///deniable.db")
    assert errors(run("--operator")[1]) == {"store_away"}


def test_a_disk_that_is_nearly_full(monkeypatch):
    """Under FEW_BYTES there is a warning, under a tenth of it an error. The disk's figures are
    faked, because a full disk would stop other tests."""
    usage = shutil.disk_usage(".")
    for free, level in (
        (operator_checks.FEW_BYTES - 1, "warning"),
        (operator_checks.FEW_BYTES // 11, "error"),
    ):
        monkeypatch.setattr(shutil, "disk_usage", lambda _, free=free: usage._replace(free=free))
        assert run("--operator")[1]["disk", "disk_full"]["level"] == level
    with monkeypatch.context() as patch:
        patch.setenv("DENIABLE_DATA", ".")
        assert "where DENIABLE_DATA is" in run("--operator")[1]["disk", "disk_full"]["message"]
    monkeypatch.setattr(
        shutil, "disk_usage", lambda _: usage._replace(free=operator_checks.FEW_BYTES)
    )
    assert ("disk", "disk_full") not in run("--operator")[1]


@pytest.mark.campaign
def test_the_settings_of_redis(new_redis, monkeypatch):
    """They are read from a real Redis, whose user may lack the right to it."""
    server = new_redis()
    monkeypatch.setenv("DENIABLE_STORE", server.url)
    assert "loses nothing" in run("--operator")[1]["store", "durable"]["message"]
    with redis.Redis.from_url(server.url) as client:
        client.config_set("maxmemory-policy", "allkeys-lru")
        assert errors(run("--operator")[1]) == {"eviction"}
        user = ("ACL", "SETUSER", "small", "on", ">hush-hush", "~*", "+@all", "-config")
        client.execute_command(*user)
    monkeypatch.setenv("DENIABLE_STORE", server.url.replace("redis://", "redis://small:hush-hush@"))
    found = run("--operator")[1]
    assert ("store", "not_checked") in found
    assert "hush-hush" not in str(found)


ALWAYS = {"appendonly": "yes", "appendfsync": "always", "maxmemory-policy": "noeviction"}
EVERY = {**ALWAYS, "appendfsync": "everysec"}


@pytest.mark.parametrize(
    ("config", "info", "off", "levels", "told"),
    [
        (ALWAYS, {"role": "master", "connected_slaves": 1}, 4, {"durable": "ok"}, "loses nothing"),
        (EVERY, {"role": "slave", "connected_slaves": 9}, -4, {"durable": "ok"}, "up to a second"),
        ({**EVERY, "appendonly": "no"}, {}, 0, {"not_durable": "warning"}, "last snapshot"),
        ({**EVERY, "appendfsync": "no"}, {}, 0, {"not_durable": "warning"}, "half a minute"),
        ({"appendonly": "yes", "save": "60 1"}, {}, 0, {"durable": "ok", "snapshots": "note"}, ""),
        (
            {**EVERY, "maxmemory-policy": "allkeys-lru"},
            *({}, 0, {"durable": "ok", "eviction": "error"}, "allkeys-lru"),
        ),
        (
            ALWAYS,
            {"role": "master", "connected_slaves": 2},
            *(0, {"durable": "ok", "failover": "warning"}, "has 2 replicas"),
        ),
        (ALWAYS, {}, 100, {"durable": "ok", "skew": "warning"}, "s behind that of Redis"),
        (ALWAYS, {}, -100, {"durable": "ok", "skew": "warning"}, "s ahead of that of Redis"),
    ],
)
def test_how_redis_is_set_up(monkeypatch, config, info, off, levels, told):
    """What a crash, a full memory, a failover and a wrong clock would do is told for each node.
    The nodes are faked: a real one has no clock that is off."""

    node = mock.Mock(**{"config_get.return_value": config, "info.return_value": info})
    node.time.side_effect = lambda: (int(time.time() + off), 0)
    driver = mock.Mock(**{"nodes.return_value": {"10.0.0.7:6379": node}})
    made = mock.Mock(return_value=driver)
    monkeypatch.setattr(operator_checks, "Driver", made)
    monkeypatch.setattr(operator_checks, "open_store", lambda _: mock.Mock())
    monkeypatch.setenv("DENIABLE_STORE", "redis://127.0.0.1:1/0")
    monkeypatch.setenv("DENIABLE_REDIS_REPLICAS", "1")
    found = {code: each for (_, code), each in run("--operator")[1].items()}
    of_nodes = {code: e for code, e in found.items() if "10.0.0.7" in e["message"]}
    assert {code: each["level"] for code, each in of_nodes.items()} == levels
    assert told in " ".join(each["message"] for each in of_nodes.values())
    (settings,) = made.call_args.args
    assert (settings.store, settings.redis_replicas) == ("redis://127.0.0.1:1/0", 1)
    driver.close.assert_called_once_with()


@pytest.mark.parametrize(
    ("status", "state", "codes"),
    [
        (503, {"type": "urn:deniable:problem:store-unavailable"}, {"not_ready": "error"}),
        (200, {"mistakes": ["no such file"]}, {"reload_refused": "warning"}),
        (200, {}, {}),
    ],
)
def test_what_a_running_collector_says_of_itself(monkeypatch, status, state, codes):
    """One that is not ready, and one whose last reload was refused, are told with the reason."""
    date = formatdate(time.time() - 100, usegmt=True)
    document = json.dumps({**state, "metrics": {}}).encode()
    with serving(200, document, ready=status, Date=date) as address:
        monkeypatch.setenv("DENIABLE_BIND", address.removeprefix("http://"))
        told = run("--operator")[1]
    found = {code: each for (check, code), each in told.items() if check == "collector"}
    levels = {code: each["level"] for code, each in found.items()}
    assert levels == {"old_registry": "warning", **codes}
    assert ("(status 503): store-unavailable" in str(found)) == (status == 503)
    assert ("changed nothing: no such file" in str(found)) == ("mistakes" in state)
    assert told["clock", "skew"]["level"] == "warning"


def test_people_with_a_mistake(monkeypatch):
    """A mistake in the file of people is told with its line."""
    monkeypatch.setenv("DENIABLE_DATA", ".")
    Path("people.toml").write_text("schema = 1\n[people.a]\nrole = 'king'\n")
    found = run("--operator")[1]["dashboard", "people"]
    assert (found["level"], "people.toml:3" in found["message"]) == ("error", True)


def test_annotations_with_a_mistake(monkeypatch):
    """It is an error with its line."""
    monkeypatch.setenv("DENIABLE_DATA", ".")
    Path("annotations.toml").write_text("schema = 1\n[[annotations]]\n")
    found = run("--operator")[1]["dashboard", "annotations"]
    assert (found["level"], "date" in found["message"]) == ("error", True)


def test_another_program_at_the_port(monkeypatch):
    """A web server where the collector would listen is an error."""
    with serving(200, b"<html></html>") as address:
        monkeypatch.setenv("DENIABLE_BIND", address.removeprefix("http://"))
        assert errors(run("--operator")[1]) == {"not_a_collector"}

"""The files under deploy/: two collectors behind the real nginx, and the rest as parsed."""

import http.client
import http.server
import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import sys
import threading
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest
import yaml
from tests.e2e.running import ran, run
from tests.ports import free_port, until
from tests.tools import need

from deniable.protocol.oblivious.signed_keys import PATH

pytestmark = pytest.mark.campaign

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"


def replaced(text, *pairs):
    """The text with parts replaced, each of which must be there exactly once."""
    for old, new in pairs:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def confined():
    """What gives a command of root's the capabilities of nginx in the compose file, and no more."""
    need("setpriv")
    file = DEPLOY / "compose.two-collectors.yml"
    nginx = yaml.safe_load(file.read_text(encoding="utf-8"))["services"]["nginx"]
    assert nginx["cap_drop"] == ["ALL"]
    added = ",".join(f"+{name.lower()}" for name in nginx["cap_add"])
    return "setpriv", "--no-new-privs", f"--bounding-set=-all,{added}", "--inh-caps=-all"


@pytest.fixture
def new_nginx(tmp_path, certificates):
    """Starts the real nginx with one of the files of deploy/, changed in some places, and where the
    tests run as root, with the capabilities of the compose file. Returns its port of TLS."""
    processes = []

    def new(name, *pairs):
        need("nginx")
        shutil.copy(certificates / "server.pem", tmp_path / "fullchain.pem")
        shutil.copy(certificates / "server.key", tmp_path / "privkey.pem")
        secure = free_port()
        text = replaced(
            (DEPLOY / name).read_text(encoding="utf-8"),
            ("listen 443 ssl;", f"listen 127.0.0.1:{secure} ssl;"),
            ("worker_processes auto;", "worker_processes 1;"),
            *pairs,
        )
        text = text.replace("/etc/nginx/tls", str(tmp_path)).replace("/tmp/nginx", f"{tmp_path}/n")
        (tmp_path / "nginx.conf").write_text(text)
        with (tmp_path / "nginx.log").open("w") as log:
            process = subprocess.Popen(
                [
                    *(confined() if os.geteuid() == 0 else ()),
                    *("nginx", "-p", tmp_path, "-c", tmp_path / "nginx.conf"),
                    *("-g", "daemon off;"),
                ],
                stdout=log,
                stderr=log,
            )
        processes.append(process)

        def listens():
            assert process.poll() is None, (tmp_path / "nginx.log").read_text()
            with suppress(OSError):
                socket.create_connection(("127.0.0.1", secure), timeout=60).close()
                return True
            return False

        until(listens, "nginx does not listen")
        return secure

    yield new
    for process in processes:
        process.terminate()
        process.wait(120)


@pytest.fixture
def trust(certificates):
    """Makes connections that trust the tests' authority and no other."""

    def connect(port):
        context = ssl.create_default_context(cafile=certificates / "ca.pem")
        return http.client.HTTPSConnection("localhost", port, timeout=120, context=context)

    return connect


def ask(connection, method, path, body=None, headers=None):
    """(status, body) of one request on a connection that is kept alive."""
    connection.request(method, path, body, headers or {"Content-Type": "application/json"})
    with connection.getresponse() as response:
        return response.status, response.read()


@contextmanager
def answering(response, last):
    """A server that answers one request, which ends with `last`: its place, and a list that gets
    all bytes of the request, before the block ends."""
    seen = []
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve():
            connection, _ = listening.accept()
            with connection:
                data = b""
                while not data.endswith(last):
                    data += connection.recv(65_536)
                seen.append(data)
                connection.sendall(response)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"127.0.0.1:{listening.getsockname()[1]}", seen
        thread.join(120)


OWN = ("X-Forwarded-For", "Forwarded", "X-Real-IP", "Cookie", "User-Agent", "Referer",
       "Accept-Language", "X-Device", "From", "Via")  # fmt: skip
"""What a sender may say of itself."""


TOO_LARGE = (431, "header-too-large")


def passed_on(seen):
    """The start and the headers of what went on, in which nothing is of the sender."""
    head = seen[0].partition(b"\r\n\r\n")[0].decode()
    assert "marker" not in head
    start, *lines = head.split("\r\n")
    passed = dict(line.split(": ", 1) for line in lines)
    assert "127.0.0.1" not in "".join(each for name, each in passed.items() if name != "Host")
    return start, passed


def test_nothing_of_the_sender_goes_on(new_nginx, trust, tmp_path):
    """Behind nginx nobody learns an address, a cookie, an agent or a header of the sender's own;
    what the protocol needs goes through; and nginx itself writes nothing down."""
    needed = {
        "Content-Type": "application/json",
        "Content-Encoding": "gzip",
        "X-Deniable-Key": "k" * 20,
        "Authorization": "Bearer " + "k" * 20,
    }
    headers = {**needed, **dict.fromkeys(OWN, "marker")}
    plain = free_port()
    response = b"HTTP/1.1 202 OK\r\nContent-Length: 0\r\n\r\n"
    with answering(response, b"a batch") as (upstream, seen):
        port = new_nginx(
            "nginx.conf",
            ("collector-1:8080", upstream),
            ("collector-2:8080", upstream),
            ("listen 80;", f"listen 127.0.0.1:{plain};"),
        )
        with closing(trust(port)) as connection:
            assert ask(connection, "POST", "/v1/reports", b"a batch", headers)[0] == 202
            for path in ("/metrics", "/healthz", "/readyz", "/marker"):
                assert ask(connection, "GET", path)[0] == 404
            large = b"x" * ((1 << 21) + 4096)
            assert ask(connection, "POST", "/v1/reports", large, headers)[0] == 413
        for path, key in (("/v1/registry", "k" * 5000), ("/" + "a" * 5000, "k")):
            with closing(trust(port)) as connection:
                status, told = ask(connection, "GET", path, None, {"X-Deniable-Key": key})
                assert (status, json.loads(told)["type"].rpartition(":")[2]) == TOO_LARGE
        with closing(trust(port)) as connection:
            status, told = ask(connection, "GET", "/v1/registry", None, {"Host": "a b"})
            assert (status, json.loads(told)["type"].rpartition(":")[2]) == (400, "not-http")
        with closing(http.client.HTTPConnection("127.0.0.1", plain, timeout=120)) as connection:
            assert ask(connection, "POST", "/v1/reports", b"{}", headers)[0] == 404
    assert seen[0].endswith(b"\r\n\r\na batch")
    assert needed.items() <= passed_on(seen)[1].items()
    assert (tmp_path / "nginx.log").read_text() == ""
    assert [*tmp_path.rglob("*.log")] == [tmp_path / "nginx.log"]


def test_the_gateway_behind_nginx(new_nginx, trust):
    """Capsules and what asks for keys go through to the gateway with the relay's key. The limits
    hold for whoever sends them, and not for a relay that is named."""
    for named in (True, False):
        response = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
        with answering(response, b"the capsule") as (upstream, seen):
            port = new_nginx(
                "nginx.conf",
                ("collector-1:8080", upstream),
                ("collector-2:8080", upstream),
                ("listen 80;", f"listen 127.0.0.1:{free_port()};"),
                ("rate=20r/s", "rate=1r/m"),
                ("burst=200 nodelay", "nodelay"),
                *([("192.0.2.1 1;", "127.0.0.1 1;")] if named else []),
            )
            with closing(trust(port)) as connection:
                headers = {"Content-Type": "message/ohttp-req", "Authorization": "Bearer k"}
                assert ask(connection, "POST", PATH, b"the capsule", headers) == (200, b"ok")
        with closing(trust(port)) as connection:
            # The collectors are away now.
            assert ask(connection, "GET", PATH)[0] == (503 if named else 429)
        start, passed = passed_on(seen)
        assert start.split()[:2] == ["POST", PATH]
        assert headers.items() <= passed.items()


@pytest.mark.parametrize("alone", [False, True])
def test_nothing_of_a_capsule_s_sender_goes_on(new_nginx, trust, alone):
    """Behind the relay's nginx there is the capsule and its type: no header, query or address.
    Where nginx is the relay itself, by the lines to uncomment, it names the gateway and shows its
    key."""
    text = (DEPLOY / "nginx.relay.conf").read_text(encoding="utf-8")
    lines = re.findall(r"^ +# (?:set|proxy)_?.*;$", text, re.MULTILINE) if alone else []
    changes = [(each, each.replace("# ", "", 1)) for each in lines]
    assert len(changes) == (7 if alone else 0)
    response = b"HTTP/1.1 200 OK\r\nContent-Type: message/ohttp-res\r\nContent-Length: 2\r\n\r\nok"
    with answering(response, b"the capsule") as (upstream, seen):
        changes = [("server relay:8081;", f"server {upstream};"), *changes]
        port = new_nginx("nginx.relay.conf", *changes)
        marked = dict.fromkeys((*OWN, "Authorization", *(["Origin"] if alone else [])), "marker")
        marked["Content-Type"] = "message/ohttp-req"
        with closing(trust(port)) as connection:
            answer = ask(connection, "POST", f"{PATH}?marker", b"the capsule", marked)
            assert answer == (200, b"ok")
            assert ask(connection, "GET", "/healthz")[0] == 404
    start, passed = passed_on(seen)
    assert start.split()[:2] == ["POST", PATH]
    key = {"Authorization": "Bearer the key in the gateway's DENIABLE_RELAY_KEYS"}
    length, kind = {"Content-Length": "11"}, {"Content-Type": "message/ohttp-req"}
    host = {"Host": "t.acme.example" if alone else "relay"}
    assert passed == {**host, **length, **kind, **(key if alone else {})}
    assert seen[0].count(b"\r\nHost: ") == 1


@pytest.mark.parametrize("unit", sorted(each.name for each in DEPLOY.glob("*.service")))
def test_systemd_takes_a_unit(unit, tmp_path):
    """systemd knows each of its keys, finds nothing to warn of, and rates it as well confined; its
    command is one of ours, which has the options."""
    need("systemd-analyze")
    text = (DEPLOY / unit).read_text(encoding="utf-8")
    (command,) = re.findall(r"^ExecStart=/opt/deniable/bin/deniable (.*)$", text, re.MULTILINE)
    name, *words = command.split()
    program = [sys.executable, "-c", "from deniable.cli import main; main()"]
    told = run([*program, name, "--help"], tmp_path, os.environ)
    assert all(word in told for word in words if word.startswith("--"))
    file = tmp_path / unit
    file.write_text(text.replace("/opt/deniable/bin/deniable", "/bin/true"), encoding="utf-8")
    for check in (["verify", "--man=no"], ["security", "--offline=yes", "--threshold=30"]):
        done = ran(["systemd-analyze", *check, file], tmp_path, os.environ)
        assert done.returncode == 0, done.stdout + done.stderr
        if check[0] == "verify":
            assert done.stderr == ""


def test_units_share_one_state():
    """The three run as one user, so that the dashboard and the watch read the collector's store,
    and with the same walls around them."""
    walls = {
        each.name: {
            line
            for line in each.read_text(encoding="utf-8").splitlines()
            if line.startswith(("Protect", "Restrict", "System", "User", "Dynamic", "State", "No"))
        }
        for each in DEPLOY.glob("*.service")
    }
    assert len(walls) == 3
    assert len({frozenset(each) for each in walls.values()}) == 1
    assert "User=deniable" in walls["deniable-watch.service"]

"""deploy/nginx.relay.conf with the real nginx, and deploy/compose.relay.yml as parsed."""

from __future__ import annotations

import http.client
import os
import socket
import ssl
import subprocess
import time
from pathlib import Path

import pytest
from tests.ports import free_port
from tests.tools import need

from deniable.oblivious.signed_keys import PATH

from .hops import answering

pytestmark = pytest.mark.campaign

DEPLOY = Path(__file__).parents[2] / "deploy"


@pytest.fixture
def nginx(tmp_path):
    """Starts the real nginx with deploy/nginx.relay.conf before one upstream."""
    started = []

    def start(upstream):
        need("nginx", "openssl")
        subprocess.run(
            [
                *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt"),
                *("ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=relay"),
                *("-addext", "subjectAltName=IP:127.0.0.1"),
                *("-keyout", tmp_path / "privkey.pem", "-out", tmp_path / "fullchain.pem"),
            ],
            check=True,
            capture_output=True,
        )
        port = free_port()
        text = (DEPLOY / "nginx.relay.conf").read_text(encoding="utf-8")
        for old, new in (
            ("server relay:8081;", f"server {upstream};"),
            ("listen 443 ssl;", f"listen 127.0.0.1:{port} ssl;"),
            ("worker_processes auto;", "worker_processes 1;"),
            ("pid /tmp/nginx.pid;", f"pid {tmp_path}/nginx.pid;"),
        ):
            assert text.count(old) == 1, old
            text = text.replace(old, new)
        text = text.replace("/etc/nginx/tls", str(tmp_path)).replace("/tmp/nginx", f"{tmp_path}/n")
        user = "user root;\n" if os.geteuid() == 0 else ""
        (tmp_path / "nginx.conf").write_text(user + text)
        command = ("nginx", "-p", tmp_path, "-c", tmp_path / "nginx.conf", "-g", "daemon off;")
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        started.append(process)
        deadline = time.monotonic() + 20
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=5).close()
                return port
            except OSError:
                assert process.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.05)

    yield start
    for process in started:
        process.terminate()
        process.wait(30)


def test_nginx_passes_nothing_on(nginx, tmp_path):
    """Behind nginx there is the capsule and its type, and no other header, query or address."""
    response = b"HTTP/1.1 200 OK\r\nContent-Type: message/ohttp-res\r\nContent-Length: 2\r\n\r\nok"
    with answering(response) as (upstream, seen):
        port = nginx(upstream)
        context = ssl.create_default_context(cafile=tmp_path / "fullchain.pem")
        connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=30, context=context)
        marked = {
            "Content-Type": "message/ohttp-req",
            "Cookie": "marker",
            "User-Agent": "marker",
            "X-Forwarded-For": "203.0.113.9",
            "Authorization": "Bearer marker",
            "Referer": "https://marker.example/",
        }
        connection.request("POST", f"{PATH}?marker", b"the capsule", marked)
        with connection.getresponse() as response:
            assert (response.status, response.read()) == (200, b"ok")
        connection.request("GET", "/healthz")
        with connection.getresponse() as response:
            response.read()
            assert response.status == 404
        connection.close()
    head = seen[0].partition(b"\r\n\r\n")[0].decode()
    lines = head.split("\r\n")
    assert lines[0].split()[:2] == ["POST", PATH]
    named = sorted(line.partition(":")[0].lower() for line in lines[1:])
    assert named == ["content-length", "content-type", "host"]
    assert "marker" not in head
    assert "203.0.113.9" not in head

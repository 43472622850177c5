"""HTTP transport: against a real server on loopback, what is sent, and what stops it."""

from __future__ import annotations

import gc
import json
import socket
from pathlib import Path
from typing import Any

import pytest

import deniable
from deniable import TransportError
from deniable.device.transport import HttpTransport, Reply

from .conftest import http_server, raw_server

ENDPOINTS = json.loads(Path(__file__).with_name("endpoints.json").read_text(encoding="utf-8"))
"""Each address that is refused, with the reason, and those that are taken."""


class Answers:
    """Keeps every request, and answers as it says."""

    def __init__(self):
        self.seen: list[dict[str, Any]] = []
        self.status, self.body, self.headers = 202, b"{}", dict[str, str]()

    def __call__(self, path, headers, body):
        self.seen.append({"path": path, "headers": headers, "body": body})
        return self.status, self.headers, self.body


@pytest.fixture
def server(monkeypatch):
    """A server's address and what it answers."""
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    answers = Answers()
    with http_server(answers) as address:
        yield address, answers


def test_a_request_says_nothing_but_the_batch(server):
    """It is a POST of JSON to /v1/reports, and its headers name deniable alone."""
    address, handler = server
    reply = HttpTransport(f"{address}/in/").send(b'{"batch": 1}')
    assert reply == Reply(202, b"{}", None)
    (request,) = handler.seen
    assert request["path"] == "/in/v1/reports"
    assert request["body"] == b'{"batch": 1}'
    headers = {name.lower(): value for name, value in request["headers"].items()}
    assert headers.pop("host") in address
    assert headers == {
        "content-type": "application/json",
        "content-length": "12",
        "user-agent": f"deniable/{deniable.__version__}",
        "accept-encoding": "identity",
        "connection": "close",
    }


def test_the_proxy_of_the_environment_is_used(server, monkeypatch):
    """Where the environment names a proxy, the batch goes to it, with the whole address."""
    address, handler = server
    monkeypatch.setenv("http_proxy", address)
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    assert HttpTransport("http://collector.invalid").send(b"x").status == 202
    assert handler.seen[0]["path"] == "http://collector.invalid/v1/reports"


def test_an_ingest_key_is_sent_along(server):
    """The key that an app names travels in the Authorization header of every batch."""
    address, handler = server
    HttpTransport(address, ingest_key="key-of-this-app-123=").send(b"x")
    assert handler.seen[0]["headers"]["Authorization"] == "Bearer key-of-this-app-123="


@pytest.mark.parametrize("key", ["", "short", "a key with some spaces", "x" * 257, "ключ" * 8])
def test_an_ingest_key_is_checked(key):
    """What no collector can have as a key is a mistake at once, and is not repeated."""
    with pytest.raises(ValueError, match="ingest key has 16") as caught:
        HttpTransport("https://t.acme.example", ingest_key=key)
    assert not key or key not in str(caught.value)


@pytest.mark.parametrize("status", [200, 301, 302, 307, 400, 404, 429, 500, 503])
def test_every_status_is_a_reply(server, status):
    """No status raises, Retry-After is passed on, and no redirect is followed."""
    address, handler = server
    handler.status = status
    handler.headers = {"Retry-After": "7", "Location": f"{address}/elsewhere"}
    assert HttpTransport(address).send(b"x") == Reply(status, b"{}", "7")
    assert len(handler.seen) == 1


def test_a_reply_without_end_is_cut(server):
    """A reply larger than any of the collector's is trouble, not memory."""
    address, handler = server
    handler.body = b"x" * (1 << 20)
    with pytest.raises(TransportError, match="too long"):
        HttpTransport(address).send(b"x")


def read_request(connection):
    """Read all of a request whose body is "x": a server that closes with a part of it unread
    resets the connection, and the client may never see the answer."""
    while not connection.recv(1 << 16).endswith(b"x"):
        pass


def test_interim_responses_are_passed_over():
    """However often "100 Continue" comes first, the reply is the one that follows."""

    def answer(connection):
        read_request(connection)
        connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n" * 5_000)
        connection.sendall(b"HTTP/1.1 202 \r\nContent-Length: 2\r\n\r\n{}")

    with raw_server(answer) as address:
        assert HttpTransport(address).send(b"x") == Reply(202, b"{}", None)


def test_nobody_there_is_trouble():
    """A refused connection is a TransportError that may be retried."""
    with socket.socket() as placeholder:
        placeholder.bind(("127.0.0.1", 0))
        port = placeholder.getsockname()[1]
    with pytest.raises(TransportError, match="cannot be reached") as caught:
        HttpTransport(f"http://127.0.0.1:{port}").send(b"x")
    assert not caught.value.final


def test_a_proxy_of_another_kind_is_trouble(monkeypatch):
    """One that Python does not speak to is named, and nothing is sent past it."""
    monkeypatch.setenv("http_proxy", "socks5://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    with pytest.raises(TransportError, match="cannot be reached: unknown url type: socks5"):
        HttpTransport("http://telemetry.example").send(b"x")


def test_a_proxy_that_refuses_writes_nothing_into_the_logs(monkeypatch):
    """Of a proxy that refuses the tunnel to the collector, the error tells the status alone."""

    def answer(connection):
        connection.recv(1 << 12)
        connection.sendall(b"HTTP/1.1 407 \x1b[31mMARK" + b"A" * 50_000 + b"\r\n\r\n")

    with raw_server(answer) as address:
        monkeypatch.setenv("https_proxy", address)
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)
        with pytest.raises(TransportError) as caught:
            HttpTransport("https://collector.invalid").send(b"x")
    told = "the collector cannot be reached: the proxy refused the tunnel with status 407"
    assert str(caught.value) == told
    del caught
    gc.collect()  # a socket that was left open would warn now, and not in a later test


@pytest.mark.parametrize("endpoint", [3, b"https://t.acme.example"])
def test_an_endpoint_that_is_no_text_is_a_mistake_like_others(endpoint):
    """An address of another type raises the ValueError that the reference promises."""
    with pytest.raises(ValueError, match="the endpoint must be text"):
        HttpTransport(endpoint)


def test_silence_is_trouble():
    """A server that accepts and says nothing is given up after the timeout."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        with pytest.raises(TransportError, match="cannot be reached"):
            HttpTransport(f"http://127.0.0.1:{silent.getsockname()[1]}", timeout=0.2).send(b"x")


def test_nonsense_is_trouble():
    """A server that does not speak HTTP is no collector, and writes nothing into the logs."""

    def answer(connection):
        read_request(connection)
        connection.sendall(b"hello \x1b[31m a line of its own\r\n\r\n")

    with raw_server(answer) as address, pytest.raises(TransportError) as caught:
        HttpTransport(address).send(b"x")
    assert caught.value.foreign
    assert "hello" not in str(caught.value)


@pytest.mark.parametrize(("endpoint", "message"), ENDPOINTS["refused"])
def test_an_endpoint_that_cannot_be_is_refused(endpoint, message, registry):
    """What no collector can have as its address is refused when the client is made, in words
    that do not repeat a password."""
    with pytest.raises(ValueError, match=message) as caught:
        deniable.Client(registry, endpoint, consent=True)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("endpoint", ENDPOINTS["taken"])
def test_an_endpoint_is_a_web_address(endpoint):
    """A host with a port and a path is one."""
    assert HttpTransport(endpoint).endpoint == endpoint.rstrip("/")

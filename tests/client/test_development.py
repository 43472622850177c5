"""Development mode: where reports may go, what marks them, and what it leaves alone."""

from __future__ import annotations

import ipaddress
import json
import socket
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable import Client, MetricError, Registry
from deniable.device import development
from deniable.device.background import Status
from deniable.device.development import DevelopmentDevice
from deniable.protocol import wire
from deniable.protocol.addresses import is_loopback_host, loopback_address
from deniable.protocol.randomness import system_bits
from deniable.testing import MemoryClient

from .conftest import http_server, metrics_toml

VECTORS = json.loads(
    (Path(__file__).parents[2] / "client" / "vectors" / "wire.json").read_text(encoding="utf-8")
)["development"]

SHORT = {"epsilon": 0.5, "lifetime_epsilon": 1.0}
METRICS = metrics_toml(
    "lifetime_epsilon = 1.0",
    browser={
        "type": "category",
        "values": ["firefox", "chrome", "safari", "edge", "other"],
        "lifetime_epsilon": 1.0,
    },
    rare={**SHORT, "sample_rate": 0.000001, "window": "month"},
    memory={**SHORT, "longitudinal": "memoize"},
    number={
        **SHORT,
        "type": "number",
        "low": 0,
        "high": 10,
        "ask": "mean",
        "answer": "at_once",
        "aggregate": "first",
    },
)


class Server:
    """A `deniable dev` that remembers what it was sent."""

    def __init__(self):
        self.address = ""
        self.posts: list[tuple[str, bytes]] = []
        self.status = 202
        self.headers: dict[str, str] = {}
        self.rejected: list[dict[str, Any]] = []

    def answer(self, path, _, body):
        self.posts.append((path, body))
        told = {"batch": json.loads(body).get("batch"), "rejected": self.rejected}
        if self.status == 400:
            told = {"type": "urn:deniable:problem:malformed-batch"}
        return self.status, self.headers, json.dumps(told).encode()

    def bodies(self, path="/v1/reports"):
        return [json.loads(body) for name, body in self.posts if name == path]

    @property
    def reports(self):
        return [report for body in self.bodies() for report in body["reports"]]

    @property
    def troubles(self):
        found = (each["trouble"] for each in self.bodies(development.TROUBLES))
        return [(each["code"], each["metric"]) for each in found]


@pytest.fixture
def server():
    """A server that takes every batch."""
    made = Server()
    with http_server(made.answer) as made.address:
        yield made


@pytest.fixture
def registry():
    """Metrics of several kinds, each of which may be answered once or twice in a life."""
    return Registry.parse(METRICS)


@pytest.fixture
def develop(server, registry):
    """Makes clients in development mode, which work in the calling thread."""
    with ExitStack() as made:
        usual = {"development": server.address, "background": False, "consent": True}
        yield lambda **options: made.enter_context(Client(registry, **(usual | options)))


@pytest.mark.parametrize("case", VECTORS["addresses"]["invalid"], ids=lambda case: case["why"])
def test_other_addresses_are_refused(registry, case):
    """No spelling leads elsewhere: an address that is not exactly one of loopback is refused when
    the client is made, in the argument and in the environment, with the name of what is wrong."""
    with pytest.raises(ValueError, match=r"development (must be|names the port)"):
        Client(registry, development=case["address"], consent=True)
    if case["address"].strip():
        with pytest.raises(ValueError, match=r"DENIABLE_DEV (must be|names the port)"):
            loopback_address(case["address"], "DENIABLE_DEV")


@pytest.mark.parametrize("address", VECTORS["addresses"]["valid"])
def test_addresses_of_this_machine_are_taken(address):
    """Loopback addresses are taken, and names become numbers."""
    taken = urlsplit(loopback_address(address, "development"))
    assert ipaddress.ip_address(taken.hostname or "").is_loopback
    assert taken.port == (urlsplit(address).port or 80)


@given(st.from_regex(r"http://[0-9a-fx:.@\[\]%lochst-]{1,40}(:[0-9]{1,6})?", fullmatch=True))
def test_whatever_is_taken_is_loopback(address):
    """Of any address that is taken, the host is a loopback address as a number, which no resolver
    is asked about again."""
    try:
        taken = loopback_address(address, "development")
    except ValueError:
        return
    assert ipaddress.ip_address(urlsplit(taken).hostname or "").is_loopback


def test_localhost_is_not_looked_up(monkeypatch):
    """localhost is 127.0.0.1, whatever a resolver would say."""
    monkeypatch.setattr(socket, "getaddrinfo", None)
    assert loopback_address("http://localhost:8099", "development") == "http://127.0.0.1:8099"


def test_hosts_of_this_machine():
    """Names in a Host header: only those of loopback are this machine's."""
    assert all(map(is_loopback_host, ("localhost", "127.0.0.1", "127.9.9.9", "[::1]")))
    others = ("", "evil.example", "127.0.0.1.evil.example", "0.0.0.0", "[::ffff:127.0.0.1]", "::1")
    assert not any(map(is_loopback_host, others))


@pytest.mark.parametrize("case", VECTORS["batches"], ids=lambda case: case["why"])
def test_mark_vectors(case):
    """The mark is the first member, byte for byte, and it can be taken off again."""
    body, marked = case["body"].encode(), case["marked"].encode()
    assert wire.mark_development(body) == marked
    assert wire.is_development(marked)
    assert not wire.is_development(body)
    assert wire.unmarked(marked) == body


def test_every_flush_is_a_device(develop, server, registry):
    """Windows close at each flush, whatever their kind; the ledger, the registry's cap and the
    sample rate of production stop nothing; each batch has the mark, and its schemes are those of
    the registry."""
    client = develop()
    for _ in range(5):
        client.record("browser", "firefox")
        client.record("browser", "chrome")
        client.record("rare", True)
        client.record("memory", False)
        client.record("number", 3)
        assert client.flush()
    assert len(server.bodies()) == 5
    assert all(body["development"] is True for body in server.bodies())
    named = [(report["metric"], report["scheme"]) for report in server.reports]
    assert named.count(("rare", registry["rare"].scheme.fingerprint)) == 5
    assert sorted(named) == sorted(5 * [(each.name, each.scheme.fingerprint) for each in registry])
    assert {report["window"].count("-") for report in server.reports} == {1, 2}


def test_privacy_is_the_same(develop, server, registry):
    """From the same random bits development mode draws the same report as the app in production
    would: the coin, the delay and the report take the same draws."""
    drawn: list[tuple[int, int]] = []

    def bits(count):
        drawn.append((count, system_bits(count)))
        return drawn[-1][1]

    client = develop(bits=bits)
    client.record("browser", "firefox")
    client.flush()
    # A key of memos, the coin and the delay come first, and the id of the batch last.
    assert [count for count, _ in drawn[:3]] == [256, 53, 53]
    left = iter(drawn[3:])

    def again(count):
        size, value = next(left)
        assert size == count
        return value

    metric = registry["browser"]
    report = metric.scheme.mechanism.randomize(metric.item("firefox"), again)
    assert server.reports[0]["columns"] == report.columns
    assert next(left)[0] == wire.BATCH_ID_BITS


def test_the_real_state_is_left_alone(server, registry, tmp_path, monkeypatch):
    """Neither the state of the app, nor its ledger, nor its outbox, nor the owner's switch is read
    or written; opting out and erasing in development delete nothing of it; the endpoint, the
    transport and the key are not used."""
    with Client(registry, state_dir=tmp_path / "state", consent=True) as real:
        real.record("browser", "firefox")
        real.flush()
    path = tmp_path / "state" / "state.sqlite3"
    (tmp_path / "state" / "switched-off").touch()
    before = path.read_bytes(), path.stat().st_mtime_ns, sorted(path.parent.iterdir())
    monkeypatch.setenv("DENIABLE_DEV", server.address)
    client = Client(
        registry,
        "https://t.acme.example",
        tmp_path / "state",
        transport=Forbidden(),
        spread=5,
        consent=True,
    )
    client.record("browser", "firefox")
    assert client.flush()
    assert client.status == "on"
    client.opt_out()
    client.erase()
    client.close()
    assert (path.read_bytes(), path.stat().st_mtime_ns, sorted(path.parent.iterdir())) == before
    assert len(server.reports) == 1


class Forbidden:
    """A transport that must not be used."""

    def send(self, body):
        raise AssertionError("development mode used the app's own transport")


def test_no_proxy_and_no_redirect(develop, server, monkeypatch):
    """A proxy of the environment is not asked, and a redirect is not followed."""
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://192.0.2.1:3128")
    monkeypatch.delenv("no_proxy", raising=False)
    elsewhere = Server()
    with http_server(elsewhere.answer) as address:
        server.status, server.headers = 307, {"Location": f"{address}/v1/reports"}
        client = develop()
        client.record("browser", "firefox")
        assert not client.flush()
        assert server.reports
        assert elsewhere.posts == []


def test_it_says_so(develop, server, capsys):
    """One loud line at the start; then each mistake once, on stderr and to `deniable dev`, and
    never a value."""
    secret = "secret-value"
    client = develop()
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("deniable: DEVELOPMENT MODE: ")
    assert server.address in line
    assert "nothing counts" in line
    for _ in range(3):
        with pytest.raises(MetricError):
            client.record("browsr", secret)
        client.record("rare", secret)
        client.record("browser", secret)
    told = capsys.readouterr().err
    assert len(told.splitlines()) == 3
    assert server.troubles == [
        ("unknown_metric", "browsr"),
        ("refused_value", "rare"),
        ("undeclared_value", "browser"),
    ]
    assert secret not in told
    assert secret not in repr(server.posts)


def test_it_says_why_nothing_is_recorded(develop, server, capsys, monkeypatch):
    """Without consent, with DO_NOT_TRACK and after its last day nothing is recorded in development
    either, and the developer is told so."""
    expected: list[Status] = ["no_consent", "disabled"]
    silent = develop(consent=False)
    monkeypatch.setenv("DO_NOT_TRACK", "1")
    disabled = develop()
    monkeypatch.delenv("DO_NOT_TRACK")
    assert [silent.status, disabled.status] == expected
    late = develop(clock=lambda: 4e9)
    for client in (silent, disabled, late):
        client.record("browser", "firefox")
        client.flush()
    assert server.troubles == [
        ("no_consent", None),
        ("disabled", None),
        ("expired_metric", "browser"),
    ]
    assert server.reports == []
    assert len(capsys.readouterr().err.splitlines()) == 6


def test_what_went_wrong_is_told(develop, server, capsys):
    """A server that does not listen, one that is no `deniable dev`, and a report that was left out
    are told with what to do; a report that was left out is not sent again, and one that found no
    server is within a second."""
    seen: list[Exception] = []
    client = develop(on_trouble=seen.append)
    server.rejected = [{"index": 0, "reason": "unknown_scheme"}]
    client.record("browser", "firefox")
    assert client.flush()
    assert [(each.status, each.reason) for each in client.sent()] == [
        ("rejected", "unknown_scheme")
    ]
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    lonely = develop(development=f"http://127.0.0.1:{port}")
    lonely.record("browser", "firefox")
    for _ in range(12):
        assert not lonely.flush()
    assert lonely._device.seconds_to_send() <= 1.0
    told = capsys.readouterr().err
    assert f"{server.address}/live says what to do" in told
    assert "is `deniable dev` running at" in told
    assert len(seen) == 1


def test_it_can_be_declined(server, registry, tmp_path, monkeypatch):
    """`development=False` and clients for tests ignore the environment; an empty variable is none;
    what is no text is refused."""
    monkeypatch.setenv("DENIABLE_DEV", server.address)
    memory = MemoryClient(registry)
    memory.record("browser", "firefox")
    memory.assert_recorded("browser", "firefox")
    with Client(registry, state_dir=tmp_path, development=False, consent=True) as client:
        client.record("browser", "firefox")
    assert (tmp_path / "state.sqlite3").exists()
    monkeypatch.setenv("DENIABLE_DEV", " ")
    assert not isinstance(
        Client(registry, state_dir=":memory:", consent=True)._device, DevelopmentDevice
    )
    assert server.posts == []
    with pytest.raises(TypeError, match="development must be"):
        Client(registry, development=True, consent=True)  # type: ignore[arg-type]


def test_a_normal_collector_is_named(develop, server, capsys):
    """Where a collector listens that is no `deniable dev`, it refuses the mark, the batch is not
    sent again, and the developer is told why."""
    server.status = 400
    client = develop()
    client.record("browser", "firefox")
    assert client.flush()
    assert [each.status for each in client.sent()] == ["rejected"]
    assert client.counters["rejected"] == 1
    assert "only `deniable dev` takes reports of development mode" in capsys.readouterr().err

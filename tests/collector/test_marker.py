"""Nothing about a sender stays: markers are sent in every place there is, and looked for in every
place where something could be kept."""

import base64
import gzip
import json
import secrets
import socket
from contextlib import closing, suppress

import pytest
import redis
from tests.ports import free_port

from .devices import fetch

PEER = "127.0.0.77"
"""The address from which the marked requests come; nothing else here uses it."""
FORWARDED = "203.0.113.77"


@pytest.fixture
def marker():
    """A text that stands nowhere else."""
    return f"mk{secrets.token_hex(8)}"


@pytest.fixture
def place(request, tmp_path, new_redis):
    """A store of each kind: its settings, all that it holds by now, as bytes, and the server to
    take away, if there is one."""
    if request.param == "sqlite":
        return {"DENIABLE_STORE": f"sqlite:///{tmp_path / 'store.db'}"}, lambda: b"", None
    server = new_redis()

    def held():
        with closing(redis.Redis.from_url(server.url)) as client:
            values = [(key, client.dump(key)) for key in client.keys("*")]
            text = repr((values, client.info("everything"), client.client_list()))
        files = [each.read_bytes() for each in server.folder.rglob("*") if each.is_file()]
        return text.encode() + b"".join(files)

    return {"DENIABLE_STORE": server.url}, held, server


def traces(*texts):
    """A text as it is, and in the codes in which it could have been written down."""
    found = set()
    for text in texts:
        raw = text.encode()
        found |= {raw.lower(), raw.hex().encode(), raw[::-1].lower()}
        # Wherever it begins, two of three characters of base64 depend on the text alone.
        for shift in range(3):
            coded = base64.b64encode(bytes(shift) + raw)
            found.add(coded[(0, 2, 3)[shift] : len(coded) // 4 * 4 - 4].lower())
    return found


def requests_of(marker, key, good):
    """Requests with the marker in every place, as they travel."""
    mark = marker.encode()
    names = (
        b"User-Agent Cookie Referer Origin Accept-Language From Via Forwarded X-Forwarded-Host "
        b"X-Forwarded-Proto X-Forwarded-Prefix X-Real-IP If-None-Match"
    ).split()  # fmt: skip
    marked = b"".join(b"%s: %s\r\n" % (name, mark) for name in (*names, b"X-" + mark))
    marked += b"X-Forwarded-For: %s, %s\r\n" % (mark, FORWARDED.encode())
    keyed = b"X-Deniable-Key: %s\r\n" % key.encode()
    json_type = b"Content-Type: application/json\r\n"
    packed = b"Content-Encoding: gzip\r\n"

    def ask(start, *lines, body=b"", length=None):
        size = b"Content-Length: %d\r\n" % (len(body) if length is None else length)
        return start + b" HTTP/1.1\r\nHost: h\r\n" + b"".join(lines) + size + b"\r\n" + body

    post = b"POST /v1/reports?q=" + mark
    report = dict.fromkeys(("metric", "scheme", "window", "columns", marker), marker)
    documents = (
        {"batch": marker, "reports": []},
        {"batch": secrets.token_hex(16), "reports": [report, marker]},
        {"batch": secrets.token_hex(16), "reports": [], marker: marker},
    )
    for text in (good(), mark, mark * 8192, *(json.dumps(each).encode() for each in documents)):
        yield ask(post, marked, keyed, json_type, body=text)
        yield ask(post, keyed, json_type, packed, body=gzip.compress(text))
        yield ask(post, keyed, json_type, packed, body=gzip.compress(text)[:-9] + mark)
    names = "Content-Type Content-Encoding Content-Length Transfer-Encoding Expect Connection"
    for name in (*names.encode().split(), b"Upgrade", b"Authorization", b"X-Deniable-Key"):
        yield ask(post, marked, keyed, b"%s: %s\r\n" % (name, mark), body=good())
    yield ask(post, marked, json_type, b"Authorization: Bearer %s-of-another-app\r\n" % mark)
    for asked in (key.encode(), mark + b"-of-another-app"):  # a beacon
        beacon = b"POST /v1/reports?key=" + asked
        yield ask(beacon, marked, b"Content-Type: text/plain;%s\r\n" % mark, body=good())
        yield ask(beacon, b"Content-Type: text/plain\r\n", body=good())
        yield ask(beacon, marked, b"Content-Type: text/plain\r\n", body=good())
    for path in (b"/" + mark, b"/v1/registry?" + mark, b"//%2f" + mark, b"/%ff" + mark):
        for method in (b"GET", b"OPTIONS", b"DELETE", mark.upper()):
            yield ask(method + b" " + path, marked)
    yield from (mark + b"\r\n\r\n", b"GET / HTTP/" + mark + b"\r\n\r\n")
    yield ask(b"GET /healthz", b"Bad Name %s: 1\r\n" % mark)
    yield ask(b"GET /healthz", b"X-Long: " + mark * 4096 + b"\r\n")
    yield post + b" HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n" + mark
    # Cut off, and too slow.
    yield ask(post, marked, keyed, json_type, body=b'{"batch": "%s' % mark, length=5000)
    yield b"POST /v1/reports HTTP/1.1\r\nX-" + mark


@pytest.mark.campaign
@pytest.mark.parametrize("place", ["sqlite", "redis"], indirect=True)
def test_no_marker_stays(new_collector, new_body, place, marker, tmp_path):
    """Markers in every header, path, query, field and body, sent well and badly, from an address
    of their own, while the store is there and while it is not, are in no output, log, file, key,
    value, figure or answer to somebody else."""
    environ, held, server = place
    key = f"{marker}-ingest-key"
    (tmp_path / "tmp").mkdir()
    port, metrics_port = free_port(), free_port()
    collector = new_collector(
        **environ,
        DENIABLE_BIND=f"127.0.0.1:{port}",
        DENIABLE_INGEST_KEYS=key,
        DENIABLE_RATE="1000000/day",
        DENIABLE_CORS_ORIGINS="https://app.example",
        DENIABLE_TRUSTED_PROXIES="1",
        DENIABLE_MAX_BODY="64 KiB",
        DENIABLE_REQUEST_TIMEOUT="1",
        DENIABLE_LOG_FORMAT="json",
        DENIABLE_METRICS_BIND=f"127.0.0.1:{metrics_port}",
        TMPDIR=str(tmp_path / "tmp"),
    )

    def send(request):
        with (
            suppress(OSError),
            closing(socket.create_connection(("127.0.0.1", port), 5, (PEER, 0))) as connection,
        ):
            connection.sendall(request)
            # Long enough for the collector to lose its patience first.
            connection.settimeout(2.5)
            answer = connection.recv(1 << 16)
            return answer.split(b" ")[1:2]
        return []

    statuses = [status for each in requests_of(marker, key, new_body) for status in send(each)]
    assert {b"202", b"400", b"401", b"403", b"404", b"405", b"413", b"415", b"431"} <= set(statuses)
    assert b"408" in statuses

    if server is not None:
        # What fails in the store takes paths of its own through the code.
        server.kill()
        lost = [status for each in requests_of(marker, key, new_body) for status in send(each)]
        assert b"503" in lost
        server.start()
        assert "store-lost" in collector.log

    # Whoever asks now learns nothing of them.
    asked = [
        *((f"/{path}", None) for path in ("v1/registry", "healthz", "readyz", "nothing")),
        *(("/v1/reports", body) for body in (b"{", new_body())),
    ]
    others = [fetch(collector.address + path, body, X_Deniable_Key=key) for path, body in asked]
    assert others[-1][0] == 202
    _, figures = fetch(f"http://127.0.0.1:{metrics_port}/metrics")
    assert b"deniable_" in figures
    during = [each.read_bytes() for each in tmp_path.rglob("*") if each.is_file()]
    store = held()
    collector.stop()
    after = [each.read_bytes() for each in tmp_path.rglob("*") if each.is_file()]
    kept = [
        figures,
        store,
        *(body for _, body in others),
        *during,
        *after,
        collector.output.encode(),
    ]
    assert "started" in collector.log
    everything = b"\n".join(kept).lower()
    assert b"listening" in everything
    for trace in traces(marker, key, PEER, FORWARDED):
        place = everything.find(trace)
        assert place < 0, everything[max(0, place - 200) : place + 200]

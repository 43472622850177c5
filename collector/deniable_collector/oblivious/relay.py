"""The relay (RFC 9458): passes capsules to one gateway, and nothing that says whose they are.

A capsule goes on with its content type and nothing else of the request: no address, no header, no
query. The response comes back with its status, type and Retry-After. The relay has no key, and
logs no request.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from typing import Any

import aiohttp
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from deniable.oblivious.signed_keys import KEYS_TYPE, PATH, SIGNATURE
from deniable.oblivious.transport import REQUEST_TYPE, RESPONSE_TYPE
from deniable_collector.asgi import Send
from deniable_collector.oblivious.gateway import OVERHEAD
from deniable_collector.oblivious.relay_metrics import GATEWAY_SECONDS, HELD, exposition
from deniable_collector.oblivious.relay_settings import RelaySettings
from deniable_collector.operation.metrics import count_answer
from deniable_collector.refusals import IntakeError, too_large
from deniable_collector.serving import framing
from deniable_collector.serving.admission import Admission, client_address
from deniable_collector.serving.cors import Cors, origin_refused
from deniable_collector.serving.guard import Guard
from deniable_collector.serving.incoming import Gone, Incoming, Receive, Scope
from deniable_collector.serving.problems import problem_of
from deniable_collector.serving.responses import HttpResponse, head

LARGEST_RESPONSE = 1 << 18
"""Most bytes of a response of the gateway."""

_KEYS_SECONDS = 60.0
"""Seconds for which a list of keys is passed on before the gateway is asked again. A capsule that
the gateway refuses ends them, because its keys may have changed."""

_FEWEST_SECONDS = 1.0
"""But it is not asked more often than this."""

_SAMPLE_SECONDS = 1.0
"""How often the bytes that wait are written down for the metrics."""

_PROBES = frozenset(("/healthz", "/readyz", "/metrics"))
_PROBLEM = "application/problem+json"
_EXPOSED = "Access-Control-Expose-Headers"
_TYPES = (RESPONSE_TYPE, _PROBLEM)
_READ = (b"content-type", b"content-length", b"origin", b"x-forwarded-for")


class CapsuleRelay:
    """The ASGI app. The lifespan protocol must be on: it opens the connections to the gateway."""

    def __init__(self, settings: RelaySettings) -> None:
        self._settings = settings
        self._admission = Admission(settings)
        self._cors = Cors.of(settings)
        self.guard = Guard(settings)
        self._most = 2 * settings.max_body + OVERHEAD
        self._url = settings.relay_gateway + PATH
        self._headers = {"Content-Type": REQUEST_TYPE}
        if settings.relay_key:
            self._headers["Authorization"] = f"Bearer {settings.relay_key}"
        self._session: aiohttp.ClientSession | None = None
        self._keys: tuple[HttpResponse, str] | None = None
        self._asked = self._until = float("-inf")
        self._asking = asyncio.Lock()
        self._held = 0
        self._private_port = int(settings.metrics_bind.rpartition(":")[2] or -1)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif scope["type"] == "http":
            await self._serve(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": 1000})

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        self._session = aiohttp.ClientSession(
            # Nothing of one device's exchange may reach another's: no cookie is kept.
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(self._settings.relay_timeout),
            connector=aiohttp.TCPConnector(limit=self._settings.max_connections),
            skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding"),
            auto_decompress=False,
        )
        sampling = asyncio.create_task(self._sample()) if self._private_port > 0 else None
        await send({"type": "lifespan.startup.complete"})
        await receive()
        if sampling is not None:
            sampling.cancel()
            await asyncio.wait([sampling])
        await self._session.close()
        await send({"type": "lifespan.shutdown.complete"})

    async def _sample(self) -> None:
        while True:
            HELD.set(self._held)
            await asyncio.sleep(_SAMPLE_SECONDS)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        incoming = Incoming(scope, receive)
        found = dict.fromkeys(_READ, b"")
        found.update((name, value) for name, value in scope["headers"] if name in found)
        given = {name: value.decode("latin-1") for name, value in found.items()}
        more: list[tuple[str, str]] = []
        held = 0

        def reserve(size: int) -> None:
            nonlocal held
            held += size
            self._held += size
            if self._held > self._settings.queue:
                raise _away("queue-full", "the relay is busy", 1.0)

        try:
            if scope["path"] in _PROBES and scope["method"] == "GET":
                response = await self._probe(scope)
            elif scope["path"] != PATH:
                raise IntakeError("http-404", "there is nothing at this path")
            elif scope["method"] == "OPTIONS" and self._cors is not None:
                more += self._cors.preflight(given[b"origin"]).items()
                response = HttpResponse(204, b"", "text/plain")
            elif scope["method"] in ("GET", "HEAD"):
                response, signature = await self._read_keys()
                more.append((SIGNATURE, signature))
            elif scope["method"] == "POST":
                client = scope.get("client")
                forwarded = given[b"x-forwarded-for"]
                hops = self._settings.trusted_proxies
                address = client_address(client[0] if client else "", forwarded, hops)
                self._admission.pace(address, forwarded)
                self._check_type(given[b"content-type"], given[b"origin"])
                length = given[b"content-length"]
                if length.isdecimal() and length.isascii() and int(length) > self._most:
                    raise too_large(self._most)
                response = await self._forward(await incoming.collect(self._most, reserve))
            else:
                told = "this path takes GET and POST"
                raise IntakeError("http-405", told)
        except Gone:
            return
        except Exception as error:
            response = problem_of(error)  # which is counted by its code
        else:
            # What is in a problem of the gateway is not looked at: it is one code for all.
            count_answer(response.status, "" if response.status < 400 else "gateway")
        finally:
            self._held -= held
        if not await incoming.pass_over(self.guard.max_request):
            more.append(("Connection", "close"))
        if self._cors is not None and scope["method"] != "OPTIONS":
            headers = self._cors.headers(given[b"origin"])
            if _EXPOSED in headers:
                headers[_EXPOSED] += f", {SIGNATURE}"
            more += headers.items()
        await _send(send, response, more, body=scope["method"] != "HEAD")

    async def _probe(self, scope: Scope) -> HttpResponse:
        """The response to a probe or a scrape.

        Raises:
            IntakeError: 503, the gateway is away; 404, this is not the private address.
        """
        if scope["path"] == "/metrics":
            if (scope.get("server") or ("", 0))[1] != self._private_port:
                raise IntakeError("http-404", "there is nothing at this path")
            return HttpResponse(200, await asyncio.to_thread(exposition), CONTENT_TYPE_LATEST)
        if scope["path"] == "/readyz":
            await self._read_keys()
            return HttpResponse(200, b'{"status": "ready"}')
        return HttpResponse(200, b'{"status": "ok"}')

    def _check_type(self, content_type: str, origin: str) -> None:
        """Refuse what is no capsule by its type. A beacon of a web page comes as text, because
        browsers ask no leave for that; so its page must be one that may send.

        Raises:
            IntakeError: it is of another type, or of such a page.
        """
        if framing.media_type(content_type) == REQUEST_TYPE:
            return
        if not framing.is_text(content_type) or not origin:
            told = f"send Content-Type: {REQUEST_TYPE}"
            raise IntakeError("http-415", told)
        if self._cors is None or not self._cors.allows(origin):
            raise origin_refused(origin)

    async def _forward(self, capsule: bytes) -> HttpResponse:
        """The gateway's response to a capsule.

        Raises:
            IntakeError: there is none, or none of a gateway.
        """
        begun = time.monotonic()
        response, _ = await self._ask("POST", capsule, self._headers)
        GATEWAY_SECONDS.observe(time.monotonic() - begun)
        if response.content_type not in _TYPES:
            raise _away("gateway-odd", "something else than a gateway responded")
        if 400 <= response.status < 500:
            self._until = float("-inf")
        return response

    async def _read_keys(self) -> tuple[HttpResponse, str]:
        """The gateway's list of keys and its signature: the same for every device.

        Raises:
            IntakeError: there is none.
        """
        async with self._asking:
            now = asyncio.get_running_loop().time()
            fresh = now < self._until or now < self._asked + _FEWEST_SECONDS
            if self._keys is None or not fresh:
                response, signature = await self._ask("GET", None, {"Accept": KEYS_TYPE})
                if response.status != 200 or response.content_type != KEYS_TYPE:
                    raise _away("gateway-odd", "the gateway tells no keys")
                self._keys, self._asked = (response, signature), now
                self._until = now + _KEYS_SECONDS
            return self._keys

    async def _ask(
        self, method: str, body: bytes | None, headers: dict[str, str]
    ) -> tuple[HttpResponse, str]:
        assert self._session is not None
        try:
            async with self._session.request(
                method, self._url, data=body, headers=headers, allow_redirects=False
            ) as response:
                content = await _whole(response)
                given = response.headers
        except (TimeoutError, aiohttp.ClientError, OSError):
            # Its text names the gateway's address, which is nobody's business here.
            told = "the gateway cannot be reached"
            raise _away("gateway-unavailable", told) from None
        kind = framing.media_type(given.get("Content-Type", ""))
        again = given.get("Retry-After", "")
        seconds = float(again) if again.isascii() and again.isdecimal() else None
        return HttpResponse(response.status, content, kind, seconds), given.get(SIGNATURE, "")


async def _whole(response: aiohttp.ClientResponse) -> bytes:
    """The body, of at most `LARGEST_RESPONSE` bytes.

    Raises:
        IntakeError: it is longer.
    """
    pieces, left = [], LARGEST_RESPONSE
    while piece := await response.content.readany():
        pieces.append(piece)
        left -= len(piece)
        if left < 0:
            told = "the gateway's response is too long"
            raise _away("gateway-odd", told)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _away(code: str, told: str, seconds: float = 5.0) -> IntakeError:
    told = f"{told}: nothing is lost while you keep the batch, so send it again later"
    return IntakeError(code, told, retry_after=seconds)


async def _send(
    send: Send, response: HttpResponse, more: Iterable[tuple[str, str]], *, body: bool
) -> None:
    headers: list[Any] = [
        (b"content-length", b"%d" % len(response.body)),
        *head(response.content_type, response.retry_after, response.status),
        *((name.lower().encode(), text.encode("latin-1")) for name, text in more),
    ]
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    await send({"type": "http.response.body", "body": response.body if body else b""})


def app() -> CapsuleRelay:
    """The app that the environment makes; servers call this a factory."""
    return CapsuleRelay(RelaySettings.from_env())

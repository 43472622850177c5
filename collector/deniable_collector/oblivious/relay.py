"""The relay (RFC 9458): passes capsules to one gateway, and nothing that says whose they are.

A capsule goes on with its content type and nothing else of the request: no address, no header, no
query. The response comes back with its status, type and Retry-After. The relay has no key, and
logs no request. No label of its metrics has a value that a device or the gateway could choose, and
none says anything of an address or a capsule.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable

import aiohttp
from prometheus_client.core import Metric

from deniable.protocol.oblivious.capsules import REQUEST_TYPE, RESPONSE_TYPE
from deniable.protocol.oblivious.signed_keys import KEYS_TYPE, PATH, SIGNATURE
from deniable_collector.oblivious.relay_settings import RelaySettings
from deniable_collector.operation.prometheus import build_info, gauge, histogram, summed
from deniable_collector.refusals import IntakeError, too_large
from deniable_collector.serving.admission import Admission, Cors, origin_refused
from deniable_collector.serving.http import HttpServer, Request, is_text, media_type
from deniable_collector.serving.pages import PageHandler
from deniable_collector.serving.responses import HttpResponse, lines_of

GATEWAY_SECONDS = histogram(
    "deniable_relay_gateway_seconds",
    "How long the gateway took to respond to a capsule.",
    buckets=(0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10),
)
HELD = gauge(
    "deniable_relay_held_bytes",
    "Bytes of capsules that wait for the gateway.",
    multiprocess_mode="livesum",
)


LARGEST_RESPONSE = 1 << 18
"""Most bytes of a response of the gateway."""

_KEYS_SECONDS = 1.0
"""Seconds for which a list of keys is passed on before the gateway is asked again: however many
devices ask, and soon enough after its keys have changed."""

_PATH = PATH.encode()
_PROBLEM = "application/problem+json"
_TYPES = (RESPONSE_TYPE, _PROBLEM)


class CapsuleRelay(PageHandler):
    """Serves a relay."""

    def __init__(self, settings: RelaySettings) -> None:
        super().__init__(settings, HELD)
        self.pages[_PATH] = self._tell_keys
        self.posts = frozenset((_PATH,))
        self._admission = Admission(settings)
        self._cors = Cors(settings.cors_origins, f"Retry-After, {SIGNATURE}")
        self._most = settings.max_capsule
        self._url = settings.relay_gateway + PATH
        self._headers = {"Content-Type": REQUEST_TYPE}
        if settings.relay_key:
            self._headers["Authorization"] = f"Bearer {settings.relay_key}"
        self._timeout = settings.relay_timeout
        self._session: aiohttp.ClientSession | None = None
        self._keys: tuple[HttpResponse, str] | None = None
        self._until = float("-inf")
        self._asking = asyncio.Lock()

    async def start(self, server: HttpServer) -> None:
        """Open what leads to the gateway."""
        self._session = aiohttp.ClientSession(
            # Nothing of one device's exchange may reach another's: no cookie is kept.
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(self._timeout),
            connector=aiohttp.TCPConnector(limit=self.settings.max_connections),
            skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding"),
            auto_decompress=False,
        )

    async def stop(self) -> None:
        """Close it, when every request has been answered."""
        await super().stop()
        if self._session is not None:
            await self._session.close()

    def admit(self, request: Request) -> int:
        """Check the sender of a request, and the type of a capsule.

        Raises:
            IntakeError: its network sends too much, or it is no capsule.
        """
        headers = request.headers
        if request.path == _PATH:
            request.given = self._cors.lines(request.method, headers)
        if request.path != _PATH or request.method != b"POST":
            return super().admit(request)
        self._admission.pace(request.connection.peer, headers)
        described = (headers.get(name, b"") for name in (b"content-type", b"origin"))
        self._check_type(*(each.decode("latin-1") for each in described))
        return self._most

    async def answer(self, request: Request) -> HttpResponse:
        """The response to a request.

        Raises:
            IntakeError: there is none.
        """
        if request.path == _PATH and request.method == b"POST":
            if request.size > self._most:
                raise too_large(self._most)
            return await self._forward(request.body)
        return await super().answer(request)

    async def ready(self, request: Request) -> HttpResponse:
        """Whether the gateway tells its keys."""
        await self._read_keys()
        return HttpResponse(200, b'{"status": "ready"}')

    def collect(self) -> Iterable[Metric]:
        """What a relay counts, without the rest of what the collector's code counts."""
        for family in summed().collect():
            if family.name == "deniable_requests" or family.name.startswith("deniable_relay_"):
                yield family
        yield build_info()

    async def _tell_keys(self, request: Request) -> HttpResponse:
        response, signature = await self._read_keys()
        request.given += lines_of({SIGNATURE: signature})
        return response

    def _check_type(self, content_type: str, origin: str) -> None:
        """Refuse what is no capsule by its type. A beacon of a web page comes as text, because
        browsers ask no leave for that; so its page must be one that may send.

        Raises:
            IntakeError: it is of another type, or of such a page.
        """
        if media_type(content_type) == REQUEST_TYPE:
            return
        if not is_text(content_type) or not origin:
            told = f"send Content-Type: {REQUEST_TYPE}"
            raise IntakeError("http-415", told)
        if not self._cors.allows(origin):
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
        return response

    async def _read_keys(self) -> tuple[HttpResponse, str]:
        """The gateway's list of keys and its signature: the same for every device.

        Raises:
            IntakeError: there is none.
        """
        async with self._asking:
            now = asyncio.get_running_loop().time()
            if self._keys is None or now >= self._until:
                response, signature = await self._ask("GET", None, {"Accept": KEYS_TYPE})
                if response.status != 200 or response.content_type != KEYS_TYPE:
                    raise _away("gateway-odd", "the gateway tells no keys")
                self._keys, self._until = (response, signature), now + _KEYS_SECONDS
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
        kind = media_type(given.get("Content-Type", ""))
        again = given.get("Retry-After", "")
        seconds = float(again) if again.isascii() and again.isdecimal() else None
        return HttpResponse(response.status, content, kind, seconds), given.get(SIGNATURE, "")


async def _whole(response: aiohttp.ClientResponse) -> bytes:
    """The body, of at most `LARGEST_RESPONSE` bytes.

    Raises:
        IntakeError: it is longer.
    """
    try:
        await response.content.readexactly(LARGEST_RESPONSE + 1)
    except asyncio.IncompleteReadError as error:
        return error.partial
    raise _away("gateway-odd", "the gateway's response is too long")


def _away(code: str, told: str) -> IntakeError:
    told = f"{told}: nothing is lost while you keep the batch, so send it again later"
    return IntakeError(code, told, retry_after=5.0)


def app() -> CapsuleRelay:
    """The app that the environment makes; servers call this a factory."""
    return CapsuleRelay(RelaySettings.from_env())

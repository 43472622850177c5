"""Who may send a batch: holders of an ingest key, at the rate that a network is allowed; and web
pages of the origins that the operator names (the Fetch standard's CORS).

A rate is how often a network (/24, /48) may do something in a second, a minute, an hour or a day.
No address is stored. For a network there is a count, under a hash with a random key. Both are
deleted when the period ends.

Browsers ask before they send application/json to another origin, and not before they send
text/plain. So a body of text/plain from a page that may not send is refused when it comes
(`BatchReader.check_type`). No credentials are ever allowed, so a browser sends no cookies.
"""

from __future__ import annotations

import hashlib
import hmac
import math
import re
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from socket import AF_INET, AF_INET6, inet_pton
from urllib.parse import unquote

from deniable_collector.operation.events import tell
from deniable_collector.refusals import IntakeError
from deniable_collector.serving.responses import Fields, lines_of
from deniable_collector.settings import OFF, Settings

_IPV4, _IPV6 = 24, 48

_MAPPED = bytes(10) + b"\xff\xff"
"""What an IPv6 address begins with that stands for an IPv4 address (RFC 4291, 2.5.5.2)."""

_SECONDS = {"second": 1.0, "minute": 60.0, "hour": 3_600.0, "day": 86_400.0}

_MOST_NETWORKS = 1 << 20
"""The most networks that are counted at a time. With more, all counts are reset, so that memory is
bounded."""


def network_of(address: str) -> bytes:
    """The /24 or /48 of an address; everything that is not an address counts as one network.

    Some proxies add the port: `203.0.113.7:4711` or `[2001:db8::7]:4711`.
    """
    if address.startswith("["):
        address = address[1:].partition("]")[0]
    elif address.count(":") == 1:
        address = address.partition(":")[0]
    address = address.partition("%")[0]
    try:
        if ":" not in address:
            return inet_pton(AF_INET, address)[: _IPV4 // 8]
        packed = inet_pton(AF_INET6, address)
    except (OSError, ValueError):
        return b""
    if packed.startswith(_MAPPED):
        return packed[len(_MAPPED) :][: _IPV4 // 8]
    return packed[: _IPV6 // 8]


class NetworkRate:
    """`rate` is like "10/minute"; `clock` returns seconds that never go back. Safe to use from
    several threads."""

    def __init__(self, rate: str, clock: Callable[[], float] = time.monotonic) -> None:
        amount, _, period = rate.partition("/")
        self._amount = int(amount)
        self._seconds = _SECONDS[period]
        self._clock = clock
        self._lock = threading.Lock()
        self._ends = -math.inf
        self._secret = b""
        self._counts: dict[bytes, int] = {}

    def hit(self, address: str) -> bool:
        """Count one of the network of an address; whether that is still within its rate."""
        with self._lock:
            now = self._clock()
            if now >= self._ends:
                self._ends, self._counts = now + self._seconds, {}
                self._secret = secrets.token_bytes(16)
            network = network_of(address)
            name = hashlib.blake2b(network, key=self._secret, digest_size=8).digest()
            if len(self._counts) >= _MOST_NETWORKS:
                self._counts.clear()
            count = self._counts[name] = self._counts.get(name, 0) + 1
        return count <= self._amount

    def seconds_left(self) -> float:
        """The remaining seconds of the current period."""
        return max(0.0, self._ends - self._clock())


class Admission:
    """Lets a request pass or raises. `clock` returns seconds that never go back."""

    def __init__(self, settings: Settings, clock: Callable[[], float] = time.monotonic) -> None:
        self._keys = settings.ingest_keys
        self._hops = settings.trusted_proxies
        self._told = False
        self._rate = NetworkRate(settings.rate, clock) if settings.rate != OFF else None

    def pace(self, peer: str, headers: Mapping[bytes, bytes]) -> None:
        """Count one request from an address, "" where there is none, with its header, whose names
        are in lower case.

        Raises:
            IntakeError: 429 if the client's network sends too much.
        """
        rate = self._rate
        if rate is None:
            return
        forwarded = headers.get(b"x-forwarded-for", b"").decode("latin-1")
        address = client_address(peer, forwarded, self._hops)
        if not address or rate.hit(address):
            return
        if forwarded and not self._hops and not self._told:
            self._told = True
            tell(
                "warning",
                "proxy-unknown",
                "requests beyond the rate carry X-Forwarded-For, which nobody believes as "
                "DENIABLE_TRUSTED_PROXIES is 0: behind a proxy all senders share one rate, so "
                "set it to the number of your proxies",
            )
        raise IntakeError(
            "too-many-requests",
            "this network sends more than the server takes from one: send the request again later, "
            "unchanged",
            retry_after=max(1, math.ceil(rate.seconds_left())),
        )

    def check_key(self, headers: Mapping[bytes, bytes], query: bytes = b"") -> None:
        """Ask for one of the keys, where there are any.

        A beacon has no headers of the page's choice, so its key is in the address's query, which
        counts only where no header has one.

        Raises:
            IntakeError: 401 without a good one.
        """
        if not self._keys:
            return
        named = (headers.get(name, b"") for name in (b"authorization", b"x-deniable-key"))
        authorization, key = (each.decode("latin-1") for each in named)
        if not shows_key(self._keys, authorization, key or _asked_key(authorization, query)):
            raise IntakeError(
                "no-ingest-key",
                "send a key of this collector as Authorization: Bearer, as X-Deniable-Key, or in "
                "the query of the address as key=",
            )


def shows_key(keys: tuple[bytes, ...], authorization: str, key: str = "") -> bool:
    """Whether a request has one of these keys (their SHA-256): `key`, or else its Authorization."""
    scheme, _, token = authorization.partition(" ")
    if not key and scheme.lower() == "bearer":
        key = token.strip()
    digest = hashlib.sha256(key.encode("latin-1", "replace")).digest()
    # All are compared, so that the time does not reveal which one was close.
    return sum(hmac.compare_digest(digest, each) for each in keys) > 0


def _asked_key(authorization: str, query: bytes) -> str:
    """The value of `key` in a query string, if there is no Authorization header.

    If it is there twice, both are joined by a comma, as headers are, and no key has one.
    """
    if authorization or not query:
        return ""
    named = (each.partition("=") for each in query.decode("latin-1").split("&"))
    return ",".join(unquote(value, "latin-1") for name, _, value in named if name == "key")


def client_address(peer: str, forwarded: str, hops: int) -> str:
    """The client's address: the peer's, or what the outermost of `hops` proxies saw.

    `forwarded` is X-Forwarded-For. Entries to the left of the trusted hops come from the client
    and are ignored.
    """
    if hops and forwarded:
        seen = forwarded.split(",")
        if len(seen) >= hops:
            return seen[-hops].strip() or peer
    return peer


_DAY = 86_400

_MOST_TOLD = 20
"""How many origins a process remembers and logs; whoever sends requests chooses them."""

_ORIGIN = re.compile(r"https?://[A-Za-z0-9.:\[\]-]{1,255}")

_PREFLIGHT = {
    "Access-Control-Allow-Methods": "POST",
    "Access-Control-Allow-Headers": "authorization, content-encoding, content-type, x-deniable-key",
    "Access-Control-Max-Age": str(_DAY),
}


class Cors:
    """The headers that let pages of some origins read a response, and of it the headers that are
    `exposed`."""

    def __init__(self, origins: tuple[str, ...], exposed: str = "Retry-After") -> None:
        self._origins = frozenset(origins)
        self._anyone = "*" in self._origins
        self._exposed = exposed

    def allows(self, origin: str) -> bool:
        """Whether pages of this origin may send."""
        return self._anyone or origin in self._origins

    def lines(self, method: bytes, headers: Mapping[bytes, bytes]) -> Fields:
        """The headers of the response to a request with these."""
        asked = method == b"OPTIONS"
        if not asked and not self._origins:
            return ()
        origin = headers.get(b"origin", b"").decode("latin-1")
        allowed = self.allows(origin)
        if asked and not allowed:
            tell_refused(origin)
        found = {} if self._anyone or not self._origins else {"Vary": "Origin"}
        if allowed:
            found["Access-Control-Allow-Origin"] = "*" if self._anyone else origin
            found["Access-Control-Expose-Headers"] = self._exposed
        return lines_of(found | _PREFLIGHT if asked and allowed else found)


_told: set[str] = set()
"""The refused origins that this process has logged."""


def tell_refused(origin: str) -> None:
    """Log that pages of an origin may not send, once for each origin. An origin names a site, and
    nobody who visits it."""
    if len(_told) < _MOST_TOLD and origin not in _told and _ORIGIN.fullmatch(origin):
        _told.add(origin)
        tell(
            "warning",
            "origin-refused",
            f"pages of {origin} may not send: if they are yours, add it to DENIABLE_CORS_ORIGINS",
            origin=origin,
        )


def origin_refused(origin: str) -> IntakeError:
    """The error for a body of a page whose origin may not send."""
    tell_refused(origin)
    return IntakeError(
        "origin-not-allowed",
        "pages of this origin may not send here: the operator names those that may in "
        "DENIABLE_CORS_ORIGINS",
    )

"""Who may send a batch: holders of an ingest key, at the rate that a network is allowed.

No address is stored. For a network (/24, /48) there is a count, under a hash with a random key.
Both are deleted after the second, minute, hour or day of the rate.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import math
import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from urllib.parse import unquote

import limits
from limits.storage import Storage
from limits.strategies import FixedWindowRateLimiter

from deniable_collector.batches.bodies import IntakeError
from deniable_collector.operation.events import tell
from deniable_collector.settings import OFF, Settings

__all__ = ["Admission", "client_address", "network_of"]

_IPV4, _IPV6 = 24, 48

_MOST_NETWORKS = 1 << 20
"""The most networks that are counted at a time. With more, all counts are reset, so that memory is
bounded."""


class Admission:
    """Admits a request or raises. `of` returns None for a collector that admits everybody.

    `clock` returns seconds that never go back.
    """

    def __init__(self, settings: Settings, clock: Callable[[], float] = time.monotonic) -> None:
        self._keys = settings.ingest_keys
        self._hops = settings.trusted_proxies
        self._rate = limits.parse(settings.rate) if settings.rate != OFF else None
        self._told = False
        self._counts = _PeriodCounts(clock)
        self._limiter = FixedWindowRateLimiter(self._counts)

    @classmethod
    def of(cls, settings: Settings) -> Admission | None:
        """What the settings ask for; None if they ask for nothing, which then costs nothing."""
        return cls(settings) if settings.rate != OFF or settings.ingest_keys else None

    def admit(
        self,
        address: str,
        authorization: str,
        key: str,
        *,
        forwarded: str = "",
        query: bytes = b"",
    ) -> None:
        """Let one request in.

        `address` is the client's as `client_address` finds it, `authorization`, `key` and
        `forwarded` the headers Authorization, X-Deniable-Key and X-Forwarded-For, `query` the
        address's query string; each is empty where there is none. A beacon has no headers of the
        page's choice, so its key is in the query, which counts only where no header has one.

        Raises:
            IntakeError: 429 if the client's network sends too much, 401 without a good key.
        """
        # The rate comes first, so that it limits how fast keys can be guessed.
        self.pace(address, forwarded)
        if self._keys and not self._known(authorization, key or _asked_key(authorization, query)):
            raise _no_key()

    def pace(self, address: str, forwarded: str = "") -> None:
        """Count one request of this address, as `admit` does, and ask for no key.

        Raises:
            IntakeError: 429 if the client's network sends too much.
        """
        if self._rate is not None and address:
            secret = self._counts.secret_for(self._rate.get_expiry())
            network = hashlib.blake2b(network_of(address), key=secret, digest_size=8).hexdigest()
            if not self._limiter.hit(self._rate, network):
                if forwarded and not self._hops:
                    self._tell_of_a_proxy()
                raise _too_many(self._counts.seconds_left())

    def admit_scope(
        self,
        client: tuple[str, int] | None,
        headers: Iterable[tuple[bytes, bytes]],
        query: bytes = b"",
    ) -> None:
        """`admit` for ASGI servers: with the peer, the header with names in lower case, and the
        query string.

        Raises:
            IntakeError: as `admit` does.
        """
        found = {b"authorization": b"", b"x-deniable-key": b"", b"x-forwarded-for": b""}
        for name, value in headers:
            if name in found:
                found[name] = b"%b,%b" % (found[name], value) if found[name] else value
        authorization, key, forwarded = (each.decode("latin-1") for each in found.values())
        address = client_address(client[0] if client else "", forwarded, self._hops)
        self.admit(address, authorization, key, forwarded=forwarded, query=query)

    def _tell_of_a_proxy(self) -> None:
        if not self._told:
            self._told = True
            tell(
                "warning",
                "proxy-unknown",
                "batches beyond DENIABLE_RATE carry X-Forwarded-For, which nobody believes as "
                "DENIABLE_TRUSTED_PROXIES is 0: behind a proxy all devices share one rate, so "
                "set it to the number of your proxies",
            )

    def _known(self, authorization: str, key: str) -> bool:
        scheme, _, token = authorization.partition(" ")
        if not key and scheme.lower() == "bearer":
            key = token.strip()
        digest = hashlib.sha256(key.encode("latin-1", "replace")).digest()
        # All are compared, so that the time does not reveal which one was close.
        return sum(hmac.compare_digest(digest, each) for each in self._keys) > 0


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
            return seen[-hops].strip()
    return peer


def network_of(address: str) -> bytes:
    """The /24 or /48 of an address; everything that is not an address counts as one network."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return b""
    if isinstance(parsed, ipaddress.IPv6Address):
        if parsed.ipv4_mapped is None:
            return parsed.packed[: _IPV6 // 8]
        parsed = parsed.ipv4_mapped
    return parsed.packed[: _IPV4 // 8]


class _PeriodCounts(Storage):
    """The counts of one period, which are deleted all at once together with their secret.

    The library's own storage iterates over all of its keys in a thread, a hundred times a
    second, which is too slow with the networks of a launch day.
    """

    STORAGE_SCHEME = None

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__()
        self._clock = clock
        self._lock = threading.Lock()
        self._ends = -math.inf
        self.reset()

    def secret_for(self, seconds: float) -> bytes:
        """The current hash key. If a period has ended, a new one of `seconds` begins."""
        with self._lock:
            if self._clock() >= self._ends:
                self._forget()
                self._ends = self._clock() + seconds
            return self._secret

    def incr(self, key: str, expiry: float, amount: int = 1) -> int:
        with self._lock:
            if len(self._counts) >= _MOST_NETWORKS:
                self._counts.clear()
            self._counts[key] += amount
            return self._counts[key]

    def get(self, key: str) -> int:
        return self._counts[key]

    def get_expiry(self, key: str) -> float:
        return time.time() + self.seconds_left()

    def seconds_left(self) -> float:
        """The remaining seconds of the current period."""
        return max(0.0, self._ends - self._clock())

    def check(self) -> bool:
        return True

    def clear(self, key: str) -> None:
        self._counts.pop(key, None)

    def reset(self) -> int:
        with self._lock:
            return self._forget()

    @property
    def base_exceptions(self) -> type[Exception]:
        return ValueError

    def _forget(self) -> int:
        forgotten = len(getattr(self, "_counts", ()))
        self._counts: Counter[str] = Counter()
        self._secret = secrets.token_bytes(16)
        return forgotten


def _too_many(seconds: float) -> IntakeError:
    return IntakeError(
        "too-many-requests",
        429,
        "Too many requests",
        "this network sends more than the collector takes from one: send the batch again "
        "later, unchanged",
        retry_after=max(1, math.ceil(seconds)),
    )


def _no_key() -> IntakeError:
    return IntakeError(
        "no-ingest-key",
        401,
        "No ingest key",
        "send a key of this collector as Authorization: Bearer, as X-Deniable-Key, or in the "
        "query of the address as key=",
    )

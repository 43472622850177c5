"""Who may send a batch: holders of an ingest key, at the rate that a network is allowed.

No address is stored. For a network (/24, /48) there is a count, under a hash with a random key.
Both are deleted after the second, minute, hour or day of the rate.
"""

from __future__ import annotations

import hashlib
import hmac
import math
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from socket import AF_INET, AF_INET6, inet_pton
from urllib.parse import unquote

import limits
from limits.storage import Storage
from limits.strategies import FixedWindowRateLimiter

from deniable_collector.operation.events import tell
from deniable_collector.refusals import IntakeError
from deniable_collector.settings import OFF, Settings

__all__ = ["Admission", "NetworkLimit", "Peer", "client_address", "network_of"]

_IPV4, _IPV6 = 24, 48

_MAPPED = bytes(10) + b"\xff\xff"
"""What an IPv6 address begins with that stands for an IPv4 address (RFC 4291, 2.5.5.2)."""

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
        self._told = False
        self._limit = (
            NetworkLimit(limits.parse(settings.rate), clock) if settings.rate != OFF else None
        )

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
        if self._keys:
            self._check_key(authorization, key, query)

    def pace(self, address: str, forwarded: str = "") -> None:
        """Count one request of this address, as `admit` does, and ask for no key.

        Raises:
            IntakeError: 429 if the client's network sends too much.
        """
        if self._limit is not None and address and not self._limit.hit(address):
            raise self._over(forwarded)

    def _over(self, forwarded: str) -> IntakeError:
        assert self._limit is not None
        if forwarded and not self._hops:
            self._tell_of_a_proxy()
        return _too_many(self._limit.seconds_left())

    def pace_peer(self, peer: Peer, headers: Mapping[bytes, bytes]) -> None:
        """`pace` for the event loop: with the header, whose names are in lower case.

        Raises:
            IntakeError: as `pace` does.
        """
        limit = self._limit
        if limit is None or (not self._hops and peer.address and limit.hit_peer(peer)):
            # Nearly every request.
            return
        forwarded = headers.get(b"x-forwarded-for", b"").decode("latin-1")
        if self._hops:
            self.pace(client_address(peer.address, forwarded, self._hops), forwarded)
        elif peer.address:
            raise self._over(forwarded)

    def admit_peer(self, peer: Peer, headers: Mapping[bytes, bytes], query: bytes = b"") -> None:
        """`admit` for the event loop: with the header, whose names are in lower case.

        Raises:
            IntakeError: as `admit` does.
        """
        self.pace_peer(peer, headers)
        if self._keys:
            named = (headers.get(name, b"") for name in (b"authorization", b"x-deniable-key"))
            authorization, key = (each.decode("latin-1") for each in named)
            self._check_key(authorization, key, query)

    def _check_key(self, authorization: str, key: str, query: bytes) -> None:
        if not self._known(authorization, key or _asked_key(authorization, query)):
            raise _no_key()

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


class Peer:
    """The other end of a connection, whose network is hashed once in each period.

    `address` is "" where there is none; `key` is what the counts of `secret` call its network.
    """

    __slots__ = ("address", "key", "secret")

    def __init__(self, address: str) -> None:
        self.address = address
        self.key, self.secret = "", b""


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


class NetworkLimit:
    """How often each network may do something: `limits` counts, by names that nobody can reverse.

    A name is a hash of the network with a random key, which is deleted with all counts when a
    period of the rate ends. `clock` returns seconds that never go back. Safe to use from several
    threads.
    """

    def __init__(self, rate: limits.RateLimitItem, clock: Callable[[], float]) -> None:
        self.rate = rate
        self._counts = _PeriodCounts(rate.get_expiry(), clock)
        self._limiter = FixedWindowRateLimiter(self._counts)

    def hit(self, address: str) -> bool:
        """Count one for the network of an address; whether it was allowed."""
        return self._limiter.hit(self.rate, self._counts.name_of(address))

    def hit_peer(self, peer: Peer) -> bool:
        """`hit` for a peer. The limiter would write the key of its count again for each request,
        which costs more than to count."""
        counts = self._counts
        secret = counts.secret_now()
        if peer.secret is not secret:
            peer.key = self.rate.key_for(_hashed(peer.address, secret))
            peer.secret = secret
        return counts.add(peer.key) <= self.rate.amount

    def test(self, address: str) -> bool:
        """Whether one more would be allowed; it is not counted."""
        return self._limiter.test(self.rate, self._counts.name_of(address))

    def count(self, address: str) -> int:
        """How often it was done in this period."""
        return self._counts.get(self.rate.key_for(self._counts.name_of(address)))

    def seconds_left(self) -> float:
        """The remaining seconds of the current period."""
        return self._counts.seconds_left()


class _PeriodCounts(Storage):
    """The counts of one period, which are deleted all at once together with their secret.

    The library's own storage iterates over all of its keys in a thread, a hundred times a
    second, which is too slow with the networks of a launch day.
    """

    STORAGE_SCHEME = None

    def __init__(self, seconds: float, clock: Callable[[], float]) -> None:
        super().__init__()
        self._seconds = seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._ends = -math.inf
        self.reset()

    def secret_now(self) -> bytes:
        """The key of the hashes in this period: the same object until it ends."""
        if self._clock() >= self._ends:
            with self._lock:
                if self._clock() >= self._ends:
                    self._forget()
                    self._ends = self._clock() + self._seconds
        return self._secret

    def name_of(self, address: str) -> str:
        """The hash of the network of an address, in this period."""
        return _hashed(address, self.secret_now())

    def incr(self, key: str, expiry: float, amount: int = 1) -> int:
        return self.add(key, amount)

    def add(self, key: str, amount: int = 1) -> int:
        """`incr`, without what the library wraps around it."""
        with self._lock:
            counts = self._counts
            if len(counts) >= _MOST_NETWORKS:
                counts.clear()
            count = counts[key] = counts.get(key, 0) + amount
            return count

    def get(self, key: str) -> int:
        return self._counts.get(key, 0)

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
        self._counts: dict[str, int] = {}
        self._secret = secrets.token_bytes(16)
        return forgotten


def _hashed(address: str, secret: bytes) -> str:
    return hashlib.blake2b(network_of(address), key=secret, digest_size=8).hexdigest()


def _too_many(seconds: float) -> IntakeError:
    return IntakeError(
        "too-many-requests",
        "this network sends more than the collector takes from one: send the batch again "
        "later, unchanged",
        retry_after=max(1, math.ceil(seconds)),
    )


def _no_key() -> IntakeError:
    return IntakeError(
        "no-ingest-key",
        "send a key of this collector as Authorization: Bearer, as X-Deniable-Key, or in the "
        "query of the address as key=",
    )

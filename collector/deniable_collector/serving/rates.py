"""How often a network (/24, /48) may do something in a second, a minute, an hour or a day.

No address is stored. For a network there is a count, under a hash with a random key. Both are
deleted when the period ends.
"""

from __future__ import annotations

import hashlib
import math
import secrets
import threading
import time
from collections.abc import Callable
from socket import AF_INET, AF_INET6, inet_pton

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


class Peer:
    """The other end of a connection, whose network is hashed once in each period.

    `address` is "" where there is none; `name` is its network's in the counts of `secret`.
    """

    __slots__ = ("address", "name", "secret")

    def __init__(self, address: str) -> None:
        self.address = address
        self.name = self.secret = b""


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

    def hit(self, peer: Peer) -> bool:
        """Count one; whether the network is still within its rate."""
        with self._lock:
            name = self._name(peer)
            if len(self._counts) >= _MOST_NETWORKS:
                self._counts.clear()
            count = self._counts[name] = self._counts.get(name, 0) + 1
        return count <= self._amount

    def seconds_left(self) -> float:
        """The remaining seconds of the current period."""
        return max(0.0, self._ends - self._clock())

    def _name(self, peer: Peer) -> bytes:
        """The hash of a network in this period, which begins here if the last one is over."""
        now = self._clock()
        if now >= self._ends:
            self._ends = now + self._seconds
            self._secret = secrets.token_bytes(16)
            self._counts = {}
        if peer.secret is not self._secret:
            network = network_of(peer.address)
            peer.name = hashlib.blake2b(network, key=self._secret, digest_size=8).digest()
            peer.secret = self._secret
        return peer.name

"""How often a network (/24, /48) may do something that is counted only once it has been done.

Like the rate of batches (`admission.py`), and by the same counts: no address is kept.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable

import limits
from limits.strategies import FixedWindowRateLimiter

from deniable_collector.serving.admission import _PeriodCounts, network_of

__all__ = ["NetworkRate"]


class NetworkRate:
    """`rate` is like "10/minute". `clock` returns seconds that never go back."""

    def __init__(self, rate: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = limits.parse(rate)
        self._counts = _PeriodCounts(clock)
        self._limiter = FixedWindowRateLimiter(self._counts)

    def wait(self, address: str) -> float:
        """Seconds after which the network of this address may go on; 0 if it may now."""
        if self._limiter.test(self._rate, self._network(address)):
            return 0.0
        return self._counts.seconds_left()

    def count(self, address: str) -> bool:
        """Count one for the network; whether it has just reached the rate."""
        network = self._network(address)
        self._limiter.hit(self._rate, network)
        return self._counts.get(self._rate.key_for(network)) == self._rate.amount

    def _network(self, address: str) -> str:
        secret = self._counts.secret_for(self._rate.get_expiry())
        return hashlib.blake2b(network_of(address), key=secret, digest_size=8).hexdigest()

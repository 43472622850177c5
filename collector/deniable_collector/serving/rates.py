"""How often a network (/24, /48) may do something that is counted only once it has been done.

Like the rate of batches (`admission.py`), and by the same counts: no address is kept.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import limits

from deniable_collector.serving.admission import NetworkLimit

__all__ = ["NetworkRate"]


class NetworkRate:
    """`rate` is like "10/minute". `clock` returns seconds that never go back."""

    def __init__(self, rate: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit = NetworkLimit(limits.parse(rate), clock)

    def wait(self, address: str) -> float:
        """Seconds after which the network of this address may go on; 0 if it may now."""
        return 0.0 if self._limit.test(address) else self._limit.seconds_left()

    def count(self, address: str) -> bool:
        """Count one for the network; whether it has just reached the rate."""
        self._limit.hit(address)
        return self._limit.count(address) == self._limit.rate.amount

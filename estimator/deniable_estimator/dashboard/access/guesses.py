"""Wrong tokens are counted for each network, slowed, and told to the operator."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable

from flask import Request

from deniable_collector.operation.events import tell
from deniable_collector.serving.admission import client_address
from deniable_collector.serving.rates import NetworkRate
from deniable_estimator.dashboard.problems import ApiProblem
from deniable_estimator.messages import message

_STRETCH = 60.0
"""Seconds whose wrong tokens are told as one number."""


class Guesses:
    """A network may show `rate` wrong tokens, like "10/minute"; then none is looked at until that
    time has passed. `hops` reverse proxies in front are believed.

    Who has signed in is not concerned. The log has numbers alone: no token and no address.
    """

    def __init__(self, rate: str, hops: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._hops, self._clock = NetworkRate(rate, clock), hops, clock
        self._lock = threading.Lock()
        self._ends = -math.inf
        self._wrong = self._slowed = 0

    def check(self, request: Request) -> None:
        """Let a token be looked at.

        Raises:
            ApiProblem: 429, as this network has shown too many wrong ones.
        """
        wait = math.ceil(self._rate.wait(self._address(request)))
        if wait:
            raise ApiProblem(
                429,
                "too-many-guesses",
                message("Too many wrong tokens"),
                message(
                    "Too many wrong tokens came from this network. Wait {seconds} s; then try the "
                    "right one.",
                    seconds=wait,
                ),
                retry_after=wait,
            )

    def wrong(self, request: Request) -> None:
        """Count a wrong token."""
        reached = self._rate.count(self._address(request))
        with self._lock:
            if self._clock() >= self._ends:
                self._ends, self._wrong, self._slowed = self._clock() + _STRETCH, 0, 0
            self._wrong += 1
            self._slowed += reached
            wrong, slowed = self._wrong, self._slowed
        # At 1, 10, 100: whoever guesses must not be able to fill the log.
        if _power_of_ten(wrong) or (reached and _power_of_ten(slowed)):
            tell(
                "warning",
                "wrong-token",
                f"within a minute {wrong} wrong tokens were shown to the dashboard, and {slowed} "
                "networks have to wait for showing too many",
                wrong=wrong,
                networks_slowed=slowed,
            )

    def _address(self, request: Request) -> str:
        forwarded = request.headers.get("X-Forwarded-For", "")
        return client_address(request.environ.get("REMOTE_ADDR", ""), forwarded, self._hops)


def _power_of_ten(number: int) -> bool:
    return str(number).rstrip("0") == "1"

"""Wrong tokens are counted for each network, slowed, and told to the operator.

A right token is never refused, whatever else came from its network: tokens have 256 bits, so that
no rate of guessing finds one, and a stranger must not be able to lock anybody out.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable

from flask import Request

from deniable_collector.operation.events import tell
from deniable_collector.serving.admission import client_address
from deniable_collector.serving.rates import NetworkRate, Peer
from deniable_estimator.dashboard.problems import ApiProblem
from deniable_estimator.messages import message

_RATE = "10/minute"
"""So many wrong tokens of a network (/24, /48) are told that they are wrong."""

_STRETCH = 60.0
"""Seconds whose wrong tokens are told as one number."""


class Guesses:
    """Counts wrong tokens. `hops` reverse proxies in front are believed.

    The log has numbers alone: no token and no address.
    """

    def __init__(self, hops: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._hops, self._clock = NetworkRate(_RATE, clock), hops, clock
        self._lock = threading.Lock()
        self._ends = -math.inf
        self._wrong = 0

    def wrong(self, request: Request) -> None:
        """Count a wrong token.

        Raises:
            ApiProblem: 429, as this network has shown too many.
        """
        self._tell()
        forwarded = request.headers.get("X-Forwarded-For", "")
        address = client_address(request.environ.get("REMOTE_ADDR", ""), forwarded, self._hops)
        if self._rate.hit(Peer(address)):
            return
        wait = math.ceil(self._rate.seconds_left())
        raise ApiProblem(
            429,
            "too-many-guesses",
            message("Too many wrong tokens"),
            message(
                "The token is wrong, as were too many from this network. Wait {seconds} s before "
                "you try another; the right one opens at any time.",
                seconds=wait,
            ),
            retry_after=wait,
        )

    def _tell(self) -> None:
        with self._lock:
            if self._clock() >= self._ends:
                self._ends, self._wrong = self._clock() + _STRETCH, 0
            self._wrong += 1
            wrong = self._wrong
        # At 1, 10, 100: whoever guesses must not be able to fill the log.
        if str(wrong).rstrip("0") == "1":
            tell(
                "warning",
                "wrong-token",
                f"within a minute {wrong} wrong tokens were shown to the dashboard",
                wrong=wrong,
            )

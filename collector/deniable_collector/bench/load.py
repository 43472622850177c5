"""A load on a collector over HTTP, limited in time and number, and its results.

With a rate, each request is due at a moment that does not depend on earlier responses, and its
wait is measured from that moment. Otherwise a stalled collector would get fewer requests, which
hides the stall (coordinated omission, as Gil Tene named it).
"""

from __future__ import annotations

import asyncio
import itertools
from array import array
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import aiohttp
import msgspec
import numpy as np

__all__ = ["Load", "LoadResult", "run"]

_TIMEOUT = 30.0
"""Seconds after which a request counts as failed."""

_PAUSE = 0.1
"""Seconds for which a connection pauses after a failure, to spare a collector that is down."""


@dataclass(frozen=True)
class Load:
    """What to send: `rate` is requests per second over all connections, 0 for as many as
    possible. It ends after `seconds`, or `requests`."""

    url: str
    seconds: float
    requests: int
    connections: int
    rate: float = 0.0
    headers: dict[str, str] = field(default_factory=dict, repr=False)


@dataclass
class LoadResult:
    """What came of it, so far. `waits` are the seconds of each response, of any status; `problems`
    counts the problems' codes; `busy` is the part of the time for which the sender calculated."""

    seconds: float = 0.0
    busy: float = 0.0
    statuses: Counter[int] = field(default_factory=Counter)
    problems: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    accepted: int = 0
    duplicate: int = 0
    rejected: int = 0
    waits: array[float] = field(default_factory=lambda: array("d"))

    @classmethod
    def of(cls, parts: Sequence[LoadResult]) -> LoadResult:
        """What came of several loads at the same time."""
        whole = cls(
            seconds=max(each.seconds for each in parts),
            busy=min(each.busy for each in parts),
            accepted=sum(each.accepted for each in parts),
            duplicate=sum(each.duplicate for each in parts),
            rejected=sum(each.rejected for each in parts),
        )
        for each in parts:
            whole.statuses += each.statuses
            whole.problems += each.problems
            whole.errors += each.errors
            whole.waits += each.waits
        return whole

    @property
    def answered(self) -> int:
        """Requests with a response."""
        return self.statuses.total()

    def to_dict(self) -> dict[str, object]:
        """The figures: times in milliseconds, None without a response."""
        waits = 1000 * np.asarray(self.waits)
        percentiles = {f"p{each}": float(np.percentile(waits, each)) for each in (50, 90, 99)
                       } if len(waits) else dict.fromkeys(("p50", "p90", "p99"))  # fmt: skip
        return {
            "seconds": self.seconds,
            "requests": self.answered + self.errors.total(),
            "answered_per_second": self.answered / self.seconds if self.seconds else 0.0,
            "latency_ms": {
                **percentiles,
                "max": float(waits.max()) if len(waits) else None,
            },
            "statuses": {str(status): number for status, number in sorted(self.statuses.items())},
            "problems": dict(self.problems.most_common()),
            "errors": dict(self.errors.most_common()),
            "reports": {
                "accepted": self.accepted,
                "duplicate": self.duplicate,
                "rejected": self.rejected,
            },
        }


class _ReceiptDocument(msgspec.Struct):
    accepted: int
    duplicate: int
    refused: dict[str, int]


class _ProblemDocument(msgspec.Struct):
    type: str


_decode = msgspec.json.Decoder(_ReceiptDocument).decode
_decode_problem = msgspec.json.Decoder(_ProblemDocument).decode


async def run(load: Load, body: Callable[[], bytes], outcome: LoadResult) -> None:
    """Send the load, and add each result to `outcome` at once.

    Every request is answered or failed when this returns.
    """
    loop = asyncio.get_running_loop()
    places = itertools.count()
    began = loop.time()
    until = began + load.seconds

    async def connection(session: aiohttp.ClientSession) -> None:
        for place in places:
            due = began + place / load.rate if load.rate else loop.time()
            if place >= load.requests or due >= until:
                return
            if due > loop.time():
                await asyncio.sleep(due - loop.time())
            try:
                async with session.post(
                    load.url, data=body(), headers=headers, allow_redirects=False
                ) as response:
                    answer = await response.read()
            except (aiohttp.ClientError, TimeoutError) as error:
                outcome.errors[type(error).__name__] += 1
                await asyncio.sleep(_PAUSE)
                continue
            outcome.waits.append(loop.time() - due)
            outcome.statuses[response.status] += 1
            if response.status == 202:
                _count(outcome, answer)
            else:
                outcome.problems[_code(answer)] += 1

    async def watch() -> None:
        while True:
            outcome.seconds = loop.time() - began
            await asyncio.sleep(_PAUSE)

    headers = {"Content-Type": "application/json", **load.headers}
    watching = loop.create_task(watch())
    connector = aiohttp.TCPConnector(limit=load.connections)
    timeout = aiohttp.ClientTimeout(total=_TIMEOUT)
    try:
        async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
            await asyncio.gather(*(connection(session) for _ in range(load.connections)))
    finally:
        watching.cancel()
        outcome.seconds = loop.time() - began


def _code(answer: bytes) -> str:
    try:
        return _decode_problem(answer).type.removeprefix("urn:deniable:problem:")
    except msgspec.DecodeError:
        return "no problem of a collector's"


def _count(outcome: LoadResult, answer: bytes) -> None:
    try:
        receipt = _decode(answer)
    except msgspec.DecodeError:
        outcome.errors["a response that is no receipt"] += 1
        return
    outcome.accepted += receipt.accepted
    outcome.duplicate += receipt.duplicate
    outcome.rejected += sum(receipt.refused.values())

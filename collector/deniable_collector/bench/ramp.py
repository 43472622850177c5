"""Raises a load until it meets a limit, and says which one.

A batch waits for the next commit (20 ms), so few connections measure that wait and not the
collector. Each step therefore has twice the connections of the one before, and twice the processes
where those that send are busy all the time.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from deniable_collector.bench.load import Load, LoadResult, run

__all__ = ["FIRST", "MOST", "Limit", "RampStep", "climb", "send"]

FIRST, MOST = 32, 1024
"""Connections of the first step and of the last."""

_BUSY = 0.85
"""Part of the time for which a process has calculated that could not have sent more."""

_GROWTH = 1.1
"""Times the responses of the best step before it that a step must bring to be worth the next."""

_REFUSED = 0.01
"""Part of the requests that fail or are refused from which that is the limit."""

Limit: TypeAlias = Literal["collector", "refusals", "failures", "requests", "sender", "connections"]


@dataclass(frozen=True)
class RampStep:
    """One step of the load, and what came of it."""

    connections: int
    processes: int
    outcome: LoadResult

    @property
    def rate(self) -> float:
        """Batches that were acknowledged in a second."""
        seconds = self.outcome.seconds
        return self.outcome.statuses[202] / seconds if seconds else 0.0


Send: TypeAlias = Callable[[int, int, int], Awaitable[LoadResult]]
"""Sends at most so many requests with so many connections from so many processes."""


async def climb(
    send: Send, requests: int, processors: int = os.cpu_count() or 1
) -> tuple[list[RampStep], Limit]:
    """All steps, of which the last met the limit; `requests` is how many they may send in all.

    `refusals` are responses other than 202, `failures` requests without one; `collector` is the
    limit where it could have been sent more, and more brought nothing.
    """
    steps: list[RampStep] = []
    connections, processes, best = FIRST, 1, 0.0
    while True:
        step = RampStep(connections, processes, await send(connections, processes, requests))
        steps.append(step)
        outcome = step.outcome
        asked = outcome.answered + outcome.errors.total()
        if asked - outcome.statuses[202] > _REFUSED * asked:
            # A collector that refuses connections may also close them before it is heard.
            return steps, "refusals" if outcome.problems else "failures"
        requests -= asked
        if requests <= 0:
            return steps, "requests"
        if outcome.busy >= _BUSY:
            if processes == processors:
                return steps, "sender"
            processes = min(2 * processes, processors)
            continue
        if step.rate < _GROWTH * best:
            return steps, "collector"
        if connections == MOST:
            return steps, "connections"
        best = max(best, step.rate)
        connections *= 2


async def send(load: Load, body: Callable[[], bytes], processes: int) -> LoadResult:
    """Send a load from so many processes, which share its connections and requests."""
    if processes == 1:
        outcome = LoadResult()
        await _measured(load, body, outcome)
        return outcome
    loop = asyncio.get_running_loop()
    part = replace(
        load,
        connections=load.connections // processes,
        requests=max(1, load.requests // processes),
    )
    # A fork would take over this process's event loop.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, context) as pool:
        # They are started first, so that all send at the same time.
        await asyncio.gather(*(loop.run_in_executor(pool, time.sleep, 0.5)
                               for _ in range(processes)))  # fmt: skip
        parts = [loop.run_in_executor(pool, _alone, part, body) for _ in range(processes)]
        return LoadResult.of(await asyncio.gather(*parts))


def _alone(load: Load, body: Callable[[], bytes]) -> LoadResult:
    outcome = LoadResult()
    asyncio.run(_measured(load, body, outcome))
    return outcome


async def _measured(load: Load, body: Callable[[], bytes], outcome: LoadResult) -> None:
    spent = time.process_time()
    await run(load, body, outcome)
    outcome.busy = (time.process_time() - spent) / outcome.seconds if outcome.seconds else 0.0

"""Group commit: the batches that arrive together are committed together, in another thread.

While a commit is running, the next group gathers. A batch is answered after its commit.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeAlias

from deniable_collector.batches.batch import Batch, Receipt
from deniable_collector.operation.events import tell_unexpected

TICK = 0.02
"""Seconds between commits at least, in which batches gather."""

Done: TypeAlias = Callable[[Receipt | Exception], None]
"""Called with the result of a batch."""


class GroupCommit:
    """Commits batches in groups; used from one event loop.

    A group starts at least `tick` seconds after the previous one, because each commit costs one
    store call and one `fsync`, however many batches are in it. `take` commits some batches, and
    returns the outcome of each (`Intake.take`).
    """

    def __init__(
        self, take: Callable[[Sequence[Batch]], list[Receipt | Exception]], tick: float = TICK
    ) -> None:
        self._take = take
        self._tick = tick
        self._waiting: list[tuple[Batch, Done]] = []
        self._task: asyncio.Task[None] | None = None
        self._next = 0.0
        self._thread = ThreadPoolExecutor(1, "commit")

    def add(self, batch: Batch, done: Done) -> None:
        """Commit one batch, together with others; `done` is called once, after the commit.

        Its argument is the receipt, or else:
            StoreUnavailable: the commit failed; the batch may be sent again.
            StoreError: the store refused this batch.
        """
        self._waiting.append((batch, done))
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._commit())

    def close(self) -> None:
        """Wait for the running commit, and end the thread."""
        self._thread.shutdown()

    async def _commit(self) -> None:
        """Commit one group after the other, until nothing waits."""
        loop = asyncio.get_running_loop()
        while self._waiting:
            # After this turn of the loop at least, so that the other requests it has read are in.
            await asyncio.sleep(max(0.0, self._next - loop.time()))
            self._next = loop.time() + self._tick
            group, self._waiting = self._waiting, []
            outcomes: list[Receipt | Exception]
            try:
                batches = [batch for batch, _ in group]
                outcomes = await loop.run_in_executor(self._thread, self._take, batches)
                if len(outcomes) != len(group):
                    raise RuntimeError
            except BaseException as error:
                # Whatever error ended the commit, every waiting request must be answered.
                told = error if isinstance(error, Exception) else RuntimeError(type(error).__name__)
                outcomes = [told] * len(group)
            for (_, done), outcome in zip(group, outcomes, strict=True):
                try:
                    done(outcome)
                except Exception as error:
                    # An error in one response must not prevent the others.
                    tell_unexpected(error)
        self._task = None

"""Group commit: the batches that arrive together are committed together, in another thread.

While a commit is running, the next group gathers. A batch is answered after its commit.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeAlias

from deniable_collector.batches.batch import Batch, Receipt
from deniable_collector.intake import Intake
from deniable_collector.operation.events import tell_unexpected
from deniable_collector.stores.commits import shard_of
from deniable_collector.stores.errors import StoreUnavailable

TICK = 0.02
"""Seconds between commits at least, in which batches gather."""

Done: TypeAlias = Callable[[Receipt | Exception], None]
"""Called with the result of a batch."""


class GroupCommit:
    """Commits batches in groups; used from one event loop.

    A group starts at least `tick` seconds after the previous one, because each commit costs one
    store call and one `fsync`, however many batches are in it.
    """

    def __init__(self, intake: Intake, tick: float = TICK) -> None:
        self._intake = intake
        self._tick = tick
        self._waiting: list[tuple[Batch, Done]] = []
        self._busy = False
        self._next = 0.0
        self._thread = ThreadPoolExecutor(1, "commit")

    def add(self, batch: Batch, done: Done) -> None:
        """Commit one batch, together with others; `done` is called once, after the commit.

        Its argument is the receipt, or else:
            StoreUnavailable: the commit failed; the batch may be sent again.
            StoreError: the store refused this batch.
        """
        self._waiting.append((batch, done))
        if not self._busy:
            self._busy = True
            loop = asyncio.get_running_loop()
            # Start after this turn of the loop, so that the other requests it has read are in too.
            loop.call_at(max(self._next, loop.time()), self._begin)

    async def take(self, batch: Batch) -> Receipt:
        """Commit one batch like `add`, and return its receipt or raise the error."""
        future: asyncio.Future[Receipt] = asyncio.get_running_loop().create_future()

        def done(outcome: Receipt | Exception) -> None:
            # If the client has gone, nobody waits; its batch is counted nevertheless.
            if future.cancelled():
                return
            if isinstance(outcome, Exception):
                future.set_exception(outcome)
            else:
                future.set_result(outcome)

        self.add(batch, done)
        return await future

    def close(self) -> None:
        """Wait for the running commit, and end the thread."""
        self._thread.shutdown()

    def _begin(self) -> None:
        loop = asyncio.get_running_loop()
        self._next = loop.time() + self._tick
        group, self._waiting = self._waiting, []
        batches = [batch for batch, _ in group]
        try:
            commit = loop.run_in_executor(self._thread, commit_by_shard, self._intake, batches)
        except Exception as error:
            # No thread can be started, or the executor has ended.
            self._tell(group, [error] * len(group))
            return
        commit.add_done_callback(lambda finished: self._end(group, finished))

    def _end(
        self,
        group: list[tuple[Batch, Done]],
        finished: asyncio.Future[list[Receipt | Exception]],
    ) -> None:
        outcomes: list[Receipt | Exception]
        try:
            outcomes = finished.result()
            if len(outcomes) != len(group):
                raise RuntimeError
        except BaseException as error:
            # Whatever error ended the commit, every waiting request must be answered.
            told = error if isinstance(error, Exception) else RuntimeError(type(error).__name__)
            outcomes = [told] * len(group)
        self._tell(group, outcomes)

    def _tell(
        self, group: list[tuple[Batch, Done]], outcomes: Sequence[Receipt | Exception]
    ) -> None:
        """Answer a group, and start the next one if there is one."""
        for (_, done), outcome in zip(group, outcomes, strict=True):
            try:
                done(outcome)
            except Exception as error:
                # An error in one response must not prevent the others.
                tell_unexpected(error)
        self._busy = bool(self._waiting)
        if self._waiting:
            loop = asyncio.get_running_loop()
            loop.call_at(max(self._next, loop.time()), self._begin)


def commit_by_shard(intake: Intake, batches: Sequence[Batch]) -> list[Receipt | Exception]:
    """Commit the batches of each shard together; if that is refused, one by one.

    So a batch that the store refuses, or that triggers a bug, fails alone. If a shard is away,
    nothing is tried again: all of its batches that are not committed yet fail, and those of
    the other shards do not.
    """
    try:
        number = intake.shards
    except Exception as error:
        return [error] * len(batches)
    if number == 1:
        return _commit_together(intake, batches)
    shards: dict[int, list[int]] = {}
    for place, batch in enumerate(batches):
        shards.setdefault(shard_of(batch.id, number), []).append(place)
    outcomes: dict[int, Receipt | Exception] = {}
    for places in shards.values():
        found = _commit_together(intake, [batches[place] for place in places])
        outcomes.update(zip(places, found, strict=True))
    return [outcomes[place] for place in range(len(batches))]


def _commit_together(intake: Intake, batches: Sequence[Batch]) -> list[Receipt | Exception]:
    try:
        return list(intake.take(batches))
    except StoreUnavailable as error:
        return [error] * len(batches)
    except Exception as error:
        if len(batches) == 1:
            return [error]
    outcomes: list[Receipt | Exception] = []
    for place, batch in enumerate(batches):
        try:
            outcomes += intake.take([batch])
        except StoreUnavailable as error:
            return outcomes + [error] * (len(batches) - place)
        except Exception as error:
            outcomes.append(error)
    return outcomes

"""Group commit: the batches that arrive together are folded by one commit in another thread.

While a commit is under way the next group gathers; a batch is answered after its commit.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from hearsay_collector.intake import Batch, Intake, Receipt
from hearsay_collector.stores.base import StoreUnavailable

__all__ = ["GroupCommit", "settle"]


class GroupCommit:
    """Folds batches in groups; used from one event loop.

    A group begins at least `tick` seconds after the one before: each commit costs the same
    store call and the same `fsync`, however many batches are in it.
    """

    def __init__(self, intake: Intake, tick: float) -> None:
        self._intake = intake
        self._tick = tick
        self._waiting: list[tuple[Batch, asyncio.Future[Receipt]]] = []
        self._busy = False
        self._next = 0.0
        self._thread = ThreadPoolExecutor(1, "commit")

    async def take(self, batch: Batch) -> Receipt:
        """Fold one batch, together with others, and return its receipt once it is committed.

        Raises:
            StoreUnavailable: the commit failed; the batch may be sent again.
            StoreError: the store refused this batch.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Receipt] = loop.create_future()
        self._waiting.append((batch, future))
        if not self._busy:
            self._busy = True
            # Not before the other requests that this turn of the loop has read are here too.
            loop.call_at(max(self._next, loop.time()), self._begin)
        return await future

    def close(self) -> None:
        """Wait for the commit under way, and end the thread."""
        self._thread.shutdown()

    def _begin(self) -> None:
        loop = asyncio.get_running_loop()
        self._next = loop.time() + self._tick
        group, self._waiting = self._waiting, []
        batches = [batch for batch, _ in group]
        commit = loop.run_in_executor(self._thread, settle, self._intake, batches)
        commit.add_done_callback(lambda done: self._end(group, done))

    def _end(
        self,
        group: list[tuple[Batch, asyncio.Future[Receipt]]],
        done: asyncio.Future[list[Receipt | Exception]],
    ) -> None:
        for (_, future), outcome in zip(group, done.result(), strict=True):
            # A client that went away is not waited for; its batch counts all the same.
            if future.cancelled():
                continue
            if isinstance(outcome, Exception):
                future.set_exception(outcome)
            else:
                future.set_result(outcome)
        if self._waiting:
            loop = asyncio.get_running_loop()
            loop.call_at(max(self._next, loop.time()), self._begin)
        else:
            self._busy = False


def settle(intake: Intake, batches: Sequence[Batch]) -> list[Receipt | Exception]:
    """Take all batches in one commit; if that is refused, one by one.

    So a batch that the store refuses, or that meets a bug, fails alone. Where the store is
    away, nothing is tried again: all that are not folded by then fail alike.
    """
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

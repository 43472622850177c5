"""Estimates that were calculated are kept in memory; those that take long are in the background.

An estimate is known by a digest of all that it rests on (`versions.py`), so it is never out
of date: it is asked for no more once a tally has changed, and makes room for others in time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from cachetools import LRUCache

from deniable import DeniableError
from deniable_estimator.estimate import Estimate
from deniable_estimator.history import History
from deniable_estimator.messages import message, sentence

__all__ = ["Decodes", "StillDecoding", "TooManyDecodes", "size_of"]

_T = TypeVar("_T")

_WORKERS = 2
_MOST_JOBS = 16
_MOST_WAITING = 4
"""Of the server's eight threads so many may wait long; the others answer at once."""
_SHORT = 1.0
"""Seconds that anybody may wait."""
_ABANDONED = 60.0
"""Seconds after which a job stops if nobody requests it; finished parts stay cached."""
_KEPT = 60.0
"""Seconds for which a result is kept for its reader. Otherwise, while new reports of the same
windows arrive, a result would be outdated before it could be shown."""
_PERIODS = sentence(
    "The result is being calculated; {done} of {of} periods are done. Send the request again."
)
_SECONDS = sentence(
    "The result is being calculated; it has taken {seconds:.0f} s. Send the request again."
)
_TEXT = 100
"""Approximate bytes of a short string."""
_ESTIMATE, _WINDOW, _VALUE = 3_000, 100, 140
_LOOK, _SHARE, _FIGURE = 550, 16, 200
"""Bytes of an estimate, and of each of its windows and values; of a window that was looked at, of
each of its shares, and of a figure with its p-value. They are not counted part by part, as that
took a twentieth of an overview. A test compares them with what is there."""


class StillDecoding(DeniableError):
    """The result is being calculated: send the request again after `retry_after` seconds."""

    retry_after = 2

    def __init__(self, done: int, of: int, seconds: float) -> None:
        self.done = done
        """Finished periods."""
        self.of = of
        """Periods in total; 0 if there is only one step."""
        self.seconds = seconds
        """Seconds since the start."""
        super().__init__(message(_PERIODS if of else _SECONDS, done=done, of=of, seconds=seconds))


class TooManyDecodes(DeniableError):
    """So much is being calculated that no more is begun: ask again after `retry_after` seconds."""

    retry_after = 10

    def __init__(self) -> None:
        super().__init__(
            message(
                "{count} long calculations are under way. Ask again in a moment.",
                count=_MOST_JOBS,
            )
        )


class _Abandoned(Exception):
    """Nobody requests this job any more."""


@dataclass
class _Job(Generic[_T]):
    begun: float
    asked: float
    done: int = 0
    of: int = 0
    ended: float | None = None
    future: Future[_T] = field(default_factory=Future)


class Decodes:
    """What was calculated, bounded by `capacity` in bytes, and what is being calculated."""

    def __init__(self, capacity: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._known: LRUCache[bytes, tuple[Any, int]] = LRUCache(
            capacity, getsizeof=lambda entry: entry[1]
        )
        self._coming: dict[bytes, Future[Any]] = {}
        self._jobs: dict[bytes, _Job[Any]] = {}
        self._pool = ThreadPoolExecutor(_WORKERS, thread_name_prefix="decode")
        self._seats = threading.Semaphore(_MOST_WAITING)

    @property
    def size(self) -> int:
        """Bytes that the known estimates take, about."""
        with self._lock:
            return int(self._known.currsize)

    def known(self, key: bytes) -> Any:
        """What is known under the key; None if nothing is, without waiting for it."""
        with self._lock:
            return self._known[key][0] if key in self._known else None

    def get(self, key: bytes, calculate: Callable[[], _T]) -> _T:
        """What is known under the key; else it is calculated, by one of those who ask for it."""
        with self._lock:
            if key in self._known:
                known: _T = self._known[key][0]
                return known
            future = self._coming.get(key)
            mine = future is None
            if future is None:
                future = self._coming[key] = Future()
        if not mine:
            awaited: _T = future.result()
            return awaited
        try:
            found = calculate()
        except BaseException as error:
            with self._lock:
                del self._coming[key]
            future.set_exception(error)
            raise
        with self._lock:
            del self._coming[key]
            # A result larger than the whole cache is not cached.
            with suppress(ValueError):
                self._known[key] = (found, size_of(found))
        future.set_result(found)
        return found

    def job(
        self, name: bytes, work: Callable[[Callable[[int, int], None]], _T], patience: float
    ) -> _T:
        """What `work` returns, which goes on in the background if it takes longer than
        `patience` seconds; ask again under the same name then.

        `work` is given a function to call with how many of how many periods are done.

        Raises:
            StillDecoding: it is not done yet.
            TooManyDecodes: there is no room for another.
        """
        with self._lock:
            now = self._clock()
            self._sweep(now)
            job = self._jobs.get(name)
            if job is None:
                if sum(each.ended is None for each in self._jobs.values()) >= _MOST_JOBS:
                    raise TooManyDecodes
                job = self._jobs[name] = _Job(now, now)
                self._pool.submit(self._run, name, job, work)
            job.asked = now
        if not self._wait(job, patience):
            raise StillDecoding(job.done, job.of, self._clock() - job.begun)
        with self._lock:
            # Delivered: whoever asks from now on is given what the tallies say by then.
            if self._jobs.get(name) is job:
                del self._jobs[name]
        found: _T = job.future.result()
        return found

    def forget(self, name: bytes) -> None:
        """Whoever asked has been given what is known now: what a job of that name finds, or has
        found, must not be given to the next one, who may ask later."""
        with self._lock:
            self._jobs.pop(name, None)

    def _wait(self, job: _Job[Any], patience: float) -> bool:
        """Whether the job is done before patience ends, or all seats for waiting are taken."""
        seated = patience > _SHORT and self._seats.acquire(blocking=False)
        try:
            with suppress(TimeoutError):
                job.future.exception(patience if seated else min(patience, _SHORT))
        finally:
            if seated:
                self._seats.release()
        return job.future.done()

    def _run(
        self, name: bytes, job: _Job[_T], work: Callable[[Callable[[int, int], None]], _T]
    ) -> None:
        def progress(done: int, of: int) -> None:
            job.done, job.of = done, of
            with self._lock:
                if self._clock() - job.asked > _ABANDONED:
                    self._jobs.pop(name, None)
                    raise _Abandoned

        try:
            progress(0, 0)
            found = work(progress)
        except BaseException as error:
            job.ended = self._clock()
            job.future.set_exception(error)
        else:
            job.ended = self._clock()
            job.future.set_result(found)

    def _sweep(self, now: float) -> None:
        """Delete results that nobody has requested again."""
        for name, job in list(self._jobs.items()):
            if job.ended is not None and now - max(job.ended, job.asked) > _KEPT:
                del self._jobs[name]


def size_of(found: object) -> int:
    """The bytes that an estimate, or a list of strings, takes, about."""
    if isinstance(found, list):
        return 64 + _TEXT * len(found)
    if isinstance(found, tuple):
        # One window holds its arrays; several are told by the windows that are known already.
        (only,) = found if len(found) == 1 else (None,)
        return 64 + 8 * len(found) + (_LOOK + _SHARE * len(only.share) if only else 0)
    if isinstance(found, History):
        return 64 + _FIGURE * found.checks
    if isinstance(found, Estimate):
        # The strings of an estimate are those of the list that it was asked for.
        return _ESTIMATE + _WINDOW * len(found.windows) + _VALUE * len(found.values)
    return 64

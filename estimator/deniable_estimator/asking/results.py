"""Results that were calculated are kept in memory; those that take long are in the background.

A result is known by a digest of what is asked and of the version of the tallies that it rests on,
so it is never out of date: it is asked for no more once a tally has changed, and makes room for
others in time. Readers (`asking/reader.py`) tell versions without reading any tally.
"""

from __future__ import annotations

import hashlib
import math
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from cachetools import LRUCache

from deniable import DeniableError
from deniable_estimator.asking.history import History, Look
from deniable_estimator.asking.trend import Trend
from deniable_estimator.asking.work import WorkersClosed
from deniable_estimator.kinds.base import Answer
from deniable_estimator.kinds.discovery.finds import Finds
from deniable_estimator.messages import message, sentence

_T = TypeVar("_T")

_MOST_WAITING = 4
"""So many of the server's threads may wait long, and as many others for a moment; the rest of
them (`gunicorn_conf.py`) always answer at once."""
_MOST_LARGE = 4
"""So many large pages are written at a time: the server itself does that, in some tenths of a
second."""
_MOMENT = 1.0
"""Seconds."""
_USUAL = 2.0
"""Seconds that a job takes, as long as none has been seen."""
_LONGEST = 600
"""The most seconds after which to ask again."""
_LATEST = 0.2
"""The weight of the latest job in the mean of all."""
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
_ALL = sentence(
    "Long calculations that wait or are under way: {count}, as many as there may be. Ask again in "
    "{retry_after} s."
)
_YOURS = sentence(
    "Long calculations of yours that wait or are under way: {count}, as many as one reader may "
    "have. Ask again in {retry_after} s."
)
_DIGEST = 20
"""Bytes of a key."""
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
    """So much is being calculated that no more is begun: ask again after `retry_after` seconds,
    by when there should be room."""

    def __init__(self, count: int, retry_after: int, *, yours: bool) -> None:
        self.count = count
        self.retry_after = retry_after
        self.yours = yours
        """Whether it is the reader who has asked for so much."""
        super().__init__(message(_YOURS if yours else _ALL, count=count, retry_after=retry_after))


def key_of(*parts: object) -> bytes:
    """A digest of plain values, by their `repr`: the key of what they ask for."""
    return hashlib.blake2b(
        repr(parts).encode("utf-8", "surrogatepass"), digest_size=_DIGEST
    ).digest()


@dataclass(frozen=True)
class Versioned(Generic[_T]):
    """A result, and the digest of the tallies that it is based on."""

    answer: _T
    version: bytes


class _NotKnown(Exception):
    """The result is not cached."""


class _Abandoned(Exception):
    """Nobody requests this job any more."""


@dataclass
class _Job(Generic[_T]):
    reader: str
    begun: float
    asked: float
    done: int = 0
    of: int = 0
    started: float | None = None
    ended: float | None = None
    future: Future[_T] = field(default_factory=Future)


@dataclass(frozen=True)
class Turn:
    """One attempt to find a result: at first only of what is `known`, and then for good."""

    results: Results
    known: bool = False
    progress: Callable[[int, int], None] = lambda done, of: None
    """To be told how many of how many periods are done."""

    def get(self, key: bytes, calculate: Callable[[], _T]) -> _T:
        """What is known under the key, or else what `calculate` returns; it is known from then
        on."""
        if not self.known:
            return self.results.get(key, calculate)
        found: _T | None = self.results.known(key)
        if found is None:
            raise _NotKnown
        return found


class Results:
    """What was calculated, bounded by `capacity` in bytes, and what is being calculated: `workers`
    jobs at a time, while others wait, up to `most` in all and `most_of_one` of one reader."""

    def __init__(
        self,
        capacity: int,
        clock: Callable[[], float] = time.monotonic,
        *,
        workers: int,
        most: int,
        most_of_one: int,
    ) -> None:
        self._clock = clock
        self._workers, self._most, self._most_of_one = workers, most, most_of_one
        self._mean = _USUAL
        self._lock = threading.Lock()
        self._known: LRUCache[bytes, tuple[Any, int]] = LRUCache(
            capacity, getsizeof=lambda entry: entry[1]
        )
        self._coming: dict[bytes, Future[Any]] = {}
        self._jobs: dict[bytes, _Job[Any]] = {}
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="result")
        self._seats = threading.Semaphore(_MOST_WAITING)
        self._large = threading.Semaphore(_MOST_LARGE)
        self._brief_seats = threading.Semaphore(_MOST_WAITING)

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
            mine: Future[_T] = Future()
            future = self._coming.setdefault(key, mine)
        if future is mine:
            try:
                found = calculate()
                self.keep(key, found)
                mine.set_result(found)
            except BaseException as error:
                mine.set_exception(error)
            with self._lock:
                del self._coming[key]
        awaited: _T = future.result()
        return awaited

    def keep(self, key: bytes, found: object, size: int | None = None) -> None:
        """Have something of so many bytes known under the key; what is larger than the whole cache
        is not kept."""
        size = size_of(found) if size is None else size
        with self._lock, suppress(ValueError):
            self._known[key] = (found, size)

    def fetch(self, name: bytes, work: Callable[[Turn], _T], patience: float, reader: str) -> _T:
        """What `work` returns: at once, if all that it gets in its turn is known. Otherwise it is a
        `job` of that name."""
        # What is known is not kept waiting by long calculations of something else.
        with suppress(_NotKnown):
            found = work(Turn(self, known=True))
            # What a job of that name finds, or has found, must not be given to the next one, who
            # may ask later.
            with self._lock:
                self._jobs.pop(name, None)
            return found
        return self.job(
            name, lambda progress: work(Turn(self, progress=progress)), patience, reader
        )

    def job(
        self,
        name: bytes,
        work: Callable[[Callable[[int, int], None]], _T],
        patience: float,
        reader: str = "",
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
                self._admit(reader, now)
                job = self._jobs[name] = _Job(reader, now, now)
                try:
                    self._pool.submit(self._run, name, job, work)
                except RuntimeError:  # after `close`
                    del self._jobs[name]
                    raise WorkersClosed from None
            job.asked = now
        if not self._wait(job, patience):
            raise StillDecoding(job.done, job.of, self._clock() - job.begun)
        with self._lock:
            # Delivered: whoever asks from now on is given what the tallies say by then.
            if self._jobs.get(name) is job:
                del self._jobs[name]
        found: _T = job.future.result()
        return found

    @contextmanager
    def large(self) -> Iterator[None]:
        """While a large page is written.

        Raises:
            TooManyDecodes: as many are being written as may be.
        """
        if not self._large.acquire(blocking=False):
            raise TooManyDecodes(_MOST_LARGE, 1, yours=False)
        try:
            yield
        finally:
            self._large.release()

    def _wait(self, job: _Job[Any], patience: float) -> bool:
        """Whether the job is done before patience ends, or at once where all seats are taken."""
        for seats, most in ((self._seats, math.inf), (self._brief_seats, _MOMENT)):
            if (patience > _MOMENT or most == _MOMENT) and seats.acquire(blocking=False):
                try:
                    with suppress(TimeoutError):
                        job.future.exception(min(patience, most))
                finally:
                    seats.release()
                break
        return job.future.done()

    def _admit(self, reader: str, now: float) -> None:
        """Let a reader begin a job.

        Raises:
            TooManyDecodes: there are too many that have not ended.
        """
        waiting = [each for each in self._jobs.values() if each.ended is None]
        mine = sum(each.reader == reader for each in waiting)
        yours = mine >= self._most_of_one
        if not yours and len(waiting) < self._most:
            return
        # What runs now may take longer than what has ended.
        running = [now - each.started for each in waiting if each.started is not None]
        usual = max(self._mean, *running, 0)
        # One has to end: of all, or of the reader's, which are as far apart as they are few.
        wait = math.ceil(usual * (len(waiting) / mine if yours else 1) / self._workers)
        count = mine if yours else len(waiting)
        raise TooManyDecodes(count, min(max(wait, 1), _LONGEST), yours=yours)

    def _run(
        self, name: bytes, job: _Job[_T], work: Callable[[Callable[[int, int], None]], _T]
    ) -> None:
        def progress(done: int, of: int) -> None:
            job.done, job.of = done, of
            with self._lock:
                if self._clock() - job.asked > _ABANDONED:
                    self._jobs.pop(name, None)
                    raise _Abandoned

        job.started = self._clock()
        try:
            progress(0, 0)
            found = work(progress)
        except BaseException as error:
            job.ended = self._clock()
            job.future.set_exception(error)
        else:
            job.ended = self._clock()
            self._mean += _LATEST * (job.ended - job.started - self._mean)
            job.future.set_result(found)

    def _sweep(self, now: float) -> None:
        """Delete results that nobody has requested again."""
        for name, job in list(self._jobs.items()):
            if job.ended is not None and now - max(job.ended, job.asked) > _KEPT:
                del self._jobs[name]


def size_of(found: object) -> int:
    """The bytes that an estimate, or a list of strings, takes, about."""
    if isinstance(found, bytes):
        return len(found)
    if isinstance(found, list):
        return 64 + _TEXT * len(found)
    if isinstance(found, Look):
        return _LOOK + _SHARE * len(found.share)
    if isinstance(found, History):
        return 64 + _FIGURE * found.checks
    if isinstance(found, Finds):
        return _ESTIMATE + _WINDOW * len(found.windows) + 3 * _VALUE * len(found.finds)
    if isinstance(found, Trend):
        return _ESTIMATE * len(found.periods)
    if isinstance(found, Answer):
        # The strings of an estimate are those of the list that it was asked for.
        return _ESTIMATE + _WINDOW * len(found.windows) + _VALUE * len(found.series.names)
    return 64

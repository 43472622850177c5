"""The store as a running collector sees it: each loss, each cause of it and each return is told
once, and every commit is measured."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from deniable import Scheme
from deniable.protocol.coded_message import counted
from deniable_collector.operation import prometheus
from deniable_collector.operation.events import tell
from deniable_collector.stores.base import Store
from deniable_collector.stores.commits import Commit
from deniable_collector.stores.contract import Of, StoreContract
from deniable_collector.stores.errors import StoreUnavailable

_CALM = 5.0
"""Seconds without a failure after which the store is back. A full disk takes a commit now and then,
and the log would tell of each."""

_ANY = -1
"""The shard of a call that writes to one of several."""

_PING_SECONDS = 1.0
"""How long the answer to a ping stands, if no call fails meanwhile: it writes, and anybody may ask
/readyz."""


def _forwarded(method: Callable[..., Any], watched: bool = True) -> Any:
    """The method of a store: it calls that of the store behind. A call that is `watched` only
    reads."""

    def call(self: WatchedStore, *arguments: Any) -> Any:
        with self._contact() if watched else nullcontext():
            return getattr(self._store, method.__name__)(*arguments)

    return call


class WatchedStore(Store):
    """Forwards every call to another store; as thread-safe as that store is."""

    def __init__(self, store: StoreContract) -> None:
        super().__init__()
        self._store = store
        self._lock = threading.Lock()
        self._lost_at: float | None = None
        self._failed_at = 0.0
        self._failing: set[int] = set()
        self._causes: set[str] = set()
        self._published: set[Of] = set()
        self._pinging = threading.Lock()
        self._pinged_at: float | None = None
        self._ping: StoreUnavailable | None = None

    @property
    def shards(self) -> int:
        with self._contact():
            return self._store.shards

    def fold(self, commit: Commit, now: float) -> frozenset[str]:
        began = time.perf_counter()
        with self._contact(commit.shard):
            seen = self._store.fold(commit, now)
        prometheus.count_commit(commit, seen, time.perf_counter() - began)
        return seen

    def publish(self, schemes: Iterable[tuple[str, Scheme]]) -> None:
        listed = list(schemes)
        with self._contact():
            self._store.publish(listed)
        published = {(metric, each.fingerprint) for metric, each in listed}
        # The same schemes are published again every minute, which is not logged.
        if published != self._published:
            self._published = published
            metrics = len({metric for metric, _ in listed})
            tell("info", "published", f"published the schemes of {counted(metrics, 'metric')}",
                 metrics=metrics)  # fmt: skip

    schemes = _forwarded(StoreContract.schemes)
    identity = _forwarded(StoreContract.identity)
    names = _forwarded(StoreContract.names)
    heads = _forwarded(StoreContract.heads)
    read = _forwarded(StoreContract.read)
    # Where no window can be sealed or dropped now, or the journal not be cleared, the store may
    # take commits all the same.
    change = _forwarded(StoreContract.change, watched=False)
    merge = _forwarded(StoreContract.merge, watched=False)
    clear_journal = _forwarded(StoreContract.clear_journal, watched=False)
    close = _forwarded(StoreContract.close, watched=False)

    def ping(self) -> None:
        with self._pinging:
            if self._pinged_at is None or time.monotonic() - self._pinged_at >= _PING_SECONDS:
                self._ping = None
                try:
                    # Of several shards any may have answered.
                    with self._contact(0 if self.shards == 1 else _ANY):
                        self._store.ping()
                except StoreUnavailable as error:
                    self._ping = error
                self._pinged_at = time.monotonic()
            if self._ping is not None:
                raise StoreUnavailable(str(self._ping), self._ping.retry_after)

    @contextmanager
    def _contact(self, shard: int | None = None) -> Iterator[None]:
        """Watch a call; one that writes names its shard, or `_ANY`. Reading says nothing of
        writing."""
        try:
            yield
        except StoreUnavailable as error:
            self._lose(error, shard)
            raise
        if self._lost_at is not None and shard is not None:
            self._regain(shard)

    def _lose(self, error: StoreUnavailable, shard: int | None = None) -> None:
        prometheus.STORE_FAILURES.inc()
        cause = str(error)
        with self._lock:
            self._failed_at = time.monotonic()
            if self._lost_at is None:
                self._lost_at = self._failed_at
            if shard is not None and shard != _ANY:
                self._failing.add(shard)
            self._pinged_at = None
            known = cause in self._causes
            self._causes.add(cause)
        if not known:
            tell("error", "store-lost", f"{cause}; batches get 503 meanwhile")

    def _regain(self, shard: int) -> None:
        with self._lock:
            self._failing.discard(shard)
            lost_at, now = self._lost_at, time.monotonic()
            if lost_at is None or self._failing or now - self._failed_at < _CALM:
                return
            self._lost_at = None
            self._causes.clear()
        away = round(self._failed_at - lost_at, 1)
        tell("info", "store-recovered", f"the store is back after {away} s", seconds=away)

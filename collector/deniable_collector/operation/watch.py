"""The store as a running collector sees it: each loss and each return is told once, and every
commit is measured."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from deniable import Scheme
from deniable_collector.operation import metrics
from deniable_collector.operation.events import tell
from deniable_collector.stores.base import Commit, Store, StoreUnavailable
from deniable_collector.tally import Tally

__all__ = ["WatchedStore"]


class WatchedStore(Store):
    """Forwards every call to another store; as thread-safe as that store is."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._lost_at: float | None = None
        self._published: dict[str, set[str]] = {}

    @property
    def shards(self) -> int:
        # Called for every batch, and answered from memory once it is known.
        try:
            return self._store.shards
        except StoreUnavailable as error:
            self._lose(error)
            raise

    def fold(self, commit: Commit, now: float) -> frozenset[str]:
        began = time.perf_counter()
        with self._contact():
            seen = self._store.fold(commit, now)
        metrics.count_commit(commit, seen, time.perf_counter() - began)
        return seen

    def publish(self, schemes: Mapping[str, Iterable[Scheme]]) -> None:
        listed = {metric: list(each) for metric, each in schemes.items()}
        with self._contact():
            self._store.publish(listed)
        schemes_of = {name: {each.fingerprint for each in listed[name]} for name in listed}
        # The same schemes are published again every minute, which is not logged.
        if schemes_of != self._published:
            self._published = schemes_of
            tell("info", "published", f"published the schemes of {len(listed)} metrics",
                 metrics=len(listed))  # fmt: skip

    def schemes(self) -> dict[str, dict[str, Scheme]]:
        with self._contact():
            return self._store.schemes()

    def scheme(self, metric: str, fingerprint: str) -> Scheme:
        with self._contact():
            return self._store.scheme(metric, fingerprint)

    def windows(self, metric: str, scheme: str) -> list[str]:
        with self._contact():
            return self._store.windows(metric, scheme)

    def tally(self, metric: str, scheme: str, windows: Iterable[str]) -> Tally:
        with self._contact():
            return self._store.tally(metric, scheme, windows)

    def version(self, metric: str, scheme: str, windows: Iterable[str]) -> bytes:
        with self._contact():
            return self._store.version(metric, scheme, windows)

    def drop(self, before: float) -> int:
        with self._contact():
            return self._store.drop(before)

    def ping(self) -> None:
        with self._contact():
            self._store.ping()

    def clear_journal(self, older_than: float) -> float | None:
        # A journal that cannot be cleared now does not mean that the store is lost.
        return self._store.clear_journal(older_than)

    def close(self) -> None:
        self._store.close()

    @contextmanager
    def _contact(self) -> Iterator[None]:
        try:
            yield
        except StoreUnavailable as error:
            self._lose(error)
            raise
        if self._lost_at is not None:
            self._regain()

    def _lose(self, error: StoreUnavailable) -> None:
        metrics.STORE_FAILURES.inc()
        with self._lock:
            before, self._lost_at = self._lost_at, self._lost_at or time.monotonic()
        if before is None:
            tell("error", "store-lost", f"{error}; batches are answered 503 meanwhile")

    def _regain(self) -> None:
        with self._lock:
            before, self._lost_at = self._lost_at, None
        if before is not None:
            away = round(time.monotonic() - before, 1)
            tell("info", "store-recovered", f"the store is back after {away} s", seconds=away)

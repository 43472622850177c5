"""Makes Redis rewrite its append-only file (BGREWRITEAOF), so that it has sums and no commits.

A rewrite replaces the file by the sums at the moment when the rewrite starts. Redis does one at
a time. So each process checks every node regularly (INFO) whether a rewrite started after its
own last commit, and requests one if not. This needs no lock.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import redis

from deniable_collector.stores.errors import StoreError, StoreUnavailable
from deniable_collector.stores.redis.driver import Driver
from deniable_collector.stores.redis.errors import translated

_RUNNING = ("aof_rewrite_in_progress", "aof_rewrite_scheduled")


class AppendOnlyFiles:
    """The files of one Redis, or of all nodes of a cluster."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._nodes: dict[str, _Node] = {}
        self._written = -math.inf

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Around each commit: it may be in the files, whatever Redis answered."""
        try:
            yield
        finally:
            self._written = time.monotonic()

    def clear(self, older_than: float) -> float | None:
        """As `Store.clear_journal`."""
        ages, trouble = list[float](), None
        with translated():
            nodes = self._driver.nodes()
        for name, client in nodes.items():
            node = self._nodes.setdefault(name, _Node())
            try:
                with translated():
                    age = node.clear(client, self._written, older_than)
                if age is not None:
                    ages.append(age)
            except StoreError as error:
                # Continue with the other nodes.
                trouble = error
        if trouble is not None:
            raise trouble
        return max(ages, default=None)


class _Node:
    """What is known about one node; times are of the monotonic clock.

    A commit before `_covered` is in the node's files only as part of the sums; None means
    unknown, after a start of this process or of Redis. A running rewrite started after
    `_begun`.
    """

    def __init__(self) -> None:
        self._process: str | None = None
        self._rewrites = 0
        self._met = self._looked = time.monotonic()
        self._begun: float | None = None
        self._covered: float | None = None
        self._failed = False

    def clear(self, client: redis.Redis, written: float, older_than: float) -> float | None:
        now = time.monotonic()
        info = _allowed(client.info)
        self._learn(info, now)
        if not info.get("aof_enabled") or (self._covered is not None and written <= self._covered):
            self._covered = now
            return None
        age = now - (self._met if self._covered is None else self._covered)
        due = self._covered is None or age >= older_than
        if due and not any(info.get(each) for each in _RUNNING):
            self._rewrite(client, now)
        if self._failed:
            raise StoreUnavailable(
                "Redis could not rewrite its append-only file: see its log; it is tried again"
            )
        return age

    def _rewrite(self, client: redis.Redis, now: float) -> None:
        try:
            _allowed(client.bgrewriteaof)
        except redis.ResponseError as error:
            # Otherwise another process was faster.
            self._failed = "in progress" not in str(error)
        else:
            self._begun = now

    def _learn(self, info: dict[str, Any], now: float) -> None:
        rewrites = info.get("aof_rewrites", 0)  # Redis 6 does not count them
        if info.get("run_id") != self._process:
            self._process, self._begun, self._covered = info.get("run_id"), None, None
            self._met = now
        elif rewrites > self._rewrites:
            self._begun = self._looked
        self._rewrites, self._looked = rewrites, now
        if self._begun is not None and not any(info.get(each) for each in _RUNNING):
            self._failed = info.get("aof_last_bgrewrite_status") != "ok"
            if not self._failed:
                self._covered = self._begun
            self._begun = None


def _allowed(command: Any) -> Any:
    try:
        return command()
    except redis.ResponseError as error:
        if isinstance(error, redis.exceptions.NoPermissionError) or "unknown command" in str(error):
            raise StoreError(
                "Redis's append-only file holds single commits until it is rewritten, and the "
                "collector's user may not rewrite it: give the user +info and +bgrewriteaof, or "
                "let something else run BGREWRITEAOF and set DENIABLE_JOURNAL_SECONDS=0"
            ) from error
        raise

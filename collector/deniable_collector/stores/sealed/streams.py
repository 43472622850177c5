"""Reads many sealed blocks: a few files at a time, and no more blocks in memory than these."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

from deniable_collector.stores.commits import TallyKey
from deniable_collector.stores.sealed.archive import Archive
from deniable_collector.stores.sealed.blocks import GoneFile

__all__ = ["read_blocks"]

_AT_ONCE = 8
"""Files that are read at the same time: a bucket takes long to begin each, and answers many."""


def read_blocks(
    archive: Archive, kept: Iterable[tuple[TallyKey, bytes | None]]
) -> Iterator[tuple[TallyKey, bytes | None]]:
    """The blocks for what a store keeps, in the same order. None stays None, and so is a file that
    has gone: its window may have been opened again since.

    Raises:
        StoreError: as `Archive.get` does.
    """
    if archive.place is None:
        for tally, each in kept:
            yield tally, None if each is None else archive.get(tally, each)
        return

    def read(tally: TallyKey, each: bytes | None) -> bytes | None:
        try:
            return None if each is None else archive.get(tally, each)
        except GoneFile:
            return None

    pending: deque[tuple[TallyKey, Future[bytes | None]]] = deque()
    pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="blocks")
    try:
        for tally, each in kept:
            pending.append((tally, pool.submit(read, tally, each)))
            if len(pending) >= _AT_ONCE:
                first, found = pending.popleft()
                yield first, found.result()
        while pending:
            first, found = pending.popleft()
            yield first, found.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)

"""Drops the tallies of a store in Redis, and the files of those that were sealed into files."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from deniable import Scheme
from deniable.windows import end
from deniable_collector.stores.commits import TallyKey
from deniable_collector.stores.redis.errors import translated
from deniable_collector.stores.redis.forms import is_sealed, kept_in
from deniable_collector.stores.redis.journal import AppendOnlyFiles
from deniable_collector.stores.redis.strings import NAMED, RedisStrings
from deniable_collector.stores.redis.sums import RedisSums
from deniable_collector.stores.sealed.archive import Archive, file_of

__all__ = ["RedisDropper"]

_SYNC_SECONDS = 2.5
"""After so long a Redis that syncs its append-only file every second has done so: it is late by a
second at most (redis.conf, appendfsync)."""


class RedisDropper:
    """Drops what had ended."""

    def __init__(
        self,
        strings: RedisStrings,
        archive: Archive,
        summed: RedisSums,
        append_only: AppendOnlyFiles,
    ) -> None:
        self._strings = strings
        self._archive = archive
        self._summed = summed
        self._append_only = append_only

    def drop(self, schemes: Mapping[str, Mapping[str, Scheme]], before: float) -> int:
        """Delete the windows of these metrics and schemes that had ended by `before`; see
        `Store.drop`."""
        old = [
            (shard, TallyKey(metric, fingerprint, label))
            for metric, published in schemes.items()
            for fingerprint in published
            for shard in range(self._strings.shards)
            for label in self._strings.labels(shard, metric, fingerprint)
            if end(label) <= before
        ]
        with translated(), self._strings.client.pipeline(transaction=False) as pipeline:
            for shard, tally in old:
                pipeline.getrange(self._strings.tally_key(shard, tally), 0, NAMED - 1)
            beginnings = pipeline.execute() if old else []
        for (_, tally), beginning in zip(old, beginnings, strict=True):
            if is_sealed(beginning) and file_of(kept_in(beginning)):
                # All files are in one place.
                self._archive.check_forgetting(tally, kept_in(beginning))
                break
        files = [
            (shard, tally, kept)
            for shard, tally in old
            if file_of(kept := self._forget(shard, tally))
        ]
        if files:
            self._forget_files(files)
        gone = {tally for _, tally in old}
        sums = sum(
            self._summed.drop_ended(
                *(metric, scheme),
                [each.window for each in gone if each[:2] == (metric, scheme)],
                before,
            )
            for metric, published in schemes.items()
            for scheme in published
        )
        return len(gone) + sums

    def _forget_files(self, files: Sequence[tuple[int, TallyKey, bytes]]) -> None:
        """Delete the files of tallies that were dropped, once Redis cannot forget that they were.

        A Redis that syncs every second and crashes may have them again: then they keep their files.
        """
        if self._append_only.appends():
            time.sleep(_SYNC_SECONDS)
        with translated(), self._strings.client.pipeline(transaction=False) as pipeline:
            for shard, tally, _ in files:
                pipeline.exists(self._strings.tally_key(shard, tally))
            back = pipeline.execute()
        for (_, tally, kept), there in zip(files, back, strict=True):
            if not there:
                self._archive.forget(tally, kept)

    def _forget(self, shard: int, tally: TallyKey) -> bytes:
        """Delete a tally, and return what was kept for its block, if it was sealed."""
        index = self._strings.key(shard, "windows", tally.metric, tally.scheme)
        with translated(), self._strings.client.pipeline(transaction=True) as pipeline:
            # A sealed one may have a file, whose name is here.
            pipeline.getrange(self._strings.tally_key(shard, tally), 0, NAMED - 1)
            pipeline.unlink(self._strings.tally_key(shard, tally))
            pipeline.srem(index, tally.window)
            beginning = pipeline.execute()[0]
        return kept_in(beginning) if is_sealed(beginning) else b""

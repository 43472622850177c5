"""Reads the tallies of a store in Redis: their sums, their reports, and their versions.

Readers add the shards.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import cast

import numpy as np
from numpy.typing import NDArray

from deniable_collector.stores.commits import TallyKey, version_of
from deniable_collector.stores.errors import StoreUnavailable
from deniable_collector.stores.redis.errors import translated
from deniable_collector.stores.redis.forms import add_value, is_sealed, reports_of
from deniable_collector.stores.redis.strings import RedisStrings
from deniable_collector.stores.redis.sums import RedisSums
from deniable_collector.stores.sealed.blocks import add_counters
from deniable_collector.stores.summed.summing import Sums
from deniable_collector.stores.summed.sums import SumName
from deniable_collector.stores.vectors import Shapes, rows_of
from deniable_collector.tally import Tally

_ATTEMPTS = 100
"""How often a tally is read while others drop windows of its metric."""

_STAMP = 8
"""Bytes of a tally's stamp, which its string begins with."""

_READ_BYTES = 1 << 23
"""Bytes of tallies that are read at once."""


class RedisReader:
    """The tallies of a store, as `Store` says of the methods of these names."""

    def __init__(self, strings: RedisStrings, shapes: Shapes, summed: RedisSums) -> None:
        self._strings = strings
        self._shapes = shapes
        self._summed = summed
        self._sums = Sums(summed)

    def tally(self, metric: str, scheme: str, windows: Iterable[str]) -> Tally:
        labels = tuple(dict.fromkeys(windows))
        shape = self._shapes.of(metric, scheme)
        total = np.zeros(shape.size, np.int64)
        for shard in range(self._strings.shards):
            for _ in range(_ATTEMPTS):
                plan, before = self._summed.plan(shard, metric, scheme, labels)
                part = np.zeros(shape.size, np.int64)
                whole = self._add_sums(shard, metric, scheme, plan.sums, part)
                self._add_windows(shard, metric, scheme, dict.fromkeys(plan.windows, part))
                if whole and before == self._summed.kept_stamps(shard, metric, scheme, labels):
                    break
                # Windows were dropped meanwhile, or a copy of them.
            else:
                raise StoreUnavailable("others drop windows of this metric all the time")
            total += part
        return Tally(metric, scheme, labels, tuple(rows_of(shape, total)))

    def own_tally(self, tally: TallyKey) -> Tally:
        shape = self._shapes.of(tally.metric, tally.scheme)
        total = np.zeros(shape.size, np.int64)
        for shard in range(self._strings.shards):
            self._add_windows(shard, *tally[:2], {tally.window: total})
        return Tally(*tally[:2], (tally.window,), tuple(rows_of(shape, total)))

    def own_tallies(self, metric: str, scheme: str, windows: Sequence[str]) -> dict[str, Tally]:
        shape = self._shapes.of(metric, scheme)
        totals = dict(zip(windows, np.zeros((len(windows), shape.size), np.int64), strict=True))
        for shard in range(self._strings.shards):
            self._add_windows(shard, metric, scheme, totals)
        return {
            label: Tally(metric, scheme, (label,), tuple(rows_of(shape, total)))
            for label, total in totals.items()
        }

    def _add_sums(
        self,
        shard: int,
        metric: str,
        scheme: str,
        names: Iterable[SumName],
        total: NDArray[np.int64],
    ) -> bool:
        """Add these sums, and return whether all of them are still there."""
        for name in names:
            tally = TallyKey(metric, scheme, str(name))
            block = self._summed.sum_block(shard, tally)
            if block is None:
                return False
            add_counters(tally, total, block)
        return True

    def _add_windows(
        self,
        shard: int,
        metric: str,
        scheme: str,
        totals: Mapping[str, NDArray[np.int64]],
    ) -> None:
        """Add the tally of each of these windows to its vector; windows that are to be added up
        have the same one."""
        at_once = max(1, _READ_BYTES // (4 * self._shapes.of(metric, scheme).size))
        tallies = [TallyKey(metric, scheme, label) for label in totals]

        for first in range(0, len(tallies), at_once):
            some = tallies[first : first + at_once]
            with translated():
                values = self._strings.read([self._strings.tally_key(shard, each) for each in some])
            for tally, value in zip(some, values, strict=True):
                if value is not None:
                    add_value(value, tally, totals[tally.window])

    def row_reports(
        self, metric: str, scheme: str, windows: Iterable[str]
    ) -> dict[str, NDArray[np.int64]]:
        rows = len(self._shapes.of(metric, scheme).widths)
        found = {label: np.zeros(rows, np.int64) for label in windows}
        # The rows' reports come first in open forms, in 8 bytes each at most.
        beginnings = self._strings.beginnings(metric, scheme, found, 8 * rows)
        tallies = [
            (self._strings.tally_key(shard, TallyKey(metric, scheme, label)), label, value)
            for label, shard, value in beginnings
        ]
        sealed = [key for key, _, value in tallies if is_sealed(value)]
        with translated(), self._strings.client.pipeline(transaction=False) as pipeline:
            for key in sealed:
                pipeline.get(key)
            whole = dict(zip(sealed, pipeline.execute() if sealed else [], strict=True))
        for key, label, value in tallies:
            # None if it was dropped meanwhile.
            value = whole.get(key, value)
            if value is not None:
                found[label] += reports_of(value, TallyKey(metric, scheme, label), rows)
        return found

    def version(self, metric: str, scheme: str, windows: Iterable[str]) -> bytes:
        return version_of(metric, scheme, self._stamps(metric, scheme, windows))

    def each_version(self, metric: str, scheme: str, windows: Iterable[str]) -> dict[str, bytes]:
        found: dict[str, list[tuple[object, ...]]] = {label: [] for label in windows}
        for stamp in self._stamps(metric, scheme, found):
            found[str(stamp[0])].append(stamp)
        return {label: version_of(metric, scheme, each) for label, each in found.items()}

    def _stamps(self, metric: str, scheme: str, windows: Iterable[str]) -> list[tuple[object, ...]]:
        """Window, shard and stamp of each existing part of these tallies, and of the kept sums that
        have windows of them. Sealing keeps stamps."""
        windows = list(windows)
        return [
            (label, shard, value[:_STAMP])
            for label, shard, value in self._strings.beginnings(metric, scheme, windows, 0)
        ] + self._sums.stamps(metric, scheme, windows)

    def versions(self, asked: Mapping[str, Iterable[str]]) -> dict[str, bytes]:
        with translated():
            # Not HKEYS, which readers that were set up earlier may not call.
            names = self._strings.client.hgetall(self._strings.schemes_key)
        keys = [
            (metric, (scheme, label, shard))
            for metric, scheme in (
                name.decode().split(":") for name in cast(dict[bytes, bytes], names)
            )
            for label in asked.get(metric, ())
            for shard in range(self._strings.shards)
        ]
        found: dict[str, list[tuple[object, ...]]] = {}
        with translated(), self._strings.client.pipeline(transaction=False) as pipeline:
            for metric, (scheme, label, shard) in keys:
                key = self._strings.tally_key(shard, TallyKey(metric, scheme, label))
                pipeline.getrange(key, 0, _STAMP - 1)
            headers = pipeline.execute() if keys else []
        for (metric, place), header in zip(keys, headers, strict=True):
            if header:
                found.setdefault(metric, []).append((*place, header))
        return {metric: version_of(metric, "", each) for metric, each in found.items()}

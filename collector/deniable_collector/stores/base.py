"""A store as its readers see it: sums over windows, their reports and their versions.

All of it is made of the methods of the contract, so that each kind of store reads alike.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from deniable.protocol.windows import start
from deniable_collector.stores.commits import TallyKey, version_of
from deniable_collector.stores.contract import StoreContract
from deniable_collector.stores.errors import StoreUnavailable
from deniable_collector.stores.increments import Held
from deniable_collector.stores.life import Sealing, by_combination
from deniable_collector.stores.summing import Sums
from deniable_collector.stores.sums import cover, is_sum
from deniable_collector.stores.vectors import rows_of
from deniable_collector.tally import Tally

__all__ = ["Store"]

_ATTEMPTS = 100
"""How often a tally is read while others drop windows of its metric."""


class Store(StoreContract):
    """Tallies of windows, and sums over calendars of those that were dropped."""

    @cached_property
    def sums(self) -> Sums:
        """The sums over weeks, months and quarters."""
        return Sums(self)

    def windows(self, metric: str, scheme: str) -> list[str]:
        """The windows with a tally of their own of this metric and scheme, oldest first.

        `dropped` has those whose reports are only in sums.
        """
        parts = self.sums.parts((metric, scheme))
        names = {name for part in parts for name in part.names() if not is_sum(name)}
        return sorted(names, key=start)

    def dropped(self, metric: str, scheme: str) -> list[str]:
        """The windows that were dropped and whose reports are in kept sums, oldest first."""
        parts = self.sums.parts((metric, scheme))
        return sorted({label for part in parts for label in part.kept().dropped}, key=start)

    def all_windows(self, metric: str, scheme: str) -> list[str]:
        """The windows with reports, oldest first: those with a tally of their own, and dropped
        ones."""
        # Dropped ones last, so that one that goes meanwhile is among either.
        both = {*self.windows(metric, scheme), *self.dropped(metric, scheme)}
        return sorted(both, key=start)

    def tally(self, metric: str, scheme: str, windows: Iterable[str]) -> Tally:
        """The exact sum over these windows; windows without reports count as empty.

        Where sums over calendars save reads, they are read instead of the windows.

        Raises:
            StoreError: the scheme was never published.
            NotKept: windows were dropped, and the sum that has them has others too.
        """
        labels = tuple(dict.fromkeys(windows))
        of = metric, scheme
        shape = self.shape(of)
        total = np.zeros(shape.size, np.int64)
        for part in self.sums.parts(of):
            names = part.names()
            for _ in range(_ATTEMPTS):
                there = part.around(labels, names)
                plan = cover(labels, there)
                vector = np.zeros(shape.size, np.int64)
                found = self.add(part.shard, part.of, dict.fromkeys(plan, vector))
                names = part.names()
                whole = found.keys() >= set(filter(is_sum, plan))
                kept = {name: stamp for name, stamp in there.stamps.items() if name.kept}
                if whole and kept == part.kept(labels, names).stamps:
                    break
                # Windows were dropped meanwhile, or a copy of them.
            else:
                raise StoreUnavailable("others drop windows of this metric all the time")
            total += vector
        return Tally(metric, scheme, labels, tuple(rows_of(shape, total)))

    def each_tally(self, metric: str, scheme: str, windows: Iterable[str]) -> dict[str, Tally]:
        """The tally of each of these windows alone, in the order given. All of them are in memory
        at once, so ask for few where tallies are large.

        Raises:
            StoreError: the scheme was never published.
            NotKept: a window was dropped, and the sum that has it has others too.
        """
        found = self.own_tallies(metric, scheme, list(dict.fromkeys(windows)))
        # Asked afterwards, so that a window that was dropped meanwhile is not read as empty.
        for label in self.dropped(metric, scheme):
            if label in found:
                found[label] = self.tally(metric, scheme, [label])
        return found

    def own_tallies(self, metric: str, scheme: str, windows: Sequence[str]) -> dict[str, Tally]:
        """What the tally of each of these windows has, without what sums have of it.

        Raises:
            StoreError: the scheme was never published.
        """
        shape = self.shape((metric, scheme))
        totals = dict(zip(windows, np.zeros((len(windows), shape.size), np.int64), strict=True))
        for shard in range(self.shards):
            self.add(shard, (metric, scheme), totals)
        return {
            label: Tally(metric, scheme, (label,), tuple(rows_of(shape, total)))
            for label, total in totals.items()
        }

    def segment_reports(
        self, metric: str, scheme: str, windows: Iterable[str]
    ) -> dict[str, NDArray[np.int64]]:
        """The number of reports of each combination of segments, shape (combinations,), for each
        of these windows, in the order given; of dropped ones too.

        Raises:
            StoreError: the scheme was never published.
        """
        of = metric, scheme
        shape = self.shape(of)
        found = {label: np.zeros(shape.groups, np.int64) for label in windows}
        told: Mapping[str, list[int]] = {}
        for part in self.sums.parts(of):
            there = part.around(found, part.names())
            # With more shards a copy tells of a part of them.
            told = there.told if self.shards == 1 else {}
            for some in (told, there.dropped):
                for label in found.keys() & some.keys():
                    found[label] += some[label]

        def take(tally: TallyKey, held: Held) -> None:
            # Without the cells, which costs less.
            rows = held.reports(tally, len(shape.widths))
            found[tally.window] += by_combination(shape, rows)

        for shard in range(self.shards):
            self.read(shard, of, [each for each in found if each not in told], take)
        return found

    def each_version(self, metric: str, scheme: str, windows: Iterable[str]) -> dict[str, bytes]:
        """The version of each of these windows alone, all read at once: 20 bytes that change with
        its tally.

        Each commit gives each tally that it changes a new random stamp, and the digest of the
        stamps is the version. So equal versions mean equal tallies, even if a tally was dropped
        and started again, or the store was restored from a copy. Equal tallies may have
        different versions. Read the version before the tally: if the tally changes in between,
        the result is then cached under an outdated version, which nobody asks for.
        """
        found: dict[str, list[tuple[object, ...]]] = {label: [] for label in windows}
        for part in self.sums.parts((metric, scheme)):
            for label, head in part.heads(list(found)).items():
                found[label].append((label, part.shard, head.stamp))
            there = part.kept(found)
            for name, record in there.sums.items():
                for label in found.keys() & record.reports.keys():
                    found[label].append((label, f"{part.shard} {name}", there.stamps[name]))
        return {label: version_of(metric, scheme, each) for label, each in found.items()}

    def versions(self, asked: Mapping[str, Iterable[str]]) -> dict[str, bytes]:
        """The same for many metrics at once: metric -> the version of its tallies, of all its
        schemes, over the windows asked for. Metrics without any of them are left out.
        """
        wanted = {metric: list(labels) for metric, labels in asked.items()}
        keys = {of: wanted[of[0]] for of in sorted(self.schemes()) if of[0] in wanted}
        found: defaultdict[str, list[tuple[object, ...]]] = defaultdict(list)
        for shard in range(self.shards):
            for (metric, scheme), heads in self.heads(shard, keys).items():
                found[metric] += [
                    (scheme, label, shard, head.stamp) for label, head in heads.items()
                ]
        return {metric: version_of(metric, "", each) for metric, each in found.items() if each}

    def sealed(self, metric: str, scheme: str, windows: Iterable[str]) -> frozenset[str]:
        """Which of these windows are sealed: nothing of them is in open form."""
        labels, found = list(windows), dict[str, bool]()
        for part in self.sums.parts((metric, scheme)):
            for label, head in part.heads(labels).items():
                found[label] = found.get(label, True) and head.sealed
        return frozenset(label for label, each in found.items() if each)

    def seal(self, tally: TallyKey) -> Sealing | None:
        """Turn a tally into a sealed block: compressed, with a digest, and with the same sums.

        A commit to a sealed tally opens it again, so seal tallies that accept no more reports
        (`deniable_collector.upkeep.keeper.SETTLED`). Several processes may seal the same tally at
        once.

        Returns None if nothing of it is open, or somebody has changed it meanwhile.

        Raises:
            StoreError: the scheme was never published, or the block did not read back as the
                same counts; the open form stays.
        """
        found = [part.seal(tally.window) for part in self.sums.parts(tally[:2])]
        parts = [each for each in found if each is not None]
        return Sealing(*map(sum, zip(*parts, strict=True))) if parts else None

    def drop(self, before: float, metrics: Collection[str] | None = None) -> int:
        """Delete every window of these metrics (None: of all) that had ended by `before` (POSIX
        seconds). Copies of it go too, and kept sums whose whole period had ended.

        Returns how many tallies and kept sums were deleted.
        """
        gone = 0
        for of in sorted(self.schemes()):
            if metrics is None or of[0] in metrics:
                parts = self.sums.parts(of)
                gone += len(set().union(*(part.drop_ended(before) for part in parts)))
                self.sums.forget_imports(of, before)
        return gone

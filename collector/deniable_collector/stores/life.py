"""A window's life: open, sealed, summed, dropped.

Each step is one atomic change of one shard, which is refused if anything that it rests on has
changed since it was read (`contract.Change`). So processes need not coordinate.

- *Open*: commits are added to its tally (`fold`).
- *Sealed*, when it accepts no more reports: its tally is a block, compressed, with a digest
  (`seal`). A commit would open it again.
- *Summed*: the sums of its week, month and quarter are kept beside it, as copies (`add_up`).
- *Dropped*, when it is too old: its counts are added to kept sums (`drop_together`), which go later
  (`drop_sum`), or nothing of it stays (`drop_ended`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import filterfalse
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from deniable.protocol import windows
from deniable_collector.stores.commits import TallyKey
from deniable_collector.stores.contract import Change, Found, Head, Of, StoreContract
from deniable_collector.stores.sealed import DamagedBlock, block_of
from deniable_collector.stores.sums import (
    Holding,
    SumName,
    SumRecord,
    bounds,
    is_sum,
    period_of,
    relevant,
)
from deniable_collector.stores.vectors import Shape

ATTEMPTS = 5
"""How often a change is tried that others keep from being made."""


class Sealing(NamedTuple):
    """What sealing has made of a tally: its bytes in the store before and after, without keys."""

    before: int
    after: int


@dataclass(frozen=True)
class ShardPart:
    """One shard's part of the tallies of a metric and scheme, and each step of their life."""

    store: StoreContract
    shard: int
    of: Of

    @property
    def shape(self) -> Shape:
        """That of its tallies.

        Raises:
            StoreError: the scheme was never published.
        """
        return self.store.shape(self.of)

    def names(self) -> list[str]:
        """The names of all tallies."""
        return self.store.names(self.shard, self.of)

    def sums(self) -> list[SumName]:
        """The names of all sums."""
        return list(map(SumName.parse, filter(is_sum, self.names())))

    def ended(self, before: float) -> list[str]:
        """The windows that had ended by a POSIX time, oldest first."""
        labels = filterfalse(is_sum, self.names())
        return sorted((each for each in labels if windows.end(each) <= before), key=windows.start)

    def copies_of(self, labels: Collection[str]) -> list[str]:
        """The names of the copies that have one of these windows."""
        return [
            str(each) for each in self.sums() if not each.kept and any(map(each.covers, labels))
        ]

    def heads(self, asked: Sequence[str]) -> dict[str, Head]:
        """The heads of those of these tallies that exist."""
        return self.store.heads(self.shard, {self.of: asked})[self.of]

    def read(self, name: str) -> tuple[Found | None, NDArray[np.int64]]:
        """What is found of one tally, and its vector; zeros if it is not there.

        Raises:
            DamagedBlock: it cannot be read.
        """
        counters = np.zeros(self.shape.size, np.int64)
        found = self.store.add(self.shard, self.of, {name: counters})
        return found.get(name), counters

    def change(self, change: Change) -> bool:
        """Make a change, and return whether it was made and not refused."""
        return self.store.change(self.shard, self.of, change)

    def written(
        self, name: SumName, record: SumRecord, counters: NDArray[np.int64]
    ) -> tuple[bytes, bytes]:
        """The record and the block of a sum."""
        tally = TallyKey(*self.of, str(name))
        return msgspec.json.encode(record), block_of(tally, len(self.shape.widths), counters)

    def grown(
        self, there: Holding, name: SumName, more: SumRecord, counters: NDArray[np.int64]
    ) -> tuple[bytes, bytes]:
        """The record and the block of a kept sum, new or `there`, with what these add to it."""
        record = there.sums.get(name, SumRecord())
        record.add(more)
        return self.written(name, record, self.read(str(name))[1] + counters)

    def seal(self, label: str) -> Sealing | None:
        """Seal a window; see `Store.seal`."""
        rows = len(self.shape.widths)
        head = self.heads([label]).get(label)
        # Most have been sealed before, and need not be read.
        if head is None or head.sealed:
            return None
        found, counters = self.read(label)
        if found is None or found.stamp != head.stamp:
            return None
        tally = TallyKey(*self.of, label)
        block = block_of(tally, rows, counters)
        made = self.change(Change({label: found.stamp}, sealed={label: block}))
        return Sealing(found.size, len(block)) if made else None

    def copies_due(self, before: float) -> set[SumName]:
        """Those copies of periods that had ended by `before` (POSIX seconds) for which `add_up` has
        something to do."""
        names = self.names()
        there = Holding(dict.fromkeys(filterfalse(is_sum, names), ""))
        copies = {SumName("copy", *each) for each in there.by_period}
        copies |= {name for name in map(SumName.parse, filter(is_sum, names)) if not name.kept}
        ended = [name for name in copies if name.ended(before)]
        found = self.holding([*ended, *(name._replace(form="kept") for name in ended)], names)
        return {name for name in ended if found.due(name)}

    def add_up(self, kind: str, period: str) -> int:
        """Make the copy of a period, or bring it up to date; see `Sums.add_up`."""
        copy = SumName("copy", kind, period)
        found = self.holding((copy, SumName("kept", kind, period)))
        if not found.due(copy):
            return 0
        if found.useless(copy):
            self.change(Change(dropped=(str(copy),)))
            return 0
        total, record = np.zeros(self.shape.size, np.int64), SumRecord()
        for label in found.by_period[kind, period]:
            read, counters = self.read(label)
            if read is None:
                return 0
            record.stamps[label] = read.stamp
            record.reports[label] = by_combination(self.shape, counters)
            total += counters
        written = self.written(copy, record, total)
        expected = {**record.stamps, str(copy): found.stamps.get(copy, "")}
        made = self.change(Change(expected, put={str(copy): written}))
        return len(written[1]) if made else 0

    def drop_together(self, labels: Sequence[str], calendars: Sequence[str]) -> dict[str, str]:
        """Drop some windows into kept sums of these calendars by one step: each with why it did not
        go, empty if it did."""
        for _ in range(ATTEMPTS):
            read: dict[str, tuple[str, NDArray[np.int64]]] = {}
            why: dict[str, str] = {}
            for label in labels:
                try:
                    found, counters = self.read(label)
                except DamagedBlock as error:
                    why[label] = str(error)
                    continue
                if found is not None:
                    read[label] = found.stamp, counters
            if not read:
                return why
            copies = self.copies_of(read)
            targets: dict[SumName, list[str]] = {}
            known = self.kept(read).sums
            for label in read:
                kind = windows.kind_of(label)
                # A window that was dropped before stays in the sums that have it, even if `keep`
                # names others now: sums that have different parts of it could not be read.
                named = [name for name, record in known.items() if label in record.reports] or [
                    SumName("kept", kind, period_of(calendar, label))
                    for calendar in calendars
                    if calendar != kind
                ]
                for name in named:
                    targets.setdefault(name, []).append(label)
            there = self.holding(list(targets))
            put = {}
            for name, members in targets.items():
                vectors = {label: read[label][1] for label in members}
                reports = {label: by_combination(self.shape, vectors[label]) for label in members}
                total = sum(vectors.values(), np.zeros(self.shape.size, np.int64))
                put[str(name)] = self.grown(there, name, SumRecord(reports=reports), total)
            expected = {label: stamp for label, (stamp, _) in read.items()}
            expected |= {str(name): there.stamps.get(name, "") for name in targets}
            if self.change(Change(expected, [*read, *copies], {}, put)):
                return dict.fromkeys(read, "") | why
        return dict.fromkeys(labels, "others change it all the time")

    def drop_sum(self, name: SumName, coarser: bool) -> bool:
        """Drop a kept sum, and return whether it is gone. With `coarser`, its quarter must have all
        of it, or gets it by the same step."""
        if not coarser:
            return self.change(Change(dropped=(str(name),)))
        into = SumName("kept", name.kind, period_of("quarter", name.period))
        there = self.holding((name, into))
        mine, theirs = there.sums.get(name), there.sums.get(into, SumRecord()).reports
        if mine is None:
            return True
        expected = {str(name): there.stamps[name], str(into): there.stamps.get(into, "")}
        if all(theirs.get(label) == each for label, each in mine.reports.items()):
            return self.change(Change(expected, (str(name),)))
        if mine.reports.keys() & theirs.keys():
            return False
        put = self.grown(there, into, mine, self.read(str(name))[1])
        return self.change(Change(expected, (str(name),), {}, {str(into): put}))

    def drop_ended(self, before: float) -> set[str]:
        """Drop the windows that had ended by `before` (POSIX seconds), the copies that have them,
        and the kept sums whose period had ended. Returns the names of the windows and kept sums
        that went."""
        labels = self.ended(before)
        sums = {str(name) for name in self.sums() if name.kept and name.ended(before)}
        if labels or sums:
            self.change(Change(dropped=[*labels, *sums, *self.copies_of(labels)]))
        return sums.union(labels)

    def holding(self, sums: Sequence[SumName], names: Iterable[str] | None = None) -> Holding:
        """All windows, with the stamps of those that these copies may rest on, and these sums.
        Sums that are gone are left out."""
        if not sums:
            return Holding({})
        labels = sorted(filterfalse(is_sum, self.names() if names is None else names))
        copied = [bounds(name.period) for name in sums if not name.kept]
        first, last = min(copied, default=(0, 0))[0], max((end for _, end in copied), default=0)
        # Windows first: one that is dropped meanwhile is then in the sum that is read next.
        asked = [label for label in labels if first <= windows.start(label) < last]
        there = dict.fromkeys(labels, "")
        records, stamps = {}, {}
        for text, head in self.heads([*asked, *map(str, sums)]).items():
            if is_sum(text):
                name = SumName.parse(text)
                records[name] = msgspec.json.decode(head.record, type=SumRecord)
                stamps[name] = head.stamp
            else:
                there[text] = head.stamp
        return Holding(there, records, stamps)

    def kept(
        self, asked: Collection[str] | None = None, names: Iterable[str] | None = None
    ) -> Holding:
        """The kept sums that have a part of the range of these windows, or all; of `names`, which
        are those of all tallies."""
        names = self.names() if names is None else names
        texts = [name for name in names if name.startswith("kept")]
        if asked is not None:
            return self.around(asked, texts)
        return self.holding(list(map(SumName.parse, texts)), texts)

    def around(self, asked: Iterable[str], names: Sequence[str]) -> Holding:
        """What a reader of these windows must know of sums; `names` are those of all tallies."""
        return self.holding(relevant(names, asked), names)


def by_combination(shape: Shape, counters: NDArray[np.int64]) -> list[int]:
    """The reports of a vector, for each combination of segments."""
    found: list[int] = counters[: len(shape.widths)].reshape(shape.groups, -1).sum(axis=1).tolist()
    return found

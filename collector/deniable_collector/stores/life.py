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
from dataclasses import dataclass, replace
from itertools import filterfalse
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from deniable.protocol import windows
from deniable_collector.stores.commits import TallyKey
from deniable_collector.stores.contract import Change, StoreContract
from deniable_collector.stores.sealed import DamagedBlock, block_of
from deniable_collector.stores.summed.sums import (
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

_FEWEST = 2
"""A copy of one window saves no read."""


class Sealing(NamedTuple):
    """What sealing has made of a tally: its bytes in the store before and after, without keys."""

    before: int
    after: int


@dataclass(frozen=True)
class Dropped:
    """What retention has dropped: how many tallies, and why others could not be."""

    tallies: int = 0
    failed: tuple[tuple[TallyKey, str], ...] = ()


def seal(store: StoreContract, shard: int, tally: TallyKey, shape: Shape) -> Sealing | None:
    """Seal one shard's part of a tally; see `Store.seal`."""
    metric, scheme, label = tally
    head = store.heads(shard, {(metric, scheme): [label]})[metric, scheme].get(label)
    # Most have been sealed before, and need not be read.
    if head is None or head.sealed:
        return None
    counters = np.zeros(shape.size, np.int64)
    found = store.read(shard, metric, scheme, {label: counters})[0].get(label)
    if found is None or found.stamp != head.stamp:
        return None
    block = block_of(tally, len(shape.widths), counters)
    change = Change({label: found.stamp}, sealed={label: block})
    return Sealing(found.size, len(block)) if store.change(shard, *tally[:2], change) else None


def periods_due(
    store: StoreContract, shard: int, metric: str, scheme: str, asked: Sequence[tuple[str, str]]
) -> set[tuple[str, str]]:
    """Those of these periods, each with the kind of its windows, for which `add_up` has something
    to do in one shard."""
    due: set[tuple[str, str]] = set()
    # With an absent copy, so that each period is among those that are judged.
    wanted = {SumName("copy", *each) for each in asked}
    wanted |= set(map(SumName.parse, filter(is_sum, store.names(shard, metric, scheme))))
    found = holding(store, shard, metric, scheme, sorted(wanted))[0]
    judged = replace(found, sums={name: found.sums.get(name, SumRecord()) for name in wanted})
    for each in asked:
        copy, kept = SumName("copy", *each), SumName("kept", *each)
        useless = kept in found.sums or len(judged.by_period[each][0]) < _FEWEST
        if copy in found.sums if useless else not judged.valid(copy):
            due.add(each)
    return due


def add_up(
    store: StoreContract,
    shard: int,
    metric: str,
    scheme: str,
    shape: Shape,
    kind: str,
    period: str,
) -> int:
    """Make the copy of a period in one shard, or bring it up to date; see `Sums.add_up`."""
    copy, kept = SumName("copy", kind, period), SumName("kept", kind, period)
    found, stamps = holding(store, shard, metric, scheme, (copy, kept))
    there = [label for label in found.windows if copy.covers(label)]
    if kept in found.sums or len(there) < _FEWEST:
        if copy in found.sums:
            store.change(shard, metric, scheme, Change(dropped=(str(copy),)))
        return 0
    if found.valid(copy):
        return 0
    total, record = np.zeros(shape.size, np.int64), SumRecord()
    for label in there:
        counters = np.zeros(shape.size, np.int64)
        read, _ = store.read(shard, metric, scheme, {label: counters})
        if label not in read:
            return 0
        record.stamps[label] = read[label].stamp
        record.reports[label] = by_combination(shape, counters)
        total += counters
    written = written_form(TallyKey(metric, scheme, str(copy)), shape, record, total)
    expected = {**record.stamps, str(copy): stamps.get(copy, "")}
    change = Change(expected, put={str(copy): written})
    return len(written[1]) if store.change(shard, metric, scheme, change) else 0


def drop_together(
    store: StoreContract,
    shard: int,
    metric: str,
    scheme: str,
    shape: Shape,
    labels: Sequence[str],
    calendars: Sequence[str],
) -> tuple[set[str], dict[str, str]]:
    """Drop some windows of one shard into kept sums of these calendars by one step: which went, and
    why others did not."""
    for _ in range(ATTEMPTS):
        read: dict[str, tuple[str, NDArray[np.int64]]] = {}
        why: dict[str, str] = {}
        for label in labels:
            counters = np.zeros(shape.size, np.int64)
            try:
                found, _ = store.read(shard, metric, scheme, {label: counters})
            except DamagedBlock as error:
                why[label] = str(error)
                continue
            if label in found:
                read[label] = found[label].stamp, counters
        if not read:
            return set(), why
        copies = [
            str(name)
            for name in map(SumName.parse, filter(is_sum, store.names(shard, metric, scheme)))
            if not name.kept and any(map(name.covers, read))
        ]
        targets: dict[SumName, list[str]] = {}
        known = having(store, shard, metric, scheme, read)
        for label in read:
            kind = windows.kind_of(label)
            # A window that was dropped before stays in the sums that have it, even if `keep`
            # names others now: sums that have different parts of it could not be read.
            named = known.get(label) or [
                SumName("kept", kind, period_of(calendar, label))
                for calendar in calendars
                if calendar != kind
            ]
            for name in named:
                targets.setdefault(name, []).append(label)
        there, stamps = holding(store, shard, metric, scheme, list(targets))
        put = {}
        for name, members in targets.items():
            record = there.sums.get(name, SumRecord())
            tally = TallyKey(metric, scheme, str(name))
            total = counters_of(store, shard, tally, shape)
            reports = dict(record.reports)
            for label in members:
                counters = read[label][1]
                total += counters
                reports[label] = plus(reports.get(label), by_combination(shape, counters))
            kept = SumRecord({}, reports, record.added)
            put[str(name)] = written_form(tally, shape, kept, total)
        expected = {label: stamp for label, (stamp, _) in read.items()}
        expected |= {str(name): stamps.get(name, "") for name in targets}
        if store.change(shard, metric, scheme, Change(expected, [*read, *copies], {}, put)):
            return set(read), why
    return set(), dict.fromkeys(labels, "others change it all the time")


def drop_sum(
    store: StoreContract,
    shard: int,
    metric: str,
    scheme: str,
    shape: Shape,
    name: SumName,
    coarser: bool,
) -> bool:
    """Drop a kept sum of one shard, and return whether it is gone. With `coarser`, its quarter must
    have all of it, or gets it by the same step."""
    if not coarser:
        return store.change(shard, metric, scheme, Change(dropped=(str(name),)))
    into = SumName("kept", name.kind, period_of("quarter", name.period))
    there, stamps = holding(store, shard, metric, scheme, (name, into))
    mine, theirs = there.sums.get(name), there.sums.get(into, SumRecord())
    if mine is None:
        return True
    expected = {str(name): stamps[name], str(into): stamps.get(into, "")}
    if all(theirs.reports.get(label) == each for label, each in mine.reports.items()):
        return store.change(shard, metric, scheme, Change(expected, (str(name),)))
    if mine.reports.keys() & theirs.reports.keys():
        return False
    tally = TallyKey(metric, scheme, str(into))
    total = counters_of(store, shard, tally, shape)
    total += counters_of(store, shard, TallyKey(metric, scheme, str(name)), shape)
    record = SumRecord({}, {**theirs.reports, **mine.reports}, theirs.added + mine.added)
    put = {str(into): written_form(tally, shape, record, total)}
    return store.change(shard, metric, scheme, Change(expected, (str(name),), {}, put))


def drop_ended(
    store: StoreContract, shard: int, metric: str, scheme: str, before: float
) -> set[str]:
    """Drop the windows of one shard that had ended by `before` (POSIX seconds), the copies that
    have them, and the kept sums whose period had ended. Returns the names of the windows and kept
    sums that went."""
    names = store.names(shard, metric, scheme)
    gone = {name for name in names if not is_sum(name) and windows.end(name) <= before}
    copies = set()
    for name in map(SumName.parse, filter(is_sum, names)):
        if name.kept and name.ended(before):
            gone.add(str(name))
        elif not name.kept and any(map(name.covers, filterfalse(is_sum, gone))):
            copies.add(str(name))
    if gone or copies:
        store.change(shard, metric, scheme, Change(dropped=sorted(gone | copies)))
    return gone


def together(labels: Iterable[str]) -> list[list[str]]:
    """Windows that are dropped by one step: those that lie in the same month."""
    found: dict[str, list[str]] = {}
    for label in sorted(labels, key=windows.start):
        found.setdefault(period_of("month", label), []).append(label)
    return list(found.values())


def holding(
    store: StoreContract,
    shard: int,
    metric: str,
    scheme: str,
    sums: Sequence[SumName],
    names: Iterable[str] | None = None,
) -> tuple[Holding, dict[SumName, str]]:
    """What a shard has: all windows, with the stamps of those that these copies may rest on, and
    these sums with their stamps. Sums that are gone are left out."""
    if names is None:
        names = store.names(shard, metric, scheme)
    labels = sorted(filterfalse(is_sum, names))
    copied = [bounds(name.period) for name in sums if not name.kept]
    first, last = min(copied, default=(0, 0))[0], max((end for _, end in copied), default=0)
    # Windows first: one that is dropped meanwhile is then in the sum that is read next.
    asked = [label for label in labels if first <= windows.start(label) < last]
    asked += map(str, sums)
    there = dict.fromkeys(labels, "")
    records, stamps = {}, {}
    for text, head in store.heads(shard, {(metric, scheme): asked})[metric, scheme].items():
        if is_sum(text):
            name = SumName.parse(text)
            records[name] = msgspec.json.decode(head.record, type=SumRecord)
            stamps[name] = head.stamp
        else:
            there[text] = head.stamp
    return Holding(there, records), stamps


def having(
    store: StoreContract, shard: int, metric: str, scheme: str, asked: Collection[str] | None = None
) -> dict[str, list[SumName]]:
    """Each dropped window with the kept sums that have it: of those with a part of the range of
    these windows, or of all."""
    names = kept_names(store, shard, metric, scheme, asked)
    found: dict[str, list[SumName]] = {}
    if names:
        for name, record in holding(store, shard, metric, scheme, names)[0].sums.items():
            for label in record.reports:
                found.setdefault(label, []).append(name)
    return found


def kept_names(
    store: StoreContract, shard: int, metric: str, scheme: str, asked: Collection[str] | None = None
) -> list[SumName]:
    """The kept sums of one shard that have a part of the range of these windows, or all."""
    texts = [name for name in store.names(shard, metric, scheme) if name.startswith("kept")]
    return list(map(SumName.parse, texts)) if asked is None else relevant(texts, asked)


def counters_of(
    store: StoreContract, shard: int, tally: TallyKey, shape: Shape
) -> NDArray[np.int64]:
    """The vector of a sum; zeros if it is not there."""
    counters = np.zeros(shape.size, np.int64)
    store.read(shard, tally.metric, tally.scheme, {tally.window: counters})
    return counters


def written_form(
    tally: TallyKey, shape: Shape, record: SumRecord, counters: NDArray[np.int64]
) -> tuple[bytes, bytes]:
    """The record and the block of a sum."""
    return msgspec.json.encode(record), block_of(tally, len(shape.widths), counters)


def by_combination(shape: Shape, counters: NDArray[np.int64]) -> list[int]:
    """The reports of a vector, for each combination of segments."""
    found: list[int] = counters[: len(shape.widths)].reshape(shape.groups, -1).sum(axis=1).tolist()
    return found


def plus(some: Sequence[int] | None, more: Sequence[int]) -> list[int]:
    """The sums of two lists, member by member; None is a list of zeros."""
    return list(more) if some is None else [a + b for a, b in zip(some, more, strict=True)]

"""Drops windows into kept sums, and kept sums into those of quarters, by one atomic step each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from deniable import windows
from deniable_collector.stores.commits import TallyKey
from deniable_collector.stores.sealed.blocks import DamagedBlock
from deniable_collector.stores.summed.calendars import period_of
from deniable_collector.stores.summed.place import (
    ATTEMPTS,
    SumChange,
    SumPlace,
    by_combination,
    counters_of,
    having,
    plus,
    written_form,
)
from deniable_collector.stores.summed.sums import SumName, SumRecord


def drop_together(
    place: SumPlace,
    shard: int,
    metric: str,
    scheme: str,
    labels: Sequence[str],
    calendars: Sequence[str],
) -> tuple[set[str], dict[str, str]]:
    """Drop some windows of one shard by one step: which went, and why others did not."""
    shape = place.sum_shape(metric, scheme)
    for _ in range(ATTEMPTS):
        read: dict[str, tuple[str, NDArray[np.int64]]] = {}
        why: dict[str, str] = {}
        for label in labels:
            try:
                found = place.window_counters(shard, TallyKey(metric, scheme, label))
            except DamagedBlock as error:
                why[label] = str(error)
                continue
            if found is not None:
                read[label] = found
        if not read:
            return set(), why
        names = place.sum_names(shard, metric, scheme)
        copies = [
            name
            for name in map(SumName.parse, names)
            if not name.kept and any(map(name.covers, read))
        ]
        targets: dict[SumName, list[str]] = {}
        known = having(place, shard, metric, scheme, read)
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
        holding, stamps = place.holding(shard, metric, scheme, list(targets))
        put = {}
        for name, members in targets.items():
            record = holding.sums.get(name, SumRecord())
            tally = TallyKey(metric, scheme, str(name))
            total = counters_of(place, shard, tally, shape, name in stamps)
            reports = dict(record.reports)
            for label in members:
                counters = read[label][1]
                total += counters
                reports[label] = plus(reports.get(label), by_combination(shape, counters))
            put[name] = written_form(tally, shape, SumRecord({}, reports, record.added), total)
        change = SumChange(
            {label: stamp for label, (stamp, _) in read.items()},
            {name: stamps.get(name, "") for name in targets},
            dropped=tuple(read),
            removed=copies,
            put=put,
        )
        if place.change(shard, metric, scheme, change):
            return set(read), why
    return set(), dict.fromkeys(labels, "others change it all the time")


def drop_sum(
    place: SumPlace, shard: int, metric: str, scheme: str, name: SumName, coarser: bool
) -> bool:
    """Drop a kept sum of one shard, and return whether it is gone. With `coarser`, its quarter must
    have all of it, or gets it by the same step."""
    if not coarser:
        return place.change(shard, metric, scheme, SumChange(removed=(name,)))
    shape = place.sum_shape(metric, scheme)
    into = SumName("kept", name.kind, period_of("quarter", name.period))
    holding, stamps = place.holding(shard, metric, scheme, (name, into))
    mine, theirs = holding.sums.get(name), holding.sums.get(into, SumRecord())
    if mine is None:
        return True
    expected = {name: stamps[name], into: stamps.get(into, "")}
    if all(theirs.reports.get(label) == each for label, each in mine.reports.items()):
        return place.change(shard, metric, scheme, SumChange({}, expected, removed=(name,)))
    if mine.reports.keys() & theirs.reports.keys():
        return False
    tally = TallyKey(metric, scheme, str(into))
    total = counters_of(place, shard, tally, shape, into in stamps)
    total += counters_of(place, shard, TallyKey(metric, scheme, str(name)), shape, True)
    record = SumRecord({}, {**theirs.reports, **mine.reports}, theirs.added + mine.added)
    put = {into: written_form(tally, shape, record, total)}
    return place.change(shard, metric, scheme, SumChange({}, expected, (), (name,), put))


def together(labels: Iterable[str]) -> list[list[str]]:
    """Windows that are dropped by one step: those that lie in the same month."""
    found: dict[str, list[str]] = {}
    for label in sorted(labels, key=windows.start):
        found.setdefault(period_of("month", label), []).append(label)
    return list(found.values())

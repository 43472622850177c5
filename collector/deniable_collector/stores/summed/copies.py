"""Copies: the sum of a week, month or quarter, beside the windows that it was made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from deniable_collector.stores.commits import TallyKey
from deniable_collector.stores.summed.place import (
    SumChange,
    SumPlace,
    by_combination,
    written_form,
)
from deniable_collector.stores.summed.sums import SumName, SumRecord

_FEWEST = 2
"""A copy of one window saves no read."""


def periods_due(
    place: SumPlace, shard: int, metric: str, scheme: str, asked: Sequence[tuple[str, str]]
) -> set[tuple[str, str]]:
    """Those of these periods, each with the kind of its windows, for which `add_up` has something
    to do in one shard."""
    due: set[tuple[str, str]] = set()
    names = [SumName.parse(each) for each in place.sum_names(shard, metric, scheme)]
    # With an absent copy, so that each period is among those that are judged.
    wanted = {SumName("copy", *each) for each in asked}.union(names)
    holding = place.holding(shard, metric, scheme, sorted(wanted))[0]
    judged = replace(holding, sums={name: holding.sums.get(name, SumRecord()) for name in wanted})
    for each in asked:
        copy, kept = SumName("copy", *each), SumName("kept", *each)
        useless = kept in holding.sums or len(judged.by_period[each][0]) < _FEWEST
        if copy in holding.sums if useless else not judged.valid(copy):
            due.add(each)
    return due


def add_up(place: SumPlace, shard: int, metric: str, scheme: str, kind: str, period: str) -> int:
    """Make the copy of a period in one shard, or bring it up to date; see `Sums.add_up`."""
    copy, kept = SumName("copy", kind, period), SumName("kept", kind, period)
    holding, stamps = place.holding(shard, metric, scheme, (copy, kept))
    there = [label for label in holding.windows if copy.covers(label)]
    if kept in holding.sums or len(there) < _FEWEST:
        if copy in holding.sums:
            place.change(shard, metric, scheme, SumChange(removed=(copy,)))
        return 0
    if holding.valid(copy):
        return 0
    shape = place.sum_shape(metric, scheme)
    total, record = np.zeros(shape.size, np.int64), SumRecord()
    for label in there:
        read = place.window_counters(shard, TallyKey(metric, scheme, label))
        if read is None:
            return 0
        record.stamps[label], counters = read
        record.reports[label] = by_combination(shape, counters)
        total += counters
    written = written_form(TallyKey(metric, scheme, str(copy)), shape, record, total)
    change = SumChange(record.stamps, {copy: stamps.get(copy, "")}, put={copy: written})
    return len(written[1]) if place.change(shard, metric, scheme, change) else 0

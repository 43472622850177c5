"""Windows that all have the same counts, so that a sum of them shows what is missing or doubled;
and one window, into which reports come one by one."""

import numpy as np
import pytest

from deniable_collector.stores.commits import Addition, Commit, TallyKey
from deniable_collector.stores.vectors import shape_of

WIDTH = 3_000
REPORTS = 9
WINDOW = "2026-11-20"
_PLACES = np.arange(0, WIDTH, 7)


def added(scheme, rows):
    """What adds rows to a tally: by its number, the reports of each and {column: count}."""
    shape = shape_of(scheme)
    counters = {number: reports for number, (reports, _) in rows.items()}
    for number, (_, cells) in rows.items():
        counters |= {shape.starts[number] + column: count for column, count in cells.items()}
    places = sorted(place for place, count in counters.items() if count)
    counts = [counters[place] for place in places]
    reports = sum(each for each, _ in rows.values())
    return Addition(np.array(places, np.int64), np.array(counts, np.int64), reports)


def fill_windows(store, scheme, labels, batch, now):
    """Add the counts to windows of the metric "m", by one commit."""
    cells = {place: place + 1 for place in _PLACES.tolist()}
    addition = added(store.scheme("m", scheme), {0: (REPORTS, cells)})
    keys = (TallyKey("m", scheme, label) for label in labels)
    store.fold(Commit((batch,), dict.fromkeys(keys, addition)), now)


def whole(store, scheme, labels, times=1):
    """Whether these windows have these counts, so many times in all."""
    (row,) = store.tally("m", scheme, labels).rows
    right = np.zeros(WIDTH, np.int64)
    right[_PLACES] = times * (_PLACES + 1)
    return row.reports == REPORTS * times and np.array_equal(row.cells, right)


def commit(scheme, *batches, cells=None, metric="m", window=WINDOW, row=0, reports=1, shard=0):
    """A commit that adds reports and counts, {column: count}, to one row of a tally; by default one
    report of the second column."""
    cells = {1: 1} if cells is None else cells
    key = TallyKey(metric, scheme.fingerprint, window)
    return Commit(batches, {key: added(scheme, {row: (reports, cells)})}, shard)


def reports_in(store, scheme):
    """How many reports the window has."""
    return store.tally("m", scheme.fingerprint, [WINDOW]).reports


@pytest.fixture
def scheme(store, shelf):
    """A published scheme of these windows."""
    scheme = shelf(WIDTH)
    store.publish([("m", scheme)])
    return scheme


@pytest.fixture
def fill(store, scheme, new_id, noon):
    """Puts the same counts into windows."""
    return lambda *labels: fill_windows(store, scheme.fingerprint, labels, new_id(), noon)

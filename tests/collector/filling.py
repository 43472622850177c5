"""Windows that all have the same counts, so that a sum of them shows what is missing or doubled;
and one window, into which reports come one by one."""

import numpy as np
import pytest

from deniable_collector.stores.commits import Commit, Increment, TallyKey, TallyRowKey

WIDTH = 3_000
REPORTS = 9
WINDOW = "2026-11-20"
_PLACES = np.arange(0, WIDTH, 7)


def fill_windows(store, scheme, labels, batch, now):
    """Add the counts to windows of the metric "m", by one commit."""
    increment = Increment(WIDTH, REPORTS, _PLACES, _PLACES + 1)
    keys = (TallyRowKey(TallyKey("m", scheme, label), 0) for label in labels)
    store.fold(Commit((batch,), dict.fromkeys(keys, increment)), now)


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
    width = scheme.mechanism.rows[row].width
    key = TallyRowKey(TallyKey(metric, scheme.fingerprint, window), row)
    increment = Increment(width, reports, tuple(cells), tuple(cells.values()))
    return Commit(batches, {key: increment}, shard)


def reports_in(store, scheme):
    """How many reports the window has."""
    return store.tally("m", scheme.fingerprint, [WINDOW]).reports


@pytest.fixture
def scheme(store, shelf):
    """A published scheme of these windows."""
    scheme = shelf(WIDTH)
    store.publish({"m": [scheme]})
    return scheme


@pytest.fixture
def fill(store, scheme, new_id, noon):
    """Puts the same counts into windows."""
    return lambda *labels: fill_windows(store, scheme.fingerprint, labels, new_id(), noon)

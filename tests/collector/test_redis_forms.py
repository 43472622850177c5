"""The forms of a tally in Redis: what the script adds in place, and what a form tells."""

from contextlib import closing

import numpy as np
import pytest
import redis as redis_driver
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deniable_collector.stores import StoreError
from deniable_collector.stores.commits import MAX_CELL, Commit, Increment, TallyKey, TallyRowKey
from deniable_collector.stores.redis import forms
from deniable_collector.stores.redis.forms import HEADER

from .filling import WINDOW, commit

STORES = ["redis"]
ROWS, WIDTH = 3, 2_000
PLACES = st.one_of(
    st.integers(0, ROWS * WIDTH - 1),  # anywhere
    st.integers(0, 40),  # side by side
    st.integers(0, 30).map(lambda each: each * 144),  # hashes that are near each other
)


@pytest.fixture
def scheme(store, shelf):
    scheme = shelf(*[WIDTH] * ROWS)
    store.publish({"m": [scheme]})
    return scheme


@pytest.fixture
def value_of(home, scheme):
    """What Redis holds of a window, without its stamp."""
    with closing(redis_driver.Redis.from_url(home.url)) as client:
        yield lambda window=WINDOW: client.get(
            f"{home.prefix}:{{0}}:tally:m:{scheme.fingerprint}:{window}"
        )[8:]


@pytest.fixture
def fold(store, scheme, new_id, noon):
    """Adds counts, by their place among all cells, in one commit; a report for each row named."""

    def fold(cells, window=WINDOW):
        tally = TallyKey("m", scheme.fingerprint, window)
        rows = {}
        for place, count in cells.items():
            rows.setdefault(place // WIDTH, {})[place % WIDTH] = count
        parts = {
            TallyRowKey(tally, row): Increment(WIDTH, 1, tuple(each), tuple(each.values()))
            for row, each in rows.items()
        }
        assert not store.fold(Commit((new_id(),), parts), noon)

    return fold


def read(store, scheme, window=WINDOW):
    tally = store.tally("m", scheme.fingerprint, [window])
    cells = np.concatenate([row.cells for row in tally.rows])
    return [row.reports for row in tally.rows], {
        int(at): int(cells[at]) for at in np.flatnonzero(cells)
    }


def form_of(value):
    return int.from_bytes(value[:8], "little")


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(commits=st.lists(st.dictionaries(PLACES, st.integers(1, 9), max_size=60), max_size=8),
       order=st.randoms())  # fmt: skip
def test_a_form_tells_the_sum_and_no_order(store, scheme, fold, value_of, noon, commits, order):
    """Whatever commits come, small ones in place and large ones as a whole, their sum is read; and
    the same commits in another order leave the same bytes, of the same size of table."""
    windows = ["2026-11-20", "2026-11-19"]
    shuffled = list(commits)
    order.shuffle(shuffled)
    for window, some in zip(windows, (commits, shuffled), strict=True):
        for cells in some:
            fold(cells, window)
    total, reports = {}, [0] * ROWS
    for cells in commits:
        for row in {place // WIDTH for place in cells}:
            reports[row] += 1
        for place, count in cells.items():
            total[place] = total.get(place, 0) + count
    for window in windows:
        assert read(store, scheme, window) == (reports, total)
    if any(commits):
        values = [value_of(window) for window in windows]
        # A table grows when an entry is far from its place, which may be at another moment.
        if form_of(values[0]) == form_of(values[1]):
            assert values[0].rstrip(b"\0") == values[1].rstrip(b"\0")
    store.drop(noon)


def test_a_tally_is_sparse_until_dense_is_smaller(store, scheme, fold, value_of):
    """A tally of few counts takes a fraction of the dense form, grows with them, never takes more
    than the dense form by much, and ends dense."""
    dense = HEADER.size + 4 * (ROWS + ROWS * WIDTH)
    draw = np.random.default_rng(5)
    places = draw.permutation(ROWS * WIDTH).tolist()
    sizes = []
    for first in range(0, len(places), 100):
        fold(dict.fromkeys(places[first : first + 100], 1))
        sizes.append(len(value_of()))
    assert sizes[0] < dense / 5
    assert sizes[10] < dense
    assert max(sizes) <= dense
    assert form_of(value_of()) == 4
    assert read(store, scheme)[1] == dict.fromkeys(range(ROWS * WIDTH), 1)


@pytest.mark.parametrize("place", [0, 1_500, ROWS * WIDTH - 1])
def test_a_sparse_tally_with_large_counts(store, scheme, fold, value_of, place):
    """A counter that needs more than four bytes makes the tally wide, with all of its counts."""
    fold({place: 2**32 - 1, 7: 1})
    assert form_of(value_of()) > 128
    fold({place: 1})
    assert form_of(value_of()) == 8
    assert read(store, scheme)[1] == {place: 2**32, 7: 1}
    fold({place: MAX_CELL - 2**32})
    assert read(store, scheme)[1] == {place: MAX_CELL, 7: 1}


def test_places_whose_hashes_meet(store, shelf, new_id, noon):
    """Many places that all hash into one slot are counted exactly, one by one: the script
    asks for a larger table, or in the end for the dense form."""
    width = 60_000
    scheme = shelf(width)
    store.publish({"m": [scheme]})
    hashes = np.arange(1, width + 1) * forms._FACTOR % forms._HASHES
    chosen = (np.argsort(hashes)[:150]).tolist()
    for cell in chosen:
        store.fold(commit(scheme, new_id(), cells={cell: 2}), noon)
    (row,) = store.tally("m", scheme.fingerprint, [WINDOW]).rows
    assert row.reports == 150
    assert np.flatnonzero(row.cells).tolist() == sorted(chosen)
    assert row.cells.sum() == 300


def test_a_dense_tally_whose_last_zeros_are_missing(home, store, scheme, fold, value_of):
    """A dense tally, with zeros at its end left out, is read, added to and sealed."""
    with closing(redis_driver.Redis.from_url(home.url)) as client:
        key = f"{home.prefix}:{{0}}:tally:m:{scheme.fingerprint}:{WINDOW}"
        counters = np.array([4, 5, 0, 9, 8], "<u4").tobytes()
        client.set(key, HEADER.pack(1, 4) + counters)
        client.sadd(f"{home.prefix}:{{0}}:windows:m:{scheme.fingerprint}", WINDOW)
    assert read(store, scheme) == ([4, 5, 0], {0: 9, 1: 8})
    assert store.reports("m", scheme.fingerprint, [WINDOW]) == {WINDOW: 9}
    fold({1: 1, 5_000: 1})
    assert form_of(value_of()) == 4
    assert store.seal(TallyKey("m", scheme.fingerprint, WINDOW)) is not None
    assert read(store, scheme) == ([5, 5, 1], {0: 9, 1: 9, 5_000: 1})


def test_unknown_forms_are_refused_in_words(store, home, scheme, fold):
    """A tally in a form that nobody knows is named, and neither read nor added to nor sealed."""
    fold({1: 2})
    of = "m", scheme.fingerprint
    with closing(redis_driver.Redis.from_url(home.url)) as client:
        key = f"{home.prefix}:{{0}}:tally:m:{scheme.fingerprint}:{WINDOW}"
        for form in (0, 1, 2, 3, 5, 16, 66, 127):
            value = HEADER.pack(1, form) + bytes(64)
            client.set(key, value)
            for act in (
                lambda: store.tally(*of, [WINDOW]),
                lambda: store.row_reports(*of, [WINDOW]),
                lambda: store.seal(TallyKey(*of, WINDOW)),
                lambda: fold({1: 2}),
            ):
                with pytest.raises(StoreError, match=f"metric m, window {WINDOW} cannot be read"):
                    act()
            assert client.get(key) == value

"""What Redis holds of a tally, and what that tells."""

from contextlib import closing

import numpy as np
import pytest
import redis as redis_driver
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deniable_collector.stores import StoreError
from deniable_collector.stores.commits import Commit, TallyKey
from deniable_collector.stores.redis.forms import HEADER

from .filling import WINDOW, added

STORES = ["redis"]
ROWS, WIDTH = 3, 2_000
PLACES = st.one_of(
    st.integers(0, ROWS * WIDTH - 1),  # anywhere
    st.integers(0, 40),  # side by side
)


@pytest.fixture
def scheme(store, shelf):
    scheme = shelf(*[WIDTH] * ROWS)
    store.publish([("m", scheme)])
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
        addition = added(scheme, {row: (1, each) for row, each in rows.items()})
        assert not store.fold(Commit((new_id(),), {tally: addition}), noon)

    return fold


def read(store, scheme, window=WINDOW):
    tally = store.tally("m", scheme.fingerprint, [window])
    cells = np.concatenate([row.cells for row in tally.rows])
    return [row.reports for row in tally.rows], {
        int(at): int(cells[at]) for at in np.flatnonzero(cells)
    }


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(commits=st.lists(st.dictionaries(PLACES, st.integers(1, 9), max_size=60), max_size=8),
       order=st.randoms())  # fmt: skip
def test_a_form_tells_the_sum_and_no_order(store, scheme, fold, value_of, noon, commits, order):
    """Whatever commits come, their sum is read; and the same commits in another order leave the
    same bytes once they are merged."""
    days = ["2026-11-20", "2026-11-19"]
    shuffled = list(commits)
    order.shuffle(shuffled)
    for window, some in zip(days, (commits, shuffled), strict=True):
        for cells in some:
            fold(cells, window)
    total, reports = {}, [0] * ROWS
    for cells in commits:
        for row in {place // WIDTH for place in cells}:
            reports[row] += 1
        for place, count in cells.items():
            total[place] = total.get(place, 0) + count
    for _ in range(2):
        for window in days:
            assert read(store, scheme, window) == (reports, total)
        store.merge()
    if any(commits):
        # The digest of a block has the window in it.
        one, other = (value_of(window) for window in days)
        assert (one[:12], one[28:]) == (other[:12], other[28:])
    store.drop(noon)


def test_unknown_forms_are_refused_in_words(store, home, scheme, fold):
    """A tally in a form that nobody knows is named, and neither read nor added to nor sealed."""
    fold({1: 2})
    of = "m", scheme.fingerprint
    with closing(redis_driver.Redis.from_url(home.url)) as client:
        key = f"{home.prefix}:{{0}}:tally:m:{scheme.fingerprint}:{WINDOW}"
        for kind in (0, 5, 16, 64, 2**32 - 1):
            value = HEADER.pack(1, kind, 64, 0) + bytes(64)
            client.set(key, value)
            for act in (
                lambda: store.tally(*of, [WINDOW]),
                lambda: store.segment_reports(*of, [WINDOW]),
                lambda: store.seal(TallyKey(*of, WINDOW)),
                lambda: fold({1: 2}),
            ):
                with pytest.raises(StoreError, match=f"metric m, window {WINDOW} cannot be read"):
                    act()
            assert client.get(key) == value

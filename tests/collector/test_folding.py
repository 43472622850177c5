"""Summing reports into increments."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable import WireError
from deniable.protocol.mechanisms import Packing, Report, Row
from deniable.protocol.wire import pack_columns, unpack_columns
from deniable_collector.batches import folding
from deniable_collector.batches.bodies import reader
from deniable_collector.batches.folding import RowPlace, additions, count_bitmaps
from deniable_collector.stores.commits import TallyKey

TALLY = TallyKey("m", "abc", "2026-11-20")

APART = 100_000
"""Counters between the beginnings of two rows."""


def rows_added(reports):
    """Row -> its reports and {column: count}, as reports are added up."""
    if not reports:
        assert additions(reports) == {}
        return {}
    ((tally, addition),) = additions(reports).items()
    assert tally == TALLY
    assert np.all(addition.places[1:] > addition.places[:-1])
    assert addition.reports == len(reports)
    assert addition.counts.min() > 0
    found = dict(zip(addition.places.tolist(), addition.counts.tolist(), strict=True))
    rows = {number: (count, {}) for number, count in found.items() if number < APART}
    for place, count in found.items():
        if place >= APART:
            rows[place // APART - 1][1][place % APART] = count
    return rows


def bits(columns):
    return sum(1 << column for column in columns)


def report(number, row, columns):
    """A valid report, of a place of its own."""
    return RowPlace(TALLY, number, APART * (number + 1), row, reader(row)), columns


def packed(row, columns):
    """The columns of a report, as they are in `Accepted`."""
    if row.packing is Packing.INDEX:
        return min(columns)
    return bits(columns).to_bytes((row.width + 7) // 8, "little")


def check(reports):
    """Whether of reports, each a number of its own tally row, that row, and columns, each column
    of each is counted once."""
    added = rows_added(
        [report(number, row, packed(row, columns)) for number, row, columns in reports]
    )
    assert set(added) == {number for number, _, _ in reports}
    for number, (count, columns) in added.items():
        mine = [columns for each, _, columns in reports if each == number]
        assert (count, columns) == (len(mine), Counter(each for some in mine for each in some))


ROWS = (Row(13, Packing.INDEX), Row(13, Packing.BITMAP, None), Row(70, Packing.LIST, 3))
REPORTS = st.lists(
    st.one_of(
        st.tuples(st.just(0), st.sets(st.integers(0, 12), min_size=1, max_size=1)),
        st.tuples(st.just(1), st.sets(st.integers(0, 12))),
        st.tuples(st.just(2), st.sets(st.integers(0, 69), min_size=3, max_size=3)),
    ),
    max_size=40,
)


@settings(deadline=None)
@given(REPORTS, st.sampled_from([1, 3, 255]), st.sampled_from([1, 50, 1 << 13]))
def test_the_sum_of_all_reports(reports, few, small):
    """However reports are mixed and blocked, each column of each is counted once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(folding, "_FEW", few)
        patch.setattr(folding, "_CACHED_BITS", 1)
        patch.setattr(folding, "_SMALL_BITS", small)
        check([(row, ROWS[row], columns) for row, columns in reports])


@pytest.mark.parametrize("at_once", [1, 7, 512])
def test_many_rows_of_one_width(monkeypatch, at_once):
    """Rows that are summed together, as cohorts are, keep their reports apart."""
    monkeypatch.setattr(folding, "_ROWS_AT_ONCE", at_once)
    row = Row(70, Packing.BITMAP, None)
    check([(number % 40, row, {number % 70, number % 7} - {0}) for number in range(137)])


@pytest.mark.parametrize("number", [255, 256, 600])
def test_more_reports_of_a_narrow_row_than_a_byte_counts(number):
    """A narrow row that is summed together with others counts beyond 255."""
    row = Row(13, Packing.BITMAP, None)
    check([(1, row, {3})] * 2 + [(0, row, {0, 1 + each % 12}) for each in range(number)])


def test_one_report_that_many_send():
    """A report that is the same for many devices counts as often as it was sent, also beside
    equal ones that are not the same object."""
    shared, equal = (report(0, ROWS[0], 3) for _ in range(2))
    lists = report(2, ROWS[2], packed(ROWS[2], {1, 5, 69}))
    added = rows_added([shared, equal, shared, lists, lists, report(0, ROWS[0], 4)])
    assert added == {0: (4, {3: 3, 4: 1}), 2: (2, {1: 2, 5: 2, 69: 2})}


def test_columns_of_wide_rows():
    """Of narrow and of wide rows an addition has the columns that are added to."""
    check([(0, Row(8, Packing.BITMAP, None), {0, 1, 2, 4, 5, 7})])
    check([(0, Row(20_000, Packing.BITMAP, None), {7, 19_999})])


@pytest.mark.parametrize("width", [1, 7, 8, 9, 64, 70, 128, 1000])
@pytest.mark.parametrize("cached", [1, 1 << 10, 1 << 17])
@pytest.mark.parametrize("number", [0, 1, 8, 9, 254, 255, 256, 500, 4_099])
def test_bitmaps(monkeypatch, width, cached, number):
    """Each column is counted as adding bits does, whatever the shape."""
    monkeypatch.setattr(folding, "_CACHED_BITS", cached)
    draw = np.random.default_rng([width, number])
    bits = draw.random((number, width)) < draw.random(width)
    bitmaps = [each.tobytes() for each in np.packbits(bits, axis=1, bitorder="little")]
    assert count_bitmaps(bitmaps, width).tolist() == bits.sum(axis=0).tolist()


@settings(deadline=None)
@given(
    st.integers(1, 70),
    st.sampled_from([None, 2]),
    st.one_of(st.none(), st.integers(), st.text("AQgw_-+/=\n\u00e9", max_size=14)),
    st.integers(0, 2**70),
)
def test_bitmaps_are_read_as_the_wire_says(width, columns, other, drawn):
    """What is a bitmap for the protocol is one here, in its one spelling, and nothing else is."""
    row = Row(width, Packing.BITMAP, columns)
    for sent in (other, pack_columns(row, Report(0, drawn % (1 << width)))):
        try:
            wanted = unpack_columns(row, sent).to_bytes((width + 7) // 8, "little")
        except WireError:
            with pytest.raises(WireError):
                reader(row)(sent)
        else:
            assert reader(row)(sent) == wanted

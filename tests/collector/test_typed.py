"""The short way to read reports, against the strict one."""

from __future__ import annotations

import base64

from hypothesis import given, settings
from hypothesis import strategies as st

from deniable import WireError
from deniable.mechanisms import Packing, Report, Row
from deniable.wire import pack_columns, unpack_columns
from deniable_collector.batches import common
from deniable_collector.batches.catalogue import OpenTally
from deniable_collector.batches.common import CommonReports
from deniable_collector.batches.typed import TypedReport, read_columns
from deniable_collector.stores.base import TallyKey, TallyRowKey

ROWS = [
    Row(5, Packing.INDEX),
    Row(70, Packing.LIST, 3),
    *(Row(width, Packing.BITMAP, None) for width in (1, 7, 8, 13, 16, 24, 128)),
    Row(20, Packing.BITMAP, 4),
]

LETTERS = st.text("AQgwB-_+/=z\u00e9 ", max_size=24)


def strictly(row, packed):
    try:
        return unpack_columns(row, packed)
    except WireError:
        return None


@settings(deadline=None, max_examples=300)
@given(st.sampled_from(ROWS), st.one_of(st.integers(-3, 80), LETTERS, st.binary(max_size=17)))
def test_the_short_way_agrees_with_the_strict_one(row, packed):
    """What the short way takes, the strict reader takes as the same columns; no bad columns are
    taken, however they are spelt."""
    if isinstance(packed, bytes):
        packed = base64.urlsafe_b64encode(packed).rstrip(b"=").decode()
    found = read_columns(row, packed)
    assert found is None or found == strictly(row, packed)


@settings(deadline=None)
@given(st.sampled_from(ROWS[2:-1]), st.integers(0, 2**128 - 1))
def test_no_good_bitmap_needs_the_strict_reader(row, columns):
    """Every bitmap that a device packs is read the short way."""
    columns %= 1 << row.width
    assert read_columns(row, pack_columns(row, Report(0, columns))) == columns


class FakeCatalogue:
    """Two tallies, of which one closes later."""

    def __init__(self):
        self.asked = 0

    def remembered(self, metric, scheme, window, now):
        self.asked += 1
        closes = {"a": 10.0, "b": 20.0}[metric]
        if now > closes:
            return None
        keys = (TallyRowKey(TallyKey(metric, scheme, window), 0),)
        return OpenTally((Row(50, Packing.INDEX),), keys, 0.0, closes)


def report(metric, columns):
    return TypedReport(metric, "abc", "2026-11-20", columns)


def test_a_common_report_is_looked_up_once():
    """The same report again costs no look-up and is the same object; a bad one is never known."""
    catalogue = FakeCatalogue()
    known = CommonReports(catalogue)
    first = known.find([report("a", 7), report("b", 7)], 5.0)
    again = known.find([report("b", 7), report("a", 7)], 5.0)
    assert again[1] is first[0]
    assert again[0] is first[1]
    assert catalogue.asked == 2
    for _ in range(2):
        assert known.find([report("a", 50)], 5.0) is None
    assert catalogue.asked == 4


def test_a_known_report_ends_with_its_window():
    """When a window closes, what was known of it is not taken, and other windows still are; nor
    is anything taken before it opens, should the clock be set back."""
    known = CommonReports(FakeCatalogue())
    assert known.find([report("a", 1), report("b", 1)], 10.0) is not None
    assert known.find([report("a", 1)], 10.1) is None
    assert known.find([report("b", 1)], 10.1) is not None
    catalogue = FakeCatalogue()
    known = CommonReports(catalogue)
    known.find([report("a", 1)], 5.0)
    known.find([report("a", 1)], -1.0)
    assert catalogue.asked == 2


def test_no_more_than_so_many_are_known(monkeypatch):
    """Reports of a long list do not fill the memory: all are forgotten now and then."""
    monkeypatch.setattr(common, "_MOST", 10)
    catalogue = FakeCatalogue()
    known = CommonReports(catalogue)
    for column in range(40):
        assert known.find([report("a", column)], 5.0) is not None
        assert len(known._known) <= 10
    assert known.find([report("a", 0)], 5.0) is not None
    assert catalogue.asked == 41

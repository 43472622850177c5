"""The short way to read reports, against the strict one."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable import WireError
from deniable.mechanisms import Packing, Report, Row
from deniable.wire import pack_columns, unpack_columns
from deniable_collector.batches import common
from deniable_collector.batches.bodies import parse
from deniable_collector.batches.catalogue import OpenTally
from deniable_collector.batches.common import CommonReports
from deniable_collector.batches.typed import (
    decode_batch,
    decode_report,
    read_bitmaps,
    reader,
)
from deniable_collector.refusals import IntakeError
from deniable_collector.stores.commits import TallyKey, TallyRowKey

ROWS = [
    Row(5, Packing.INDEX),
    Row(70, Packing.LIST, 3),
    *(Row(width, Packing.BITMAP, None) for width in (1, 7, 8, 13, 16, 24, 128)),
    Row(20, Packing.BITMAP, 4),
]

LETTERS = st.text("AQgwB-_+/=z\u00e9 ", max_size=24)


def wanted(row, packed):
    """What a reader should make of packed columns, by the strict one."""
    try:
        columns = unpack_columns(row, packed)
    except WireError:
        return None
    return packed.encode() if row.packing is Packing.BITMAP else columns


@settings(deadline=None, max_examples=500)
@given(
    st.sampled_from(ROWS),
    st.one_of(
        st.integers(-3, 80),
        LETTERS,
        st.binary(max_size=17),
        st.lists(st.integers(-1, 70), max_size=4),
        st.sampled_from([True, None, 1.0, {}]),
    ),
)
def test_the_short_way_agrees_with_the_strict_one(row, packed):
    """A reader takes just what the strict one takes, with the same columns, however they are
    spelt."""
    if isinstance(packed, bytes):
        packed = base64.urlsafe_b64encode(packed).rstrip(b"=").decode()
    text = json.dumps(packed, ensure_ascii=False).encode()
    assert reader(row)(text) == wanted(row, packed)


@settings(deadline=None)
@given(st.sampled_from(ROWS[2:-1]), st.lists(st.integers(0, 2**128 - 1), min_size=1, max_size=5))
def test_bitmaps_are_read_together(row, several):
    """Every bitmap that a device packs is taken, and many are turned into bytes by one call."""
    several = [columns % (1 << row.width) for columns in several]
    packed = [pack_columns(row, Report(0, columns)) for columns in several]
    read = [reader(row)(json.dumps(each).encode()) for each in packed]
    assert read == [each.encode() for each in packed]
    found = read_bitmaps(read, row.report_bytes)
    assert [int.from_bytes(each.tobytes(), "little") for each in found] == several


REPORTS = st.lists(
    st.sampled_from(
        [
            *('{"metric":"a","columns":1}', '{"metric":"a","metric":"b"}', '{"a":"},{"}', "{}"),
            *('{ "columns" : 1 }', '{"a":"x\\u0041"}', "[]", "5", '"x"', "{}},{{}", '{"a":{}}'),
        ]
    ),
    max_size=4,
)


@settings(deadline=None, max_examples=300)
@given(
    REPORTS,
    st.sampled_from(
        [
            '{"batch":"%s","reports":[%s]}',
            '{"batch": "%s", "reports": [%s]}',
            ' {"batch":"%s","reports":[%s]}',
            '{"batch":"x","batch":"%s","reports":[%s]}',
            '{"batch":"%s","reports":[{}],"reports":[%s]}',
            '{"batch":"%s","reports":[%s]} ',
            '{"batch":"%s","reports":[%s],"more":1}',
            '{"batch":"%s","reports":[%s]',
        ]
    ),
    st.sampled_from(["0" * 32, "0" * 31, '0","reports":[{},{}],"x":"0123456789', "\u00e9" * 16]),
)
def test_a_batch_is_cut_where_its_reports_are(reports, envelope, batch_id):
    """If each report of a batch can be decoded, then the strict parser reads the same batch: no
    repeated key, no more and no fewer reports."""
    body = (envelope % (batch_id, ",".join(reports))).encode()
    typed = decode_batch(body)
    if typed is None or any(decode_loosely(each) is None for each in typed.reports):
        return
    strictly = parse(body)
    assert strictly.keys() == {"batch", "reports"}
    assert strictly["batch"] == typed.batch
    assert strictly["reports"] == [*map(decode_loosely, typed.reports)]


def decode_loosely(text):
    """The object with this inside, if it is one without repeated keys and escapes."""
    try:
        found = parse(b"{%b}" % text)
    except IntakeError:
        return None
    return None if b"\\" in text else found


@pytest.mark.parametrize(
    "text",
    [
        b'"metric":"a","scheme":"s","window":"w","columns":1,"columns":1',
        b'"metric":"a","scheme":"s","window":"w","columns":1,"metric":"a"',
        b'"metric":"a","scheme":"s","window":"w","row":-1,"row":1,"columns":1',
        b'"metric":"a","scheme":"s","window":"\\u0077","columns":1',
        b'"metric":"a","scheme":"s","window":"w","columns":1.5',
        b'"metric":"a","scheme":"s","columns":1',
        b'"metric":"a","scheme":"s","window":"w","columns":1,"more":1',
        b'"metric":"a","scheme":"s","window":"w","columns":1},{"metric":"a"',
        b"",
    ],
)
def test_an_odd_report_is_left_to_the_strict_parser(text):
    """No report with a repeated, missing or unknown key, an escape or another type is decoded."""
    assert decode_report(text) is None


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
    head = f'"metric":"{metric}","scheme":"abc","window":"2026-11-20"'
    return f'{head},"columns":{columns}'.encode()


def test_a_common_report_is_looked_up_once():
    """The same report again is the same object; one that begins like an earlier one costs no
    look-up; a bad one is never known."""
    catalogue = FakeCatalogue()
    known = CommonReports(catalogue)
    first = known.find([report("a", 7), report("b", 7)], 5.0)
    again = known.find([report("b", 7), report("a", 7)], 5.0)
    assert again[1] is first[0]
    assert again[0] is first[1]
    assert known.find([report("a", 8)], 5.0)[0][1] == 8
    assert catalogue.asked == 2
    for bad in (50, -1, '"7"', "[7]", "7.5", "", "7}", "7,", '7,"row":0,"row":0'):
        for _ in range(2):
            assert known.find([report("a", bad)], 5.0) is None


def test_a_known_report_ends_with_its_window():
    """When a window closes, what was known of it is not taken, and other windows still are; nor
    is anything taken before it opens, should the clock be set back."""
    known = CommonReports(FakeCatalogue())
    assert known.find([report("a", 1), report("b", 1)], 10.0) is not None
    assert known.find([report("a", 1)], 10.1) is None
    assert known.find([report("a", 2)], 10.1) is None
    assert known.find([report("b", 1)], 10.1) is not None
    catalogue = FakeCatalogue()
    known = CommonReports(catalogue)
    known.find([report("a", 1)], 5.0)
    known.find([report("a", 1)], -1.0)
    assert catalogue.asked == 2


def test_no_more_than_so_many_are_known(monkeypatch):
    """Neither reports of a long list nor many spellings of one report fill the memory: all are
    forgotten now and then, and a long one is not kept."""
    monkeypatch.setattr(common, "_MOST", 10)
    known = CommonReports(FakeCatalogue())
    for number in range(40):
        spaces = b" " * (number + 300 * (number % 2))
        for text in (report("a", number), spaces + report("a", 1)):
            assert known.find([text], 5.0) is not None
            assert max(len(known._known), len(known._known.heads)) <= 11
            assert all(len(each) <= 256 for each in (*known._known, *known._known.heads))

"""The short way to read reports, against the strict one."""

from __future__ import annotations

import pytest

from deniable.mechanisms import Packing, Row
from deniable_collector.batches import common
from deniable_collector.batches.catalogue import OpenTally
from deniable_collector.batches.common import CommonReports
from deniable_collector.batches.typed import (
    decode_report,
)
from deniable_collector.stores.commits import TallyKey, TallyRowKey


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

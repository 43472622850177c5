"""Reports of numbers in words: which numbers they favour, and how often some would send them."""

from fractions import Fraction

import pytest

from deniable.device.outbox import Entry
from deniable.device.sent import OWNER_TEXTS, describe_entries, percent
from deniable.protocol.mechanisms import Report
from deniable.protocol.mechanisms.hierarchical_histogram import HierarchicalHistogram
from deniable.protocol.mechanisms.number_range import NumberRange
from deniable.protocol.mechanisms.sliding_window import SlidingWindow
from deniable.protocol.scheme import Scheme
from deniable.protocol.wire import SealedReport, pack_columns

TENTHS = NumberRange("0", "10.5")
WHOLE = NumberRange("1", "5", integer=True)
DECADES = NumberRange("0.001", "1000", "log")


def told(mechanism, report, texts=OWNER_TEXTS["en"]):
    """The report as the owner of the device sees it."""
    scheme = Scheme("number", mechanism, ())
    columns = pack_columns(mechanism.rows[report.row], report)
    sealed = SealedReport("m", scheme.fingerprint, "2026-11-20", report.row, columns)
    entry = Entry(sealed, "sent", None, "", scheme.canonical().decode())
    (described,) = describe_entries([entry], None, texts)
    return described


WORDED = {
    "one bit": (SlidingWindow.design(TENTHS, 1.0, 2), range(2)),
    "4 columns": (SlidingWindow.design(TENTHS, 1.0, 4), range(4)),
    "16 columns": (SlidingWindow.design(TENTHS, 4.0, 16), range(16)),
    "whole numbers": (HierarchicalHistogram.design(WHOLE, 5.0), range(16)),
    "decades": (HierarchicalHistogram.design(DECADES, 5.0, 16), range(3)),
    "16 cells": (HierarchicalHistogram.design(TENTHS, 1.0, 16), (0, 7, 15, 27)),
    "256 cells": (HierarchicalHistogram.design(TENTHS, 1.0, 256), (0, 7)),
}


def test_a_report_names_what_it_favours(stays):
    """Ranges of numbers, at their ends, in whole numbers, and as a bare number where they are
    many; and always by how much it can tell any two numbers apart: `words.txt` has them."""
    lines = []
    for name, (mechanism, columns) in WORDED.items():
        for row, each in enumerate(mechanism.rows):
            for column in (column for column in columns if column < each.width):
                words = told(mechanism, Report(row, column)).words
                assert f"at most {float(mechanism.odds):.3g} times as often for one value" in words
                lines.append(f"{name}, {row}, {column}: {words}")
    stays("words.txt", lines)


@pytest.mark.parametrize("numbers", [TENTHS, WHOLE, DECADES, NumberRange("-1e-9", "1e9")])
@pytest.mark.parametrize("mean", [False, True])
def test_every_report_has_words(numbers, mean):
    """In both languages; and its likelihoods are those of five numbers across the range."""
    mechanism = HierarchicalHistogram.design(numbers, 1.0, 64, mean)
    for row, each in enumerate(mechanism.rows):
        for column in range(each.width):
            report = Report(row, column)
            for texts in OWNER_TEXTS.values():
                assert told(mechanism, report, texts).words
    listed = told(mechanism, Report(0, 0)).likelihoods
    assert len(listed) == 5
    *inner, end = listed
    for value in inner:
        position = max(0, numbers.position(float(value)))
        assert listed[value] == mechanism.likelihood(Report(0, 0), position)
    top = numbers.position(float(numbers.high))
    assert listed[end] == mechanism.likelihood(Report(0, 0), top)


@pytest.mark.parametrize(
    ("high", "listed"),
    [("40", ["0", "10", "20", "30", "40"]), ("1", ["0", "1"]), ("2", ["0", "1", "2"])],
)
def test_whole_numbers_are_listed_once_and_up_to_high(high, listed):
    """Of whole numbers, the likelihoods are those of numbers inside the range, each once."""
    mechanism = SlidingWindow.design(NumberRange("0", high, integer=True), 1.0, 4)
    assert [*told(mechanism, Report(0, 0)).likelihoods] == listed


@pytest.mark.parametrize(
    ("share", "said"),
    [
        (Fraction(1), "100%"),
        (Fraction(2981, 2982), "99.97%"),
        (Fraction(1, 2982), "0.0335%"),
        (Fraction(7311, 10000), "73.1%"),
        (Fraction(999, 1000), "99.9%"),
    ],
)
def test_only_what_is_certain_has_100_percent(share, said):
    """At epsilon 8 a report is as it is in 99.97% of all cases, which is not always."""
    assert percent(share) == said

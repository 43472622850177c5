"""Reports of numbers in words: which numbers they favour, and how often some would send them."""

import pytest

from deniable.device.outbox import Entry
from deniable.device.sent import OWNER_TEXTS, describe_entries
from deniable.protocol.mechanisms import Report
from deniable.protocol.mechanisms.hierarchical_histogram import HierarchicalHistogram
from deniable.protocol.mechanisms.number_range import NumberRange
from deniable.protocol.mechanisms.sliding_window import SlidingWindow
from deniable.protocol.scheme import Scheme
from deniable.protocol.wire import SealedReport, pack_columns

TENTHS = NumberRange("0", "10.5")
WHOLE = NumberRange("1", "5", integer=True)
DECADES = NumberRange("0.001", "1000", "log")
SIXTEEN = HierarchicalHistogram.design(TENTHS, 1.0, 16)


def told(mechanism, report, texts=OWNER_TEXTS["en"]):
    """The report as the owner of the device sees it."""
    scheme = Scheme("number", mechanism, ())
    columns = pack_columns(mechanism.rows[report.row], report)
    sealed = SealedReport("m", scheme.fingerprint, "2026-11-20", report.row, columns)
    fields = dict.fromkeys(Entry._fields)
    entry = Entry(
        **fields
        | {
            "report": sealed,
            "status": "sent",
            "description": "",
            "definition": scheme.canonical().decode(),
        }
    )
    (described,) = describe_entries([entry], None, texts)
    return described


@pytest.mark.parametrize(
    ("mechanism", "report", "words"),
    [
        (SlidingWindow.design(TENTHS, 1.0, 2), Report(0, 0), "numbers up to 0;"),
        (SlidingWindow.design(TENTHS, 1.0, 2), Report(0, 1), "numbers from 10.5 on;"),
        (SlidingWindow.design(TENTHS, 1.0, 4), Report(0, 1), "numbers up to 5.25;"),
        (SlidingWindow.design(TENTHS, 4.0, 16), Report(0, 6), "numbers from 1.82 to 5.25;"),
        (HierarchicalHistogram.design(WHOLE, 5.0), Report(1, 3), "the number 3;"),
        (HierarchicalHistogram.design(WHOLE, 5.0), Report(1, 0), "numbers up to 0;"),
        (HierarchicalHistogram.design(WHOLE, 5.0), Report(1, 15), "numbers from 6 on;"),
        (HierarchicalHistogram.design(WHOLE, 5.0), Report(0, 0), "numbers up to 3;"),
        (HierarchicalHistogram.design(WHOLE, 5.0), Report(0, 1), "numbers from 4 to 5;"),
        (HierarchicalHistogram.design(WHOLE, 5.0), Report(0, 2), "any number;"),
        (HierarchicalHistogram.design(DECADES, 5.0, 16), Report(0, 1), "from 0.01931 to 1;"),
        (SIXTEEN, Report(1, 0), "any number;"),
        (SIXTEEN, Report(1, 27), "numbers up to 6;"),
        (SIXTEEN, Report(1, 15), "numbers from 1.5 to 3.75 and numbers from 10.5 on;"),
        (
            SIXTEEN,
            Report(1, 7),
            "numbers from 0.75 to 2.25, numbers from 4.5 to 5.25 and numbers from 7.5 to 9;",
        ),
        (
            HierarchicalHistogram.design(TENTHS, 1.0, 256),
            Report(3, 7),
            "your device sent the number 7 of 364;",
        ),
    ],
)
def test_a_report_names_what_it_favours(mechanism, report, words):
    """Ranges of numbers, at their ends, in whole numbers, and as a bare number where they are
    many; and always by how much it can tell any two numbers apart."""
    found = told(mechanism, report).words
    assert words in found
    assert f"at most {float(mechanism.odds):.3g} times as often for one value as for" in found


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
    for entry in listed[:-1]:
        position = max(0, numbers.position(float(entry.value)))
        assert entry.probability == mechanism.likelihood(Report(0, 0), position)
    end = numbers.position(float(numbers.high))
    assert listed[-1].probability == mechanism.likelihood(Report(0, 0), end)


@pytest.mark.parametrize(
    ("high", "listed"),
    [("40", ["0", "10", "20", "30", "40"]), ("1", ["0", "1"]), ("2", ["0", "1", "2"])],
)
def test_whole_numbers_are_listed_once_and_up_to_high(high, listed):
    """Of whole numbers, the likelihoods are those of numbers inside the range, each once."""
    mechanism = SlidingWindow.design(NumberRange("0", high, integer=True), 1.0, 4)
    assert [each.value for each in told(mechanism, Report(0, 0)).likelihoods] == listed

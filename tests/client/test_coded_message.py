"""Numbers with their nouns, and sentences that are data as well."""

import pytest

from deniable.protocol.coded_message import counted


@pytest.mark.parametrize(
    ("count", "nouns", "text"),
    [
        (0, ("metric",), "0 metrics"),
        (1, ("metric",), "1 metric"),
        (2, ("more value",), "2 more values"),
        (1234, ("byte",), "1,234 bytes"),
        (1, ("tally", "tallies"), "1 tally"),
        (2, ("tally", "tallies"), "2 tallies"),
    ],
)
def test_a_noun_has_its_number(count, nouns, text):
    """One thing is singular, none and several are plural, with commas between thousands."""
    assert counted(count, *nouns) == text

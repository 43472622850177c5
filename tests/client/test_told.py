"""Numbers with their nouns, and sentences that are data as well."""

from __future__ import annotations

import pytest

from deniable.mechanisms import explain
from deniable.told import Told, counted


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
def test_a_noun_has_its_number(count: int, nouns: tuple[str, ...], text: str) -> None:
    """One thing is singular, none and several are plural, with commas between thousands."""
    assert counted(count, *nouns) == text


def test_a_report_of_one_byte() -> None:
    """Why a mechanism was chosen says one byte of one, and stays a sentence with a code."""
    short, long = explain(2, 1.0).reason, explain(100, 1.0).reason
    assert "a report of 1 byte is within 256" in short
    assert "bytes is within 256" in long
    assert isinstance(short, Told)
    assert short.code == long.code == "least_error"

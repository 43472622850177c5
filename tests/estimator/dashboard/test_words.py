"""Numbers and dates in words."""

import math
from datetime import UTC, datetime

import pytest

from deniable_estimator.dashboard import words
from deniable_estimator.document.units import SHARES, NumberUnit
from deniable_estimator.kinds import formats


@pytest.mark.parametrize(
    ("share", "spread", "text"),
    [
        (0.66161, 0.01, "66.2%"),
        (0.66161, 0.0005, "66.161%"),
        (-0.0061, 0.01, "\N{MINUS SIGN}0.6%"),
        (-0.0001, 0.01, "0.0%"),
        (math.nan, 0.01, "unknown"),
        (1.0, 0.0, "100.0%"),
    ],
)
def test_a_share_has_the_digits_that_it_deserves(share, spread, text):
    """More digits than the uncertainty leaves are not shown, nor a minus before nothing."""
    assert SHARES.full(share, spread) == text


@pytest.mark.parametrize(
    ("label", "text"),
    [
        ("2026-11-21", "unfinished window"),
        ("2026-11-20", "yesterday"),
        ("2026-11-18", "3 days ago"),
        ("2026-W46", "6 days ago"),
        ("2026-W47", "unfinished window"),
        ("2026-10", "21 days ago"),
    ],
)
def test_freshness_counts_from_the_end_of_the_window(label, text):
    """The last day of the newest window is what matters, for days, weeks and months."""
    now = datetime(2026, 11, 21, 9, tzinfo=UTC).timestamp()
    assert words.freshness(label, now) == text


def test_a_period_is_named_by_its_ends():
    """Weeks by the first and the last, none as such."""
    assert formats.period([]) == "no window"
    assert formats.period(["2026-W46", "2026-W47"]) == "2026-W46 to 2026-W47"


def test_a_number_without_a_limit_on_one_side():
    """At least or at most so much, and unknown without any limit."""
    seconds = NumberUnit("s")
    assert formats.estimate(seconds, 3.0, 2.0, math.inf) == "at least 2 s"
    assert formats.estimate(seconds, 3.0, -math.inf, 4.0) == "at most 4 s"
    assert formats.estimate(seconds, 3.0, -math.inf, math.inf) == "unknown"

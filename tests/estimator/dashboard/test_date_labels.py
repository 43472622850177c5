"""Labels of a time axis never meet, whatever the day on which somebody looks."""

from __future__ import annotations

from datetime import date, timedelta

from deniable_estimator.dashboard.charts.date_labels import (
    text_width,
)
from deniable_estimator.dashboard.language import LANGUAGES
from deniable_estimator.dashboard.words import day as day_text
from deniable_estimator.messages import translated

FIRST = date(2026, 1, 1)

DEJAVU = {
    **dict.fromkeys("0123456789", 0.636),
    "J": 0.295,
    "F": 0.575,
    "M": 0.863,
    "A": 0.684,
    "S": 0.635,
    "O": 0.787,
    "N": 0.748,
    "D": 0.77,
    "a": 0.613,
    "b": 0.635,
    "c": 0.55,
    "e": 0.615,
    "g": 0.635,
    "l": 0.278,
    "n": 0.634,
    "o": 0.612,
    "p": 0.635,
    "r": 0.411,
    "t": 0.392,
    "u": 0.634,
    "v": 0.592,
    "y": 0.592,
    " ": 0.318,
    "年": 1.0,
    "月": 1.0,
    "日": 1.0,
}
"""How far the letters of dates advance in DejaVu Sans, in the size of the letters; Chinese ones
are square in every font."""


def test_the_width_of_a_text_is_never_understated() -> None:
    """What is reserved for a date is at least what the widest common font needs, in each
    language."""
    for day in (FIRST + timedelta(each) for each in range(365)):
        text = day_text(day)
        for tongue in LANGUAGES.values():
            assert text_width(text) >= sum(DEJAVU[each] for each in str(translated(text, tongue)))

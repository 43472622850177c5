"""Labels of a time axis never meet, whatever the day on which somebody looks."""

from __future__ import annotations

from datetime import date, timedelta
from itertools import pairwise

import pytest

from deniable_estimator.dashboard.charts.date_labels import (
    LETTERS,
    WIDTHS,
    DateLabel,
    date_labels,
    text_width,
)
from deniable_estimator.dashboard.charts.ticks import Tick, date_ticks
from deniable_estimator.dashboard.language import LANGUAGES
from deniable_estimator.dashboard.words import day as day_text
from deniable_estimator.messages import Dated, translated

FIRST = date(2026, 1, 1)
LENGTHS = (2, 7, 14, 28, 30, 31, 60, 91, 182, 365, 731)

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


def box(label: DateLabel, width: float, advance: float) -> tuple[float, float]:
    """From where to where a label reaches in a plot of that width, in rem."""
    at = label.at * width / 100
    before = {"first": 0.0, "middle": 0.5, "last": 1.0}[label.anchor]
    return at - before * advance, at + (1 - before) * advance


def meetings(labels: tuple[DateLabel, ...], advances: list[float]) -> list[str]:
    """The labels that meet in a plot of any width: boxes only part further as it grows, so the
    least width at which a set of labels is drawn is the worst."""
    found = []
    for width in (3.0, *(each for each in WIDTHS if any(each == label.least for label in labels))):
        drawn = [
            box(label, width, advance)
            for label, advance in zip(labels, advances, strict=True)
            if label.least <= width
        ]
        found += [f"{width} rem: {labels}" for one, two in pairwise(drawn) if one[1] + 0.1 > two[0]]
    return found


@pytest.mark.campaign
@pytest.mark.parametrize("kind", ["day", "week", "month"])
@pytest.mark.parametrize("written", ["short", "whole"])
def test_labels_never_meet_on_any_day(kind: str, written: str) -> None:
    """For every first day of two years, ranges of two days to two years, every width and both
    languages, with short dates (pages) and whole ones (pictures), no label lies on another, and
    the first is always drawn."""
    found: list[str] = []
    known: dict[str, list[float]] = {}
    for start in range(731):
        for days in LENGTHS:
            first = FIRST + timedelta(start)
            ticks = [
                Tick(
                    100 * ((tick.day - first).days + (0.5 if kind == "day" else 0)) / days,
                    tick.text if written == "short" else day_text(tick.day),
                )
                for tick in date_ticks(first, first + timedelta(days - 1), kind)
            ]
            labels = date_labels(ticks)
            for label in labels:
                if label.text not in known:
                    assert isinstance(label.text, Dated)
                    known[label.text] = [
                        LETTERS * sum(DEJAVU[each] for each in str(translated(label.text, tongue)))
                        for tongue in LANGUAGES.values()
                    ]
            if labels:
                assert labels[0].least == 0
            for tongue in range(len(LANGUAGES)):
                found += meetings(labels, [known[label.text][tongue] for label in labels])
    assert found == []


def test_the_width_of_a_text_is_never_understated() -> None:
    """What is reserved for a date is at least what the widest common font needs, in each
    language."""
    for day in (FIRST + timedelta(each) for each in range(365)):
        text = day_text(day)
        for tongue in LANGUAGES.values():
            assert text_width(text) >= sum(DEJAVU[each] for each in str(translated(text, tongue)))

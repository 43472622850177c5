"""The labels of a time axis: which of them are drawn at which width, so that no two ever meet.

Every second label is left out where the plot is too narrow for all, then all but every fourth, then
all but the first. A label knows the width from which on it has room, and the style sheet hides it
in a narrower plot. How wide a text is drawn depends on the reader's font: here it is taken as wide
as in DejaVu Sans, the widest of the common ones, and in the language that needs most.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from deniable_estimator.dashboard.charts.ticks import Tick
from deniable_estimator.dashboard.language import LANGUAGES
from deniable_estimator.messages import translated

WIDTHS = (4, 6, 8, 10, 12, 15, 18, 22, 27, 33, 40)
"""The widths of a plot, in rem, that the style sheet tells apart."""

LETTERS = 0.75
"""The size of the labels' letters, in rem."""

_GAP = 0.4
"""The least space between two labels, in rem."""
_OUTSIDE = 0.5
"""How far a label may reach beyond the end of the plot, in rem."""
_AT_START, _AT_END = 3.0, 96.0
"""In percent: a label before the one begins at its notch, one after the other ends there."""


@dataclass(frozen=True, slots=True)
class DateLabel:
    """A date on the axis."""

    at: float
    """In percent across."""
    text: str
    least: int = 0
    """It is drawn where the plot is at least so many rem wide: 0, or one of `WIDTHS`."""

    @property
    def anchor(self) -> str:
        """Which part of the text stands at the notch: its `first`, `middle` or `last`."""
        return "first" if self.at < _AT_START else "last" if self.at > _AT_END else "middle"


def date_labels(ticks: Sequence[Tick]) -> tuple[DateLabel, ...]:
    """The labels of these dates, which ascend, each with the width from which on it is drawn. One
    that has no room even in the widest plot that the style sheet knows is left out."""
    labels = [DateLabel(tick.at, tick.text) for tick in ticks]
    extents = [_extent(label) for label in labels]
    needed = [0.0] * len(labels)
    step = 1
    while step < len(labels):
        room = max(
            _room(labels[place], labels[place + step], extents[place][1] + extents[place + step][0])
            for place in range(0, len(labels) - step, step)
        )
        for place in range(step, len(labels), 2 * step):
            needed[place] = room
        step *= 2
    # The last one may also be too near to the end of the plot for its text.
    for place, (label, (_, right)) in enumerate(zip(labels, extents, strict=True)):
        beyond = right - _OUTSIDE
        if place and beyond > 0 and label.at < 100:
            needed[place] = max(needed[place], beyond / (1 - label.at / 100))
    return tuple(
        DateLabel(label.at, label.text, least)
        for label, width in zip(labels, needed, strict=True)
        if (least := _least(width)) is not None
    )


@lru_cache(maxsize=4096)
def text_width(text: str) -> float:
    """How wide a text is drawn at most, in the size of its letters, in whichever language."""
    return max(
        sum(_advance(letter) for letter in str(translated(text, language)))
        for language in LANGUAGES.values()
    )


def _advance(letter: str) -> float:
    if ord(letter) >= 0x2E80:
        return 1.0
    if letter == " ":
        return 0.32
    if letter in "mwMW":
        return 1.0
    return 0.8 if letter.isupper() else 0.64


def _extent(label: DateLabel) -> tuple[float, float]:
    """How far it reaches to the left and to the right of its notch, in rem."""
    width = LETTERS * text_width(label.text)
    return {"first": (0.0, width), "middle": (width / 2, width / 2), "last": (width, 0.0)}[
        label.anchor
    ]


def _room(one: DateLabel, other: DateLabel, wanted: float) -> float:
    """The width of the plot, in rem, from which on both fit."""
    return (wanted + _GAP) / max(other.at - one.at, 1e-6) * 100


def _least(width: float) -> int | None:
    return 0 if width <= 0 else next((each for each in WIDTHS if each >= width), None)

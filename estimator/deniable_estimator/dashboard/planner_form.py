"""The form that every planner has: its fields, their limits and mistakes, and the segment that is
asked about."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from deniable.mechanisms import MAX_EPSILON
from deniable.segments import Segment
from deniable_estimator.messages import message, sentence
from deniable_estimator.planning.plan import PlannedSegment

_LARGEST_SIZE = 10_000
"""The planner's own limit: an example over longer lists would take seconds."""
LIGHT_SIZE = 100
"""Of longer lists the example is calculated in another process."""
_MOST_DEVICES = 10**10


@dataclass(frozen=True, slots=True)
class Field:
    """One number of the form."""

    name: str
    label: str
    help: str
    text: str
    whole: bool = False
    mistake: str | None = None


FieldSpec: TypeAlias = tuple[str, str, str, str, float, float, bool]

FIELDS: tuple[FieldSpec, ...] = (
    # name, label, help, default, lowest (not itself, unless whole), highest, whole
    (
        *("size", message("Values"), message("How many values the metric lists")),
        *("10", 2, _LARGEST_SIZE, True),
    ),
    (
        *("epsilon", message("Epsilon per report")),
        *(message("The limit on what one report reveals"), "1", 0, MAX_EPSILON, False),
    ),
    (
        *("lifetime_epsilon", message("Lifetime epsilon")),
        *(message("The limit on what all reports of a device reveal together"),),
        *("8", 0, 10_000, False),
    ),
    (
        *("devices", message("Devices"), message("How many run the app")),
        *("100000", 10, _MOST_DEVICES, True),
    ),
    (
        *("sample_rate", message("Sample rate")),
        *(message("The probability that a device reports in a window"), "0.1", 0, 1, False),
    ),
)
"""Of every planner."""

SEGMENT: FieldSpec = (
    *("segment_share", message("Part of a segment")),
    *(message("Of the devices, the part with the smallest segment; 1 for all devices"),),
    *("1", 0, 1, False),
)

PLANNED = (Segment("my_segment", ("smallest", "other")),)
"""What stands for the segments of the metric, of which only one part is known."""


_WHOLE = sentence("Write a whole number from {lowest:,} up to {highest:,}.")
_NUMBER = sentence("Write a number above {lowest:g} up to {highest:,}.")


def read_fields(
    arguments: Mapping[str, str], specs: Sequence[FieldSpec]
) -> tuple[list[Field], dict[str, float] | None]:
    """The form as it was filled in, with its mistakes; and its numbers if there are none."""
    fields, numbers = [], {}
    for name, label, explained, default, lowest, highest, whole in specs:
        text = arguments.get(name, default).strip()
        mistake = None
        try:
            value = int(text) if whole else float(text)
        except ValueError:
            value = math.nan
        if (lowest <= value if whole else lowest < value) and value <= highest:
            numbers[name] = value
        else:
            mistake = message(_WHOLE if whole else _NUMBER, lowest=lowest, highest=highest)
        fields.append(Field(name, label, explained, text, whole, mistake))
    if len(numbers) < len(fields):
        return fields, None
    if numbers["lifetime_epsilon"] < numbers["epsilon"]:
        mistake = message(
            "All reports of a lifetime reveal at least what one report does: let the "
            "lifetime's epsilon be the larger one."
        )
        return marked(fields, "lifetime_epsilon", mistake), None
    return fields, numbers


def marked(fields: Sequence[Field], name: str, mistake: str) -> list[Field]:
    """The same fields, one of them with its mistake."""
    return [replace(each, mistake=mistake) if each.name == name else each for each in fields]


def planned_segment(numbers: Mapping[str, float]) -> PlannedSegment:
    """The segment that the form asks about, which may be all devices."""
    return PlannedSegment(numbers[SEGMENT[0]], int(numbers["devices"]))


def segment_words(segment: PlannedSegment) -> str | None:
    """What the figures are of; None if it is all devices."""
    return segment.words if segment.share < 1 else None


def segment_toml(segment: PlannedSegment) -> tuple[list[str], list[str]]:
    """How segments are declared: the lines before the metric, and those in it."""
    if segment.share >= 1:
        return [], []
    name = PLANNED[0].name
    told = f"# the smallest: {segment.share:.4g} of the devices"
    return [f"[segments.{name}]", told, "values = [...]", ""], [f'segments = ["{name}"]']

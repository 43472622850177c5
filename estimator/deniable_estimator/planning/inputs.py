"""What several kinds of plans take, and what a plan is.

Commands are made of this before numpy is imported.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from deniable.protocol.mechanisms import AUTO, MAX_EPSILON
from deniable_estimator.inputs import Asked, Input
from deniable_estimator.messages import message

if TYPE_CHECKING:
    from deniable import Metric
    from deniable_estimator.document.document import Document


SERVED_SIZE = 100_000
"""A server plans no longer list."""

LEAST = 1e-9
"""Of a part: below one device in a billion, the numbers of a plan overflow."""
FARTHEST = 10**15


@dataclass(frozen=True)
class Planned:
    """What a plan says, and the metric that it would declare."""

    document: Document
    metric: Metric | None = None
    """None if a plan is not of one metric."""


@dataclass(frozen=True)
class PlanKind:
    """A kind of plan."""

    name: str
    title: str
    purpose: str
    way: str
    """The text of a link to it."""
    folder: str
    """Of `kinds/`: the function `planned` of its `plan` makes it."""
    inputs: tuple[Input, ...]
    sizes: tuple[str, ...] = ()
    """The inputs whose product says how long the calculation takes."""

    def size(self, asked: Asked) -> int:
        """How many values or cells the plan goes through."""
        return math.prod(asked[name] for name in self.sizes)


def real(name: str, label: str, told: str, low: float, high: float, **more: Any) -> Input:
    return Input(name, float, label, told, low=low, high=high, **more)


def whole(name: str, label: str, told: str, low: int, high: int, **more: Any) -> Input:
    return Input(name, int, label, told, low=low, high=high, **more)


EPSILON = real(
    "epsilon",
    message("Epsilon per report"),
    message("The limit on what one report reveals"),
    0.001,
    MAX_EPSILON,
    start="1",
)
LIFETIME_EPSILON = real(
    "lifetime_epsilon",
    message("Lifetime epsilon"),
    message("The limit on what all reports of a device reveal together"),
    0.001,
    10_000,
    default=None,
    start="8",
)
DEVICES = whole(
    "devices", message("Devices"), message("How many run the app"), 1, 10**12, start="100000"
)
SAMPLE_RATE = real(
    "sample_rate",
    message("Sample rate"),
    message("The probability that a device reports in a window"),
    LEAST,
    1,
    default=1.0,
    start="0.1",
)
SHARE = real(
    "share",
    message("Share of interest"),
    message("A part of 1; if not given, 1 divided by the number of values"),
    LEAST,
    1,
    default=None,
    start="0.01",
)
RARE = replace(SHARE, help=message("A part of 1"), default=0.01)
HALF_WIDTH = real(
    "half_width",
    message("Half width"),
    message("Desired for the 95% interval of that share"),
    LEAST,
    1,
    default=0.01,
)
MECHANISM = Input(
    "mechanism",
    str,
    message("Mechanism"),
    message("As the registry names it"),
    default=AUTO,
    low=0,
    high=100,
    places=frozenset({"terminal", "api"}),
)
SEGMENT_SHARE = real(
    "segment_share",
    message("Part of a segment"),
    message("Of the devices, the part with the smallest segment, to plan for it alone"),
    LEAST,
    1,
    default=None,
)
SIZE = whole(
    "size",
    message("Values"),
    message("How many values the metric lists"),
    2,
    10**9,
    served=SERVED_SIZE,
    start="10",
)
LOW = real(
    "low",
    message("Low"),
    message("The smallest number to tell apart"),
    -FARTHEST,
    FARTHEST,
    start="0",
)
HIGH = replace(
    LOW,
    name="high",
    label=message("High"),
    help=message("The largest number to tell apart"),
    start="100",
)
WINDOW = Input(
    "window",
    str,
    message("Window"),
    message("What a report is about"),
    default="week",
    choices={"day": message("day"), "week": message("week"), "month": message("month")},
)
ASK = Input(
    "ask",
    str,
    message("Question"),
    message("What is asked of the number"),
    start="distribution",
    choices={
        "mean": message("mean"),
        "distribution": message("distribution"),
        "both": message("both"),
    },
)
SCALE = Input(
    "scale",
    str,
    message("Scale"),
    message("How the range is divided"),
    default="linear",
    choices={"linear": message("linear"), "log": message("logarithmic")},
)

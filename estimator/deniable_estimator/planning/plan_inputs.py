"""What each kind of plan takes. Commands are made of this before numpy is imported."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from deniable.protocol.mechanisms import AUTO, MAX_EPSILON
from deniable.protocol.mechanisms.memoized_retention import MAX_AGES
from deniable.protocol.types.discovery import DEFAULT_LENGTH, MAX_LENGTH
from deniable.protocol.types.pair import MAX_PAIR_CELLS
from deniable.protocol.types.retention import DEFAULT_AGES
from deniable_estimator.forecasting.retention_forecast import NEW
from deniable_estimator.inputs import REQUIRED, Input
from deniable_estimator.messages import message

EFFECT = 0.1
"""The Cramer's V that is planned for if none is said."""

MOST_YEARS = 20.0
"""Longer plans would take seconds, and no crowd stays as it is for so long."""

MOST_TURNOVER = 0.99
"""In a year. With 1 no device would live to its second window."""

SERVED_SIZE = 100_000
"""A server plans no longer list."""

_LEAST = 1e-9
"""Of a part: below one device in a billion, the numbers of a plan overflow."""
_MOST_VALUES = MAX_PAIR_CELLS // 2
_FARTHEST = 10**15


def _real(name: str, label: str, told: str, low: float, high: float, **more: Any) -> Input:
    return Input(name, float, label, told, low=low, high=high, **more)


def _whole(name: str, label: str, told: str, low: int, high: int, **more: Any) -> Input:
    return Input(name, int, label, told, low=low, high=high, **more)


_EPSILON = _real(
    "epsilon",
    message("Epsilon per report"),
    message("The limit on what one report reveals"),
    0.001,
    MAX_EPSILON,
    start="1",
)
_LIFETIME = _real(
    "lifetime_epsilon",
    message("Lifetime epsilon"),
    message("The limit on what all reports of a device reveal together"),
    0.001,
    10_000,
    default=None,
    start="8",
)
_DEVICES = _whole(
    "devices", message("Devices"), message("How many run the app"), 1, 10**12, start="100000"
)
_RATE = _real(
    "sample_rate",
    message("Sample rate"),
    message("The probability that a device reports in a window"),
    _LEAST,
    1,
    default=1.0,
    start="0.1",
)
_SHARE = _real(
    "share",
    message("Share of interest"),
    message("A part of 1; if not given, 1 divided by the number of values"),
    _LEAST,
    1,
    default=None,
    start="0.01",
)
_RARE = replace(_SHARE, help=message("A part of 1"), default=0.01)
_HALF_WIDTH = _real(
    "half_width",
    message("Half width"),
    message("Desired for the 95% interval of that share"),
    _LEAST,
    1,
    default=0.01,
)
_MECHANISM = Input(
    "mechanism",
    str,
    message("Mechanism"),
    message("As the registry names it"),
    default=AUTO,
    low=0,
    high=100,
    places=frozenset({"terminal", "api"}),
)
_SEGMENT = _real(
    "segment_share",
    message("Part of a segment"),
    message("Of the devices, the part with the smallest segment, to plan for it alone"),
    _LEAST,
    1,
    default=None,
)
_SIZE = _whole(
    "size",
    message("Values"),
    message("How many values the metric lists"),
    2,
    10**9,
    served=SERVED_SIZE,
    start="10",
)
_LOW = _real(
    "low",
    message("Low"),
    message("The smallest number to tell apart"),
    -_FARTHEST,
    _FARTHEST,
    start="0",
)
_HIGH = replace(
    _LOW,
    name="high",
    label=message("High"),
    help=message("The largest number to tell apart"),
    start="100",
)
_WINDOW = Input(
    "window",
    str,
    message("Window"),
    message("What a report is about"),
    default="week",
    choices={"day": message("day"), "week": message("week"), "month": message("month")},
)
_ASK = Input(
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
_SCALE = Input(
    "scale",
    str,
    message("Scale"),
    message("How the range is divided"),
    default="linear",
    choices={"linear": message("linear"), "log": message("logarithmic")},
)


VALUES = (
    *(_SIZE, _EPSILON),
    replace(
        _LIFETIME,
        help=message(
            "The limit on what all reports of a device reveal together; with memos, "
            "all of one value"
        ),
    ),
    *(_DEVICES, _RATE),
    Input(
        "memoize",
        bool,
        message("Memoize noise"),
        message(
            "Each value gets one permanent randomized response; the lifetime epsilon "
            "limits what it reveals"
        ),
        default=False,
    ),
    *(_SHARE, _HALF_WIDTH, _SEGMENT, _MECHANISM),
)
NUMBER = (
    _ASK,
    *(_SCALE, _LOW, _HIGH),
    Input("integer", bool, message("Whole numbers"), message("Numbers are whole"), default=False),
    Input(
        "unit",
        str,
        message("Unit"),
        message("For people; nothing is converted"),
        default=None,
        low=0,
        high=20,
        places=frozenset({"page", "api"}),
    ),
    *(_EPSILON, _LIFETIME, _DEVICES, _RATE),
    replace(
        _HALF_WIDTH,
        help=message(
            "Desired for the 95% interval of the mean: in its unit (a hundredth of the "
            "range, if not given) or, on a logarithmic scale, as a part of it (0.05)"
        ),
        high=_FARTHEST,
        default=None,
    ),
    _SEGMENT,
    replace(_MECHANISM, places=frozenset({"api"})),
)
_ROWS = _whole(
    "rows",
    message("Values of the first list"),
    message("A number counts by its bins"),
    2,
    _MOST_VALUES,
    start="3",
    places=frozenset({"page", "api"}),
)
PAIR = (
    _ROWS,
    replace(_ROWS, name="columns", label=message("Values of the second list"), start="4"),
    _real(
        "effect",
        message("Cramér’s V"),
        message("How strongly the two depend on each other, from 0 to 1"),
        0,
        1,
        default=EFFECT,
    ),
    *(_EPSILON, _LIFETIME, _DEVICES, _RATE, _SEGMENT),
)
DISCOVERY = (
    _whole(
        "max_length",
        message("Length"),
        message("Bytes of its strings, an even number"),
        2,
        MAX_LENGTH,
        default=DEFAULT_LENGTH,
    ),
    *(replace(_EPSILON, start="4"), _LIFETIME, _DEVICES, _RATE, _RARE),
)
RETENTION = (
    Input(
        "asks",
        str,
        message("Question"),
        message("What it asks"),
        default="both",
        choices={
            "lifecycle": message("lifecycle"),
            "cohorts": message("cohorts"),
            "both": message("both"),
        },
    ),
    _whole(
        "ages",
        message("Ages"),
        message("How many windows back cohorts are told apart"),
        1,
        MAX_AGES,
        default=DEFAULT_AGES,
    ),
    replace(_EPSILON, start="2"),
    replace(
        _LIFETIME,
        help=message("The limit for all reports of one answer, which come from its memo"),
        default=REQUIRED,
        start="4",
    ),
    replace(_DEVICES, help=message("How many are active in a window")),
    _real(
        "new",
        message("New devices"),
        message("The part of the active devices that is new"),
        _LEAST,
        1,
        default=NEW,
    ),
    _WINDOW,
    _RATE,
)
LIFETIME = (
    replace(
        _ASK,
        help=message("The share of one of so many values, or what is asked of a number"),
        default="share",
        start=None,
        choices={"share": message("share"), **_ASK.choices},
    ),
    replace(_LIFETIME, default=REQUIRED),
    _real(
        "years",
        message("Years"),
        message("How long the reports of a device should last"),
        0.003,
        MOST_YEARS,
        start="2",
    ),
    _real(
        "turnover",
        message("Replaced in a year"),
        message("The part of the devices that is replaced by new ones"),
        0,
        MOST_TURNOVER,
        default=0.0,
    ),
    replace(_WINDOW, default="day"),
    replace(_DEVICES, default=100_000, start=None),
    replace(_SIZE, default=2, help=message("How many values there are, for a share")),
    _RARE,
    replace(
        _LOW,
        help=message("Of a number; if not given, widths are in percent of its range"),
        default=None,
        start=None,
    ),
    replace(_HIGH, default=None, start=None),
    _SCALE,
    replace(
        _EPSILON,
        label=message("Epsilon per report now"),
        help=message("To compare with"),
        default=None,
        places=frozenset({"page", "api"}),
    ),
    replace(_MECHANISM, places=frozenset({"api"})),
)

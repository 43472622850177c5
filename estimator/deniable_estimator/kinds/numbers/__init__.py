"""Numbers: a mean or a distribution.

Here is what its plan takes: commands are made of this before numpy is imported.
"""

from __future__ import annotations

from dataclasses import replace

from deniable_estimator.inputs import Input
from deniable_estimator.messages import message
from deniable_estimator.planning.inputs import (
    ASK,
    DEVICES,
    EPSILON,
    FARTHEST,
    HALF_WIDTH,
    HIGH,
    LIFETIME_EPSILON,
    LOW,
    MECHANISM,
    SAMPLE_RATE,
    SCALE,
    SEGMENT_SHARE,
    PlanKind,
)

_INPUTS = (
    ASK,
    *(SCALE, LOW, HIGH),
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
    *(EPSILON, LIFETIME_EPSILON, DEVICES, SAMPLE_RATE),
    replace(
        HALF_WIDTH,
        help=message(
            "Desired for the 95% interval of the mean: in its unit (a hundredth of the "
            "range, if not given) or, on a logarithmic scale, as a part of it (0.05)"
        ),
        high=FARTHEST,
        default=None,
    ),
    SEGMENT_SHARE,
    replace(MECHANISM, places=frozenset({"api"})),
)

PLAN = PlanKind(
    "number",
    message("What can this number tell?"),
    message(
        "Before you declare it: how well its mean and quantiles are known, and how many "
        "devices that takes."
    ),
    message("Plan a number instead"),
    "numbers",
    _INPUTS,
)

"""Numbers: a mean or a distribution.

Here is what its plan takes: commands are made of this before numpy is imported.
"""

from __future__ import annotations

from dataclasses import replace

from deniable_estimator.inputs import Input
from deniable_estimator.messages import message
from deniable_estimator.planning import inputs as takes

_INPUTS = (
    takes.ASK,
    *(takes.SCALE, takes.LOW, takes.HIGH),
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
    *(takes.EPSILON, takes.LIFETIME_EPSILON, takes.DEVICES, takes.SAMPLE_RATE),
    replace(
        takes.HALF_WIDTH,
        help=message(
            "Desired for the 95% interval of the mean: in its unit (a hundredth of the "
            "range, if not given) or, on a logarithmic scale, as a part of it (0.05)"
        ),
        high=takes.FARTHEST,
        default=None,
    ),
    takes.SEGMENT_SHARE,
    replace(takes.MECHANISM, places=frozenset({"api"})),
)

PLAN = takes.PlanKind(
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

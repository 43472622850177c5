"""Shares of values.

Here is what its plan takes: commands are made of this before numpy is imported.
"""

from __future__ import annotations

from dataclasses import replace

from deniable_estimator.inputs import Input
from deniable_estimator.messages import message
from deniable_estimator.planning import inputs as takes

_INPUTS = (
    *(takes.SIZE, takes.EPSILON),
    replace(
        takes.LIFETIME_EPSILON,
        help=message(
            "The limit on what all reports of a device reveal together; with memos, "
            "all of one value"
        ),
    ),
    *(takes.DEVICES, takes.SAMPLE_RATE),
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
    *(takes.SHARE, takes.HALF_WIDTH, takes.SEGMENT_SHARE, takes.MECHANISM),
)

PLAN = takes.PlanKind(
    "values",
    message("What can this metric detect?"),
    message(
        "Before you declare it: the smallest share that it can detect, and how many "
        "devices that takes."
    ),
    message("Plan values instead"),
    "shares",
    _INPUTS,
    ("size",),
)

"""Discovery: strings that nobody listed.

Here is what its plan takes: commands are made of this before numpy is imported.
"""

from __future__ import annotations

from dataclasses import replace

from deniable.protocol.types.discovery import DEFAULT_LENGTH, MAX_LENGTH
from deniable_estimator.messages import message
from deniable_estimator.planning.inputs import (
    DEVICES,
    EPSILON,
    LIFETIME_EPSILON,
    RARE,
    SAMPLE_RATE,
    PlanKind,
    whole,
)

_INPUTS = (
    whole(
        "max_length",
        message("Length"),
        message("Bytes of its strings, an even number"),
        2,
        MAX_LENGTH,
        default=DEFAULT_LENGTH,
    ),
    *(replace(EPSILON, start="4"), LIFETIME_EPSILON, DEVICES, SAMPLE_RATE, RARE),
)

PLAN = PlanKind(
    "discovery",
    message("Which strings will be found?"),
    message(
        "Before you declare a discovery: how common a string that nobody listed must be "
        "to be found."
    ),
    message("Plan a discovery instead"),
    "discovery",
    _INPUTS,
)

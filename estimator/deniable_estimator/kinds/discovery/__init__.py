"""Discovery: strings that nobody listed.

Here is what its plan takes: commands are made of this before numpy is imported.
"""

from __future__ import annotations

from dataclasses import replace

from deniable.protocol.types.discovery import DEFAULT_LENGTH, MAX_LENGTH
from deniable_estimator.messages import message
from deniable_estimator.planning import inputs as takes

_INPUTS = (
    takes.whole(
        "max_length",
        message("Length"),
        message("Bytes of its strings, an even number"),
        2,
        MAX_LENGTH,
        default=DEFAULT_LENGTH,
    ),
    replace(takes.EPSILON, start="4"),
    *(takes.LIFETIME_EPSILON, takes.DEVICES, takes.SAMPLE_RATE, takes.RARE),
)

PLAN = takes.PlanKind(
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

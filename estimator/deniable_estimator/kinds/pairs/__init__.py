"""Pairs: two values of a device together.

Here is what its plan takes: commands are made of this before numpy is imported.
"""

from __future__ import annotations

from dataclasses import replace

from deniable.protocol.types.pair import MAX_PAIR_CELLS
from deniable_estimator.messages import message
from deniable_estimator.planning import inputs as takes

EFFECT = 0.1
"""The Cramer's V that is planned for if none is said."""

_MOST_VALUES = MAX_PAIR_CELLS // 2

_ROWS = takes.whole(
    "rows",
    message("Values of the first list"),
    message("A number counts by its bins"),
    2,
    _MOST_VALUES,
    start="3",
    places=frozenset({"page", "api"}),
)
_INPUTS = (
    _ROWS,
    replace(_ROWS, name="columns", label=message("Values of the second list"), start="4"),
    takes.real(
        "effect",
        message("Cramér’s V"),
        message("How strongly the two depend on each other, from 0 to 1"),
        0,
        1,
        default=EFFECT,
    ),
    *(takes.EPSILON, takes.LIFETIME_EPSILON, takes.DEVICES, takes.SAMPLE_RATE, takes.SEGMENT_SHARE),
)

PLAN = takes.PlanKind(
    "pair",
    message("What can this pair detect?"),
    message(
        "Before you declare a pair: which dependence will be found, and how exact its shares are."
    ),
    message("Plan a pair instead"),
    "pairs",
    _INPUTS,
    ("rows", "columns"),
)

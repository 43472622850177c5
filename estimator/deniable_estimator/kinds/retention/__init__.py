"""Retention: who is new, who stays and who comes back.

Here is what its plan takes: commands are made of this before numpy is imported.
"""

from __future__ import annotations

from dataclasses import replace

from deniable.protocol.mechanisms.memoized_retention import MAX_AGES
from deniable.protocol.types.retention import DEFAULT_AGES
from deniable_estimator.inputs import REQUIRED, Input
from deniable_estimator.messages import message
from deniable_estimator.planning import inputs as takes
from deniable_estimator.statistics.expected import NEW

_INPUTS = (
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
    takes.whole(
        "ages",
        message("Ages"),
        message("How many windows back cohorts are told apart"),
        1,
        MAX_AGES,
        default=DEFAULT_AGES,
    ),
    replace(takes.EPSILON, start="2"),
    replace(
        takes.LIFETIME_EPSILON,
        help=message("The limit for all reports of one answer, which come from its memo"),
        default=REQUIRED,
        start="4",
    ),
    replace(takes.DEVICES, help=message("How many are active in a window")),
    takes.real(
        "new",
        message("New devices"),
        message("The part of the active devices that is new"),
        takes.LEAST,
        1,
        default=NEW,
    ),
    takes.WINDOW,
    takes.SAMPLE_RATE,
)

PLAN = takes.PlanKind(
    "retention",
    message("Who comes back?"),
    message(
        "Before you declare a retention: how well it can be told who is new, who stays "
        "and who comes back."
    ),
    message("Plan a retention instead"),
    "retention",
    _INPUTS,
)

"""Lifetimes: how an epsilon for all reports of a device is best divided.

Here is what its plan takes: commands are made of this before numpy is imported.
"""

from __future__ import annotations

from dataclasses import replace

from deniable_estimator.inputs import REQUIRED
from deniable_estimator.messages import message
from deniable_estimator.planning import inputs as takes

MOST_YEARS = 20.0
"""Longer plans would take seconds, and no crowd stays as it is for so long."""

MOST_TURNOVER = 0.99
"""In a year. With 1 no device would live to its second window."""

_INPUTS = (
    replace(
        takes.ASK,
        help=message("The share of one of so many values, or what is asked of a number"),
        default="share",
        start=None,
        choices={"share": message("share"), **takes.ASK.choices},
    ),
    replace(takes.LIFETIME_EPSILON, default=REQUIRED),
    takes.real(
        "years",
        message("Years"),
        message("How long the reports of a device should last"),
        0.003,
        MOST_YEARS,
        start="2",
    ),
    takes.real(
        "turnover",
        message("Replaced in a year"),
        message("The part of the devices that is replaced by new ones"),
        0,
        MOST_TURNOVER,
        default=0.0,
    ),
    replace(takes.WINDOW, default="day"),
    replace(takes.DEVICES, default=100_000, start=None),
    replace(takes.SIZE, default=2, help=message("How many values there are, for a share")),
    takes.RARE,
    replace(
        takes.LOW,
        help=message("Of a number; if not given, widths are in percent of its range"),
        default=None,
        start=None,
    ),
    replace(takes.HIGH, default=None, start=None),
    takes.SCALE,
    replace(
        takes.EPSILON,
        label=message("Epsilon per report now"),
        help=message("To compare with"),
        default=None,
        places=frozenset({"page", "api"}),
    ),
    replace(takes.MECHANISM, places=frozenset({"api"})),
)

PLAN = takes.PlanKind(
    "lifetime",
    message("How should a lifetime epsilon be divided?"),
    message(
        "Few reports with a large epsilon tell more than many with a small one. But then "
        "one report alone reveals more."
    ),
    message("Divide a lifetime epsilon"),
    "lifetime",
    _INPUTS,
    ("size",),
)

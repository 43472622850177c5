"""Each kind of plan: what it is called, what it takes, and the module that makes it.

Commands are made of this before numpy is imported.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from deniable_estimator.inputs import Asked, Input
from deniable_estimator.messages import message
from deniable_estimator.planning.plan_inputs import (
    DISCOVERY,
    LIFETIME,
    NUMBER,
    PAIR,
    RETENTION,
    VALUES,
)

if TYPE_CHECKING:
    from deniable import Metric
    from deniable_estimator.document.document import Document


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
    module: str
    """The module whose `planned` makes it."""
    inputs: tuple[Input, ...]
    sizes: tuple[str, ...] = ()
    """The inputs whose product says how long the calculation takes."""

    def size(self, asked: Asked) -> int:
        """How many values or cells the plan goes through."""
        return math.prod(asked[name] for name in self.sizes)


def make(kind: str, asked: Asked, **more: Any) -> Planned:
    """The plan for what is asked; in another process too. `more` are arguments that nobody asks
    for, like the assumed `fakes`.

    Raises:
        InputError: it cannot be planned, and one input is at fault.
        SchemeError: it cannot be planned.
    """
    module = importlib.import_module(f"deniable_estimator.planning.{PLANS[kind].module}")
    found: Planned = module.planned({**asked, **more})
    return found


PLANS: Mapping[str, PlanKind] = {
    each.name: each
    for each in (
        PlanKind(
            "values",
            message("What can this metric detect?"),
            message(
                "Before you declare it: the smallest share that it can detect, and how many "
                "devices that takes."
            ),
            message("Plan values instead"),
            "values",
            VALUES,
            ("size",),
        ),
        PlanKind(
            "number",
            message("What can this number tell?"),
            message(
                "Before you declare it: how well its mean and quantiles are known, and how many "
                "devices that takes."
            ),
            message("Plan a number instead"),
            "numbers",
            NUMBER,
        ),
        PlanKind(
            "pair",
            message("What can this pair detect?"),
            message(
                "Before you declare a pair: which dependence will be found, and how exact its "
                "shares are."
            ),
            message("Plan a pair instead"),
            "pair_plan",
            PAIR,
            ("rows", "columns"),
        ),
        PlanKind(
            "discovery",
            message("Which strings will be found?"),
            message(
                "Before you declare a discovery: how common a string that nobody listed must be "
                "to be found."
            ),
            message("Plan a discovery instead"),
            "discovery",
            DISCOVERY,
        ),
        PlanKind(
            "retention",
            message("Who comes back?"),
            message(
                "Before you declare a retention: how well it can be told who is new, who stays "
                "and who comes back."
            ),
            message("Plan a retention instead"),
            "retention",
            RETENTION,
        ),
        PlanKind(
            "lifetime",
            message("How should a lifetime epsilon be divided?"),
            message(
                "Few reports with a large epsilon tell more than many with a small one. But then "
                "one report alone reveals more."
            ),
            message("Divide a lifetime epsilon"),
            "lifetime",
            LIFETIME,
            ("size",),
        ),
    )
}
"""By their names."""

"""Kinds of answers and of plans: a folder for each, and here what all of them have.

Each kind of plan stands here by its name. Commands are made of this before numpy is imported.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from deniable_estimator.inputs import Asked
from deniable_estimator.kinds import discovery, lifetime, numbers, pairs, retention, shares
from deniable_estimator.planning.inputs import PlanKind, Planned


def make_plan(kind: str, asked: Asked, **more: Any) -> Planned:
    """The plan for what is asked; in another process too. `more` are arguments that nobody asks
    for, like the assumed `fakes`.

    Raises:
        InputError: it cannot be planned, and one input is at fault.
        SchemeError: it cannot be planned.
    """
    module = importlib.import_module(f"deniable_estimator.kinds.{PLANS[kind].folder}.plan")
    found: Planned = module.planned({**asked, **more})
    return found


PLANS: Mapping[str, PlanKind] = {
    each.PLAN.name: each.PLAN for each in (shares, numbers, pairs, discovery, retention, lifetime)
}
"""By their names."""

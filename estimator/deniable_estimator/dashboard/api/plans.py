"""`/plan`: what a metric can detect, before it is declared."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from flask.typing import ResponseReturnValue

from deniable_estimator.dashboard.api.parameters import (
    Common,
    LifetimePlanParameters,
    NumberPlanParameters,
    PairPlanParameters,
    PlanParameters,
)
from deniable_estimator.dashboard.api.representations import (
    Form,
    etag,
    represent,
    unchanged,
)
from deniable_estimator.dashboard.calculations import (
    lifetime_plan_text,
    number_plan_text,
    pair_plan_text,
    plan_text,
)
from deniable_estimator.dashboard.source import current_source


def plan(asked: PlanParameters, form: Form) -> ResponseReturnValue:
    """What a metric can detect, before it is declared."""
    return _planned(asked, form, asked.size, plan_text)


def plan_number(asked: NumberPlanParameters, form: Form) -> ResponseReturnValue:
    """What can be seen of a number, before it is declared."""
    return _planned(asked, form, 1, number_plan_text)


def plan_pair(asked: PairPlanParameters, form: Form) -> ResponseReturnValue:
    """Which dependence of two lists will be found, before a pair is declared."""
    return _planned(asked, form, asked.rows * asked.columns, pair_plan_text)


def plan_lifetime(asked: LifetimePlanParameters, form: Form) -> ResponseReturnValue:
    """The ways to divide a lifetime epsilon."""
    return _planned(asked, form, asked.size if asked.ask == "share" else 1, lifetime_plan_text)


def _planned(
    asked: PlanParameters | NumberPlanParameters | PairPlanParameters | LifetimePlanParameters,
    form: Form,
    size: int,
    text_of: Callable[..., str],
) -> ResponseReturnValue:
    """The response with a plan, which `text_of` writes from the parameters."""
    tag = etag(form, asked)
    if same := unchanged(tag):
        return same
    numbers = {
        name: number
        for name, number in msgspec.structs.asdict(asked).items()
        if name not in Common.__struct_fields__
    }
    text = current_source().written(size, ("plan", tag), text_of, numbers)
    return represent(form, text, tag=tag)

"""`/plan`: what a metric can detect, before it is declared."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from flask import request
from flask.typing import ResponseReturnValue

from deniable_estimator.dashboard.access import require
from deniable_estimator.dashboard.api.parameters import (
    LifetimePlanParameters,
    NumberPlanParameters,
    PairPlanParameters,
    PlanParameters,
    read_parameters,
)
from deniable_estimator.dashboard.api.representations import (
    etag,
    form_of,
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

__all__ = ["plan", "plan_lifetime", "plan_number", "plan_pair"]


def plan() -> ResponseReturnValue:
    """What a metric can detect, before it is declared."""
    require("plan")
    asked = read_parameters(PlanParameters, request.args)
    return _planned(asked, asked.size, plan_text)


def plan_number() -> ResponseReturnValue:
    """What can be seen of a number, before it is declared."""
    require("plan")
    return _planned(read_parameters(NumberPlanParameters, request.args), 1, number_plan_text)


def plan_pair() -> ResponseReturnValue:
    """Which dependence of two lists will be found, before a pair is declared."""
    require("plan")
    asked = read_parameters(PairPlanParameters, request.args)
    return _planned(asked, asked.rows * asked.columns, pair_plan_text)


def plan_lifetime() -> ResponseReturnValue:
    """The ways to divide a lifetime epsilon."""
    require("plan")
    asked = read_parameters(LifetimePlanParameters, request.args)
    return _planned(asked, asked.size if asked.ask == "share" else 1, lifetime_plan_text)


def _planned(
    asked: PlanParameters | NumberPlanParameters | PairPlanParameters | LifetimePlanParameters,
    size: int,
    text_of: Callable[..., str],
) -> ResponseReturnValue:
    """The response with a plan, which `text_of` writes from the parameters."""
    form = form_of(asked.format, "json")
    tag = etag(form, asked)
    if same := unchanged(tag):
        return same
    numbers = {
        name: number for name, number in msgspec.structs.asdict(asked).items() if name != "format"
    }
    text = current_source().written(size, ("plan", tag), text_of, numbers)
    return represent(form, text, tag=tag)

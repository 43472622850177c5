"""Coins: how far a coin is from a fair one. A kind of answer that nothing but its folder knows."""

from __future__ import annotations

from deniable_estimator.messages import message
from deniable_estimator.planning.inputs import DEVICES, EPSILON, PlanKind

PLAN = PlanKind(
    "coin",
    message("How fair is this coin?"),
    message("Before you declare it."),
    message("Plan a coin instead"),
    "coin",
    (EPSILON, DEVICES),
)

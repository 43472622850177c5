"""The changes of a comparison as cells of tables, and the order in which they are told."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from deniable_estimator.document.document import Estimate
from deniable_estimator.document.units import NumberUnit, Unit, half_width
from deniable_estimator.kinds.base import Comparison
from deniable_estimator.messages import message


def change_cells(comparison: Comparison | None, names: Iterable[str]) -> dict[str, Estimate]:
    """The changes of these values, of those that the comparison knows."""
    if comparison is None:
        return {}
    places = {name: place for place, name in enumerate(comparison.values)}
    known = {name: places[name] for name in names if name in places}
    return {
        name: _change_cell(comparison, place)
        for name, place in known.items()
        if math.isfinite(comparison.difference[place])
    }


def _change_cell(comparison: Comparison, place: int) -> Estimate:
    """At least or at most so much where its interval has no limit on one side."""
    unit, between = comparison.after.unit, ""
    difference, low, high = comparison.at(place)
    least, most = comparison.ends(place)
    if not (math.isfinite(low) or math.isfinite(high)):
        text = unit.unknown
    elif high == math.inf:
        text = message("at least {number}", number=least)
    elif low == -math.inf:
        text = message("at most {number}", number=most)
    else:
        text = unit.signed(difference, half_width(difference, low, high))
        between = message("{low} to {high}", low=least, high=most)
    if not comparison.changed[place]:
        return Estimate(difference, text, "quiet", between=between)
    return Estimate(difference, text, "strong", message("changed"), between)


def change_title(unit: Unit) -> str:
    """What stands over changes."""
    if not isinstance(unit, NumberUnit):
        return message("Change, points")
    return message("Change, {unit}", unit=unit.name) if unit.name else message("Change")


def change_order(comparison: Comparison) -> list[int]:
    """The places of its values: those that changed by more than noise first, and of both those
    further from it."""
    changed = comparison.changed.tolist()
    return sorted(order_of(comparison), key=lambda place: not changed[place])


def order_of(comparison: Comparison) -> list[int]:
    """Values by how far their change stands out from its noise."""
    with np.errstate(divide="ignore", invalid="ignore"):
        score = np.abs(comparison.difference) / comparison.std_error
    known = np.nan_to_num(score, nan=-1.0)
    order: list[int] = np.argsort(-known, kind="stable").tolist()
    if comparison.values == ("true", "false"):
        order = [0, 1]
    return order

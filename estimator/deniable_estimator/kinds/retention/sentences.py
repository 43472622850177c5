"""A retention in sentences."""

from __future__ import annotations

import math

from deniable.protocol import windows
from deniable.protocol.mechanisms.memoized_retention import LIFECYCLE
from deniable_estimator.document.units import half_width
from deniable_estimator.kinds.formats import estimate, estimate_of, kind
from deniable_estimator.kinds.retention.retention import Around, RetentionAnswer, WindowGrowth
from deniable_estimator.messages import message, sentence, spaced

_LIFECYCLE = sentence(
    "{new} of the devices are new, {stayed} stayed from the {kind} before, and {returned} came "
    "back after a gap."
)
_AGE: dict[windows.Kind, str] = {
    "day": sentence(
        "{retention} of new devices are active on the day after their first ({level:g}% interval "
        "{between})."
    ),
    "week": sentence(
        "{retention} of new devices are active in the week after their first ({level:g}% interval "
        "{between})."
    ),
    "month": sentence(
        "{retention} of new devices are active in the month after their first ({level:g}% interval "
        "{between})."
    ),
}
_TOO_FEW = sentence("Too few new devices have reported to tell how many come back.")
_NOT_OVER = sentence("How many come back is told when these windows have ended.")
_NONE = sentence("The reports on cohorts do not fit to any retention; do not rely on them.")
_QUICK = sentence(
    "In {window}, {quick} devices were new or back for each one that was lost ({level:g}% interval "
    "{low} to {high})."
)


def finding_words(answer: RetentionAnswer) -> str:
    """The answer, in two sentences at most."""
    told: list[str] = []
    if answer.cohorts is not None:
        told.append(_age_words(answer))
    if answer.lifecycle is not None and answer.lifecycle.n:
        new, stayed, returned = (
            estimate(answer.unit, *answer.series.at(each)) for each in LIFECYCLE
        )
        told.append(
            message(_LIFECYCLE, new=new, stayed=stayed, returned=returned, kind=kind(answer.window))
        )
    return spaced(told)


def growth_words(answer: RetentionAnswer) -> str:
    """What the newest window with one before it says of growth; empty without one."""
    for each in reversed(answer.growth):
        if each.quick is not None and math.isfinite(each.quick.high):
            width = each.quick.high - each.quick.low
            digits = 2 if width > 0.01 else 3 if width > 0.001 else 4
            return message(
                _QUICK,
                window=each.window,
                quick=f"{each.quick.value:.{digits}f}",
                level=answer.level * 100,
                low=f"{each.quick.low:.{digits}f}",
                high=f"{each.quick.high:.{digits}f}",
            )
    return ""


def devices_text(found: Around) -> str:
    """A number of devices, to the digits that its interval allows."""
    spread = half_width(*found)
    step = 10 ** max(0, math.floor(math.log10(spread))) if 0 < spread < math.inf else 1
    return f"{round(found.value / step) * step:,.0f}"


def devices_between(found: Around) -> str:
    """Its interval, to the same digits."""
    low, high = (devices_text(Around(end, found.low, found.high)) for end in found[1:])
    return message("{low} to {high}", low=low, high=high)


def quick_text(each: WindowGrowth) -> str:
    """The devices that came for each one lost; empty where that is not known."""
    return "" if each.quick is None or math.isnan(each.quick.value) else f"{each.quick.value:.2f}"


def impossible_words(answer: RetentionAnswer) -> str | None:
    """That no honest crowd sends such reports; None if one may."""
    if answer.lifecycle is not None and answer.lifecycle.impossible.any():
        return message(
            "Impossible shares of the lifecycle. No honest crowd has them; do not rely on them."
        )
    if answer.curve is not None and answer.curve.empty[:1].any():
        return message(_NONE)
    return None


def _age_words(answer: RetentionAnswer) -> str:
    curve = answer.curve
    assert curve is not None
    numbers = answer.series.at("age 1")
    if not answer.ended:
        return message(_NOT_OVER)
    if math.isnan(numbers[0]):
        return message(_NONE if curve.empty[0] else _TOO_FEW)
    told = estimate_of(answer.unit, *numbers)
    return message(
        _AGE[answer.window],
        retention=told.text,
        level=answer.level * 100,
        between=told.between,
    )

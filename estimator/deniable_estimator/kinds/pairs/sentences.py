"""What a pair says, in sentences."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TypeAlias

import numpy as np

from deniable_estimator.document.document import Estimate
from deniable_estimator.document.units import CONDITIONALS, cell_words
from deniable_estimator.kinds.formats import estimate_of
from deniable_estimator.kinds.pairs.pair import LEAST_FOR_TEST, PairAnswer, Side
from deniable_estimator.messages import counted, listed, message, sentence

Place: TypeAlias = tuple[int, int]
"""A cell of a side: the places of its row and of its column."""

_LISTED = 6
"""The most values that a sentence names."""

_NONE = message("No reports yet.")
_DEPENDENT = sentence(
    "{first} and {second} depend on each other (test of independence, {p}): Cramér’s V is {v}, "
    "{level:.0%} interval {low} to {high}."
)
_FOUND = sentence("{first} and {second} depend on each other (test of independence, {p}).")
_INDEPENDENT = sentence(
    "No dependence of {first} and {second} can be told from noise (test of independence, {p}): "
    "Cramér’s V is at most {high}."
)
_UNDECIDED = sentence(
    "No dependence of {first} and {second} can be told from noise (test of independence, {p})."
)
_OF = sentence("Of those with {given}, {share} have {value} ({level:.0%} interval {between}).")
_LUMPED = sentence(
    "Cramér’s V takes {values} together: their shares are below 5 standard errors, and would "
    "drown it in noise"
)
_AND_MORE = sentence("{count:,} values of {first} and {second}")


def verdict_words(pair: PairAnswer) -> str:
    """Whether there is any dependence, in a sentence."""
    test, effect = pair.independence, pair.effect
    if not pair.n:
        return _NONE
    if test is None or effect is None:
        return counted(
            "{count:,} report is too few for the test of independence, which takes {least}.",
            "{count:,} reports are too few for the test of independence, which takes {least}.",
            pair.n,
            least=LEAST_FOR_TEST,
        )
    first, second = pair.names
    known = math.isfinite(effect.v)
    if pair.dependent:
        template = _DEPENDENT if known else _FOUND
    else:
        template = _INDEPENDENT if known else _UNDECIDED
    return message(
        template,
        first=first,
        second=second,
        p=_p(test.p_value),
        level=pair.level,
        v=f"{effect.v:.2f}",
        low=f"{effect.low:.2f}",
        high=f"{effect.high:.2f}",
    )


def finding_words(pair: PairAnswer, side: Side) -> tuple[str, tuple[Place, ...]]:
    """What the two have to do with each other, as conditional shares in a sentence, and the cells
    of that side that it names. The test and the size of the dependence are in `verdict_words`."""
    (first, second), found = pair.names, side.shares
    if not pair.dependent or side.residuals is None:
        if pair.independence is None:
            return verdict_words(pair), ()
        template = sentence("No link between {first} and {second} can be told from noise.")
        return message(template, first=first, second=second), ()
    surely = np.abs(side.residuals.value / side.residuals.std_error)
    surely = np.where(found.known & side.carries, surely, -1.0)
    row, column = (int(each) for each in np.unravel_index(surely.argmax(), surely.shape))
    if surely[row, column] < 0:
        template = sentence("{first} and {second} go together.")
        return message(template, first=first, second=second), ()
    # The same value among the devices whose share of it is furthest from this one.
    away = np.abs(found.share[:, column] - found.share[row, column])
    away = np.where(found.known[:, column], away, -1.0)
    other = int(away.argmax())
    if away[other] <= 0:
        template = sentence("{first} and {second} go together: {told}")
        told = conditional_words(pair, side, (row, column))
        return message(template, first=first, second=second, told=told), ((row, column),)
    places: list[Place] = [(row, column), (other, column)]
    more, less = sorted(places, key=lambda place: -float(found.share[place]))
    texts = [_conditional_texts(side, place) for place in (more, less)]
    return message(
        "{first} and {second} go together: {share} of those with {given} have {value}, and {other} "
        "of those with {other_given}.",
        first=first,
        second=second,
        share=texts[0][2].text,
        given=texts[0][0],
        value=texts[0][1],
        other=texts[1][2].text,
        other_given=texts[1][0],
    ), (more, less)


def conditional_words(pair: PairAnswer, side: Side, place: Place) -> str:
    """One conditional share, in a sentence."""
    condition, value, told = _conditional_texts(side, place)
    return message(
        _OF,
        given=condition,
        value=value,
        share=told.text,
        level=pair.level,
        between=told.between,
    )


def _conditional_texts(side: Side, place: Place) -> tuple[str, str, Estimate]:
    """What is given, the value, and its share, as text."""
    condition, value = (
        cell_words(f"{name}={margin.values[at]}")
        for name, margin, at in zip(side.names, side.margins, place, strict=True)
    )
    found = side.shares
    share, low, high = (float(each[place]) for each in (found.share, found.low, found.high))
    # An unbiased share may lie beyond what there can be, which no sentence should say.
    return condition, value, estimate_of(CONDITIONALS, min(max(share, 0.0), 1.0), low, high)


def fakes_words(pair: PairAnswer) -> tuple[str, ...]:
    """What fake devices could do to conditional shares and to the test, in sentences."""
    found = []
    if math.isfinite(pair.budget_of_conditionals):
        points = CONDITIONALS.text(pair.budget_of_conditionals, pair.budget_of_conditionals)
        found.append(
            message(
                "{fakes:.3g}% fake devices could move a conditional share that is shown by up to "
                "{points} points.",
                fakes=100 * pair.fakes,
                points=points,
            )
        )
    if pair.fakes_to_reject is not None:
        found.append(
            message(
                "{percent:.2g}% fake devices that send the same report are enough for the test to "
                "call two independent metrics dependent.",
                percent=100 * pair.fakes_to_reject,
            )
        )
    return tuple(found)


def pair_remarks(pair: PairAnswer) -> Iterator[str]:
    """What to bear in mind about the effect size, as the warnings have it."""
    lumped = pair.lumped
    if not lumped:
        return
    first, second = pair.names
    values = listed(map(cell_words, lumped))
    if len(lumped) > _LISTED:
        values = message(_AND_MORE, count=len(lumped), first=first, second=second)
    yield message(_LUMPED, values=values)


def _p(p_value: float) -> str:
    return "p < 0.001" if p_value < 0.001 else f"p = {p_value:.2g}"

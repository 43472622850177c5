"""What a pair says, in sentences."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from deniable_estimator.document.document import Estimate
from deniable_estimator.document.units import CONDITIONALS, cell_words
from deniable_estimator.kinds.formats import estimate_of
from deniable_estimator.kinds.pairs.pair import LEAST_FOR_TEST, Given, PairAnswer
from deniable_estimator.messages import counted, listed, message, sentence

Place: TypeAlias = tuple[int, int]
"""A cell: the places of its value in the first list and in the second."""

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
_NOT_OF = sentence("Too few have {given} to say how many of them have {value}.")
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


def finding_words(pair: PairAnswer, given: Given = "first") -> tuple[str, tuple[Place, ...]]:
    """What the two have to do with each other, as conditional shares in a sentence, and the cells
    that it names. The test and the size of the dependence are in `verdict_words`."""
    first, second = pair.names
    found = pair.conditionals[given] if pair.n else None
    if not pair.dependent or found is None or pair.residuals is None:
        if pair.n and pair.independence is not None:
            template = sentence("No link between {first} and {second} can be told from noise.")
            return message(template, first=first, second=second), ()
        return verdict_words(pair), ()
    surely = np.abs(pair.residuals.value / pair.residuals.std_error)
    surely = np.where(found.known & pair.carries, surely, -1.0)
    one = _place(surely)
    if surely[one] < 0:
        template = sentence("{first} and {second} go together.")
        return message(template, first=first, second=second), ()
    # The same value among the devices whose share of it is furthest from this one.
    along = 0 if given == "first" else 1
    shares = found.share[:, one[1]] if along == 0 else found.share[one[0], :]
    known = found.known[:, one[1]] if along == 0 else found.known[one[0], :]
    away = np.where(known, np.abs(shares - found.share[one]), -1.0)
    other_at = int(away.argmax())
    other = (other_at, one[1]) if along == 0 else (one[0], other_at)
    if away[other_at] <= 0:
        template = sentence("{first} and {second} go together: {told}")
        told = conditional_words(pair, given, *one)
        return message(template, first=first, second=second, told=told), (one,)
    more, less = sorted((one, other), key=lambda place: -float(found.share[place]))
    texts = [_conditional_texts(pair, given, place) for place in (more, less)]
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


def _place(numbers: NDArray[np.float64]) -> Place:
    row, column = np.unravel_index(int(numbers.argmax()), numbers.shape)
    return int(row), int(column)


def _conditional_texts(pair: PairAnswer, given: Given, place: Place) -> tuple[str, str, Estimate]:
    """What is given, the value, and its share, as text."""
    found = pair.conditionals[given]
    texts = [
        cell_words(f"{name}={margin.values[at]}")
        for name, margin, at in zip(pair.names, pair.margins, place, strict=True)
    ]
    condition, value = texts if given == "first" else texts[::-1]
    numbers = (float(each[place]) for each in (found.share, found.low, found.high))
    return condition, value, estimate_of(CONDITIONALS, *numbers)


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


def conditional_words(pair: PairAnswer, given: Given, row: int, column: int) -> str:
    """One conditional share, in a sentence."""
    found = pair.conditionals[given]
    place = row, column
    condition, value, told = _conditional_texts(pair, given, place)
    if not found.known[place]:
        return message(_NOT_OF, given=condition, value=value)
    return message(
        _OF,
        given=condition,
        value=value,
        share=told.text,
        level=pair.level,
        between=told.between,
    )


def remarks(pair: PairAnswer) -> Iterator[str]:
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

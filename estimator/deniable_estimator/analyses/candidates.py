"""What a tally is asked for: the declared values, or candidates that follow the rule for values."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from deniable import Scheme
from deniable.protocol.errors import ValueListError
from deniable.protocol.value_list import value_texts
from deniable_estimator.analyses.base import Items
from deniable_estimator.errors import EstimateError
from deniable_estimator.messages import message

_KEPT = 50_000
"""Strings of a list up to which it is kept once it is checked: two such lists take about 10 MB."""


def asked_values(
    scheme: Scheme, candidates: Sequence[str] | None = None
) -> tuple[tuple[str, ...], Items]:
    """The candidates as values, and what the mechanism randomizes in place of each.

    Without candidates, those of the scheme's closed domain, in its order. Candidates are brought
    into normal form C, as devices do it.

    Raises:
        EstimateError: a candidate cannot be a value (`deniable.protocol.value_list`), is listed
            twice or is not in the domain; or the metric is a string and there are no candidates.
    """
    if candidates is not None:
        return _named(scheme, candidates)
    if scheme.needs_candidates:
        raise EstimateError(
            message("this metric's domain is open: give the candidates to look for")
        )
    return scheme.values, _array(scheme.items)


def _checked(candidates: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(value_texts(candidates, "the list of candidates"))


# Every period of a trend asks for the same list.
_kept = lru_cache(maxsize=2)(_checked)


def _named(scheme: Scheme, candidates: Sequence[str]) -> tuple[tuple[str, ...], Items]:
    try:
        check = _kept if len(candidates) <= _KEPT else _checked
        values = check(tuple(candidates))
    except ValueListError as error:
        raise EstimateError(str(error)) from None
    if scheme.needs_candidates:
        return values, values
    index = dict(zip(scheme.values, scheme.items, strict=True))
    try:
        return values, _array([index[value] for value in values])
    except KeyError as error:
        raise EstimateError(
            message(
                "{value} is not one of the metric's declared values, so no report can speak of "
                "it: leave it out",
                value=str(error),
            )
        ) from None


def _array(items: Sequence[Any]) -> Items:
    """Indices as an array, to gather with; strings as they are."""
    if isinstance(items[0], str):
        return items
    if isinstance(items, range):
        return np.arange(items.start, items.stop, items.step)
    return np.array(items, np.int64)

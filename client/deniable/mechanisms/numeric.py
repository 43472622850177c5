"""What mechanisms for numbers have in common: a range, whose positions they randomize."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, NamedTuple

from deniable.errors import SchemeError
from deniable.mechanisms.base import Mechanism, Report, check_parameters
from deniable.mechanisms.number_range import NumberRange

__all__ = ["Numeric", "Span", "check_range"]


class Span(NamedTuple):
    """The positions from `first` to `last`; the last one belongs to it."""

    first: int
    last: int


class Numeric(Mechanism[int]):
    """A mechanism whose items are positions in a range of numbers, from -1 (below `low`) to 2**30.

    Attributes:
        range: where the numbers lie.
    """

    range: NumberRange

    @abstractmethod
    def favoured(self, report: Report) -> tuple[Span, ...]:
        """The positions for which this report is likeliest, in rising order, not adjacent."""


def check_range(
    mechanism: str, parameters: Mapping[str, Any]
) -> tuple[NumberRange, dict[str, Any]]:
    """The range out of `parameters`, and the parameters beside it.

    Raises:
        SchemeError: a bound, the scale or `integer` is missing or wrong.
    """
    rest = dict(parameters)
    low, high, scale = (rest.pop(key, None) for key in ("low", "high", "scale"))
    (integer,) = check_parameters(mechanism, {"integer": rest.pop("integer", None)}, integer=(0, 1))
    try:
        return NumberRange(low, high, scale, bool(integer)), rest
    except SchemeError as error:
        raise SchemeError(f"{mechanism}: {error}") from None

"""One declaration of an input, from which its option, its form field and its parameter are made.

A tuple of inputs is what a question takes: `terminal/options.py` makes click options of it,
`dashboard/api/parameters.py` the parameters of an address with their OpenAPI description, and
`read_form` reads a page's form, all mistakes at once. Nothing here imports numpy.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from deniable import SchemeError
from deniable_estimator.messages import listed, message, sentence

REQUIRED: Final = object()
"""The default of an input that must be given."""

Asked: TypeAlias = Mapping[str, Any]
"""What was asked: the value of each input, by its name."""

Place: TypeAlias = Literal["terminal", "page", "api"]


class InputError(SchemeError):
    """What was asked cannot be answered, and `name` is the input at fault."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(text)
        self.name = name

    def __reduce__(self) -> tuple[Any, ...]:
        return InputError, (self.name, str(self))


@dataclass(frozen=True, slots=True)
class Input:
    """Something that can be asked: a number from `low` to `high`, a text of at most `high`
    characters, one of `choices`, or a flag."""

    name: str
    read: type[int] | type[float] | type[str] | type[bool]
    label: str
    help: str
    default: Any = REQUIRED
    low: float = -math.inf
    high: float = math.inf
    choices: Mapping[str, str] = field(default_factory=dict)
    """Each with its text on a page."""
    served: float | None = None
    """The largest number that a server calculates, if it is less than `high`."""
    start: str | None = None
    """What a form begins with, if it is not the default."""
    places: frozenset[Place] = frozenset({"terminal", "page", "api"})
    """Where it can be given; elsewhere it has its default."""

    @property
    def needed(self) -> bool:
        """Whether it must be given."""
        return self.default is REQUIRED

    @property
    def first(self) -> str:
        """What its field in a form begins with."""
        if self.start is not None or self.default in (None, REQUIRED):
            return self.start or ""
        return self.default if self.read is str else f"{self.default:g}"

    def parse(self, text: str) -> Any:
        """The value that a form has for it.

        Raises:
            InputError: it has none; the message says what to write.
        """
        if self.read is bool:
            return text not in ("", "0", "false")
        if not text and not self.needed:
            return self.default
        if self.choices:
            if text not in self.choices:
                told = message("Choose one of {choices}.", choices=listed(self.choices))
                raise InputError(self.name, told)
            return text
        if self.read is str:
            if len(text) > self.high or not text.isprintable():
                told = message("Write at most {most:,} characters.", most=int(self.high))
                raise InputError(self.name, told)
            return text
        highest = self.high if self.served is None else self.served
        try:
            value = int(text) if self.read is int else float(text)
        except ValueError:
            value = math.nan
        if not self.low <= value <= highest:
            told = message(
                _WHOLE if self.read is int else _NUMBER, lowest=self.low, highest=highest
            )
            raise InputError(self.name, told)
        return value


_WHOLE = sentence("Write a whole number from {lowest:,} up to {highest:,}.")
_NUMBER = sentence("Write a number from {lowest:g} up to {highest:,}.")


@dataclass(frozen=True, slots=True)
class Field:
    """An input in a form, as it was filled in."""

    input: Input
    text: str
    """Of a flag `on`, if it is set."""
    mistake: str | None = None


def read_form(
    inputs: Sequence[Input], arguments: Mapping[str, str]
) -> tuple[list[Field], dict[str, Any] | None]:
    """The fields of a form with their mistakes; and what is asked, if there are none. A form that
    was not sent is filled in with what it begins with."""
    fields: list[Field] = []
    asked: dict[str, Any] = {}
    for each in inputs:
        if "page" not in each.places:
            asked[each.name] = each.default
            continue
        text = arguments.get(each.name, each.first).strip()
        mistake = None
        try:
            asked[each.name] = each.parse(text)
        except InputError as error:
            mistake = str(error)
        fields.append(Field(each, text, mistake))
    return fields, None if any(each.mistake for each in fields) else asked

"""Checks of single keys of a registry: each says what is wrong with a value, or nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from datetime import MAXYEAR, date
from typing import Any, TypeAlias

from deniable.protocol.value_list import is_unicode

Check: TypeAlias = Callable[[Any], str | None]

Report: TypeAlias = Callable[[str | None, str], None]
"""Takes a key of a table (None: the table itself), and what is wrong with it."""

MAX_DEVICES = 10**12
"""More than there can be; larger numbers are slips."""

MAX_LINE = 200
"""A name with its place, or an address; people read it in a sentence."""

MAX_ONE_IN = 10_000
"""Daily windows of 27 years."""

MIN_SAMPLE_RATE = 1e-9
"""One device in a billion."""


def accepted(
    table: Mapping[str, Any], known: Mapping[str, Check], unknown: str, report: Report
) -> dict[str, Any]:
    """What a table holds of these keys that their checks accept; everything else is reported."""
    good = {}
    for key, value in table.items():
        if wrong := known[key](value) if key in known else unknown:
            report(key, wrong)
        else:
            good[key] = value
    return good


def exactly(number: int, advice: str) -> Check:
    told = f"must be {number}: {advice}"
    return lambda value: None if type(value) is int and value == number else told


def table(advice: str) -> Check:
    return lambda value: None if isinstance(value, dict) else advice


def text(value: Any) -> str | None:
    if not isinstance(value, str) or not value.strip():
        return "must be text that is not empty"
    # JSON can write half of a surrogate pair.
    return None if is_unicode(value) else "is not valid Unicode"


def line(value: Any) -> str | None:
    fine = text(value) is None and len(value) <= MAX_LINE and value.isprintable()
    return None if fine else f"must be one line of at most {MAX_LINE} characters"


def texts(value: Any) -> str | None:
    fine = isinstance(value, list) and all(isinstance(each, str) for each in value)
    return None if fine else 'must be a list of texts, like ["checkout", "mobile"]'


def tags(value: Any) -> str | None:
    return texts(value) or (None if all(value) else "must not hold an empty text")


def day(value: Any) -> str | None:
    if type(value) is not date:
        return "must be a date without quotes, like 2027-06-30"
    # The windows that its last day is in must end in the calendar.
    return None if value.year < MAXYEAR else "must be before the year 9999, like 2027-06-30"


def one_of(choices: tuple[str, ...] | tuple[int, ...]) -> Check:
    told = f"must be one of {', '.join(map(str, choices))}"
    # 16.0 and true are no whole numbers.
    return lambda value: None if value in choices and type(value) is type(choices[0]) else told


def some_of(choices: tuple[str, ...]) -> Check:
    def check(value: Any) -> str | None:
        named = [value] if isinstance(value, str) else value
        fine = isinstance(named, list) and all(each in choices for each in named)
        if fine and 0 < len(named) == len(set(named)):
            return None
        quoted = [f'"{each}"' for each in choices]
        return f"must be {', '.join(quoted)}, or a list of them"

    return check


def positive(limit: float) -> Check:
    def check(value: Any) -> str | None:
        if not is_number(value) or not 0 < value <= limit:
            return f"must be a number above 0 and at most {limit:g}"
        return None

    return check


def whole(least: int, most: int) -> Check:
    told = f"from {least} to" if least > 1 else "above 0 and at most"
    return lambda value: (
        None
        if type(value) is int and least <= value <= most
        else f"must be a whole number {told} {most:,}"
    )


count = whole(1, MAX_DEVICES)
one_in = whole(2, MAX_ONE_IN)


def rate(value: Any) -> str | None:
    if not is_number(value) or not MIN_SAMPLE_RATE <= value <= 1:
        return f"must be a number above 0 and at most 1, and not below {MIN_SAMPLE_RATE:g}"
    return None


def bound(value: Any) -> str | None:
    return None if is_number(value) else "must be a finite number of 64 bits"


def flag(value: Any) -> str | None:
    return None if isinstance(value, bool) else "must be true or false"


def is_number(value: Any) -> bool:
    """Whether it is a number that a float holds: a whole one of more digits would move without a
    word."""
    if type(value) not in (int, float):
        return False
    return abs(value) <= sys.float_info.max and bool(value == float(value))

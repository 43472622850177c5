"""The names of a pair's series, and of the ranges into which a pair cuts a number, in words.

Tallies, files and addresses have these names in English, because they are told apart by them. Pages
show the same names in the reader's language: "below 5", "5 to 20", "20 or more", and
"dark_mode=true given tabs=below 5".
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from deniable.protocol.types.pair_parts import TIMES
from deniable_estimator.messages import message

_NUMBER = r"(-?\d+(?:\.\d+)?(?:e[-+]?\d+)?)"
_BELOW = re.compile(f"below {_NUMBER}")
_BETWEEN = re.compile(f"{_NUMBER} to {_NUMBER}")
_FROM = re.compile(f"{_NUMBER} or more")


def are_ranges(values: Sequence[str]) -> bool:
    """Whether these are all ranges of a number that a pair cuts, in their order."""
    return (
        len(values) > 1
        and _BELOW.fullmatch(values[0]) is not None
        and _FROM.fullmatch(values[-1]) is not None
        and all(_BETWEEN.fullmatch(each) for each in values[1:-1])
    )


def value_words(value: str) -> str:
    """A value of a list of a pair: a range in words, and any other as it is."""
    if found := _BELOW.fullmatch(value):
        return message("below {edge}", edge=found[1])
    if found := _BETWEEN.fullmatch(value):
        return message("{low} to {high}", low=found[1], high=found[2])
    if found := _FROM.fullmatch(value):
        return message("{edge} or more", edge=found[1])
    return value


def cell_words(name: str) -> str:
    """A series or a cell of a pair: "dark_mode=true given plan=free", "plan=free × dark_mode=true",
    or a value of one list."""
    value, given, condition = name.partition(" given ")
    if given:
        return message("{value} given {condition}", value=_part(value), condition=_part(condition))
    first, times, second = name.partition(f" {TIMES} ")
    if times:
        return message("{first} × {second}", first=_part(first), second=_part(second))
    return _part(name)


def _part(text: str) -> str:
    """A metric with one of its values."""
    metric, _, value = text.partition("=")
    told = value_words(value)
    return text if told is value else message("{metric}={value}", metric=metric, value=told)

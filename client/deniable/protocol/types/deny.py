"""Patterns of strings that devices never report.

A pattern is literal text in which `*` stands for any run of characters, also for none. It must fit
a whole string. Letters A to Z fit their small forms and the other way round; all other characters
fit themselves alone. Python and JavaScript read that alike, which no regular expression would.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Any

MAX_DENIED = 100
"""How many patterns a metric may have."""

MAX_PATTERN = 128
"""How many characters a pattern may have."""

_SMALL = {ord("A") + place: ord("a") + place for place in range(26)}


def check_deny(value: Any) -> str | None:
    """What is wrong with the value of `deny`; None if nothing is."""
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        return 'must be a list of texts, like ["*@*", "token=*"]'
    if len(value) > MAX_DENIED:
        return f"holds {len(value):,} patterns, above the limit of {MAX_DENIED}"
    for place, pattern in enumerate(value, 1):
        if wrong := _wrong(pattern):
            return f"has a pattern, number {place}, that {wrong}"
    return None


def _wrong(pattern: str) -> str | None:
    if len(pattern) > MAX_PATTERN:
        return f"is longer than {MAX_PATTERN} characters"
    if not pattern.strip("*"):
        return "denies every string, or none: it needs a character besides *"
    try:
        pattern.encode()
    except UnicodeEncodeError:
        return "is not valid Unicode"
    if "\0" in pattern:
        return "holds a zero character, where every string ends"
    if unicodedata.normalize("NFC", pattern) != pattern:
        return "is not in Unicode normal form C, so that it would fit nothing"
    return None


def denied(text: str, patterns: Sequence[str]) -> bool:
    """Whether a string in normal form C fits one of the patterns."""
    small = text.translate(_SMALL)
    return any(_fits(small, pattern.translate(_SMALL)) for pattern in patterns)


def _fits(text: str, pattern: str) -> bool:
    first, *middle = pattern.split("*")
    if not middle:
        return text == first
    last = middle.pop()
    if len(text) < len(first) + len(last) or not text.startswith(first) or not text.endswith(last):
        return False
    begin, end = len(first), len(text) - len(last)
    for piece in middle:  # the first place that fits leaves the most for what follows
        found = text.find(piece, begin, end)
        if found < 0:
            return False
        begin = found + len(piece)
    return True

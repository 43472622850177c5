"""Values inside sentences: a value that is written from right to left must not reorder the rest.

By Unicode's bidirectional algorithm (UAX 9) a value is put between FIRST STRONG ISOLATE and POP
DIRECTIONAL ISOLATE. Characters that would end this, or reorder what follows, are shown as
replacement characters.
"""

from __future__ import annotations

import unicodedata

_BEGIN, _END = "\N{FIRST STRONG ISOLATE}", "\N{POP DIRECTIONAL ISOLATE}"

_MARKS = dict.fromkeys(
    (*range(0x202A, 0x202F), *range(0x2066, 0x206A)), "\N{REPLACEMENT CHARACTER}"
)
"""Embeddings, overrides and isolates: no language needs them inside a value."""

_CONTROLS = dict.fromkeys((*range(0x80, 0xA0), 0x2028, 0x2029), "\N{REPLACEMENT CHARACTER}")
"""Control characters beyond ASCII and ends of lines: a browser shows nothing for most of them, so
that two values would look alike."""

_LEFT_TO_RIGHT = frozenset(("L", "EN", "ES", "ET", "CS", "NSM", "BN", "B", "S", "WS", "ON", ""))
"""The classes of letters that do not reorder their neighbours."""


def isolated(value: str) -> str:
    """The value as it can be used in any sentence; unchanged, if it is written left to right and
    holds no invisible control character."""
    # A message stays the one that it is, and can be translated later.
    if value.isascii():
        return value
    if not _CONTROLS.keys().isdisjoint(map(ord, value)):
        value = value.translate(_CONTROLS)
    if all(unicodedata.bidirectional(each) in _LEFT_TO_RIGHT for each in value):
        return value
    return f"{_BEGIN}{value.translate(_MARKS)}{_END}"

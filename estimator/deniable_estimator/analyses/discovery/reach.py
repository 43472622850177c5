"""From which share on a string surfaces, and how many fakes make one appear.

Measured with the decoder of this folder, in units of the standard error of a share of 0 in one
row, s = sqrt(q (1-q) (tokens + 1) / n) / (p - q): a string of 9 to 11 letters is found in half of
the crowds from 3.5 s on if it looks like the text of the prior, and from 5 s on if its letters are
drawn at random; in 95 % of the crowds from 5 s and 6.7 s on. Shorter strings surface sooner.

A fake chooses its row and its message, so it moves the share of its string like (1-q) / (p-q)
honest devices do.
"""

from __future__ import annotations

import math
from typing import NamedTuple

__all__ = ["Reach"]

_HALF_TEXT, _SURE_TEXT = 3.5, 5.0
_HALF_ANY, _SURE_ANY = 5.0, 6.7


class Reach(NamedTuple):
    """Shares from which on strings surface; above 1 if none does."""

    half_text: float
    """In half of the crowds, if the string looks like the text of the prior."""
    sure_text: float
    """In 95 % of the crowds."""
    half_any: float
    """In half of the crowds, if its letters are drawn at random."""
    sure_any: float
    """In 95 % of the crowds."""
    fakes: int
    """So many fake devices make a string of theirs appear in half of the crowds."""

    @classmethod
    def of(cls, p: float, q: float, tokens: int, reports: int) -> Reach:
        """That of a crowd of so many reports, at least one."""
        error = math.sqrt(q * (1 - q) * (tokens + 1) / reports) / (p - q)
        fakes = math.ceil(_HALF_TEXT * error * reports * (p - q) / (1 - q))
        return cls(
            _HALF_TEXT * error, _SURE_TEXT * error, _HALF_ANY * error, _SURE_ANY * error, fakes
        )

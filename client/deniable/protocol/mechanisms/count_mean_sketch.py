"""Apple's two sketches for strings (Differential Privacy Team, "Learning with Privacy at
Scale", 2017), as hashed mechanisms (see `deniable.protocol.mechanisms.hashed`).

*Count mean sketch*: a string is hashed to one of m bits, and every bit is kept with
probability h / (h + 1), h = e**(epsilon / 2): symmetric unary encoding of the place::

    p = h / (h + 1),  q = p/m + (1 - 1/m) / (h + 1),  n * Var(share 0) near h / (h - 1)**2

*Hadamard count mean sketch*: one uniform coordinate of the place's Hadamard transform is
reported with its sign, flipped with probability 1 / (e + 1). A coordinate l of m with its
sign b is the column l + m b of a Hadamard matrix of order 2m, and a place one of its last
m rows, so this is Hadamard response over the m places::

    p = e / (e + 1),  q = p/m + (1 - 1/m) / 2,  n * Var(share 0) near ((e+1) / (e-1))**2

Both estimators are the published ones: (S/n - q) / (p - q) is their count-mean with its
correction for collisions. Included for compatibility and comparison.
"""

from __future__ import annotations

from typing import ClassVar, Self

from deniable.protocol.mechanisms.hadamard_response import HadamardResponse
from deniable.protocol.mechanisms.hashed import Hashed
from deniable.protocol.mechanisms.unary_encoding import UnaryEncoding

WIDTH = 1024
"""Places in a row, as published."""

HASHES = 1024
"""Rows. The published 65,536 would make a tally of 67 million cells; collisions add a
variance of (sum of all f**2) / (HASHES * WIDTH)."""


class CountMeanSketch(Hashed):
    """Symmetric unary encoding over hashed strings."""

    name: ClassVar[str] = "count_mean_sketch"
    channel_class = UnaryEncoding

    @classmethod
    def design(cls, salt: str, epsilon: float) -> Self:
        """The sketch at `epsilon`, with HASHES rows of WIDTH places."""
        return cls(salt, HASHES, UnaryEncoding.symmetric(WIDTH, epsilon))


class HadamardCountMeanSketch(Hashed):
    """Hadamard response over hashed strings."""

    name: ClassVar[str] = "hadamard_count_mean_sketch"
    channel_class = HadamardResponse

    @classmethod
    def design(cls, salt: str, epsilon: float) -> Self:
        """The sketch at `epsilon`, with HASHES rows of WIDTH places."""
        return cls(salt, HASHES, HadamardResponse.design(WIDTH, epsilon))

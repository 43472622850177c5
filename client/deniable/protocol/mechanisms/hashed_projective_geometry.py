"""Projective geometry response for strings; the analyst may name the candidates later.

Each of R salted tables is a projective space, and a string is hashed to one of its K
points (see `deniable.protocol.mechanisms.hashed` and
`deniable.protocol.mechanisms.projective_geometry`). Every message supports s of the K points, so
over the hash functions::

    q = s / K,    n * Var(share 0) = q (1-q) / (p-q)**2

exactly, whatever the threshold: nearly the optimum for large domains, at 18 to 21 bits per
report. Four tables distinguish a string from a ghost, which is high in only one of them.
"""

from __future__ import annotations

from typing import ClassVar, Self

from deniable.protocol.mechanisms.hashed import Hashed
from deniable.protocol.mechanisms.limits import MAX_CELLS
from deniable.protocol.mechanisms.projective_geometry import ProjectiveGeometry

ROWS = 4
"""Enough to notice that one table differs; more would only cost memory and time."""

LEAST_POINTS = 1 << 17
"""Places in a table: a collision with a given string has a chance below 1 in 100,000."""


class HashedProjectiveGeometry(Hashed):
    """Projective geometry over hashed strings."""

    name: ClassVar[str] = "hashed_projective_geometry"
    channel_class = ProjectiveGeometry

    @classmethod
    def design(cls, salt: str, epsilon: float) -> Self:
        """The space of least variance for a rare string, with ROWS tables of at least
        LEAST_POINTS points and MAX_CELLS cells in all; metrics have their names for salt.
        """
        channel = ProjectiveGeometry.best(
            epsilon,
            LEAST_POINTS,
            MAX_CELLS // ROWS,
            lambda space: space.q * (1 - space.q) / (space.p - space.q) ** 2,
        )
        return cls(salt, ROWS, channel)

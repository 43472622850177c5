"""What a tally is asked for, and how many of its reports support each value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Counts", "Items", "Support"]

Counts: TypeAlias = NDArray[np.int64]

Items: TypeAlias = Sequence[Any] | NDArray[np.int64]
"""What the mechanism randomizes, one for each requested value: int64 indices into a closed
domain, or strings."""


class Support(NamedTuple):
    """The sufficient statistic of a pure protocol, for d values."""

    counts: NDArray[Any]
    """Shape (d,), integers or floats: reports that support each value."""
    reports: int | NDArray[np.int64]
    """The number of reports: one number for all values, or shape (d,)."""
    ghosts: NDArray[np.bool_] | None = None
    """Shape (d,): values whose support seems to come from hash collisions, because the tables
    disagree; they are estimated but never called detected."""

"""The result of a decoder for each value, before any test: shares with their noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from deniable_estimator.statistics.intervals import FloatArray, Noise
from deniable_estimator.statistics.significance import share_p_values

__all__ = ["Finding"]


@dataclass(frozen=True, eq=False)
class Finding:
    """Unbiased shares of d values; arrays have shape (d,)."""

    share: FloatArray
    """NaN if nothing is known."""
    noise: Noise
    p_value: FloatArray
    """One-sided, for the hypothesis that no device has the value; NaN if nothing is known."""
    ghosts: NDArray[np.bool_]
    """Values that must not count as detected, because their support is a hash collision."""
    warnings: tuple[str, ...] = ()

    @classmethod
    def of(cls, share: FloatArray, noise: Noise, ghosts: NDArray[np.bool_] | None = None) -> Self:
        """The finding with p-values computed from the noise of each value."""
        if ghosts is None:
            ghosts = np.zeros(len(share), np.bool_)
        with np.errstate(invalid="ignore"):
            return cls(share, noise, share_p_values(share, noise), ghosts)

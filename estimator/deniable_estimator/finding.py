"""What a decoder has found out about each value, before it is judged: shares with their noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from deniable_estimator.intervals import FloatArray, Noise
from deniable_estimator.significance import share_p_values

__all__ = ["Finding"]


@dataclass(frozen=True, eq=False)
class Finding:
    """Unbiased shares of d values; arrays have shape (d,)."""

    share: FloatArray
    """NaN where nothing is known."""
    noise: Noise
    p_value: FloatArray
    """One-sided, of "nobody has it"; NaN where nothing is known."""
    ghosts: NDArray[np.bool_]
    """Values that must not count as detected: their support is an accident of hashing."""
    warnings: tuple[str, ...] = ()

    @classmethod
    def of(cls, share: FloatArray, noise: Noise, ghosts: NDArray[np.bool_] | None = None) -> Self:
        """With the p-values that follow from the noise of each value by itself."""
        if ghosts is None:
            ghosts = np.zeros(len(share), np.bool_)
        with np.errstate(invalid="ignore"):
            return cls(share, noise, share_p_values(share, noise), ghosts)

"""Local hashing with public cohorts, so that it can be kept as counts.

A device draws one of the cohorts, hashes its string to one of g buckets under that
cohort's salt and answers by generalized randomized response over the buckets (Wang et
al., USENIX Security 2017; with a fixed set of hash functions Cormode, Maddock and Maple,
VLDB 2021; see `deniable.protocol.mechanisms.hashed`)::

    p = e / (e + g - 1)  (rounded down to 53 bits),  q = 1/g
    n * Var(share f) = r (1-r) / (p-q)**2;  4e / (e-1)**2 for f = 0 and g = e + 1

Included for compatibility and comparison. With C cohorts, collisions add a variance of
(sum of all f**2) / (C (g-1)), which is large since g is small.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import ClassVar, Self

from deniable.protocol.exact import exp_below
from deniable.protocol.mechanisms.hashed import Hashed
from deniable.protocol.mechanisms.limits import MAX_CELLS
from deniable.protocol.mechanisms.subset_selection import SubsetSelection

COHORTS = 1024


class CohortLocalHashing(Hashed):
    """Generalized randomized response over hashed strings."""

    name: ClassVar[str] = "cohort_local_hashing"
    channel_class = SubsetSelection

    @classmethod
    def design(cls, salt: str, epsilon: float) -> Self:
        """The number of buckets is e**epsilon + 1, rounded; COHORTS cohorts, if they fit."""
        buckets = math.floor(exp_below(epsilon) + Fraction(3, 2))
        channel = SubsetSelection.design(buckets, epsilon, k=1)
        return cls(salt, min(COHORTS, MAX_CELLS // buckets), channel)

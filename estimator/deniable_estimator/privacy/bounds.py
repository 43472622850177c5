"""An upper bound of what reports reveal: as an epsilon, as odds and as the success of a guess."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

from deniable.protocol.mechanisms import MAX_MEMO_EPSILON

USEFUL = MAX_MEMO_EPSILON
"""Above this epsilon a bound says nothing: a 50/50 guess may be wrong once in 10**8 times."""

_BEYOND = 10_000.0
"""From this epsilon on the digits of the odds do not matter, and decimals would overflow."""


@lru_cache(maxsize=1024)
def _odds(epsilon: float) -> Fraction:
    with localcontext() as context:
        context.prec = 40
        return Fraction(Decimal(epsilon).exp().next_plus())


@dataclass(frozen=True, slots=True)
class Bound:
    """An upper bound: the odds between two values change by a factor of e**epsilon at most."""

    epsilon: float

    @classmethod
    def of(cls, epsilon: Fraction | float) -> Bound:
        """The bound for an exact epsilon, rounded up to a float."""
        nearest = float(epsilon)
        return cls(nearest if nearest >= epsilon else math.nextafter(nearest, math.inf))

    @property
    def useful(self) -> bool:
        """Whether it bounds anything that matters; otherwise labels say so, and show no figure."""
        return self.epsilon <= USEFUL

    @property
    def odds(self) -> Fraction:
        """e**epsilon, rounded up in its 40th digit."""
        return _odds(self.epsilon)

    @property
    def belief(self) -> Fraction:
        """How often a 50/50 guess is right at most afterwards: from 1/2 to 1."""
        if self.epsilon > _BEYOND:
            return Fraction(1)
        return self.odds / (self.odds + 1)

    def to_dict(self) -> dict[str, float | None]:
        """`epsilon`, `odds` (null where no float holds it) and `belief`."""
        odds = None if self.epsilon > 700 else math.nextafter(float(self.odds), math.inf)
        belief = min(1.0, math.nextafter(float(self.belief), 1.0))
        return {"epsilon": self.epsilon, "odds": odds, "belief": belief}

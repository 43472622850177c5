"""What a release is asked for, and the checks that need no reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Literal, TypeAlias

from deniable_estimator.errors import EstimateError
from deniable_estimator.privacy.outsider import DELTA, check_delta
from deniable_estimator.releasing.noise import Method

Form: TypeAlias = Literal["table", "trend", "leader"]
"""One sum of all windows, one for each window, or the name of the largest value alone."""

LEAST_EPSILON = Fraction(1, 1000)
MOST_EPSILON = Fraction(1000)


@dataclass(frozen=True, slots=True)
class ReleaseRequest:
    """What is asked for.

    Attributes:
        epsilon: that of noise, for all that a device reported in the windows of the release; None
            for the sums as they are.
        delta: the probability with which a bound may fail.
    """

    metric: str
    first: date | None = None
    last: date | None = None
    candidates: Sequence[str] | None = None
    where: Mapping[str, str] = field(default_factory=dict)
    form: Form = "table"
    method: Method = "laplace"
    epsilon: Fraction | None = None
    delta: float = DELTA
    level: float = 0.95

    def check(self) -> None:
        """Refuse what makes no sense.

        Raises:
            EstimateError: an epsilon, delta or level cannot be, or they do not go together.
        """
        try:
            check_delta(self.delta)
        except ValueError as error:
            raise EstimateError(str(error)) from None
        if not 0 < self.level < 1:
            raise EstimateError(f"the level must be between 0 and 1, not {self.level}")
        if self.epsilon is None:
            if self.form == "leader":
                raise EstimateError(
                    "the leader alone is drawn with noise: say with which --epsilon. Without "
                    "noise, release the table"
                )
            return
        if not LEAST_EPSILON <= self.epsilon <= MOST_EPSILON:
            raise EstimateError(
                f"epsilon must be from {float(LEAST_EPSILON):g} to {float(MOST_EPSILON):g}, "
                f"not {float(self.epsilon):g}"
            )


def exact_epsilon(text: str) -> Fraction:
    """The exact value of a number in decimals, like 0.5.

    Raises:
        ValueError: it is none, or not finite.
    """
    try:
        number = Decimal(text)
    except InvalidOperation:
        raise ValueError(f"{text!r} is no number") from None
    if not number.is_finite() or len(text) > 40 or number.adjusted() > 300:
        raise ValueError(f"{text[:40]!r} is no number that an epsilon can be")
    return Fraction(number) if number.adjusted() > -300 else Fraction(0)

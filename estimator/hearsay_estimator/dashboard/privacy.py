"""The privacy label: what one answer and a lifetime of answers can reveal, in plain words.

Everything is computed from the integers in force. An epsilon-private report multiplies
anybody's odds between two values by at most e**epsilon (Dwork, "Differential privacy",
ICALP 2006; Kairouz, Oh and Viswanath, JMLR 2016), so an even guess becomes right with
probability at most odds / (odds + 1). Every figure is rounded against us.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from hearsay import Metric

__all__ = ["PrivacyLabel", "privacy_label"]

_WINDOWS_A_YEAR = {"day": 365.25, "week": 365.25 / 7, "month": 12.0}


@dataclass(frozen=True, slots=True)
class PrivacyLabel:
    """The figures of the label, as text."""

    epsilon: str
    factor: str
    """The most by which one answer multiplies the odds between two values."""
    guess: str
    """Out of 100: the most often that an even guess is right after one answer."""
    answers: int
    """How many answers the lifetime budget allows."""
    lifetime_epsilon: str
    lifetime_factor: str
    lifetime_guess: str
    pace: str
    """How soon a device that always has something to say has spent its budget."""


def privacy_label(metric: Metric) -> PrivacyLabel:
    """The label of a metric, from the mechanism in force."""
    odds = metric.scheme.mechanism.odds
    epsilon = metric.scheme.mechanism.epsilon
    answers = math.floor(Fraction(metric.lifetime_epsilon) / Fraction(epsilon))
    lifetime_odds = odds**answers
    return PrivacyLabel(
        epsilon=_up(epsilon, 2),
        factor=_up(odds, 2),
        guess=_guess(odds),
        answers=answers,
        lifetime_epsilon=_up(answers * Fraction(epsilon), 2),
        lifetime_factor=_up(lifetime_odds, 2 if lifetime_odds < 100 else 0),
        lifetime_guess=_guess(lifetime_odds),
        pace=_pace(answers, metric),
    )


def _up(value: Fraction | float, digits: int) -> str:
    """A figure with so many decimals, never below the value."""
    scaled = math.ceil(Fraction(value) * 10**digits)
    whole, rest = divmod(scaled, 10**digits)
    return f"{whole:,}.{rest:0{digits}}" if digits else f"{whole:,}"


def _guess(odds: Fraction) -> str:
    """odds / (odds + 1) out of 100, rounded up, with more decimals where it would read 100."""
    chance = 100 * odds / (odds + 1)
    for digits in (1, 2, 3):
        if math.ceil(chance * 10**digits) < 100 * 10**digits:
            return _up(chance, digits)
    return "100"


def _pace(answers: int, metric: Metric) -> str:
    each = {"day": "days", "week": "weeks", "month": "months"}[metric.window]
    expected = answers / metric.sample_rate
    years = expected / _WINDOWS_A_YEAR[metric.window]
    if metric.sample_rate >= 1:
        return f"A device that answers every {metric.window} stops after {answers} {each}."
    span = f"{years:.0f} years" if years >= 1.5 else f"{expected:.0f} {each}"
    return (
        f"A device is asked in a random {metric.sample_rate * 100:g}% of its {each}, so its "
        f"budget lasts about {span}."
    )

"""The figures of a guarantee as people read them, never below what they stand for."""

from __future__ import annotations

import math
from fractions import Fraction

from hearsay_estimator.privacy import BEYOND, WINDOWS_A_YEAR, Bound, Guarantee

__all__ = ["chance", "factor", "pace", "rounded_up"]

_LONGEST = 1_000_000
"""Factors from here on are given as powers of ten."""


def rounded_up(value: Fraction | float, digits: int) -> str:
    """A figure with so many decimals, never below the value."""
    scaled = math.ceil(Fraction(value) * 10**digits)
    whole, rest = divmod(scaled, 10**digits)
    return f"{whole:,}.{rest:0{digits}}" if digits else f"{whole:,}"


def factor(bound: Bound) -> str:
    """By how much odds are multiplied at most."""
    if bound.epsilon > BEYOND or (odds := bound.odds) >= _LONGEST:
        return f"10^{math.ceil(bound.epsilon / math.log(10))}"
    return rounded_up(odds, 2 if odds < 100 else 0)


def chance(bound: Bound) -> str:
    """How often an even guess is right, out of 100, with more decimals where it would read 100."""
    chance = 100 * bound.belief
    for digits in (1, 2, 3):
        if math.ceil(chance * 10**digits) < 100 * 10**digits:
            return rounded_up(chance, digits)
    return "100"


def pace(guarantee: Guarantee) -> str:
    """How soon a device that always has something to say has given all its answers."""
    window, rate, answers = guarantee.window, guarantee.sample_rate, guarantee.answers
    asked = f"in a random {rate * 100:g}% of its {window}s" if rate < 1 else f"every {window}"
    if answers is None:
        return f"A device answers {asked} until the metric expires."
    if rate >= 1:
        return f"A device that answers every {window} stops after {answers} {window}s."
    expected = answers / rate
    years = expected / WINDOWS_A_YEAR[window]
    span = f"{years:.0f} years" if years >= 1.5 else f"{expected:.0f} {window}s"
    return f"A device is asked {asked}, so its budget lasts about {span}."

"""The privacy label: what one answer and all answers of a device can reveal, as text."""

from __future__ import annotations

from dataclasses import dataclass

from hearsay import Metric
from hearsay_estimator.privacy import Bound, guarantee
from hearsay_estimator.privacy_words import chance, factor, pace, rounded_up

__all__ = ["Figures", "PrivacyLabel", "privacy_label"]


@dataclass(frozen=True, slots=True)
class Figures:
    """One bound in three ways."""

    epsilon: str
    factor: str
    """The most by which the odds between two values are multiplied."""
    guess: str
    """Out of 100: the most often that an even guess is right afterwards."""


@dataclass(frozen=True, slots=True)
class PrivacyLabel:
    """The figures of the label."""

    one: Figures
    """One answer."""
    each: Figures
    """What every answer adds where there are several."""
    answers: int | None
    """How many answers the lifetime budget allows; None where nothing but expiry ends them."""
    lifetime: Figures | None
    memo: Figures | None
    """With memory: all answers with the same value."""
    pace: str
    """How soon a device that always has something to say has spent its budget."""


def privacy_label(metric: Metric, cap: float | None = None) -> PrivacyLabel:
    """The label of a metric, under the cap of its registry (`Registry.lifetime_epsilon`)."""
    given = guarantee(metric, cap)
    return PrivacyLabel(
        one=_figures(given.report),
        each=_figures(given.each),
        answers=given.answers,
        lifetime=None if given.lifetime is None else _figures(given.lifetime),
        memo=None if given.memory is None else _figures(given.memory.memo),
        pace=pace(given),
    )


def _figures(bound: Bound) -> Figures:
    return Figures(rounded_up(bound.epsilon, 2), factor(bound), chance(bound))

"""The privacy label."""

import math
from fractions import Fraction

import pytest

from deniable import Registry
from deniable_estimator.privacy.computing import guarantee
from deniable_estimator.privacy.words import chance as guess
from deniable_estimator.privacy.words import factor


def declared(epsilon, lifetime, extra=""):
    return Registry.parse(
        f"""
        schema = 1
        app = "example"
        [metrics.m]
        type = "category"
        description = "What?"
        owner = "me"
        expires = 2027-06-30
        values = ["a", "b", "c"]
        epsilon = {epsilon}
        lifetime_epsilon = {lifetime}
        {extra}
        """
    )["m"]


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 2.0, 4.0, 7.3, 10.0])
def test_no_figure_is_below_the_truth(epsilon):
    """Each figure is at least what the integers in force give, and less than a hundredth more."""
    metric = declared(epsilon, 3 * epsilon)
    given = guarantee(metric)
    odds = metric.scheme.mechanism.odds

    def figure(text):
        return Fraction(text.replace(",", ""))

    assert odds <= figure(factor(given.report)) < odds + (Fraction(1, 100) if odds < 100 else 1)
    chance = 100 * odds / (odds + 1)
    assert chance <= figure(guess(given.report)) < chance + Fraction(1, 10)
    assert given.lifetime_reports is not None
    assert given.lifetime is not None
    whole = math.exp(given.lifetime_reports * metric.scheme.mechanism.epsilon)
    if given.lifetime.useful:
        assert whole <= figure(factor(given.lifetime)) * Fraction(1_000_001, 1_000_000)
    else:
        assert whole > math.exp(20) > figure(factor(given.lifetime).removeprefix("> "))
    assert chance < figure(guess(given.lifetime)) <= 100


def test_the_cap_of_the_registry_ends_reports():
    """A cap on all metrics bounds each of them, with memory and without."""
    assert guarantee(declared(1.0, 8.0), 3.0).lifetime_reports == 3
    capped = guarantee(declared(1.0, 4.0, 'longitudinal = "memoize"'), 3.0)
    assert capped.lifetime_reports == 2
    assert capped.lifetime is not None

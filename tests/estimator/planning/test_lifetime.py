"""How a lifetime epsilon can be divided: the crowd, its reports, and what is best."""

from __future__ import annotations

import itertools
from fractions import Fraction
from types import SimpleNamespace

import pytest
from tests.estimator.planning.conftest import plan

from deniable_estimator.kinds.lifetime.crowd import budget_left
from deniable_estimator.planning.lifetime_split import rate_words

DOMAINS: dict[str, dict[str, object]] = {
    "boolean": {"size": 2},
    "list": {"size": 20},
    "mean": {"ask": "mean", "low": 0, "high": 100},
    "tree": {"ask": "distribution", "low": 0.05, "high": 20, "scale": "log"},
}


def divided(lifetime, years, **more):
    """The ways to divide a lifetime."""
    asked = {"lifetime_epsilon": lifetime, "years": years, "devices": 10_000, **more}
    return SimpleNamespace(**plan("lifetime", **asked))


def test_the_budget_that_is_left_is_enumerated():
    """For three windows, every course of reports and replacements of a device, with its exact
    chance, adds up to the share of devices that have reports left."""
    rate, turnover = Fraction(1, 4), Fraction(1, 8)
    for reports in (1, 2, 3):
        expected = []
        for windows in range(4):
            share = Fraction(0)
            for course in itertools.product((False, True), repeat=2 * windows):
                chance, sent = Fraction(1), 0
                for reported, replaced in zip(course[::2], course[1::2], strict=True):
                    if sent < reports:
                        chance *= rate if reported else 1 - rate
                        sent += reported
                    elif reported:
                        chance = Fraction(0)  # a device without reports left has one course only
                    chance *= turnover if replaced else 1 - turnover
                    sent = 0 if replaced else sent
                share += chance * (sent < reports)
            expected.append(float(share))
        found = budget_left(reports, float(rate), float(turnover), 3)
        assert found == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize(
    ("name", "lifetime", "years", "turnover"),
    [*((name, 8, 1, 0.3) for name in DOMAINS), ("boolean", 1, 1, 0), ("boolean", 60, 5, 0.9)],
)
def test_every_choice_keeps_within_the_lifetime(name, lifetime, years, turnover):
    """No choice costs more than the lifetime, by its epsilon in force; the best is advised and no
    other advised one tells more; figures follow from each other."""
    made = divided(lifetime, years, turnover=turnover, **DOMAINS[name])
    assert made.choices[0].epsilon > made.choices[-1].epsilon
    for each in made.choices:
        assert each.reports * Fraction(each.exact_epsilon) <= Fraction(lifetime)
        assert each.sample_rate == min(1, each.reports / made.windows)
        assert each.advised == (each.epsilon <= 3)
        assert each.relative <= 1 or not each.advised
        assert each.information * made.devices * each.window_variance == pytest.approx(
            made.windows, rel=1e-9
        )
        assert Fraction(each.life.epsilon) >= each.reports * Fraction(each.one.epsilon)
    assert made.best.relative == 1
    assert made.once.reports == 1
    assert made.once.epsilon == min(lifetime, 3)


@pytest.mark.parametrize("name", ["list", "mean"])
def test_the_least_lifetime_tells_as_much_as_the_stated_plan(name):
    """It takes less and tells no less, in the same crowd with its turnover."""
    made = divided(8, 2, turnover=0.4, epsilon=1.0, **DOMAINS[name])
    assert made.stated is not None
    assert made.same_as_stated is not None
    assert made.same_as_stated.information >= made.stated.information
    assert made.same_as_stated.half_width <= made.stated.half_width
    assert made.same_as_stated.life.epsilon < made.stated.life.epsilon
    assert made.same_as_stated.advised
    again = divided(2.66, 2, epsilon=2.66, **DOMAINS[name])
    assert again.same_as_stated is None


def test_a_short_time_cannot_spend_a_large_lifetime():
    """Where even a report in every window leaves more than the largest epsilon for each, the best
    has that epsilon, and spends less."""
    made = divided(100, 1, window="month")
    assert made.best.epsilon == 3
    assert made.best.reports == 12
    assert made.best.sample_rate == 1
    huge = divided(10_000, 0.1)
    assert [each.epsilon for each in huge.choices] == [10, 3]
    assert divided(0.001, 0.01).best.reports == 1


@pytest.mark.parametrize(("rate", "text"), [(1, "1"), (0.0041096, "0.00411"), (1e-6, "0.000001")])
def test_rates_are_written_as_in_a_registry(rate, text):
    """Three digits, and never an exponent."""
    assert rate_words(rate) == text

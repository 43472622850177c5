"""Which noise meets an epsilon, and that it does."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable_estimator.releasing.noise import AddedNoise, Sensitivity, gaussian, laplace, of_rho

epsilons = st.fractions(Fraction(1, 50), Fraction(8), max_denominator=100)


def chances(noise: AddedNoise, width: int) -> list[float]:
    """The probabilities of -width to width."""
    if noise.method == "laplace":
        rate = float(1 / noise.scale)
        weights = [math.exp(-rate * abs(z)) for z in range(-width, width + 1)]
    else:
        weights = [math.exp(-(z**2) / (2 * float(noise.scale))) for z in range(-width, width + 1)]
    whole = math.fsum(weights)
    return [each / whole for each in weights]


def delta_at(noise: AddedNoise, moved: int, epsilon: float) -> float:
    """The exact delta of one counter with this noise that moves so far, at epsilon."""
    width = int(40 * math.sqrt(noise.variance)) + 20
    here = chances(noise, width)
    return math.fsum(
        max(0.0, here[z] - math.exp(epsilon) * (here[z - moved] if z >= moved else 0.0))
        for z in range(2 * width + 1)
        if z >= moved
    )


@given(epsilon=epsilons, l1=st.integers(1, 60))
def test_laplace_noise_meets_its_epsilon_exactly(epsilon: Fraction, l1: int) -> None:
    """Its epsilon is the wished one as a fraction, for counters that move by l1 together."""
    each = Sensitivity(l1, l1)
    assert laplace(epsilon, each).epsilon(each) == epsilon


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(3)])
def test_laplace_noise_hides_a_report(epsilon: Fraction) -> None:
    """For a counter that one report moves by 2, the exact delta is 0 at epsilon, and is not at nine
    tenths of it."""
    noise = laplace(epsilon, Sensitivity(2, 4))
    assert delta_at(noise, 2, float(epsilon)) < 1e-12
    assert delta_at(noise, 2, 0.9 * float(epsilon)) > 1e-3


@pytest.mark.parametrize("delta", [1e-4, 1e-8])
@pytest.mark.parametrize("epsilon", [Fraction(1, 4), Fraction(1), Fraction(3)])
def test_gaussian_noise_hides_a_report(epsilon: Fraction, delta: float) -> None:
    """The exact delta of one counter is at most the stated one; with a quarter of the variance it
    would be more."""
    moved = 2
    each = Sensitivity(moved, moved**2)
    noise = gaussian(epsilon, delta, each)
    assert delta_at(noise, moved, float(epsilon)) <= delta
    assert delta_at(AddedNoise("gaussian", noise.scale / 4), moved, float(epsilon)) > delta


@settings(max_examples=40)
@given(epsilon=epsilons, squares=st.integers(1, 400))
def test_gaussian_noise_is_no_larger_than_needed(epsilon: Fraction, squares: int) -> None:
    """Its rho implies the wished epsilon or at most a thousandth less."""
    each = Sensitivity(squares, squares)
    found = of_rho(float(gaussian(epsilon, 1e-8, each).rho(each)), 1e-8)
    assert 0.999 * float(epsilon) <= found <= float(epsilon)


@settings(max_examples=25)
@given(rho=st.floats(1e-8, 20), delta=st.sampled_from([1e-4, 1e-8, 1e-20]))
def test_a_rho_never_implies_less_than_the_best_order_says(rho: float, delta: float) -> None:
    """The list of orders loses at most one part in 200 against a much finer one, and never gains
    against the closed form's lower end, rho."""
    fine = min(
        rho * a + (math.log(1 / delta) + (a - 1) * math.log1p(-1 / a) - math.log(a)) / (a - 1)
        for a in (1 + 1.002**step * 1e-3 for step in range(12_000))
    )
    assert max(0.0, fine) * 0.999 <= of_rho(rho, delta) <= max(fine, 0.0) * 1.005 + 1e-6


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(1), Fraction(40)])
@pytest.mark.parametrize("method", ["laplace", "gaussian"])
def test_the_variance_is_that_of_the_noise(method: str, scale: Fraction) -> None:
    """Summed over all integers; for Gaussian noise it is an upper bound."""
    noise = AddedNoise(method, scale)  # type: ignore[arg-type]
    width = 3000
    exact = math.fsum(each * (z - width) ** 2 for z, each in enumerate(chances(noise, width)))
    assert exact <= noise.variance * (1 + 1e-9)
    if method == "laplace" or scale >= 1:
        assert exact == pytest.approx(noise.variance, rel=1e-6)
